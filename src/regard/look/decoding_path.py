"""From records to matrices: whose words an axis wears, and the steps of decoding that led to an answer, joined.

Decoding gives one record a step, one row a hypothesis. Whose row it is says the scene: `sources` (N,), and `target`
(N, step), what each hypothesis had said. So the rows of an answer are those that had said its beginning: nothing is
computed again, every number is the one that was used. The answer itself is one more record, named "answer": axes
(batch, position), the ids that were said since the prompt, best first for each source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import ConfigError, ModelError
from regard.sequence import PAD
from regard.trace import Record

ANSWER = "answer"
"""Name of the record that holds what was said."""
Spell = Mapping[str, Callable[[int], str]]
"""Of a side ("source", "target"): id -> token."""


@dataclass(frozen=True, eq=False)
class Pass:
    """The records of one name that belong together: one forward, or all steps of one decoding.

    >>> one = Record("w", ("batch", "query", "key"), torch.ones(2, 1, 1), {}, {"step": 0})
    >>> two = Record("w", ("batch", "query", "key"), torch.ones(2, 1, 2), {}, {"step": 1})
    >>> [len(found.records) for found in passes("w", [one, two, one])]
    [2, 1]
    """

    records: tuple[Record, ...]
    answer: Record | None

    @property
    def sources(self) -> list[int]:
        """Numbers of the sources that were read together, in the order of the batch."""
        return list(dict.fromkeys(sources(self.records[0])))

    @property
    def decoded(self) -> bool:
        """Whether it was said step by step."""
        return "step" in self.records[0].scene

    def said(self, source: int) -> list[int]:
        """Ids that the answer for a source has; with no answer recorded, those of the best hypothesis at the end."""
        if self.answer is not None:
            row = self.answer_row(self.answer, source)
            words = self.answer.labels.get("position")
            ids = plain(self.answer.data[row])
            return trimmed(ids) if words is None else ids[: len(words[row])]
        last = next((r for r in reversed(self.records) if source in sources(r)), self.records[0])
        return _target(last, sources(last).index(source)) if last.scene["step"] else []

    def answer_row(self, answer: Record, source: int) -> int:
        """Where the best answer for a source stands."""
        return (sources(answer) if "sources" in answer.scene else self.sources).index(source)

    def path(self, source: int, said: Sequence[int] | None = None) -> list[tuple[Record, int]]:
        """The records that led to what was said about a source, each with the row to look at."""
        if not self.decoded:
            return [(record, sources(record).index(source)) for record in self.records]
        whole = said is not None or self.answer is not None
        ids = self.said(source) if said is None else list(said)
        steps = len(ids) if whole else len(ids) + 1  # what the last step led to is not known
        found = [(r, _row(r, source, ids)) for r in self.records if r.scene["step"] < max(steps, 1)]
        return [(r, row) for r, row in found if not _after_prompt(r, row)]


def passes(name: str, records: Sequence[Record]) -> list[Pass]:
    """The records of a name, cut where reading began again, each with the answer that followed it.

    >>> passes("w", [])
    []
    """
    found: list[list[Record]] = []
    answers: list[Record | None] = []
    before: tuple[int, int] | None = None
    for record in records:
        if record.name == ANSWER and answers and answers[-1] is None:
            answers[-1] = record
        if record.name != name:
            continue
        moment = (int(record.scene.get("step", 0)), int(record.scene.get("position", 0)))
        timeless = not {"step", "position"} & record.scene.keys()
        if before is None or timeless or moment <= before:
            found.append([])
            answers.append(None)
        found[-1].append(record)
        before = moment
    return [Pass(tuple(group), answer) for group, answer in zip(found, answers)]


def sources(record: Record) -> list[int]:
    """Which source each row of a record is about.

    >>> sources(Record("w", ("batch",), torch.ones(4), {}, {"sources": torch.tensor([0, 0, 2, 2])}))
    [0, 0, 2, 2]
    """
    given = record.scene.get("sources")
    return list(range(record.data.shape[0])) if given is None else plain(given)


def plain(values: Any) -> list[Any]:
    """A list of what may be a tensor.

    >>> plain(torch.tensor([1, 2])), plain((3,))
    ([1, 2], [3])
    """
    return values.tolist() if isinstance(values, Tensor) else list(values)


def _target(record: Record, row: int) -> list[int]:
    return plain(record.scene["target"][row])


def _row(record: Record, source: int, said: list[int]) -> int:
    step = record.scene["step"]
    rows = [row for row, owner in enumerate(sources(record)) if owner == source]
    if step and "target" in record.scene:
        rows = [row for row in rows if _target(record, row) == said[:step]]
    elif len(rows) > 1:
        raise ModelError(
            f"{record.name}: step {step} has {len(rows)} hypotheses of source {source}, and its scene has no target "
            f"that says which led to the answer"
        )
    if not rows:
        raise ModelError(
            f"{record.name}: no hypothesis of step {step} had said the beginning of the answer for source {source}; "
            f"was the answer decoded in another pass?"
        )
    return rows[0]


def joined(path: Sequence[tuple[Record, int]]) -> np.ndarray:
    """(head, query, key): the weights of each step under one another; what came later is seen by 0.

    >>> one = Record("w", ("batch", "query", "key"), torch.ones(1, 1, 1), {}, {})
    >>> two = Record("w", ("batch", "query", "key"), torch.full((1, 1, 2), 0.5), {}, {})
    >>> joined([(one, 0), (two, 0)]).tolist()
    [[[1.0, 0.0], [0.5, 0.5]]]
    """
    parts = [_heads(record, row) for record, row in path]
    longest = max(part.shape[2] for part in parts)
    return np.concatenate([np.pad(p, ((0, 0), (0, 0), (0, longest - p.shape[2]))) for p in parts], 1)


def sentence(name: str, records: Sequence[Record], row: int) -> tuple[Pass, int]:
    """The pass and the number of one sentence: a block may hold many passes, sentences are counted through them all.

    >>> one = Record("w", ("batch", "query", "key"), torch.ones(2, 1, 1), {}, {})
    >>> sentence("w", [one, one], 3)[1]
    1
    """
    everything = [(found, source) for found in passes(name, records) for source in found.sources]
    if len({source for _, source in everything}) == len(everything):  # by number, if each has its own
        everything.sort(key=lambda pair: pair[1])
    if not 0 <= row < len(everything):
        raise ConfigError(f"row: {len(everything)} sentences were recorded, 0 to {len(everything) - 1}, got {row}")
    return everything[row]


def told(found: Pass, source: int, said: Sequence[int] | None, spell: Spell) -> list[str] | None:
    """The tokens that a decoding said about a source; None: nothing was decoded.

    >>> told(Pass((Record("w", ("batch",), torch.ones(1), {}, {}),), None), 0, None, {}) is None
    True
    """
    if not found.decoded:
        return None
    if found.answer is not None and said is None:
        given = words(found.answer, "position", found.answer_row(found.answer, source), spell)
        if given is not None:
            return given
    return spelt(found.said(source) if said is None else said, "target", spell)


def _heads(record: Record, row: int) -> np.ndarray:
    tensor = record.data.detach()[row].cpu()
    tensor = tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor
    axes = [axis for axis in record.axes if axis != "batch"]
    for place, axis in enumerate(("head", "query", "key")):
        if axis not in axes:
            axes.insert(place, axis)
            tensor = tensor.unsqueeze(place)
    tensor = tensor.permute(*(axes.index(axis) for axis in ("head", "query", "key")))
    length = _prompt_length(record, row)
    return (tensor if length is None else tensor[:, :length]).numpy()


def _prompt_length(record: Record, row: int) -> int | None:
    """How many queries of a prompt are not padding."""
    return prompt_length(record, row) if side(record, "query") == "target" else None


def prompt_length(record: Record, row: int) -> int | None:
    """How many tokens the prompt has that a record is about; None: it is about no prompt.

    >>> prompt_length(Record("w", ("batch",), torch.ones(1), {}, {"step": 0, "target": [[2, 5, 0]]}), 0)
    2
    """
    prompt = record.scene.get("target")
    if record.scene.get("step") != 0 or prompt is None or reader(record) != "target":
        return None
    return len(trimmed(plain(prompt[row])))


def _after_prompt(record: Record, row: int) -> bool:
    """Whether a record of one position is about the padding after a shorter prompt."""
    length = prompt_length(record, row)
    return length is not None and "position" in record.scene and record.scene["position"] >= length


def reader(record: Record) -> str:
    """Whose words are being read where a record is made: as its axes or its scene (`reads`) say, else by its name.

    >>> reader(Record("encoder.stack.layers.0.hidden", ("batch", "width"), torch.ones(1, 1), {}, {"position": 0}))
    'source'
    """
    given = side(record, "position") or side(record, "query") or record.scene.get("reads")
    return given or ("source" if record.name.split(".")[0] == "encoder" else "target")


def trimmed(ids: list[Any]) -> list[Any]:
    """Ids without the padding at their end.

    >>> trimmed([2, 0, 5, 0, 0])
    [2, 0, 5]
    """
    while ids and ids[-1] == PAD:
        ids = ids[:-1]
    return ids


def side(record: Record, axis: str) -> str | None:
    """Whose words an axis wears, if anybody said so: "source", "target" or another name of the scene.

    >>> words = [["je"]]
    >>> side(Record("w", ("batch", "key"), torch.ones(1, 1), {"key": words}, {"source": words}), "key")
    'source'
    """
    label = record.labels.get(axis)
    return next((name for name, fact in record.scene.items() if fact is label and label is not None), None)


def layer(name: str) -> int | None:
    """The number of the layer that a name is in.

    >>> layer("decoder.layers.1.cross.weights"), layer("decoder.residual")
    (1, None)
    """
    found = re.search(r"(?:^|\.)(\d+)\.", name)
    return int(found[1]) if found else None


def numbered(names: Mapping[int | None, str], layer: int | None, what: str) -> str:
    """The name in a layer that somebody asked for.

    >>> numbered({None: "decoder.cross.weights"}, 3, "that attention")
    Traceback (most recent call last):
    regard.errors.ConfigError: layer: no layer of that attention has a number, got 3; leave the layer out
    """
    if layer in names:
        return names[layer]
    there = ", ".join(str(number) for number in names if number is not None)
    if not there:
        raise ConfigError(f"layer: no layer of {what} has a number, got {layer}; leave the layer out")
    raise ConfigError(f"layer: the layers of {what} are {there}, got {layer}")


def crosses(record: Record) -> bool:
    """Whether one sequence looks at another in this record.

    >>> crosses(Record("decoder.layers.0.cross.weights", ("batch", "query", "key"), torch.ones(1, 1, 1), {}, {}))
    True
    """
    ends = side(record, "query"), side(record, "key")
    return "cross" in record.name.split(".") or (None not in ends and ends[0] != ends[1])


def words(record: Record, axis: str, row: int, spell: Spell) -> list[str] | None:
    """The tokens along an axis in one row of a record; None if nobody said which.

    >>> said = torch.tensor([[2, 7]])
    >>> words(Record("w", ("batch", "key"), torch.ones(1, 2), {"key": said}, {}), "key", 0, {})
    ['2', '7']
    """
    return _words(record, record.labels.get(axis), axis, side(record, axis), row, spell)


def read_words(record: Record, row: int, spell: Spell) -> list[str] | None:
    """The tokens that a model reads where a record is made, one position after the other; None if nobody said which.

    >>> seen = Record("encoder.hidden", ("batch", "width"), torch.ones(1, 1), {}, {"position": 0, "source": [["je"]]})
    >>> read_words(seen, 0, {})
    ['je']
    """
    whose = reader(record)
    return _words(record, record.scene.get(whose), "position", whose, row, spell)


def _words(record: Record, label: Any, axis: str, whose: str | None, row: int, spell: Spell) -> list[str] | None:
    if label is None or not len(label):
        return None
    if isinstance(label[0], str):
        return list(label)
    if row >= len(label):
        raise ModelError(f"{record.name}: row {row} of the axis {axis!r} has no words; {len(label)} rows have some")
    if isinstance(label, Tensor):
        return spelt(trimmed(label[row].tolist()), whose, spell)
    return [word if isinstance(word, str) else spelt([word], whose, spell)[0] for word in label[row]]


def spelt(ids: Sequence[int], whose: str | None, spell: Spell) -> list[str]:
    """Tokens of ids; the ids themselves if nobody can spell them.

    >>> spelt([5], "target", {"target": ["a", "b", "c", "d", "e", "f"].__getitem__}), spelt([5], "target", {})
    (['f'], ['5'])
    """
    name = spell.get(whose or "", str)
    return [name(i) for i in ids]
