"""Differences between two traces of the same text: per tensor, as far as both stand at the same tokens."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from torch import Tensor

from regard.look import Recording
from regard.trace import Record

MAX_LISTED = 12
"""number of tensors that are listed"""
MIN_DIFFERENCE = 1e-7
"""a smaller difference is rounding"""


def trace_difference(before: Recording, after: Recording) -> dict[str, Any]:
    """The tensors with the largest relative differences, and the number of tensors compared.

    Per tensor: mean and maximum of the absolute difference, and the mean relative to the tensor's mean absolute value.
    """
    old = {record.name: record for record in before.records}
    found: list[dict[str, Any]] = []
    compared = 0
    for record in after.records:
        if record.name not in old or not record.data.is_floating_point():
            continue
        parts = overlap(old[record.name], record)
        if parts is None:
            continue
        compared += 1
        old_data, new_data = parts
        change = (new_data - old_data).abs().nan_to_num()
        largest = float(change.max())
        if largest > MIN_DIFFERENCE:
            mean, size = float(change.mean()), float(old_data.abs().nanmean())
            found.append({"name": record.name, "mean": mean, "max": largest, "relative": mean / max(size, 1e-12)})
    return {"differences": sorted(found, key=lambda row: -row["relative"])[:MAX_LISTED], "compared": compared}


def overlap(before: Record, after: Record) -> tuple[Tensor, Tensor] | None:
    """The leading parts of two tensors that stand at the same tokens; None if there is none."""
    if before.axes != after.axes:
        return None
    old_data, new_data = before.data[0].double(), after.data[0].double()
    for dim, axis in enumerate(after.axes[1:]):
        size = min(old_data.shape[dim], new_data.shape[dim])
        labels = [label for label in (r.labels.get(axis) for r in (before, after)) if isinstance(label, list)]
        if len(labels) == 2:
            pairs = zip(labels[0][0], labels[1][0], strict=False)
            same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
            # the values at a generated token were computed before it was generated
            size = min(size, same + (labels[1] is after.context.get("target")))
        elif old_data.shape[dim] != new_data.shape[dim]:
            return None
        old_data, new_data = old_data.narrow(dim, 0, size), new_data.narrow(dim, 0, size)
    return (old_data, new_data) if new_data.numel() else None
