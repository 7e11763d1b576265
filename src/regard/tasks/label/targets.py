"""What is wanted at each place of a sentence: one of some tags, how the place is written, a number, an angle.

Where labelling differs between them, and nowhere else: how they are kept, what is asked of a model, and what its
outputs say. What they are is kept with a model, in answers.json.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import DataError, ModelError
from regard.metrics.labels import Errors, Measure, Phrases, Places, Spelt
from regard.metrics.spans import Scheme, ends, follows
from regard.nn.crf import Allowed, LinearChain
from regard.sequence import PAD, Padded, Tokens
from regard.spaces import Angles, Classes, Space, Values
from regard.tasks.label.sources import Kind, Sentence

FILE = "answers.json"


@dataclass(frozen=True)
class Said:
    """What a model says at a place, and how likely it holds it.

    >>> Said("B-PER", 0.9).label
    'B-PER'
    """

    label: str
    probability: float | None = None
    """None: a number has none"""


class Answers(ABC):
    """What is wanted at a place.

    >>> Tags(("O", "B-PER")).space().size, Numbers(20.0, 5.0).decoded(np.array([1.0], "<f4").view("<u4"))
    (2, ['25'])
    """

    measure: Measure
    """how good what is said is"""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers a place can hold on the disk."""

    @abstractmethod
    def space(self, smoothing: float = 0.0) -> Space:
        """What comes out of a model, and the loss."""

    @abstractmethod
    def encoded(self, sentence: Sentence) -> list[int]:
        """What is wanted at each place, as it is kept on the disk."""

    @abstractmethod
    def decoded(self, row: np.ndarray) -> list[str]:
        """The same back as text."""

    @abstractmethod
    def wanted(self, rows: Sequence[np.ndarray]) -> Tokens:
        """What is wanted of a batch, as a loss takes it."""

    @abstractmethod
    def said(self, out: Padded, model: Any) -> list[list[Said]]:
        """What a model's outputs (B, L, C) say, row by row."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """What a file keeps of it."""

    def save(self, folder: Path) -> None:
        """Write answers.json."""
        (folder / FILE).write_text(json.dumps(self.to_dict(), ensure_ascii=False) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Alone:
    """Each place chooses by itself.

    >>> Alone()(Padded(torch.tensor([[[0.0, 9.0]]]), torch.tensor([1])), None)[0]
    tensor([[1]])
    """

    def __call__(self, out: Padded, model: Any) -> tuple[Tensor, Tensor]:
        """(B, L) ids, and how likely each is."""
        probability_BL, ids_BL = out.data.softmax(-1).max(-1)
        return ids_BL, probability_BL


@dataclass(frozen=True)
class Chained:
    """All places choose together: the likeliest sequence, and of each of its tags the probability at its place.

    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(chain=LinearChain(2))
    >>> Chained(("O", "I-PER"), "bio")(Padded(torch.tensor([[[0.0, 9.0]]]), torch.tensor([1])), model)[0]
    tensor([[0]])
    """

    names: tuple[str, ...]
    scheme: Scheme | None = None
    """of spans: then only steps that it allows are taken"""

    def __call__(self, out: Padded, model: Any) -> tuple[Tensor, Tensor]:
        """(B, L) ids, and how likely each is."""
        chain: LinearChain = model.chain
        ids_BL = chain.best(out, self.allowed)
        return ids_BL, chain.marginals(out).take_along_dim(ids_BL[..., None], 2).squeeze(2)

    @cached_property
    def allowed(self) -> Allowed | None:
        """Which tags may follow which; None: all."""
        scheme, names = self.scheme, self.names
        if scheme is None:
            return None
        start = torch.tensor([follows(tag, None, scheme) for tag in names])
        step = torch.tensor([[follows(tag, before, scheme) for tag in names] for before in names])
        return Allowed(start, step, torch.tensor([ends(tag, scheme) for tag in names]))


@dataclass(frozen=True)
class Tags(Answers):
    """One of some tags at each place.

    >>> tags = Tags(("O", "B-PER", "I-PER"), measure=Phrases())
    >>> tags.encoded(Sentence(("Ada", "spoke"), ("B-PER", "O"), "a.conll", (1, 2)))
    [1, 0]
    """

    names: tuple[str, ...]
    choose: Alone | Chained = Alone()
    """how a model's outputs become tags"""
    measure: Measure = Places()

    @property
    def size(self) -> int:
        return 1 << 16

    def space(self, smoothing: float = 0.0) -> Classes:
        return Classes(len(self.names), smoothing)

    def encoded(self, sentence: Sentence) -> list[int]:
        return [self._numbers[tag] for tag in sentence.tags]

    def decoded(self, row: np.ndarray) -> list[str]:
        return [self.names[i] for i in row.tolist()]

    def wanted(self, rows: Sequence[np.ndarray]) -> Tokens:
        data, lengths = padded([row.astype(np.int64) for row in rows])
        return Tokens(torch.from_numpy(data), lengths, ragged(lengths))

    def said(self, out: Padded, model: Any) -> list[list[Said]]:
        ids_BL, probability_BL = self.choose(out, model)
        rows = zip(ids_BL.tolist(), probability_BL.tolist(), out.lengths.tolist(), strict=True)
        return [[Said(self.names[i], p) for i, p in zip(ids[:n], shares[:n])] for ids, shares, n in rows]

    def knows(self, tag: str) -> bool:
        """Whether a tag was seen in training."""
        return tag in self._numbers

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def to_dict(self) -> dict[str, Any]:
        return {"tags": list(self.names)}


