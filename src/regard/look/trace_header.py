"""The header of a trace: all that is small, as JSON. What is large stays outside and is asked for by name and slice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from regard.look import beams
from regard.look.decoding_path import ANSWER, Spell, side, spelt
from regard.look.tokens import shown
from regard.look.trace_file import FORMAT
from regard.trace import Record

SEQUENCES = ("source", "target", "read")
"""what was read, what was said, what the decoder read to say it"""
BEST = 50
"""logits of a step that the header has, the largest first"""


def header(records: Sequence[Record], whole: Sequence[Record], spell: Spell) -> dict[str, Any]:
    """What a page needs to know before it asks for a tensor. `records` are condensed; `whole` has the hypotheses that
    were left behind too.

    >>> header([], [], {})["tensors"]
    []
    """
    words = next((record.scene for record in records), {})
    return {
        "format": FORMAT,
        "sequences": {name: [_word(token) for token in words[name][0]] for name in SEQUENCES if name in words},
        "tensors": [describe(record) for record in records],
        "steps": _steps(records, spell),
        "beam": beams.tree(whole, spell),
    }


def _word(token: str) -> dict[str, Any]:
    return {"token": token, "shown": shown(token)}


def describe(record: Record) -> dict[str, Any]:
    """A tensor without its numbers: name, axes, shape, whose words its axes wear, smallest and largest number.

    >>> import torch
    >>> describe(Record("w", ("batch", "key"), torch.tensor([[1.0, 3.0]]), {}, {}))["max"]
    3.0
    """
    data = record.data[0]
    finite = data[data.isfinite()] if data.is_floating_point() else data
    low, high = (float(finite.min()), float(finite.max())) if finite.numel() else (0.0, 0.0)
    return {
        "name": record.name,
        "axes": list(record.axes[1:]),
        "shape": list(data.shape),
        "sides": sides(record),
        "names": {axis: list(names) for axis, names in record.labels.items() if isinstance(names, tuple)},
        "backwards": bool(record.scene.get("backwards")),
        "dtype": "f4" if data.is_floating_point() else "i4",
        "min": low,
        "max": high,
    }


def sides(record: Record) -> dict[str, str]:
    """Of each axis that wears words: the sequence they are from.

    >>> import torch
    >>> words = [["je"]]
    >>> sides(Record("w", ("batch", "key"), torch.ones(1, 1), {"key": words}, {"source": words}))
    {'key': 'source'}
    """
    found = {axis: side(record, axis) for axis in record.axes}
    return {axis: whose for axis, whose in found.items() if whose in SEQUENCES}


def _steps(records: Sequence[Record], spell: Spell) -> list[dict[str, Any]]:
    """Of each word that was said: its logit, its log-probability, and the best that could have been said."""
    logits, answer = (_only(records, name) for name in ("logits", ANSWER))
    if logits is None or answer is None or logits.ndim != 2:
        return []
    said = answer.tolist()[: len(logits)]
    logs = beams.surprise(logits, said)
    best = logits.topk(min(BEST, logits.shape[1]))
    return [
        {
            "chosen": {"id": word, **_spelt([word], spell)[0], "logit": float(logits[step, word])},
            "log": logs[step],
            "entropy": _entropy(logits[step]),
            "best": [
                {"id": i, **token, "logit": logit}
                for i, token, logit in zip(ids, _spelt(ids, spell), values, strict=True)
            ],
        }
        for step, word in enumerate(said)
        for ids, values in [(best.indices[step].tolist(), best.values[step].tolist())]
    ]


def _spelt(ids: Sequence[int], spell: Spell) -> list[dict[str, Any]]:
    return [_word(token) for token in spelt(ids, "target", spell)]


def _only(records: Sequence[Record], name: str) -> Tensor | None:
    return next((record.data[0] for record in records if record.name == name), None)


def _entropy(logits_V: Tensor) -> float:
    logs_V = logits_V.double().log_softmax(-1)
    entropy = -float((logs_V.exp() * logs_V).nansum())
    return entropy if math.isfinite(entropy) else 0.0
