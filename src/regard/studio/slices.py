"""Slices of a tensor by the names of its axes: "head:2,query:0-9" is head 2 and its first ten queries."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from torch import Tensor

from regard.studio.errors import ApiError

PART = re.compile(r"([a-z_]{1,40}):(\d{1,9})(?:-(\d{1,9}))?")
MAX_NUMBERS = 16_000_000
"""numbers per response: 64 MB"""


def slice_tensor(data: Tensor, axes: Sequence[str], text: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """The numbers of a slice and its axes: an index removes an axis, a range keeps it.

    >>> import torch
    >>> numbers, axes = slice_tensor(torch.arange(6.0).view(2, 3), ("head", "key"), "head:1,key:0-1")
    >>> numbers.tolist(), axes
    ([3.0, 4.0], ('key',))
    """
    ranges = _parse_slice(axes, text)
    index: list[int | slice] = []
    for axis, size in zip(axes, data.shape, strict=True):
        first, last = ranges.get(axis, (0, size - 1))
        last = first if last is None else last
        if not first <= last < max(size, 1):
            message = f"{axis}: expected indices from 0 to {size - 1}, got {first}-{last}"
            raise ApiError(422, "bad-slice", message, "request a smaller range")
        index.append(first if axis in ranges and ranges[axis][1] is None else slice(first, last + 1))
    part = data[tuple(index)]
    if part.numel() > MAX_NUMBERS:
        message = f"{part.numel():,} numbers were requested; at most {MAX_NUMBERS:,} are sent"
        raise ApiError(413, "too-large", message, "request a slice")
    return part.numpy(), tuple(axis for axis, at in zip(axes, index, strict=True) if isinstance(at, slice))


def _parse_slice(axes: Sequence[str], text: str) -> dict[str, tuple[int, int | None]]:
    ranges: dict[str, tuple[int, int | None]] = {}
    for part in text.split(",") if text else []:
        match = PART.fullmatch(part.strip())
        if match is None:
            message = f"{part[:40]!r} is not a slice"
            raise ApiError(422, "bad-slice", message, "write axis:5 or axis:0-9, such as head:2")
        name, first, last = match.groups()
        if name not in axes:
            raise ApiError(422, "bad-slice", f"there is no axis {name}", f"its axes are {', '.join(axes) or 'none'}")
        ranges[name] = (int(first), None if last is None else int(last))
    return ranges


def to_bytes(numbers: np.ndarray) -> bytes:
    """Little-endian bytes: float32 or int32."""
    kind = "<f4" if np.issubdtype(numbers.dtype, np.floating) else "<i4"
    return np.ascontiguousarray(numbers, dtype=kind).tobytes()
