"""Part of a tensor by the names of its axes: "head:2,query:0-9" is one head and its first ten queries."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from torch import Tensor

from regard.studio.errors import Refusal

PART = re.compile(r"([a-z_]{1,40}):(\d{1,9})(?:-(\d{1,9}))?")
MOST = 16_000_000
"""numbers of one answer: 64 MB"""


def cut(data: Tensor, axes: Sequence[str], text: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """The numbers of a slice and the axes they have left: one index takes an axis away, a range keeps it.

    >>> import torch
    >>> numbers, axes = cut(torch.arange(6.0).view(2, 3), ("head", "key"), "head:1,key:0-1")
    >>> numbers.tolist(), axes
    ([3.0, 4.0], ('key',))
    """
    asked = _asked(axes, text)
    index: list[int | slice] = []
    for axis, size in zip(axes, data.shape, strict=True):
        first, last = asked.get(axis, (0, size - 1))
        last = first if last is None else last
        if not first <= last < max(size, 1):
            raise Refusal(
                422, "bad-slice", f"{axis} has the places 0 to {size - 1}, got {first}-{last}", "ask for fewer places"
            )
        index.append(first if axis in asked and asked[axis][1] is None else slice(first, last + 1))
    part = data[tuple(index)]
    if part.numel() > MOST:
        raise Refusal(
            413, "too-large", f"{part.numel():,} numbers were asked for; at most {MOST:,} are sent", "ask for a slice"
        )
    left = tuple(axis for axis, at in zip(axes, index, strict=True) if isinstance(at, slice))
    return part.numpy(), left


def _asked(axes: Sequence[str], text: str) -> dict[str, tuple[int, int | None]]:
    asked: dict[str, tuple[int, int | None]] = {}
    for part in text.split(",") if text else []:
        found = PART.fullmatch(part.strip())
        if found is None:
            raise Refusal(422, "bad-slice", f"{part[:40]!r} is no slice", "write axis:5 or axis:0-9, such as head:2")
        name, first, last = found.groups()
        if name not in axes:
            raise Refusal(422, "bad-slice", f"there is no axis {name}", f"its axes are {', '.join(axes) or 'none'}")
        asked[name] = (int(first), None if last is None else int(last))
    return asked


def raw(numbers: np.ndarray) -> bytes:
    """Little-endian bytes: floats of 32 bits, or whole numbers of 32 bits.

    >>> raw(np.array([1.0]))
    b'\\x00\\x00\\x80?'
    """
    kind = "<f4" if np.issubdtype(numbers.dtype, np.floating) else "<i4"
    return np.ascontiguousarray(numbers, dtype=kind).tobytes()
