"""The labels of a classifier: names, counts, class weights, and the weighted cross-entropy."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import ConfigError, DataError, ModelError
from regard.files import parse_json, write_text_atomically
from regard.manifest import read_kept
from regard.spaces import Classes

LABELS = "labels.json"


@dataclass(frozen=True)
class Labels:
    """Label names in alphabetical order, and how many training examples have each.

    >>> Labels.count(["good", "bad", "good"], "train.tsv")
    Labels(names=('bad', 'good'), counts=(1, 2))
    """

    names: tuple[str, ...]
    counts: tuple[int, ...]

    @classmethod
    def count(cls, labels: Iterable[str], where: str) -> Labels:
        """Count the labels of training examples."""
        counts = Counter(labels)
        if len(counts) == 1:
            (name, count) = counts.popitem()
            raise DataError(
                f'{where}: all {count:,} examples have the label "{shorten(name)}"; a classifier needs two labels or '
                "more to tell apart"
            )
        if 2 * len(counts) > max(counts.total(), 20):
            raise DataError(
                f"{where}: there are {len(counts):,} different labels for {counts.total():,} examples, such as "
                f'"{shorten(next(iter(counts)))}"; is it the column of the label?'
            )
        names = tuple(sorted(counts))
        return cls(names, tuple(counts[name] for name in names))

    def index(self, name: str, where: str) -> int:
        """Class index of a label."""
        try:
            return self.names.index(name)
        except ValueError:
            known = ", ".join(map(shorten, self.names[:12])) + (", ..." if len(self.names) > 12 else "")
            raise DataError(
                f'{where}: the label "{shorten(name)}" was never seen in training (labels: {known})'
            ) from None

    def save(self, folder: Path) -> None:
        """Write labels.json."""
        write_text_atomically(folder / LABELS, json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n")

    @classmethod
    def load(cls, folder: Path) -> Labels:
        """Read labels.json."""
        try:
            found = parse_json(read_kept(folder / LABELS))
            return cls(tuple(map(str, found["names"])), tuple(map(int, found["counts"])))
        except (OSError, ValueError, KeyError, TypeError):
            raise ModelError(
                f"{folder / LABELS} cannot be read: expected the names of labels and their counts"
            ) from None


def shorten(text: str) -> str:
    """A label for a message, at most 40 characters."""
    return text if len(text) <= 40 else text[:37] + "..."


@dataclass(frozen=True)
class WeightedClasses(Classes):
    """Cross-entropy with class weights; the validation loss is not weighted."""

    weights: tuple[float, ...] = ()

    def loss(self, out_NC: Tensor, target_N: Tensor) -> Tensor:
        weight_C = torch.tensor(self.weights, dtype=out_NC.dtype, device=out_NC.device)
        return F.cross_entropy(out_NC, target_N, weight_C, reduction="sum", label_smoothing=self.smoothing)


@dataclass(frozen=True)
class UniformWeights:
    """Weight 1 for every label."""

    kind: Literal["none"] = "none"
    """every example counts the same"""

    def per_label(self, labels: Labels) -> tuple[float, ...]:
        """The weight of each label."""
        return (1.0,) * len(labels.names)


@dataclass(frozen=True)
class BalancedWeights:
    """Weights inverse to the label's frequency, as class_weight="balanced" in scikit-learn."""

    kind: Literal["balanced"] = "balanced"
    """every label counts the same, however few examples it has"""

    def per_label(self, labels: Labels) -> tuple[float, ...]:
        """The weight of each label; the mean over all examples is 1."""
        total, present = sum(labels.counts), sum(count > 0 for count in labels.counts)
        return tuple(total / present / max(count, 1) for count in labels.counts)


@dataclass(frozen=True)
class CustomWeights:
    """Class weights from the recipe.

    >>> CustomWeights(each=("bad=3",)).per_label(Labels(("bad", "good"), (1, 9)))
    (3.0, 1.0)
    """

    kind: Literal["given"] = "given"
    """weights of your own"""
    each: tuple[str, ...] = ()
    """such as ["positive=1", "negative=2.5"]; other labels have weight 1"""

    def __post_init__(self) -> None:
        self._parse()

    def per_label(self, labels: Labels) -> tuple[float, ...]:
        """The weight of each label."""
        found = self._parse()
        for name in found:
            labels.index(name, "task.weights.each")
        return tuple(found.get(name, 1.0) for name in labels.names)

    def _parse(self) -> dict[str, float]:
        found = {}
        for text in self.each:
            name, _, number = text.rpartition("=")
            try:
                found[name.strip()] = float(number)
            except ValueError:
                found[name.strip()] = -1.0
            if not name.strip() or not 0 <= found[name.strip()] < float("inf"):
                raise ConfigError(f'each: expected a label and a number such as "positive=2.5", got "{text}"')
        return found


ClassWeights = UniformWeights | BalancedWeights | CustomWeights