@dataclass(frozen=True)
class Numbers(Answers):
    """A real number at each place, scaled by the mean and deviation of training.

    >>> Numbers(20.0, 5.0).encoded(Sentence(("a",), ("x",), "a.conll", (3,)))
    Traceback (most recent call last):
    regard.errors.DataError: a.conll, line 3: "x" is not a number
    """

    mean: float
    deviation: float
    measure: Measure = Errors()

    @property
    def size(self) -> int:
        return 1 << 32

    def space(self, smoothing: float = 0.0) -> Values:
        return Values(1)

    def encoded(self, sentence: Sentence) -> list[int]:
        return bits((np.array(numbers(sentence)) - self.mean) / self.deviation)

    def decoded(self, row: np.ndarray) -> list[str]:
        return [self._spelled(value) for value in values(row).tolist()]

    def wanted(self, rows: Sequence[np.ndarray]) -> Tokens:
        return values_of(rows)

    def said(self, out: Padded, model: Any) -> list[list[Said]]:
        rows = zip(out.data[..., 0].double().tolist(), out.lengths.tolist(), strict=True)
        return [[Said(self._spelled(value)) for value in row[:n]] for row, n in rows]

    def _spelled(self, value: float) -> str:
        return f"{value * self.deviation + self.mean:.6g}"

    def to_dict(self) -> dict[str, Any]:
        return {"mean": self.mean, "deviation": self.deviation}


@dataclass(frozen=True)
class Directions(Answers):
    """An angle at each place, in degrees; 359 and 1 are two degrees apart.

    >>> Directions().decoded(np.array([np.pi / 2], "<f4").view("<u4"))
    ['90.0']
    """

    measure: Measure = Errors("degree")

    @property
    def size(self) -> int:
        return 1 << 32

    def space(self, smoothing: float = 0.0) -> Angles:
        return Angles(1)

    def encoded(self, sentence: Sentence) -> list[int]:
        return bits(np.radians(numbers(sentence)))

    def decoded(self, row: np.ndarray) -> list[str]:
        return [f"{math.degrees(value):.1f}" for value in values(row).tolist()]

    def wanted(self, rows: Sequence[np.ndarray]) -> Tokens:
        return values_of(rows)

    def said(self, out: Padded, model: Any) -> list[list[Said]]:
        rows = zip(self.space().next(out.data)[..., 0].double().tolist(), out.lengths.tolist(), strict=True)
        return [[Said(f"{math.degrees(value):.1f}") for value in row[:n]] for row, n in rows]

    def to_dict(self) -> dict[str, Any]:
        return {}


