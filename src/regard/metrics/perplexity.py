"""Perplexity: among how many equally likely words a model seems to choose."""

from __future__ import annotations

import math
from collections.abc import Sequence

from regard.errors import DataError
from regard.metrics.bootstrap import RESAMPLES, SEED, interval, resampled
from regard.metrics.score import Score

LARGEST = 700.0
"""exp of more is no float"""


def perplexity(surprises: Sequence[float], counts: Sequence[int], unit: str = "token") -> Score:
    """exp(sum of -log p / sum of predictions), from each sentence's sum of -log p (nats) and its predictions.

    Perplexities over different units, or vocabularies, cannot be compared.

    >>> score = perplexity([math.log(2) * 3, math.log(2) * 5], [3, 5])
    >>> round(score.value, 6), score.signature
    (2.0, 'unit:token|bs:1000|seed:12345')
    """
    if len(surprises) != len(counts):
        raise DataError(f"there are {len(surprises)} surprises and {len(counts)} counts; each sentence needs both")
    if sum(counts) < 1:
        raise DataError(f"there is nothing to score: {len(counts)} sentences with {sum(counts)} predictions")
    import numpy

    finite = [min(float(s), 1e300) for s in surprises]  # a word held for impossible; 0 x infinity is not a number
    low, high = interval(resampled(numpy.array([finite, counts], numpy.float64).T, perplexity_of))
    value = perplexity_of([math.fsum(finite), sum(counts)])
    return Score("perplexity", value, low, high, f"unit:{unit}|bs:{RESAMPLES}|seed:{SEED}", len(counts))


def mean_loss(parts: Sequence[tuple[float, int]], how: str) -> Score:
    """The loss a prediction, from each part's sum of losses and its predictions.

    >>> score = mean_loss([(4.0, 2), (8.0, 4)], "unit:guess")
    >>> score.value, score.low, score.signature
    (2.0, 2.0, 'unit:guess|bs:1000|seed:12345')
    """
    import numpy

    low, high = interval(resampled(numpy.array(parts, numpy.float64), _mean))
    value = _mean([math.fsum(total for total, _ in parts), sum(count for _, count in parts)])
    return Score("loss", value, low, high, f"{how}|bs:{RESAMPLES}|seed:{SEED}", len(parts))


def _mean(sums: list[float]) -> float:
    return sums[0] / sums[1] if sums[1] else math.nan


def perplexity_of(sums: list[float]) -> float:
    """The perplexity of what adds up: a sum of nats and their number.

    >>> perplexity_of([0.0, 7]), round(perplexity_of([math.log(9), 2]), 6)
    (1.0, 3.0)
    """
    surprise, count = sums
    return math.exp(min(surprise / count, LARGEST)) if count else math.nan  # empty sentences alone say nothing
