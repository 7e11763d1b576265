"""From records to matrices: whose words an axis wears, and the steps of decoding that led to an answer, joined.

Decoding gives one record a step, one row a hypothesis. Whose row it is says the scene: `sources` (N,), and `target`
(N, step), what each hypothesis had said. So the rows of an answer are those that had said its beginning: nothing is
computed again, every number is the one that was used. The answer itself is one more record, named "answer": axes
(batch, position), the ids that were said since the prompt, best first for each source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import ModelError
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
            return trimmed(plain(self.answer.data[row])[: None if words is None else len(words[row])])
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
        return [(r, _row(r, source, ids)) for r in self.records if r.scene["step"] < max(steps, 1)]


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
    prompt = record.scene.get("target")
    if record.scene.get("step") != 0 or prompt is None or side(record, "query") != "target":
        return None
    return len(trimmed(plain(prompt[row])))


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
    label = record.labels.get(axis)
    if label is None or not len(label):
        return None
    if isinstance(label[0], str):
        return list(label)
    if row >= len(label):
        raise ModelError(f"{record.name}: row {row} of the axis {axis!r} has no words; {len(label)} rows have some")
    whose = side(record, axis)
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
