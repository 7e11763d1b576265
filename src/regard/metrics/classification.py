"""Classification metrics: accuracy, F1, calibration error and confusion matrix, with bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.errors import DataError
from regard.metrics.bootstrap import RESAMPLES, SEED, percentile_interval
from regard.metrics.score import Score

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from regard.metrics.bootstrap import FloatArray

TOP = 5
"""labels of the top-5 accuracy of ILSVRC"""
BINS = 15
"""equal-width confidence bins of the calibration error (Guo et al. 2017)"""
MIN_PROB = 1e-12
"""the smallest probability whose logarithm is taken"""


@dataclass(frozen=True, eq=False)
class ClassPredictions:
    """Predicted class probabilities and targets of a test set."""

    labels: tuple[str, ...]
    target_N: NDArray[Any]
    """label indices"""
    prob_NC: FloatArray
    """label probabilities"""

    def __post_init__(self) -> None:
        if not len(self.target_N):
            raise DataError("there is nothing to score: 0 examples")
        if self.prob_NC.shape != (len(self.target_N), len(self.labels)):
            found = " x ".join(map(str, self.prob_NC.shape))
            raise DataError(
                f"there are {found} probabilities for {len(self.target_N)} x {len(self.labels)} predictions"
            )

    @property
    def predicted_N(self) -> NDArray[Any]:
        """The most probable label of each example; the first among equals."""
        return self.prob_NC.argmax(1)

    def scores(self) -> list[Score]:
        """All scores; top-5 accuracy where there are more than five labels."""
        top5 = [self.top5()] if len(self.labels) > TOP else []
        return [self.accuracy(), *top5, self.macro_f1(), self.micro_f1(), self.calibration(), self.loss()]

    def accuracy(self) -> Score:
        """Accuracy in %."""
        right = (self.predicted_N == self.target_N).astype(float)
        return self._score("accuracy", "", [100 * right], lambda sums, n: sums[0] / n)

    def top5(self) -> Score:
        """Share of examples whose label is among the five most probable ones, in %."""
        import numpy

        best_N5 = numpy.argsort(-self.prob_NC, axis=1, kind="stable")[:, :TOP]
        right = (best_N5 == self.target_N[:, None]).any(1).astype(float)
        return self._score("top5", "", [100 * right], lambda sums, n: sums[0] / n)

    def loss(self) -> Score:
        """Mean negative log-likelihood of the target, in nats."""
        found = self.prob_NC[range(len(self.target_N)), self.target_N]
        import numpy

        return self._score("loss", "unit:nat", [-numpy.log(found.clip(MIN_PROB))], lambda sums, n: sums[0] / n)

    def macro_f1(self) -> Score:
        """Unweighted mean of the labels' F1; labels without targets and predictions are left out."""
        return self._of_confusion("macro_f1", "average:macro", macro_f1)

    def micro_f1(self) -> Score:
        """F1 over all predictions together; with one label per example it equals the accuracy."""
        return self._of_confusion("micro_f1", "average:micro", micro_f1)

    def calibration(self) -> Score:
        """The expected calibration error (Naeini et al. 2015): difference of confidence and accuracy in points.

        Predictions are binned by confidence. It is above 0 even for a perfectly calibrated model, by chance.
        """
        import numpy

        confidence_N = self.prob_NC.max(1)
        bin_N = numpy.minimum((confidence_N * BINS).astype(int), BINS - 1)
        gap_N = (self.predicted_N == self.target_N) - confidence_N
        parts = [numpy.where(bin_N == b, gap_N, 0.0) for b in range(BINS)]
        return self._score("ece", f"bins:{BINS}", parts, lambda sums, n: 100 * sum(map(abs, sums)) / n)

    def confusion(self) -> ConfusionMatrix:
        """The confusion matrix, with bootstrap intervals."""
        import numpy

        counts = self._counts(None)
        size = len(self.labels)
        # with many labels most cells are 0, and stay 0 in every resample
        cells, of_N = numpy.unique(self.target_N * size + self.predicted_N, return_inverse=True)
        drawn = numpy.stack([numpy.bincount(of_N, times, len(cells)) for times in self._draws()])
        ends = numpy.zeros((2, size * size), int)
        ends[:, cells] = numpy.array([percentile_interval(column) for column in drawn.T]).T
        return ConfusionMatrix(self.labels, counts.astype(int), *ends.reshape(2, size, size))

    def _score(self, name: str, how: str, parts: Sequence[Any], score: Callable[[list[float], int], float]) -> Score:
        """A score from sums over examples."""
        import numpy

        stats_NS, n = numpy.stack(parts, 1), len(self.target_N)
        low, high = percentile_interval([score((times @ stats_NS).tolist(), n) for times in self._draws()])
        return Score(name, score(stats_NS.sum(0).tolist(), n), low, high, signature(how), n)

    def _of_confusion(self, name: str, how: str, score: Callable[[Any], float]) -> Score:
        low, high = percentile_interval([score(self._counts(times)) for times in self._draws()])
        return Score(name, score(self._counts(None)), low, high, signature(how), len(self.target_N))

    def _counts(self, times: Any) -> Any:
        """(C, C): counts of (target, prediction); an example counts as often as it was drawn."""
        import numpy

        size = len(self.labels)
        return numpy.bincount(self.target_N * size + self.predicted_N, times, size * size).reshape(size, size)

    def _draws(self) -> Any:
        """For 1,000 resamples, how often each example is drawn: those of metrics/bootstrap.py."""
        import numpy

        draw, n = numpy.random.default_rng(SEED), len(self.target_N)
        return (numpy.bincount(draw.choice(n, size=n), minlength=n) for _ in range(RESAMPLES))


