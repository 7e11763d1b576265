"""Scores of corpora drawn anew from the same sentences: how far a score moves by the choice of the test set alone.

sacrebleu can do it too, and from the same seed this draws the same corpora. But it fails where some of them score a
plain 0, and its paired test takes chance for a difference more than twice as often as it says: it centres sizes of
differences, on their mean, where differences should be centred, on the one that was measured (Hall and Wilson 1991).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Numbers = NDArray[numpy.float64]

SEED, RESAMPLES = 12345, 1000
"""sacrebleu's, so that the intervals are its intervals"""


def resampled(stats_NS: Numbers, score: Callable[[list[float]], float]) -> Numbers:
    """Scores of 1,000 corpora of N sentences drawn with replacement; `stats_NS` holds what adds up, row by row.

    Two systems on the same sentences are drawn alike: put their numbers side by side, or call twice.

    >>> import numpy
    >>> scores = resampled(numpy.array([[1.0, 1], [3.0, 1]]), lambda sums: sums[0] / sums[1])
    >>> sorted(set(scores.tolist()))
    [1.0, 2.0, 3.0]
    """
    import numpy

    draw, n = numpy.random.default_rng(SEED), len(stats_NS)
    sums = (numpy.bincount(draw.choice(n, size=n), minlength=n) @ stats_NS for _ in range(RESAMPLES))
    return numpy.array([score(row.tolist()) for row in sums])


def interval(scores: Sequence[float] | Numbers) -> tuple[float, float]:
    """The 95 % in the middle; what is not a number is left out.

    >>> interval([float(i) for i in range(1000)])
    (25.0, 974.0)
    """
    kept = sorted(float(score) for score in scores if not math.isnan(score))
    if not kept:
        return math.nan, math.nan
    out = len(kept) // 40
    return kept[out], kept[-1 - out]


def p_value(delta: float, differences: Numbers) -> float:
    """How likely chance alone makes a difference of the size of `delta`, to either side.

    Chance is how far resampled differences fall from `delta`, taken to be how far they would fall from 0 if there were
    none (Riezler and Maxwell 2005). Where they lean to one side that may be less than twice the share of the corpora on
    which the worse system is as good (Koehn 2004); then this is told, so that p is below 0.05 only where `interval`
    leaves 0 out.

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
