"""Paired bootstrap test: is the difference between two systems on one test set significant?"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from regard.errors import DataError
from regard.metrics.bootstrap import bootstrap_scores, p_value, percentile_interval
from regard.metrics.perplexity import perplexity_from_sums
from regard.metrics.score import LOWER_IS_BETTER
from regard.metrics.translation import Name, check_pairs, sacrebleu_metric, signature, statistics, total

if TYPE_CHECKING:
    from regard.metrics.bootstrap import FloatArray

UnitSums = Sequence[tuple[float, int]]
"""for each scored unit (a window, a text), in order: a total and a count"""


@dataclass(frozen=True)
class PairedComparison:
    """Comparison of two systems on the same sentences.

    >>> print(PairedComparison("bleu", 27.0, 27.9, 0.1, 1.7, p_value=0.031, wins=0.985, signature="nrefs:1", n=1000))
    bleu 27.00 -> 27.90 (+0.90, 95 %: +0.10 to +1.70), p = 0.031
    """

    name: str
    a: float
    """score of the first system"""
    b: float
    """score of the second"""
    low: float
    """lower end of the 95 % interval of the difference"""
    high: float
    """upper end"""
    p_value: float
    """two-sided"""
    wins: float
    """share of the resampled corpora on which the second system is better"""
    signature: str
    n: int
    """sentences, or other units"""

    @property
    def delta(self) -> float:
        """Difference of the second system to the first; for TER and perplexity, below 0 is better."""
        return self.b - self.a

    def __str__(self) -> str:
        around = f"{self.delta:+.2f}, 95 %: {self.low:+.2f} to {self.high:+.2f}"
        return f"{self.name} {self.a:.2f} -> {self.b:.2f} ({around}), p = {self.p_value:.3f}"


def paired_bootstrap(
    a: Sequence[str],
    b: Sequence[str],
    references: Sequence[str],
    metric: Name = "bleu",
    *,
    lowercase: bool = False,
) -> PairedComparison:
    """Paired bootstrap test (Koehn 2004) between the outputs of two systems, two-sided.

    >>> references = ["a b c d e", "f g h i j", "k l m n o"] * 10
    >>> found = paired_bootstrap(["a b c d x", "f g h i x", "k l m n x"] * 10, references, references)
    >>> round(found.delta, 1), round(found.p_value, 3), found.wins
    (33.1, 0.001, 1.0)
    """
    check_pairs(a, references, "outputs of the first system")
    check_pairs(b, references, "outputs of the second system")
    by = sacrebleu_metric(metric, lowercase)
    sums = [statistics(by, outputs, references) for outputs in (a, b)]
    first, second = (total(by, stats_NS.sum(0).tolist()) for stats_NS in sums)
    differences = -bootstrap_scores(sums[0], lambda row: total(by, row)) + bootstrap_scores(
        sums[1], lambda row: total(by, row)
    )
    return _compare(metric, first, second, differences, signature(by), len(references))


def paired_bootstrap_sums(a: UnitSums, b: UnitSums, name: str, signature: str) -> PairedComparison:
    """The same test for a mean of totals over counts; the perplexity is exp of it.

    >>> found = paired_bootstrap_sums([(8.0, 4), (6.0, 3)] * 10, [(4.0, 4), (3.0, 3)] * 10, "perplexity", "unit:token")
    >>> round(found.delta, 2), round(found.p_value, 3), found.wins
    (-4.67, 0.001, 1.0)
    """
    if len(a) != len(b):
        raise DataError(f"there are {len(a)} parts of the first system and {len(b)} of the second; each needs both")
    import numpy

    by = perplexity_from_sums if name == "perplexity" else _mean_or_zero
    sides = [[(min(float(total), 1e300), count) for total, count in parts] for parts in (a, b)]  # as perplexity has it
    first, second = (by([math.fsum(t for t, _ in parts), sum(n for _, n in parts)]) for parts in sides)
    drawn = [bootstrap_scores(numpy.array(parts, numpy.float64), by) for parts in sides]
    return _compare(name, first, second, drawn[1] - drawn[0], signature, len(a))


def align_sums(a: UnitSums, b: UnitSums) -> tuple[UnitSums, UnitSums]:
    """Sums of two systems over one text, merged to the boundaries they share; () if the lengths differ.

    >>> align_sums([(1.0, 2), (2.0, 2), (4.0, 3)], [(9.0, 4), (7.0, 3)])
    ([(3.0, 4), (4.0, 3)], [(9.0, 4), (7.0, 3)])
    >>> align_sums([(1.0, 2)], [(1.0, 3)])
    ((), ())
    """
    ends = [list(accumulate(count for _, count in parts)) for parts in (a, b)]
    if not a or not b or ends[0][-1] != ends[1][-1]:
        return (), ()
    both = set(ends[0]) & set(ends[1])
    return _merge(a, ends[0], both), _merge(b, ends[1], both)


def _merge(parts: UnitSums, ends: Sequence[int], cuts: Container[int]) -> UnitSums:
    found, total, count = list[tuple[float, int]](), 0.0, 0
    for (more, number), end in zip(parts, ends, strict=True):
        total, count = total + more, count + number
        if end in cuts:
            found.append((total, count))
            total, count = 0.0, 0
    return found


def _compare(name: str, a: float, b: float, differences: FloatArray, signature: str, n: int) -> PairedComparison:
    won = differences < 0 if name in LOWER_IS_BETTER else differences > 0
    low, high = percentile_interval(differences)
    return PairedComparison(name, a, b, low, high, p_value(b - a, differences), float(won.mean()), signature, n)


def _mean_or_zero(sums: list[float]) -> float:
    return sums[0] / sums[1] if sums[1] else 0.0
