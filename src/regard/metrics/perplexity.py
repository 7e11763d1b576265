"""Perplexity and mean loss, with bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

from regard.errors import DataError
from regard.metrics.bootstrap import RESAMPLES, SEED, bootstrap_scores, mean_of_sums, percentile_interval
from regard.metrics.score import Score

MAX_EXPONENT = 700.0
"""exp of more overflows"""


def perplexity(nlls: Sequence[float], counts: Sequence[int], unit: str = "token") -> Score:
    """Perplexity, exp(sum of nll / number of predictions), from the sums of nll (in nats) and counts of each sentence.

    Perplexities over different units, or vocabularies, cannot be compared.

    >>> score = perplexity([math.log(2) * 3, math.log(2) * 5], [3, 5])
    >>> round(score.value, 6), score.signature
    (2.0, 'unit:token|bs:1000|seed:12345')
    """
    if len(nlls) != len(counts):
        raise DataError(f"there are {len(nlls)} sums of nll and {len(counts)} counts; each sentence needs both")
    if sum(counts) < 1:
        raise DataError(f"there is nothing to score: {len(counts)} sentences with {sum(counts)} predictions")
    import numpy

    finite = [min(float(nll), 1e300) for nll in nlls]  # a token of probability 0; 0 x infinity is NaN
    low, high = percentile_interval(
        bootstrap_scores(numpy.array([finite, counts], numpy.float64).T, perplexity_from_sums)
    )
    value = perplexity_from_sums([math.fsum(finite), sum(counts)])
    return Score("perplexity", value, low, high, f"unit:{unit}|bs:{RESAMPLES}|seed:{SEED}", len(counts))


def mean_loss(parts: Sequence[tuple[float, int]], how: str) -> Score:
    """Mean loss per prediction, from the sum of losses and the number of predictions of each part.

    >>> score = mean_loss([(4.0, 2), (8.0, 4)], "unit:prediction")
    >>> score.value, score.low, score.signature
    (2.0, 2.0, 'unit:prediction|bs:1000|seed:12345')
    """
    import numpy

    low, high = percentile_interval(bootstrap_scores(numpy.array(parts, numpy.float64), mean_of_sums))
    value = mean_of_sums([math.fsum(total for total, _ in parts), sum(count for _, count in parts)])
    return Score("loss", value, low, high, f"{how}|bs:{RESAMPLES}|seed:{SEED}", len(parts))


def perplexity_from_sums(sums: list[float]) -> float:
    """Perplexity of a sum of nll and a count.

    >>> perplexity_from_sums([0.0, 7]), round(perplexity_from_sums([math.log(9), 2]), 6)
    (1.0, 3.0)
    """
    nll, count = sums
    return math.exp(min(nll / count, MAX_EXPONENT)) if count else math.nan
