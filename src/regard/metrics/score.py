"""A number that says how good something is, how sure it is, and how exactly it was measured."""

from __future__ import annotations

from dataclasses import dataclass

FALLING = frozenset({"ter", "perplexity", "ppl", "loss", "bits", "ece", "mae", "rmse", "mase"})
"""Scores that get better as they fall; all others get better as they rise."""


@dataclass(frozen=True)
class Score:
    """A score of a corpus with its 95 % bootstrap interval.

    >>> print(Score("bleu", 27.312, 26.4, 28.249, "nrefs:1|case:mixed", n=1000))
    bleu 27.31 (95 %: 26.40 to 28.25)
    """

    name: str
    """bleu, chrf, ter, tokenised_bleu or perplexity"""
    value: float
    low: float
    """where the 95 % interval begins"""
    high: float
    """where it ends"""
    signature: str
    """how it was measured: only scores of one signature can be compared"""
    n: int
    """sentences that were scored"""

    def __str__(self) -> str:
        return f"{self.name} {self.value:.2f} (95 %: {self.low:.2f} to {self.high:.2f})"

    @property
    def falls(self) -> bool:
        """Whether less is better."""
        return self.name in FALLING
