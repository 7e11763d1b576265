"""Bootstrap resampling of a test set: how far a score varies with the choice of the test set alone.

sacrebleu can do it too, and from the same seed this draws the same corpora. But it fails where some of them score a
plain 0, and its paired test takes chance for a difference more than twice as often as it says: it centers sizes of
differences, on their mean, where differences should be centered, on the one that was measured (Hall and Wilson 1991).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    FloatArray = NDArray[numpy.float64]

SEED, RESAMPLES = 12345, 1000
"""sacrebleu's, so that the intervals are its intervals"""


def bootstrap_scores(stats_NS: FloatArray, score: Callable[[list[float]], float]) -> FloatArray:
    """Scores of 1,000 corpora of N sentences drawn with replacement; `stats_NS` are additive statistics per sentence.

    Two systems on the same sentences get the same draws: concatenate their statistics, or call twice.

    >>> import numpy
    >>> scores = bootstrap_scores(numpy.array([[1.0, 1], [3.0, 1]]), lambda sums: sums[0] / sums[1])
    >>> sorted(set(scores.tolist()))
    [1.0, 2.0, 3.0]
    """
    import numpy

    draw, n = numpy.random.default_rng(SEED), len(stats_NS)
    sums = (numpy.bincount(draw.choice(n, size=n), minlength=n) @ stats_NS for _ in range(RESAMPLES))
    return numpy.array([score(row.tolist()) for row in sums])


def mean_of_sums(sums: Sequence[float]) -> float:
    """Mean from a total and a count; NaN for an empty corpus.

    >>> mean_of_sums([6.0, 3]), mean_of_sums([0.0, 0])
    (2.0, nan)
    """
    return sums[0] / sums[1] if sums[1] else math.nan


def percentile_interval(scores: Sequence[float] | FloatArray) -> tuple[float, float]:
    """95 % percentile interval; NaN is left out.

    >>> percentile_interval([float(i) for i in range(1000)])
    (25.0, 974.0)
    """
    kept = sorted(float(score) for score in scores if not math.isnan(score))
    if not kept:
        return math.nan, math.nan
    out = len(kept) // 40
    return kept[out], kept[-1 - out]


def p_value(delta: float, differences: FloatArray) -> float:
    """Two-sided p-value of a difference `delta` between two systems.

    The null distribution is that of the resampled differences, shifted to mean 0 (Riezler and Maxwell 2005). For skewed
    differences this may be less than twice the share of the corpora on which the worse system is as good (Koehn 2004);
    then the latter is returned, so that p is below 0.05 only where `percentile_interval` excludes 0.

    >>> import numpy
    >>> p_value(0.0, numpy.zeros(1000)), round(p_value(3.0, numpy.linspace(2.0, 4.0, 1000)), 3)
    (1.0, 0.001)
    >>> p_value(-0.25, numpy.array([0.0] * 100 + [-0.25] * 900))
    0.2
    """
    n = len(differences)
    if math.isnan(delta):
        return math.nan
    shifted = (1 + int((abs(differences - delta) >= abs(delta)).sum())) / (1 + n)
    beyond = min(int((differences <= 0).sum()), int((differences >= 0).sum())) / n
    return min(1.0, max(shifted, 2 * beyond))
