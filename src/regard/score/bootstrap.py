"""Scores of corpora drawn anew from the same sentences: how far a score moves by the choice of the test set alone.

sacrebleu can do it too, and from the same seed this draws the same corpora. But it fails where some of them score a
plain 0, and its paired test takes chance for a difference more than twice as often as it says: it centres sizes of
differences where differences should be centred.
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

    >>> import numpy
    >>> p_value(0.0, numpy.zeros(1000)), round(p_value(3.0, numpy.linspace(2.0, 4.0, 1000)), 3)
    (1.0, 0.001)
    """
    chance = abs(differences - differences.mean())
    return (1 + int((chance >= abs(delta)).sum())) / (1 + len(differences))