def load(folder: Path, kind: Kind, unit: str, scheme: Scheme | None, chained: bool) -> Answers:
    """What preparation found in training, with what the recipe says about it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Tags(("O", "B-X")).save(Path(folder))
    ...     load(Path(folder), "tags", "word", "bio", chained=True).choose
    Chained(names=('O', 'B-X'), scheme='bio')
    """
    try:
        found = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if kind == "numbers":
            return Numbers(float(found["mean"]), float(found["deviation"]))
        if kind == "angles":
            return Directions()
        names = tuple(map(str, found["tags"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise ModelError(f"{folder / FILE} cannot be read: expected what a model may say at a place") from None
    choose = Chained(names, scheme) if chained else Alone()
    return Tags(names, choose, Spelt() if kind == "text" else Phrases(Places(unit)) if scheme else Places(unit))


def numbers(sentence: Sentence) -> list[float]:
    """What is wanted in a sentence, as numbers.

    >>> numbers(Sentence(("a",), ("nan",), "a.conll", (3,)))
    Traceback (most recent call last):
    regard.errors.DataError: a.conll, line 3: "nan" is not a number
    """
    found = []
    for place, tag in enumerate(sentence.tags):
        try:
            found.append(float(tag))
        except ValueError:
            found.append(math.nan)
        if not math.isfinite(found[-1]):
            raise DataError(f'{sentence.at(place)}: "{tag}" is not a number')
    return found


def bits(numbers: np.ndarray) -> list[int]:
    """Numbers as shards keep them: the bits of 32-bit floats.

    >>> values(np.array(bits(np.array([0.5])), "<u4"))
    array([0.5], dtype=float32)
    """
    found: list[int] = np.asarray(numbers, "<f4").view("<u4").tolist()
    return found


def values(row: np.ndarray) -> np.ndarray:
    """The numbers that `bits` kept.

    >>> values(np.array(bits(np.array([-1.5, 2.0])), "<u4")).tolist()
    [-1.5, 2.0]
    """
    return np.asarray(row, "<u4").view("<f4")


def values_of(rows: Sequence[np.ndarray]) -> Tokens:
    """Rows of kept numbers as a batch (B, L, 1).

    >>> values_of([np.array(bits(np.array(row)), "<u4") for row in ([1.5, 2.0], [3.0])]).data.squeeze(2)
    tensor([[1.5000, 2.0000],
            [3.0000, 0.0000]])
    """
    data, lengths = padded([values(row)[:, None] for row in rows])
    return Tokens(torch.from_numpy(data), lengths, ragged(lengths))


def padded(rows: Sequence[np.ndarray]) -> tuple[np.ndarray, Tensor]:
    """Arrays of unequal length under one another, and their lengths.

    >>> padded([np.array([4, 5]), np.array([6])])
    (array([[4, 5],
           [6, 0]]), tensor([2, 1]))
    """
    lengths = [len(row) for row in rows]
    shape, kind = (rows[0].shape[1:], rows[0].dtype) if rows else ((), np.dtype(np.int64))
    data = np.full((len(rows), max(lengths, default=0), *shape), PAD, kind)
    for line, row in zip(data, rows, strict=True):
        line[: len(row)] = row
    return data, torch.tensor(lengths, dtype=torch.long)


def ragged(lengths: Tensor) -> bool:
    """Whether some rows are shorter than others.

    >>> ragged(torch.tensor([2, 1]))
    True
    """
    return len(set(lengths.tolist())) > 1


def circular_mean(degrees: Iterable[float]) -> float:
    """The direction in which angles point on the whole.

    >>> round(circular_mean([350.0, 20.0]), 6)
    5.0
    """
    angles = np.radians(list(degrees))
    return math.degrees(math.atan2(np.sin(angles).sum(), np.cos(angles).sum()))
