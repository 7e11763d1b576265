"""Is one system better than another, or was it luck? The same sentences drawn again and again, both scored on them."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from regard.errors import DataError
from regard.metrics.bootstrap import interval, p_value, resampled
from regard.metrics.perplexity import perplexity_of
from regard.metrics.score import FALLING
from regard.metrics.translation import Name, check_pairs, sacrebleu_metric, signature, statistics, total

if TYPE_CHECKING:
    from regard.metrics.bootstrap import Numbers

Parts = Sequence[tuple[float, int]]
"""Of each unit that was scored (a window, a text), in their order: a total, and the number of what it is a total of."""


@dataclass(frozen=True)
class Paired:
    """Two systems on the same sentences.

    >>> print(Paired("bleu", 27.0, 27.9, 0.1, 1.7, p_value=0.031, wins=0.985, signature="nrefs:1", n=1000))
    bleu 27.00 -> 27.90 (+0.90, 95 %: +0.10 to +1.70), p = 0.031
    """

    name: str
    a: float
    """score of the first system"""
    b: float
    """score of the second"""
    low: float
    """where the 95 % interval of the difference begins"""
    high: float
    """where it ends"""
    p_value: float
    """how likely chance alone makes so large a difference, to either side"""
    wins: float
    """share of the resampled corpora on which the second system is better than the first"""
    signature: str
    n: int
    """sentences, or other units"""

    @property
    def delta(self) -> float:
        """What the second system scores more than the first; for TER and perplexity, below 0 is good."""
        return self.b - self.a

    def __str__(self) -> str:
        around = f"{self.delta:+.2f}, 95 %: {self.low:+.2f} to {self.high:+.2f}"
        return f"{self.name} {self.a:.2f} -> {self.b:.2f} ({around}), p = {self.p_value:.3f}"


def paired(
    a: Sequence[str],
    b: Sequence[str],
    references: Sequence[str],
    metric: Name = "bleu",
    *,
    lowercase: bool = False,
) -> Paired:
    """Paired bootstrap test (Koehn 2004) between the outputs of two systems, two-sided.

    >>> references = ["a b c d e", "f g h i j", "k l m n o"] * 10
    >>> found = paired(["a b c d x", "f g h i x", "k l m n x"] * 10, references, references)
    >>> round(found.delta, 1), round(found.p_value, 3), found.wins
    (33.1, 0.001, 1.0)
    """
    check_pairs(a, references, "outputs of the first system")
    check_pairs(b, references, "outputs of the second system")
    by = sacrebleu_metric(metric, lowercase)
    sums = [statistics(by, outputs, references) for outputs in (a, b)]
    first, second = (total(by, stats_NS.sum(0).tolist()) for stats_NS in sums)
    differences = -resampled(sums[0], lambda row: total(by, row)) + resampled(sums[1], lambda row: total(by, row))
    return _judged(metric, first, second, differences, signature(by), len(references))


def paired_parts(a: Parts, b: Parts, name: str, signature: str) -> Paired:
    """The same test where a score is a mean, of totals over numbers; a perplexity is e to the power of one.

    >>> found = paired_parts([(8.0, 4), (6.0, 3)] * 10, [(4.0, 4), (3.0, 3)] * 10, "perplexity", "unit:token")
    >>> round(found.delta, 2), round(found.p_value, 3), found.wins
    (-4.67, 0.001, 1.0)
    """
    if len(a) != len(b):
        raise DataError(f"there are {len(a)} parts of the first system and {len(b)} of the second; each needs both")
    import numpy

    by = perplexity_of if name == "perplexity" else _mean
    sides = [[(min(float(total), 1e300), count) for total, count in parts] for parts in (a, b)]  # as perplexity has it
    first, second = (by([math.fsum(t for t, _ in parts), sum(n for _, n in parts)]) for parts in sides)
    drawn = [resampled(numpy.array(parts, numpy.float64), by) for parts in sides]
    return _judged(name, first, second, drawn[1] - drawn[0], signature, len(a))


def shared_parts(a: Parts, b: Parts) -> tuple[Parts, Parts]:
    """Two systems' parts of one text, each added up to where both were cut; () if they are not of one length.

    >>> shared_parts([(1.0, 2), (2.0, 2), (4.0, 3)], [(9.0, 4), (7.0, 3)])
    ([(3.0, 4), (4.0, 3)], [(9.0, 4), (7.0, 3)])
    >>> shared_parts([(1.0, 2)], [(1.0, 3)])
    ((), ())
    """
    ends = [list(accumulate(count for _, count in parts)) for parts in (a, b)]
    if not a or not b or ends[0][-1] != ends[1][-1]:
        return (), ()
    both = set(ends[0]) & set(ends[1])
    return _added(a, ends[0], both), _added(b, ends[1], both)


def _added(parts: Parts, ends: Sequence[int], cuts: Container[int]) -> Parts:
    found, total, count = list[tuple[float, int]](), 0.0, 0
    for (more, number), end in zip(parts, ends, strict=True):
        total, count = total + more, count + number
        if end in cuts:
            found.append((total, count))
            total, count = 0.0, 0
    return found


def _judged(name: str, a: float, b: float, differences: Numbers, signature: str, n: int) -> Paired:
    won = differences < 0 if name in FALLING else differences > 0
    low, high = interval(differences)
    return Paired(name, a, b, low, high, p_value(b - a, differences), float(won.mean()), signature, n)


def _mean(sums: list[float]) -> float:
    return sums[0] / sums[1] if sums[1] else 0.0