@dataclass(frozen=True, eq=False)
class ConfusionMatrix:
    """Confusion matrix: rows are targets, columns predictions; with the 95 % interval of each count.

    >>> import numpy
    >>> counts = numpy.array([[8, 2], [1, 9]])
    >>> print("\\n".join(ConfusionMatrix(("bad", "good"), counts, counts - 1, counts + 1).format_lines()))
    target  predicted bad      good
    bad           8 (7-9)   2 (1-3)
    good          1 (0-2)  9 (8-10)
    """

    labels: tuple[str, ...]
    counts: Any
    low: Any
    high: Any

    def format_lines(self, most: int = 12) -> list[str]:
        """The matrix as text lines; of many labels the most frequent ones."""
        shown = sorted(sorted(range(len(self.labels)), key=lambda i: -int(self.counts[i].sum()))[:most])
        names = [shorten_label(self.labels[i]) for i in shown]
        cells = [[f"{self.counts[i, j]} ({self.low[i, j]}-{self.high[i, j]})" for j in shown] for i in shown]
        wide = [max(len(name), *(len(row[j]) for row in cells)) for j, name in enumerate(names)]
        first = max(len("target"), *map(len, names))
        wide[0] = max(wide[0], len(f"predicted {names[0]}"))
        heads = [f"predicted {names[0]}", *names[1:]]
        lines = [[f"{'target':<{first}}", *(f"{head:>{w}}" for head, w in zip(heads, wide, strict=True))]]
        lines += [
            [f"{name:<{first}}", *(f"{cell:>{w}}" for cell, w in zip(row, wide, strict=True))]
            for name, row in zip(names, cells, strict=True)
        ]
        rest = [f"and {len(self.labels) - most} labels more"] if len(self.labels) > most else []
        return ["  ".join(line) for line in lines] + rest

    def to_dict(self) -> dict[str, Any]:
        """JSON-serializable data."""
        return {
            "labels": list(self.labels),
            "counts": self.counts.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
        }


def macro_f1(counts_CC: Any) -> float:
    """Macro F1 of a confusion matrix, 0 to 100; labels without targets and predictions are left out.

    >>> import numpy
    >>> round(macro_f1(numpy.array([[2, 1], [0, 3]])), 2)  # of 2 / (2 + 0.5) and 3 / (3 + 0.5)
    82.86
    """
    import numpy

    right, all_ = counts_CC.diagonal(), counts_CC.sum(0) + counts_CC.sum(1)
    there = all_ > 0
    return float(numpy.mean(200 * right[there] / all_[there])) if there.any() else math.nan


def micro_f1(counts_CC: Any) -> float:
    """Micro F1 of a confusion matrix, 0 to 100: 2 TP / (2 TP + FP + FN).

    >>> import numpy
    >>> round(micro_f1(numpy.array([[2, 1], [0, 3]])), 2)
    83.33
    """
    right, total = counts_CC.trace(), counts_CC.sum()
    return float(200 * right / (2 * right + 2 * (total - right))) if total else math.nan


def signature(how: str = "") -> str:
    """Signature of a score.

    >>> signature("bins:15")
    'bins:15|bs:1000|seed:12345'
    """
    return "|".join(filter(None, [how, f"bs:{RESAMPLES}", f"seed:{SEED}"]))


def shorten_label(label: str) -> str:
    """A label that fits into a table.

    >>> shorten_label("a label of very many words")
    'a label of ver…'
    """
    return label if len(label) <= 15 else label[:14] + "…"
