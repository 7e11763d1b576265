"""Targets of token labeling: tags, numbers and angles; storage, output space, decoding and metric of each.

The targets found in training are stored with a model, in targets.json.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data import ColumnKind
from regard.errors import DataError, ModelError
from regard.files import parse_json, write_text_atomically
from regard.loss import Loss
from regard.manifest import read_kept
from regard.metrics.labels import AbsoluteError, CharacterAccuracy, LabelMetric, SpanF1, TokenAccuracy
from regard.metrics.spans import Scheme, can_end, can_follow
from regard.nn.crf import LinearChainCRF, TransitionMask
from regard.objective import Batch, PerToken
from regard.sequence import Padded, Tokens
from regard.spaces import Angles, Classes, Space, Values
from regard.tasks.label.sources import TaggedSentence, TargetName
from regard.trace import tap

FILE = "targets.json"


@dataclass(frozen=True)
class TokenPrediction:
    """The predicted label of a token and its probability; numbers have none."""

    label: str
    probability: float | None = None


class TargetKind(ABC):
    """What each token is labeled with."""

    metric: LabelMetric

    @property
    @abstractmethod
    def column(self) -> ColumnKind:
        """Kind of the shard column that holds the targets."""

    @abstractmethod
    def space(self, smoothing: float = 0.0) -> Space:
        """Output space and loss of the model."""

    @abstractmethod
    def encode(self, sentence: TaggedSentence) -> Sequence[int] | np.ndarray:
        """The targets of a sentence as stored in shards."""

    @abstractmethod
    def decode(self, row: np.ndarray) -> list[str]:
        """Stored targets as text."""

    @abstractmethod
    def collate(self, rows: Sequence[np.ndarray]) -> Tokens:
        """Stored rows as one padded batch."""

    @abstractmethod
    def predict(self, out: Padded, model: Any) -> list[list[TokenPrediction]]:
        """The predictions of each row from the model's outputs (B, L, C)."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Contents of targets.json."""

    def save(self, folder: Path) -> None:
        """Write targets.json."""
        write_text_atomically(folder / FILE, json.dumps(self.to_dict(), ensure_ascii=False) + "\n")


@dataclass(frozen=True)
class ArgmaxDecoding:
    """Decodes each token independently."""

    def __call__(self, out: Padded, model: Any) -> tuple[Tensor, Tensor]:
        """(B, L) tag ids and their probabilities."""
        probability_BL, ids_BL = out.data.softmax(-1).max(-1)
        return ids_BL, probability_BL


@dataclass(frozen=True)
class ViterbiDecoding:
    """Decodes the most probable tag sequence of a CRF, with the marginal probability of each tag."""

    names: tuple[str, ...]
    scheme: Scheme | None = None
    """of spans: only transitions that it allows are taken"""

    def __call__(self, out: Padded, model: Any) -> tuple[Tensor, Tensor]:
        """(B, L) tag ids and their marginal probabilities."""
        crf: LinearChainCRF = model.crf
        ids_BL = tap(model, "decoded_labels", crf.viterbi(out, self.transitions), "batch position")
        marginals_BLC = tap(model, "label_marginals", crf.marginals(out), "batch position label:label")
        return ids_BL, marginals_BLC.take_along_dim(ids_BL[..., None], 2).squeeze(2)

    @cached_property
    def transitions(self) -> TransitionMask | None:
        """The transitions that the scheme allows; None: all."""
        scheme, names = self.scheme, self.names
        if scheme is None:
            return None
        start = torch.tensor([can_follow(tag, None, scheme) for tag in names])
        step = torch.tensor([[can_follow(tag, before, scheme) for tag in names] for before in names])
        return TransitionMask(start, step, torch.tensor([can_end(tag, scheme) for tag in names]))


class CRFTask(PerToken):
    """Token labeling with a CRF: the loss of a sentence is the negative log-likelihood of its whole tag sequence."""

    def loss(
        self, model: Any, batch: Batch, score: Callable[[Tensor, Tensor], Tensor], hidden_state: Any = None
    ) -> tuple[Loss, Any]:
        emissions = batch.target.like(model.readout(model(batch.source)))
        return Loss({"each": model.crf.nll(emissions, batch.target.data).sum()}), None


