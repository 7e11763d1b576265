"""What led to the answer, and nothing else: one record a name, the steps of decoding joined under one another.

A recording holds a record a step and a row a hypothesis. The page shows one sentence and the answer it got, so here
each name becomes one tensor: its axes say whose words they wear, and every number is one that the model used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regard.look.decoding_path import ANSWER, Spell, crosses, passes, plain, reader, side, spelt, trimmed
from regard.look.states import backwards, begins
from regard.trace import Record

Path = Sequence[tuple[Record, int]]
"""Records that follow one another, each with the row of its batch that is looked at."""
Words = dict[str, list[list[str]]]
"""Of a sequence ("source", "target", "read"): its words, in a list of one row."""


def condensed(records: Sequence[Record], spell: Spell) -> list[Record]:
    """The steps that led to the answer for the first sentence, joined.

    >>> one = Record("w.weights", ("batch", "query", "key"), torch.ones(1, 1, 1), {}, {"step": 0, "target": [[2]]})
    >>> two = Record("w.weights", ("batch", "query", "key"), torch.ones(1, 1, 2), {}, {"step": 1, "target": [[5]]})
    >>> condensed([one, two], {})[0].data
    tensor([[[1., 0.],
             [1., 1.]]])
    """
    if records and all(record.scene.get("condensed") for record in records):
        return list(records)  # out of a file
    words = sequences(records, spell)
    return [_whole(name, records, words) for name in dict.fromkeys(record.name for record in records)]


def _whole(name: str, records: Sequence[Record], words: Words) -> Record:
    found = passes(name, records)[0]
    path = [(found.records[0], 0)] if name == ANSWER else found.path(found.sources[0])
    axes, data = joined(path)
    first, scene = path[0][0], {**words, "condensed": True}
    if begins(first):
        scene["begins"] = True
    if backwards(first):  # so that it stands under the word it was read at
        data, scene["backwards"] = data.flip(axes.index("position")), True
    labels: dict[str, Any] = {}
    for axis, size in zip(axes, data.shape, strict=True):
        given = first.labels.get(axis)
        if isinstance(given, tuple):  # names of its own, such as those of gates
            labels[axis] = scene[axis] = given
            continue
        fitting = [side for side in _whose(axis, first) if side in words and len(words[side][0]) == size]
        if fitting:
            labels[axis] = words[fitting[0]]
    return Record(name, ("batch", *axes), data[None], labels, scene)


def sequences(records: Sequence[Record], spell: Spell) -> Words:
    """The words of the first sentence: what was read, what was said, and what the decoder read to say it.

    A text that was read as it is, with nothing said, is what the decoder read.

    >>> sequences([Record("w", ("batch",), torch.ones(1), {}, {"target": [["The", " sea"]]})], {})
    {'read': [['The', ' sea']]}
    """
    words = _first("source", "source", records, spell)
    found = next((one for one in passes("logits", records) if one.decoded), None)
    if found is None:
        return words | _first("target", "read", records, spell)
    path = found.path(found.sources[0])
    answer = next((record for record in records if record.name == ANSWER), None)
    given = None if answer is None else answer.labels.get("position")
    said = found.said(found.sources[0]) if given is None else given[0]
    target = _spelt(said, "target", spell)[: len(path)]
    prompt = _spelt(trimmed(plain(path[0][0].scene["target"][0])), "target", spell)
    return words | {"target": [target], "read": [[*prompt, *target][: len(prompt) + len(path) - 1]]}


def _first(whose: str, name: str, records: Sequence[Record], spell: Spell) -> Words:
    """The words of the first sentence of a side, under a name; nothing if nobody said them."""
    for record in records:
        given = record.scene.get(whose)
        if given is not None and len(given) and len(given[0]):
            return {name: [_spelt(given[0], whose, spell)]}
    return {}


def _spelt(row: Any, whose: str, spell: Spell) -> list[str]:
    return [item if isinstance(item, str) else spelt([item], whose, spell)[0] for item in plain(row)]


def joined(path: Path) -> tuple[tuple[str, ...], Tensor]:
    """The axes and the numbers of a path, without the batch.

    Queries and positions follow one another; of keys the last record has all that the earlier ones had; what has no
    place in a sentence of its own gets one: an axis "query", "position" or "step"; what a decoder begins from has none.

    >>> joined([(Record("h", ("batch", "width"), torch.ones(1, 2), {}, {"position": t}), 0) for t in range(3)])[0]
    ('position', 'width')
    """
    record = path[0][0]
    axes = tuple(axis for axis in record.axes if axis != "batch")
    parts = [_row(record, row) for record, row in path]
    nothing = 0.0 if record.name.endswith("weights") else math.nan
    if "key" in axes and not {"query", "width"} & set(axes):  # one query a record
        axes, parts = ("query", *axes), [part[None] for part in parts]
    if "query" in axes:
        return axes, _under_one_another(parts, axes, nothing)
    if "key" in axes:
        return axes, parts[-1]
    if "position" in axes:
        return axes, torch.cat(parts, axes.index("position"))
    place = next((name for name in ("position", "step") if name in record.scene and not begins(record)), None)
    return (axes, parts[0]) if place is None else ((place, *axes), torch.stack(parts))


def _row(record: Record, row: int) -> Tensor:
    data = record.data.detach().cpu()
    data = data.select(record.axes.index("batch"), row) if "batch" in record.axes else data
    return data.float() if data.is_floating_point() else data


def _under_one_another(parts: Sequence[Tensor], axes: Sequence[str], nothing: float) -> Tensor:
    """Queries of all steps; a key that was not there yet is `nothing`."""
    if "key" in axes:
        at = axes.index("key")
        longest = max(part.shape[at] for part in parts)
        after = (0, 0) * (len(axes) - 1 - at)
        parts = [torch.nn.functional.pad(p, (*after, 0, longest - p.shape[at]), value=nothing) for p in parts]
    return torch.cat(list(parts), axes.index("query"))


def _whose(axis: str, record: Record) -> tuple[str, ...]:
    """Which sequences' words an axis may wear, the first that fits. A query at another sequence is for what is said."""
    if record.name == ANSWER or axis == "step":
        return ("target",)
    given = side(record, axis)
    if given is None and axis in ("position", "query"):
        given = reader(record)
    if given == "target":
        return ("target", "read") if axis == "query" and crosses(record) else ("read",)
    return (given,) if given else ()
