"""Condensed recording: the path of the first sentence's answer, with all steps joined into one record per name.

A recording holds one record per step and one row per hypothesis. The page shows one sentence and its answer, so here
each name becomes one tensor with tokens along its axes; every number is one of the recorded pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regard.look.decoding_path import (
    ANSWER,
    IdToToken,
    axis_side,
    input_side,
    is_cross_attention,
    passes,
    row_tokens,
    strip_padding,
    to_list,
)
from regard.look.image_overlay import FRAME, FRAMES, PIXEL_MEAN, PIXEL_SCALE, is_of_frames
from regard.look.states import is_backwards, is_initial
from regard.look.windows import GenerationWindow, find_window
from regard.trace import Record

Path = Sequence[tuple[Record, int]]
"""Successive records, each with the row of its batch."""
Sequences = dict[str, list[list[str]]]
"""Per sequence ("source", "target", "read"): its tokens, in a list of one row."""

FIRST_PIECES = "first_pieces"
"""fact of the context of an encoder of subwords: the position of each word's first piece"""
KEPT = (PIXEL_MEAN, PIXEL_SCALE, "candidates", "vocabulary", FIRST_PIECES)
"""facts of a record's context that views need: the scale of pixels, what is predicted, the side of a vocabulary, and
where words begin"""


def condense(records: Sequence[Record], id_to_token: IdToToken, window: int = 0) -> list[Record]:
    """The steps that led to the answer for the first sentence, joined; of a long text, those of one window."""
    if records and all(record.context.get("condensed") for record in records):
        return list(records)  # loaded from a file
    done = [record for record in records if record.context.get("condensed")]  # such as the logit lens of a saved trace
    raw = [record for record in records if not record.context.get("condensed")]
    here = find_window(raw, window)
    tokens = sequences(raw, id_to_token, here)
    names = dict.fromkeys(record.name for record in raw)
    return [*(_condense_name(name, raw, tokens, here) for name in names), *done]


def _condense_name(
    name: str, records: Sequence[Record], tokens: Sequences, window: GenerationWindow | None = None
) -> Record:
    all_passes = passes(name, records)
    traced = all_passes[min(window.number, len(all_passes) - 1) if window else 0]
    path = (
        [(traced.records[0], 0)] if name == ANSWER else traced.path(traced.sources[0], window.ids if window else None)
    )
    axes, data = join_steps(path)
    if window and name == ANSWER:
        data = data[len(window.before) : len(window.before) + len(window.ids)]
    first = path[0][0]
    kept = {fact: first.context[fact] for fact in KEPT if fact in first.context}
    context = {**tokens, **kept, "condensed": True}
    if is_initial(first):
        context["begins"] = True
    if "position" in first.context and "position" not in first.axes:
        context["unrolled"] = True  # computed position by position
    if is_backwards(first):  # aligned with the tokens
        data, context["backwards"] = data.flip(axes.index("position")), True
    if axis_side(first, "position") == "word":  # a text with the most pieces may have fewer words than others
        words = next(tokens[side][0] for side in ("word", "source") if side in tokens)
        data = data.narrow(axes.index("position"), 0, len(words))
    labels: dict[str, Any] = {}
    for axis, size in zip(axes, data.shape, strict=True):
        given = first.labels.get(axis)
        if isinstance(given, tuple):  # names of its own, such as those of gates
            labels[axis] = context[axis] = given
            continue
        matches = [side for side in _candidate_sides(axis, first) if side in tokens and len(tokens[side][0]) == size]
        if matches:
            labels[axis] = tokens[matches[0]]
    return Record(name, ("batch", *axes), data[None], labels, context)


