"""A score with its confidence interval and its signature."""

from __future__ import annotations

from dataclasses import dataclass

LOWER_IS_BETTER = frozenset({"ter", "perplexity", "ppl", "loss", "bits", "ece", "mae", "rmse", "mase"})
"""metrics for which lower is better; for all others higher is better"""


@dataclass(frozen=True)
class Score:
    """A score of a corpus with its 95 % bootstrap interval.

    >>> print(Score("bleu", 27.312, 26.4, 28.249, "nrefs:1|case:mixed", n=1000))
    bleu 27.31 (95 %: 26.40 to 28.25)
    """

    name: str
    """such as bleu, chrf, ter, accuracy or perplexity"""
    value: float
    low: float
    """lower end of the 95 % interval"""
    high: float
    """upper end"""
    signature: str
    """how it was measured: only scores with the same signature are comparable"""
    n: int
    """number of scored sentences or other units"""

    def __str__(self) -> str:
        return f"{self.name} {self.value:.2f} (95 %: {self.low:.2f} to {self.high:.2f})"

    @property
    def lower_is_better(self) -> bool:
        return self.name in LOWER_IS_BETTER
