"""Trace header: everything small of a trace as JSON; tensors are requested by name and slice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from regard.errors import ModelError
from regard.look import lens
from regard.look.beam_tree import beam_tree
from regard.look.candidates import candidates_view
from regard.look.decoding_path import ANSWER, SEQUENCES, IdToToken, axis_side, to_tokens
from regard.look.graph import model_graph
from regard.look.head_roles import head_roles
from regard.look.lens_view import lens_tokens
from regard.look.tokens import token_label
from regard.look.trace_file import FORMAT
from regard.look.windows import find_window, generation_windows
from regard.trace import Record

TOP_LOGITS = 50
"""number of the largest logits per step in the header"""


def trace_header(
    records: Sequence[Record], whole: Sequence[Record], id_to_token: IdToToken, window: int = 0
) -> dict[str, Any]:
    """Header of the condensed `records`; `whole` also has the hypotheses that were pruned, and other windows."""
    context = next((record.context for record in records), {})
    return {
        "format": FORMAT,
        "sequences": {name: [_token(token) for token in context[name][0]] for name in SEQUENCES if name in context},
        "tensors": [describe_tensor(record) | score_stages(record, records) for record in records],
        "steps": _steps(records, id_to_token),
        "predictions": _predictions(records, id_to_token),
        "lens_tokens": _lens_tokens(records, id_to_token),
        "lens": _lens(records),
        "beam": beam_tree(whole, id_to_token, find_window(whole, window)),
        "window": describe_window(whole, window),
        "graph": model_graph(records),
        "head_roles": [role.to_dict() for role in head_roles(records)],
    }


def describe_window(whole: Sequence[Record], number: int) -> dict[str, Any] | None:
    """Which part of a generated text is shown; None if it was generated in one window."""
    windows = generation_windows(whole)
    if not windows:
        return None
    here = windows[number]
    total = sum(len(window.ids) for window in windows)
    return {
        "number": number,
        "count": len(windows),
        "before": list(here.before),
        "tokens": len(here.ids),
        "total": total,
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


def _predictions(records: Sequence[Record], id_to_token: IdToToken) -> dict[str, Any] | None:
    """Candidates at each position of a text that was read, or at each mask; None: no predictions, or those of steps."""
    try:
        view = candidates_view(records, id_to_token)
    except ModelError:
        return None
    if view.kind == "step":
        return None
    rows = zip(
        view.contexts, view.candidates, view.probabilities.tolist(), view.actual, view.ranks, strict=True
    )  # fmt: skip
    positions = [
        {
            "read": _token(read),
            "best": [{**_token(token), "probability": p} for token, p in zip(tokens, numbers, strict=True)],
            "actual": {**_token(actual), "rank": rank, "probability": float(view.actual_probabilities[i])}
            if rank
            else None,
        }
        for i, (read, tokens, numbers, actual, rank) in enumerate(rows)
    ]
    return {"kind": view.kind, "positions": positions}


def _lens_tokens(records: Sequence[Record], id_to_token: IdToToken) -> dict[str, dict[str, Any]]:
    """Tokens or labels of the ids in the logit lens."""
    record = next((record for record in records if record.name == lens.IDS), None)
    if record is None:
        return {}
    ids = record.data.unique().tolist()
    return {str(i): _token(token) for i, token in zip(ids, lens_tokens(ids, record, id_to_token), strict=True)}


def _lens(records: Sequence[Record]) -> dict[str, Any] | None:
    """What followed or was chosen at each position of the logit lens, and its notes; None if there is no lens."""
    context = next((record.context for record in records if record.name == lens.IDS), None)
    if context is None:
        return None
    return {
        "actual": [_token(token) for token in context.get(lens.ACTUAL, ())],
        "actual_title": context.get(lens.ACTUAL_TITLE, lens.NEXT),
        "whole": bool(context.get(lens.WHOLE)),
        "notes": list(context.get(lens.NOTES, ())),
    }


def _first_row(records: Sequence[Record], name: str) -> Tensor | None:
    return next((record.data[0] for record in records if record.name == name), None)


def _entropy(logits_V: Tensor) -> float:
    logs_V = logits_V.double().log_softmax(-1)
    entropy = -float((logs_V.exp() * logs_V).nansum())
    return entropy if math.isfinite(entropy) else 0.0