def sequences(records: Sequence[Record], id_to_token: IdToToken, window: GenerationWindow | None = None) -> Sequences:
    """Tokens of the first sentence: "source", "target" (the answer), and "read" (the decoder's input).

    A text that was read without generating is the decoder's input.

    >>> sequences([Record("w", ("batch",), torch.ones(1), {}, {"target": [["The", " sea"]]})], {})
    {'read': [['The', ' sea']]}
    """
    source = _first_row("source", "source", records, id_to_token)
    words = _first_row("word", "word", records, id_to_token)
    source |= words if words.get("word") != source.get("source") else {}
    decodings = [one for one in passes("logits", records) if one.is_decoding]
    if not decodings:
        return source | _first_row("target", "read", records, id_to_token)
    traced = decodings[window.number if window else 0]
    path = traced.path(traced.sources[0], window.ids if window else None)
    answer = next((record for record in records if record.name == ANSWER), None)
    labels = None if answer is None else answer.labels.get("position")
    ids = traced.answer_ids(traced.sources[0]) if labels is None else labels[0]
    target = row_tokens(ids, "target", id_to_token)[len(window.before) if window else 0 :][: len(path)]
    prompt = row_tokens(strip_padding(to_list(path[0][0].context["target"][0])), "target", id_to_token)
    return source | {"target": [target], "read": [[*prompt, *target][: len(prompt) + len(path) - 1]]}


def _first_row(side: str, name: str, records: Sequence[Record], id_to_token: IdToToken) -> Sequences:
    """Tokens of the first sentence of a side, under a name; empty if they are not known."""
    for record in records:
        rows = record.context.get(side)
        if rows is not None and len(rows) and len(rows[0]):
            return {name: [row_tokens(rows[0], side, id_to_token)]}
    return {}


def join_steps(path: Path) -> tuple[tuple[str, ...], Tensor]:
    """Axes and numbers of a path, without the batch axis.

    Queries and positions are concatenated; the last record's keys include all earlier ones; records of a single place
    get an axis "query", "position" or "step"; an initial state gets none.

    >>> join_steps([(Record("h", ("batch", "width"), torch.ones(1, 2), {}, {"position": t}), 0) for t in range(3)])[0]
    ('position', 'width')
    """
    record = path[0][0]
    axes = tuple(axis for axis in record.axes if axis != "batch")
    if {"row", "column"} <= set(axes):  # an image or a feature map, made once, before the first token
        if is_of_frames(record):
            frames = int(record.context[FRAMES])
            return (FRAME, *axes), record.data.detach().cpu().float().unflatten(0, (-1, frames))[path[0][1]]
        return axes, _row(*path[0])
    parts = [_row(record, row) for record, row in path]
    fill = 0.0 if record.name.endswith("weights") else math.nan
    if "key" in axes and not {"query", "width"} & set(axes):  # one query per record
        axes, parts = ("query", *axes), [part[None] for part in parts]
    if "query" in axes:
        return axes, _concat_queries(parts, axes, fill)
    if "key" in axes:
        return axes, parts[-1]
    if "position" in axes:
        return axes, torch.cat(parts, axes.index("position"))
    place = next((name for name in ("position", "step") if name in record.context and not is_initial(record)), None)
    return (axes, parts[0]) if place is None else ((place, *axes), torch.stack(parts))


def _row(record: Record, row: int) -> Tensor:
    data = record.data.detach().cpu()
    data = data.select(record.axes.index("batch"), row) if "batch" in record.axes else data
    return data.float() if data.is_floating_point() else data


def _concat_queries(parts: Sequence[Tensor], axes: Sequence[str], fill: float) -> Tensor:
    """Queries of all steps; keys that did not exist yet are `fill`."""
    if "key" in axes:
        at = axes.index("key")
        longest = max(part.shape[at] for part in parts)
        after = (0, 0) * (len(axes) - 1 - at)
        parts = [torch.nn.functional.pad(p, (*after, 0, longest - p.shape[at]), value=fill) for p in parts]
    return torch.cat(list(parts), axes.index("query"))


def _candidate_sides(axis: str, record: Record) -> tuple[str, ...]:
    """Sequences whose tokens may label an axis, in order. Queries of cross attention are labeled with their outputs."""
    if record.name == ANSWER or axis == "step":
        return ("target",)
    if axis == FRAME:
        return ("source",)
    side = axis_side(record, axis)
    if side is None and axis in ("position", "query"):
        side = input_side(record)
    if side == "target":
        return ("target", "read") if axis == "query" and is_cross_attention(record) else ("read",)
    return (side,) if side else ()
