"""Color scales (linear, diverging, logarithmic): from a number to a position on a color map and to its digits."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

Colormap = Literal["sequential", "diverging", "log"]
"""One hue from 0 up; two hues with 0 in the middle; dark to bright over powers of ten."""


@dataclass(frozen=True)
class ColorScale(ABC):
    """Maps numbers to positions on a color map and to digits."""

    colormap: ClassVar[Colormap]
    short_width: ClassVar[int]
    """terminal columns that a short number needs"""

    @property
    @abstractmethod
    def short_unit(self) -> str:
        """Unit of short numbers."""

    @property
    @abstractmethod
    def limits(self) -> tuple[float, float]:
        """Values of the first and the last color."""

    def intensities(self, numbers: np.ndarray) -> np.ndarray:
        """Positions on the color map: from 0 (-1 if it is diverging) to 1."""
        low, high = self.limits
        finite = np.nan_to_num(numbers.astype(np.float64), nan=0.0, posinf=high, neginf=low)
        return np.clip(finite / high, np.sign(low), 1.0) if high > 0 else np.zeros_like(finite)

    @abstractmethod
    def format(self, number: float) -> str:
        """A number in a cell."""

    @abstractmethod
    def format_short(self, number: float) -> str:
        """A number in a narrow cell."""

    def format_exact(self, number: float) -> str:
        """A number in a tooltip or a legend."""
        return f"{number:.4f}"


@dataclass(frozen=True)
class LinearScale(ColorScale):
    """From 0 to `top`: attention weights, gates.

    >>> LinearScale(0.5).intensities(np.array([0.0, 0.25, 0.5])).tolist(), LinearScale(1.0).format_short(0.257)
    ([0.0, 0.5, 1.0], '26')
    """

    colormap = "sequential"
    short_width = 3
    top: float

    @property
    def short_unit(self) -> str:
        return "in percent"

    @property
    def limits(self) -> tuple[float, float]:
        return 0.0, self.top

    def format(self, number: float) -> str:
        return f"{number:.2f}"

    def format_short(self, number: float) -> str:
        return f"{100 * number:.0f}"


@dataclass(frozen=True)
class DivergingScale(ColorScale):
    """From -`max_abs` to `max_abs`: hidden states, cells, saliency. Digits are those that its largest number needs.

    >>> DivergingScale(2.0).format(-0.5), DivergingScale(0.004).format(-0.0012), DivergingScale(0.004).format(0.0)
    ('-0.50', '-1e-3', '0')
    >>> DivergingScale(0.004).format_short(-0.0012), DivergingScale(0.004).short_unit
    ('-12', 'in units of 1e-4')
    """

    colormap = "diverging"
    short_width = 4
    max_abs: float

    @property
    def short_unit(self) -> str:
        if self._is_small:
            return f"in units of 1e{self._short_exponent}"
        return "in hundredths" if self.max_abs < 10 else "rounded"

    @property
    def _is_small(self) -> bool:
        """Whether two decimals would show little or nothing of every number."""
        return 0 < self.max_abs < 0.1

    @property
    def _short_exponent(self) -> int:
        """Power of ten of the unit in which the largest number has two digits."""
        return math.floor(math.log10(self.max_abs)) - 1

    @property
    def limits(self) -> tuple[float, float]:
        return -self.max_abs, self.max_abs

    def format(self, number: float) -> str:
        if self._is_small:
            mantissa, _, exponent = f"{number:+.0e}".partition("e")
            return f"{mantissa}e{int(exponent):+d}" if number and exponent else f"{number:.0f}"
        return f"{number:+.2f}" if abs(number) < 10 else f"{number:+.0f}"

    def format_short(self, number: float) -> str:
        if self._is_small:
            return f"{number / 10.0**self._short_exponent:.0f}"
        return f"{100 * number:.0f}" if self.max_abs < 10 else f"{number:.0f}"

    def format_exact(self, number: float) -> str:
        return f"{number:.3g}" if self._is_small else super().format_exact(number)


@dataclass(frozen=True)
class LogScale(ColorScale):
    """From `low` to `high` over powers of ten: gradient norms. 0 has no position and no color."""

    colormap = "log"
    short_width = 5
    low: float
    high: float

    @property
    def short_unit(self) -> str:
        return "as powers of ten"

    @classmethod
    def fit(cls, numbers: np.ndarray) -> LogScale:
        """The smallest scale that holds the numbers above 0."""
        positive = numbers[np.isfinite(numbers) & (numbers > 0)]
        return cls(float(positive.min()), float(positive.max())) if positive.size else cls(1.0, 1.0)

    @property
    def limits(self) -> tuple[float, float]:
        return self.low, self.high

    def intensities(self, numbers: np.ndarray) -> np.ndarray:
        finite = np.nan_to_num(numbers.astype(np.float64), nan=0.0, posinf=self.high, neginf=0.0)
        logs = np.log(np.where(finite > 0, finite, np.nan))
        width = math.log(self.high) - math.log(self.low)
        positions = (logs - math.log(self.low)) / width if width > 0 else np.where(np.isnan(logs), np.nan, 1.0)
        return np.clip(positions, 0.0, 1.0)

    def format(self, number: float) -> str:
        if math.isnan(number):
            return "-"
        mantissa, _, exponent = f"{number:.0e}".partition("e")
        return f"{mantissa}e{int(exponent):+d}" if exponent and number > 0 else f"{number:.0f}"

    def format_short(self, number: float) -> str:
        if number == 0:
            return "·"  # a 0 would read as 10^0
        return f"{math.log10(number):.1f}" if 0 < number < math.inf else self.format(number)

    def format_exact(self, number: float) -> str:
        return f"{number:.3g}"
