"""Labels: which there are, how many examples have each, how much those count, and what a wrong one costs."""

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
from regard.spaces import Classes

LABELS = "labels.json"


@dataclass(frozen=True)
class Labels:
    """The labels there are, and how many training examples have each.

    >>> Labels.of(["good", "bad", "good"], "train.tsv")
    Labels(names=('bad', 'good'), counts=(1, 2))
    """

    names: tuple[str, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, found: Iterable[str], where: str) -> Labels:
        """The labels of training examples, in the order of the alphabet."""
        counts = Counter(found)
        if len(counts) == 1:
            (name, count) = counts.popitem()
            raise DataError(
                f'{where}: all {count:,} examples have the label "{shortened(name)}"; a classifier needs two labels or '
                "more to tell apart"
            )
        if 2 * len(counts) > max(counts.total(), 20):
            raise DataError(
                f"{where}: there are {len(counts):,} different labels for {counts.total():,} examples, such as "
                f'"{shortened(next(iter(counts)))}"; is it the column of the label?'
            )
        names = tuple(sorted(counts))
        return cls(names, tuple(counts[name] for name in names))

    def number(self, name: str, where: str) -> int:
        """Which label it is.

        >>> Labels(("bad", "good"), (1, 2)).number("so-so", "dev.tsv, line 7")
        Traceback (most recent call last):
        regard.errors.DataError: dev.tsv, line 7: the label "so-so" was never seen in training (labels: bad, good)
        """
        try:
            return self.names.index(name)
        except ValueError:
            known = ", ".join(map(shortened, self.names[:12])) + (", ..." if len(self.names) > 12 else "")
            raise DataError(
                f'{where}: the label "{shortened(name)}" was never seen in training (labels: {known})'
            ) from None

    def save(self, folder: Path) -> None:
        """Write labels.json."""
        (folder / LABELS).write_text(json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Labels:
        """What `save` wrote."""
        try:
            found = json.loads((folder / LABELS).read_text(encoding="utf-8"))
            return cls(tuple(found["names"]), tuple(found["counts"]))
        except (OSError, ValueError, KeyError, TypeError):
            raise ModelError(
                f"{folder / LABELS} cannot be read: expected the names of labels and their counts"
            ) from None


def shortened(text: str) -> str:
    """A label in a message.

    >>> shortened("x" * 50)[-5:]
    'xx...'
    """
    return text if len(text) <= 40 else text[:37] + "..."


@dataclass(frozen=True)
class Weighed(Classes):
    """One of some labels, whose examples count more or less; what validation reports is not weighed.

    >>> out, wanted = torch.zeros(2, 2), torch.tensor([0, 1])
    >>> space = Weighed(2, weights=(3.0, 1.0))
    >>> round(float(space.loss(out, wanted) / space.surprise(out, wanted)), 4)
    2.0
    """

    weights: tuple[float, ...] = ()

    def loss(self, out_NC: Tensor, wanted_N: Tensor) -> Tensor:
        weight_C = torch.tensor(self.weights, dtype=out_NC.dtype, device=out_NC.device)
        return F.cross_entropy(out_NC, wanted_N, weight_C, reduction="sum", label_smoothing=self.smoothing)


@dataclass(frozen=True)
class Even:
    """Every example counts the same.

    >>> Even().of(Labels(("bad", "good"), (1, 9)))
    (1.0, 1.0)
    """

    kind: Literal["none"] = "none"
    """every example counts the same"""

    def of(self, labels: Labels) -> tuple[float, ...]:
        """The weight of each label."""
        return (1.0,) * len(labels.names)


@dataclass(frozen=True)
class Balanced:
    """Every label counts the same, however few examples it has.

    >>> [round(weight, 2) for weight in Balanced().of(Labels(("bad", "good"), (1, 9)))]
    [5.0, 0.56]
    """

    kind: Literal["balanced"] = "balanced"
    """every label counts the same, however few examples it has"""

    def of(self, labels: Labels) -> tuple[float, ...]:
        """The weight of each label; over all examples their mean is 1."""
        total, there = sum(labels.counts), sum(count > 0 for count in labels.counts)
        return tuple(total / there / max(count, 1) for count in labels.counts)


@dataclass(frozen=True)
class Given:
    """Weights of one's own.

    >>> Given(each=("bad=3",)).of(Labels(("bad", "good"), (1, 9)))
    (3.0, 1.0)
    """

    kind: Literal["given"] = "given"
    """weights of your own"""
    each: tuple[str, ...] = ()
    """such as ["positive=1", "negative=2.5"]; a label that is not named has 1"""

    def __post_init__(self) -> None:
        self._parsed()

    def of(self, labels: Labels) -> tuple[float, ...]:
        """The weight of each label."""
        found = self._parsed()
        for name in found:
            labels.number(name, "task.weights.each")
        return tuple(found.get(name, 1.0) for name in labels.names)

    def _parsed(self) -> dict[str, float]:
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


Weights = Even | Balanced | Given
