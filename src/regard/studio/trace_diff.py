"""What moved between two traces of the same text: of each tensor how far, as long as both stand at the same words."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from torch import Tensor

from regard.look import Recording
from regard.trace import Record

LISTED = 12
"""tensors that are told, those that moved most"""
STILL = 1e-7
"""a change that is smaller is rounding"""


def moved(before: Recording, after: Recording) -> dict[str, Any]:
    """The tensors that moved most, and how many were compared: mean and largest change, and the mean's share of the
    tensor's own mean size.

    >>> import torch
    >>> from regard.trace import Trace
    >>> one, two = (Recording(Trace(records=[Record("w", ("batch", "key"), torch.tensor([[1.0, x]]), {}, {})]))
    ...             for x in (1.0, 2.0))
    >>> moved(one, two)
    {'moved': [{'name': 'w', 'mean': 0.5, 'most': 1.0, 'share': 0.5}], 'compared': 1}
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
        was, now = parts
        change = (now - was).abs().nan_to_num()
        if float(change.max()) > STILL:
            mean, size = float(change.mean()), float(was.abs().nanmean())
            told = {"name": record.name, "mean": mean, "most": float(change.max()), "share": mean / max(size, 1e-12)}
            found.append(told)
    return {"moved": sorted(found, key=lambda row: -row["share"])[:LISTED], "compared": compared}


def overlap(before: Record, after: Record) -> tuple[Tensor, Tensor] | None:
    """Both tensors where they stand at the same words from the first on; None if they have nothing in common.

    >>> import torch
    >>> was, now = (Record("w", ("batch", "key"), torch.ones(1, 2), {"key": [["je", w]]}, {}) for w in ("suis", "vais"))
    >>> overlap(was, now)[0].shape
    torch.Size([1])
    """
    if before.axes != after.axes:
        return None
    was, now = before.data[0].double(), after.data[0].double()
    for place, axis in enumerate(after.axes[1:]):
        size = min(was.shape[place], now.shape[place])
        labels = [label for label in (r.labels.get(axis) for r in (before, after)) if isinstance(label, list)]
        if len(labels) == 2:
            pairs = zip(labels[0][0], labels[1][0], strict=False)
            same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
            # what stands at a word that is said was computed before it was said
            size = min(size, same + (labels[1] is after.scene.get("target")))
        elif was.shape[place] != now.shape[place]:
            return None
        was, now = was.narrow(place, 0, size), now.narrow(place, 0, size)
    return (was, now) if now.numel() else None
