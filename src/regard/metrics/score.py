"""A score with its confidence interval and its signature."""

from __future__ import annotations

from dataclasses import dataclass

LOWER_IS_BETTER = frozenset({"ter", "perplexity", "ppl", "loss", "bits", "bits_per_byte", "ece", "mae", "rmse", "mase"})
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
        value, low, high = (format_value(number, 2) for number in (self.value, self.low, self.high))
        return f"{self.name} {value} (95 %: {low} to {high})"

    @property
    def lower_is_better(self) -> bool:
        return self.name in LOWER_IS_BETTER


def format_value(value: float, digits: int) -> str:
    """A number with so many digits after the point; one of a million or more in scientific notation.

    >>> format_value(12.345, 1), format_value(2.5e7, 1), format_value(-3e303, 2)
    ('12.3', '2.5e+07', '-3.00e+303')
    """
    return f"{value:.{digits}f}" if abs(value) < 1e6 else f"{value:.{digits}e}"
