"""Trace header: everything small of a trace as JSON; tensors are requested by name and slice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from regard.look.beam_tree import beam_tree
from regard.look.decoding_path import ANSWER, IdToToken, axis_side, to_tokens
from regard.look.tokens import token_label
from regard.look.trace_file import FORMAT
from regard.trace import Record

SEQUENCES = ("source", "target", "read")
"""the source, the answer, the decoder's input"""
TOP_LOGITS = 50
"""number of the largest logits per step in the header"""


def trace_header(records: Sequence[Record], whole: Sequence[Record], id_to_token: IdToToken) -> dict[str, Any]:
    """Header of the condensed `records`; `whole` also has the hypotheses that were pruned."""
    context = next((record.context for record in records), {})
    return {
        "format": FORMAT,
        "sequences": {name: [_token(token) for token in context[name][0]] for name in SEQUENCES if name in context},
        "tensors": [describe_tensor(record) | score_stages(record, records) for record in records],
        "steps": _steps(records, id_to_token),
        "beam": beam_tree(whole, id_to_token),
    }


def _token(token: str) -> dict[str, Any]:
    return {"token": token, "label": token_label(token)}


def describe_tensor(record: Record) -> dict[str, Any]:
    """A tensor without its numbers: name, axes, shape, sequences along the axes, smallest and largest number."""
    data = record.data[0]
    finite = data[data.isfinite()] if data.is_floating_point() else data
    low, high = (float(finite.min()), float(finite.max())) if finite.numel() else (0.0, 0.0)
    return {
        "name": record.name,
        "axes": list(record.axes[1:]),
        "shape": list(data.shape),
        "sides": axis_sides(record),
        "names": {axis: list(names) for axis, names in record.labels.items() if isinstance(names, tuple)},
        "backwards": bool(record.context.get("backwards")),
        "dtype": "f4" if data.is_floating_point() else "i4",
        "min": low,
        "max": high,
    }


def score_stages(record: Record, records: Sequence[Record]) -> dict[str, bool]:
    """Of attention scores: whether they are products divided by the root of their width, and whether a mask hid some.

    A model that scales its scores records the products too; one that does not, such as RNNsearch, has none.
    """
    base, is_score = record.name.removesuffix("scores"), record.name.rpartition(".")[2] == "scores"
    if not is_score:
        return {}
    others = {other.name: other.data[0] for other in records if other.name in (f"{base}products", f"{base}weights")}
    weights, scores = others.get(f"{base}weights"), record.data[0].float()
    masked = weights is not None and weights.shape == scores.shape and _has_masked(scores, weights)
    return {"scaled": f"{base}products" in others, "masked": masked}


def _has_masked(scores: Tensor, weights: Tensor) -> bool:
    """Whether a key has a score and no weight, although the softmax alone would not give it exactly 0."""
    best = scores.nan_to_num(nan=-math.inf).amax(-1, keepdim=True) if scores.numel() else scores
    return bool(((weights == 0) & scores.isfinite() & ((scores - best).exp() > 0)).any())


def axis_sides(record: Record) -> dict[str, str]:
    """Per axis that is labeled with tokens: their sequence."""
    found = {axis: axis_side(record, axis) for axis in record.axes}
    return {axis: side for axis, side in found.items() if side in SEQUENCES}


def _steps(records: Sequence[Record], id_to_token: IdToToken) -> list[dict[str, Any]]:
    """Per generated token: its logit, its log-probability, and the candidates with the largest logits."""
    logits, answer = (_first_row(records, name) for name in ("logits", ANSWER))
    if logits is None or answer is None or logits.ndim != 2:
        return []
    ids = answer.tolist()[: len(logits)]
    logs_TV = logits.float().log_softmax(-1)
    best = logits.topk(min(TOP_LOGITS, logits.shape[1]))

    def candidate(i: int, logit: float) -> dict[str, Any]:
        return {"id": i, **_token(to_tokens([i], "target", id_to_token)[0]), "logit": logit}

    return [
        {
            "chosen": candidate(chosen, float(logits[step, chosen])),
            "log_prob": float(logs_TV[step, chosen]),
            "entropy": _entropy(logits[step]),
            "best": [candidate(i, x) for i, x in zip(best.indices[step].tolist(), best.values[step].tolist())],
        }
        for step, chosen in enumerate(ids)
    ]


def _first_row(records: Sequence[Record], name: str) -> Tensor | None:
    return next((record.data[0] for record in records if record.name == name), None)


def _entropy(logits_V: Tensor) -> float:
    logs_V = logits_V.double().log_softmax(-1)
    entropy = -float((logs_V.exp() * logs_V).nansum())
    return entropy if math.isfinite(entropy) else 0.0
