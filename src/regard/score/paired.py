"""Is one system better than another, or was it luck? The same sentences drawn again and again, both scored on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.score.bootstrap import interval, p_value, resampled
from regard.score.score import FALLING
from regard.score.translation import Name, check_pairs, sacrebleu_metric, signature, statistics, total


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
    """sentences"""

    @property
    def delta(self) -> float:
        """What the second system scores more than the first; for TER, below 0 is good."""
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
    won = differences < 0 if metric in FALLING else differences > 0
    low, high = interval(differences)
    p, wins = p_value(second - first, differences), float(won.mean())
    return Paired(metric, first, second, low, high, p, wins, signature(by), len(references))