@dataclass(frozen=True)
class TagTarget(TargetKind):
    """One of a set of tags for each token."""

    names: tuple[str, ...]
    decoding: ArgmaxDecoding | ViterbiDecoding = ArgmaxDecoding()
    metric: LabelMetric = TokenAccuracy()

    @property
    def column(self) -> ColumnKind:
        return 1 << 16

    def space(self, smoothing: float = 0.0) -> Classes:
        return Classes(len(self.names), smoothing)

    def encode(self, sentence: TaggedSentence) -> list[int]:
        return [self._ids[tag] for tag in sentence.tags]

    def decode(self, row: np.ndarray) -> list[str]:
        return [self.names[i] for i in row.tolist()]

    def collate(self, rows: Sequence[np.ndarray]) -> Tokens:
        return Tokens.pad(rows)

    def predict(self, out: Padded, model: Any) -> list[list[TokenPrediction]]:
        ids_BL, probability_BL = self.decoding(out, model)
        rows = zip(ids_BL.tolist(), probability_BL.tolist(), out.lengths.tolist(), strict=True)
        return [[TokenPrediction(self.names[i], p) for i, p in zip(ids[:n], probs[:n])] for ids, probs, n in rows]

    def __contains__(self, tag: str) -> bool:
        return tag in self._ids

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def to_dict(self) -> dict[str, Any]:
        return {"tags": list(self.names)}


class RealTarget(TargetKind):
    """A real value for each token, stored as float32."""

    @property
    def column(self) -> ColumnKind:
        return "float32"

    def collate(self, rows: Sequence[np.ndarray]) -> Tokens:
        return Tokens.pad([row[:, None] for row in rows])

    def decode(self, row: np.ndarray) -> list[str]:
        return [self.format(value) for value in row.tolist()]

    def predict(self, out: Padded, model: Any) -> list[list[TokenPrediction]]:
        rows = zip(self.space().mode(out.data)[..., 0].cpu().double().tolist(), out.lengths.tolist(), strict=True)
        return [[TokenPrediction(self.format(value)) for value in row[:n]] for row, n in rows]

    @abstractmethod
    def format(self, value: float) -> str:
        """A stored or predicted value as text, in the unit of the data."""


@dataclass(frozen=True)
class NumberTarget(RealTarget):
    """A number for each token, standardized by the mean and deviation of training."""

    mean: float
    deviation: float
    metric: LabelMetric = AbsoluteError()

    def space(self, smoothing: float = 0.0) -> Values:
        return Values(1)

    def encode(self, sentence: TaggedSentence) -> np.ndarray:
        return (np.array(parse_numbers(sentence)) - self.mean) / self.deviation

    def format(self, value: float) -> str:
        return f"{value * self.deviation + self.mean:.6g}"

    def to_dict(self) -> dict[str, Any]:
        return {"mean": self.mean, "deviation": self.deviation}


@dataclass(frozen=True)
class AngleTarget(RealTarget):
    """An angle in degrees for each token; 359 and 1 are two degrees apart.

    >>> AngleTarget().decode(np.array([np.pi / 2]))
    ['90.0']
    """

    metric: LabelMetric = AbsoluteError("degree")

    def space(self, smoothing: float = 0.0) -> Angles:
        return Angles(1)

    def encode(self, sentence: TaggedSentence) -> np.ndarray:
        return np.radians(parse_numbers(sentence))

    def format(self, value: float) -> str:
        return f"{math.degrees(value):.1f}"

    def to_dict(self) -> dict[str, Any]:
        return {}


def load_target(folder: Path, name: TargetName, unit: str, scheme: Scheme | None, crf: bool) -> TargetKind:
    """The targets that preparation stored, with the recipe's scheme and decoding."""
    try:
        found = parse_json(read_kept(folder / FILE))
        if name == "numbers":
            return NumberTarget(float(found["mean"]), float(found["deviation"]))
        if name == "angles":
            return AngleTarget()
        tags = tuple(map(str, found["tags"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise ModelError(f"{folder / FILE} cannot be read: expected the tags of training") from None
    metric: LabelMetric = SpanF1(TokenAccuracy(unit)) if scheme else TokenAccuracy(unit)
    decoding = ViterbiDecoding(tags, scheme) if crf else ArgmaxDecoding()
    return TagTarget(tags, decoding, CharacterAccuracy() if name == "text" else metric)


def parse_numbers(sentence: TaggedSentence) -> list[float]:
    """The tags of a sentence as numbers."""
    numbers = []
    for i, tag in enumerate(sentence.tags):
        try:
            numbers.append(float(tag))
        except ValueError:
            numbers.append(math.nan)
        if not math.isfinite(numbers[-1]):
            raise DataError(f'{sentence.location(i)}: "{tag}" is not a number')
    return numbers


def circular_mean(degrees: Iterable[float]) -> float:
    """Circular mean of angles in degrees.

    >>> round(circular_mean([350.0, 20.0]), 6)
    5.0
    """
    angles = np.radians(list(degrees))
    return math.degrees(math.atan2(np.sin(angles).sum(), np.cos(angles).sum()))
