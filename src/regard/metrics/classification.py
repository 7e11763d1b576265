"""Scores of labels: accuracy, F1, calibration and the confusion matrix, each with its interval by the bootstrap."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.errors import DataError
from regard.metrics.bootstrap import RESAMPLES, SEED, interval
from regard.metrics.score import Score

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Numbers = NDArray[numpy.float64]

BINS = 15
"""of equal width, into which answers fall by how sure they are (Guo et al. 2017)"""
LEAST = 1e-12
"""the smallest probability whose logarithm is taken"""


@dataclass(frozen=True, eq=False)
class Judged:
    """What was said about each example, how surely, and what should have been said.

    >>> import numpy
    >>> judged = Judged(("bad", "good"), numpy.array([0, 1, 1]), numpy.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]))
    >>> print(judged.accuracy())
    accuracy 66.67 (95 %: 0.00 to 100.00)
    """

    labels: tuple[str, ...]
    wanted_N: NDArray[Any]
    """numbers of labels"""
    share_NC: Numbers
    """the probability of each label"""

    def __post_init__(self) -> None:
        if not len(self.wanted_N):
            raise DataError("there is nothing to score: 0 examples")
        if self.share_NC.shape != (len(self.wanted_N), len(self.labels)):
            found = " x ".join(map(str, self.share_NC.shape))
            raise DataError(f"there are {found} probabilities for {len(self.wanted_N)} x {len(self.labels)} answers")

    @property
    def said_N(self) -> NDArray[Any]:
        """The likeliest label of each; of equal ones the first."""
        return self.share_NC.argmax(1)

    def scores(self) -> list[Score]:
        """All of them."""
        return [self.accuracy(), self.macro_f1(), self.micro_f1(), self.calibration(), self.loss()]

    def accuracy(self) -> Score:
        """How many in a hundred are right."""
        right = (self.said_N == self.wanted_N).astype(float)
        return self._score("accuracy", "", [100 * right], lambda sums, n: sums[0] / n)

    def loss(self) -> Score:
        """The mean of -log p of what was wanted, in nats."""
        found = self.share_NC[range(len(self.wanted_N)), self.wanted_N]
        import numpy

        return self._score("loss", "unit:nat", [-numpy.log(found.clip(LEAST))], lambda sums, n: sums[0] / n)

    def macro_f1(self) -> Score:
        """The mean of the labels' F1, each counting the same; a label that nobody wants or says counts nothing."""
        return self._of_confusion("macro_f1", "average:macro", macro_f1)

    def micro_f1(self) -> Score:
        """F1 over all answers together; where every text has one label it equals the accuracy."""
        return self._of_confusion("micro_f1", "average:micro", micro_f1)

    def calibration(self) -> Score:
        """The expected calibration error (Naeini et al. 2015): by how many points sureness and accuracy differ.

        Answers fall into bins by how sure they are. It is above 0 even for a model that knows its doubt exactly, by
        the chance of the bins alone.
        """
        import numpy

        sure_N = self.share_NC.max(1)
        bin_N = numpy.minimum((sure_N * BINS).astype(int), BINS - 1)
        gap_N = (self.said_N == self.wanted_N) - sure_N
        parts = [numpy.where(bin_N == b, gap_N, 0.0) for b in range(BINS)]
        return self._score("ece", f"bins:{BINS}", parts, lambda sums, n: 100 * sum(map(abs, sums)) / n)

    def confusion(self) -> Confusion:
        """How often which label was said where which was wanted."""
        import numpy

        counts = self._counts(None)
        size = len(self.labels)
        # of many labels most are never taken for most others: such cells stay 0 however often one draws
        cells, of_N = numpy.unique(self.wanted_N * size + self.said_N, return_inverse=True)
        drawn = numpy.stack([numpy.bincount(of_N, times, len(cells)) for times in self._draws()])
        ends = numpy.zeros((2, size * size), int)
        ends[:, cells] = numpy.array([interval(column) for column in drawn.T]).T
        return Confusion(self.labels, counts.astype(int), *ends.reshape(2, size, size))

    def _score(self, name: str, how: str, parts: Sequence[Any], score: Callable[[list[float], int], float]) -> Score:
        """A score of sums over examples."""
        import numpy

        stats_NS, n = numpy.stack(parts, 1), len(self.wanted_N)
        low, high = interval([score((times @ stats_NS).tolist(), n) for times in self._draws()])
        return Score(name, score(stats_NS.sum(0).tolist(), n), low, high, signature(how), n)

    def _of_confusion(self, name: str, how: str, score: Callable[[Any], float]) -> Score:
        low, high = interval([score(self._counts(times)) for times in self._draws()])
        return Score(name, score(self._counts(None)), low, high, signature(how), len(self.wanted_N))

    def _counts(self, times: Any) -> Any:
        """(C, C): of each wanted label, how often each was said; an example counts as often as it was drawn."""
        import numpy

        size = len(self.labels)
        return numpy.bincount(self.wanted_N * size + self.said_N, times, size * size).reshape(size, size)

    def _draws(self) -> Any:
        """1,000 times, how often each example is drawn: the corpora of score/bootstrap.py."""
        import numpy

        draw, n = numpy.random.default_rng(SEED), len(self.wanted_N)
        return (numpy.bincount(draw.choice(n, size=n), minlength=n) for _ in range(RESAMPLES))


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often which label (a column) was said where which (a row) was wanted, with the 95 % interval of each count.

    >>> import numpy
    >>> counts = numpy.array([[8, 2], [1, 9]])
    >>> print("\\n".join(Confusion(("bad", "good"), counts, counts - 1, counts + 1).told()))
    wanted  said bad      good
    bad      8 (7-9)   2 (1-3)
    good     1 (0-2)  9 (8-10)
    """

    labels: tuple[str, ...]
    counts: Any
    low: Any
    high: Any

    def told(self, most: int = 12) -> list[str]:
        """The matrix in lines, for people; of many labels the commonest."""
        shown = sorted(sorted(range(len(self.labels)), key=lambda i: -int(self.counts[i].sum()))[:most])
        names = [short(self.labels[i]) for i in shown]
        cells = [[f"{self.counts[i, j]} ({self.low[i, j]}-{self.high[i, j]})" for j in shown] for i in shown]
        wide = [max(len(name), *(len(row[j]) for row in cells)) for j, name in enumerate(names)]
        first = max(len("wanted"), *map(len, names))
        wide[0] = max(wide[0], len(f"said {names[0]}"))
        heads = [f"said {names[0]}", *names[1:]]
        lines = [[f"{'wanted':<{first}}", *(f"{head:>{w}}" for head, w in zip(heads, wide, strict=True))]]
        lines += [
            [f"{name:<{first}}", *(f"{cell:>{w}}" for cell, w in zip(row, wide, strict=True))]
            for name, row in zip(names, cells, strict=True)
        ]
        rest = [f"and {len(self.labels) - most} labels more"] if len(self.labels) > most else []
        return ["  ".join(line) for line in lines] + rest

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "labels": list(self.labels),
            "counts": self.counts.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
        }


def macro_f1(counts_CC: Any) -> float:
    """The mean F1 of labels that are wanted or said, 0 to 100, from how often which was said for which.

    >>> import numpy
    >>> round(macro_f1(numpy.array([[2, 1], [0, 3]])), 2)  # of 2 / (2 + 0.5) and 3 / (3 + 0.5)
    82.86
    """
    import numpy

    right, all_ = counts_CC.diagonal(), counts_CC.sum(0) + counts_CC.sum(1)
    there = all_ > 0
    return float(numpy.mean(200 * right[there] / all_[there])) if there.any() else math.nan


def micro_f1(counts_CC: Any) -> float:
    """F1 of all answers together, 0 to 100: 2 TP / (2 TP + FP + FN).

    >>> import numpy
    >>> round(micro_f1(numpy.array([[2, 1], [0, 3]])), 2)
    83.33
    """
    right, total = counts_CC.trace(), counts_CC.sum()
    return float(200 * right / (2 * right + 2 * (total - right))) if total else math.nan


def signature(how: str = "") -> str:
    """How a score was measured.

    >>> signature("bins:15")
    'bins:15|bs:1000|seed:12345'
    """
    return "|".join(filter(None, [how, f"bs:{RESAMPLES}", f"seed:{SEED}"]))


def short(label: str) -> str:
    """A label that fits into a table.

    >>> short("a label of very many words")
    'a label of ver…'
    """
    return label if len(label) <= 15 else label[:14] + "…"
