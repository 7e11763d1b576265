"""From a number to a place on a ramp of colours, and to the digits that are shown: shares, signed values, powers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

Ramp = Literal["weight", "signed", "log"]
"""Which colours: one hue from 0 on; two hues with 0 in the middle; dark to bright over powers of ten."""


@dataclass(frozen=True)
class Scale(ABC):
    """What the ends of a ramp stand for.

    >>> Share(0.5).strengths(np.array([0.0, 0.25, 0.5]))
    array([0. , 0.5, 1. ])
    """

    ramp: ClassVar[Ramp]
    narrow: ClassVar[int]
    """cells of a terminal that a brief number needs"""

    @property
    @abstractmethod
    def note(self) -> str:
        """What brief numbers are given in."""

    @property
    @abstractmethod
    def ends(self) -> tuple[float, float]:
        """What the first and the last colour stand for."""

    @abstractmethod
    def strengths(self, numbers: np.ndarray) -> np.ndarray:
        """Places on the ramp: from 0 (or -1 where there are two hues) to 1."""

    @abstractmethod
    def told(self, number: float) -> str:
        """A number in a cell."""

    @abstractmethod
    def brief(self, number: float) -> str:
        """A number in a narrow cell."""

    def exact(self, number: float) -> str:
        """A number in a tooltip or a legend."""
        return f"{number:.4f}"


@dataclass(frozen=True)
class Share(Scale):
    """From 0 to `top`: weights of attention, gates.

    >>> Share(1.0).told(0.257), Share(1.0).brief(0.257)
    ('0.26', '26')
    """

    ramp = "weight"
    narrow = 3
    top: float

    @property
    def note(self) -> str:
        return "in per cent"

    @property
    def ends(self) -> tuple[float, float]:
        return 0.0, self.top

    def strengths(self, numbers: np.ndarray) -> np.ndarray:
        filled = np.nan_to_num(numbers.astype(np.float64), nan=0.0, posinf=self.top, neginf=0.0)
        return np.clip(filled / self.top, 0.0, 1.0) if self.top > 0 else np.zeros_like(filled)

    def told(self, number: float) -> str:
        return f"{number:.2f}"

    def brief(self, number: float) -> str:
        return f"{100 * number:.0f}"


@dataclass(frozen=True)
class Signed(Scale):
    """From -`reach` to `reach`: hidden states, cells.

    >>> Signed(2.0).strengths(np.array([-2.0, 0.0, 1.0])), Signed(2.0).told(-0.257)
    (array([-1. ,  0. ,  0.5]), '-0.26')
    """

    ramp = "signed"
    narrow = 4
    reach: float

    @property
    def note(self) -> str:
        return "in hundredths" if self.reach < 10 else "rounded"

    @property
    def ends(self) -> tuple[float, float]:
        return -self.reach, self.reach

    def strengths(self, numbers: np.ndarray) -> np.ndarray:
        filled = np.nan_to_num(numbers.astype(np.float64), nan=0.0, posinf=self.reach, neginf=-self.reach)
        return np.clip(filled / self.reach, -1.0, 1.0) if self.reach > 0 else np.zeros_like(filled)

    def told(self, number: float) -> str:
        return f"{number:+.2f}" if abs(number) < 10 else f"{number:+.0f}"

    def brief(self, number: float) -> str:
        return f"{100 * number:.0f}" if self.reach < 10 else f"{number:.0f}"


@dataclass(frozen=True)
class Powers(Scale):
    """From `low` to `high` over powers of ten: norms of gradients. 0 has no place among them and no colour.

    >>> Powers(1e-4, 1.0).strengths(np.array([1e-4, 0.01, 1.0, 0.0]))
    array([0. , 0.5, 1. , nan])
    >>> [Powers(1e-4, 1.0).told(n) for n in (0.00123, 0.0, 21.0)]
    ['1e-3', '0', '2e+1']
    >>> [Powers(1e-4, 1.0).brief(n) for n in (0.001, 0.0, 1.0)]
    ['-3.0', '·', '0.0']
    """

    ramp = "log"
    narrow = 5
    low: float
    high: float

    @property
    def note(self) -> str:
        return "as powers of ten"

    @classmethod
    def of(cls, numbers: np.ndarray) -> Powers:
        """The scale that just holds the numbers above 0."""
        above = numbers[np.isfinite(numbers) & (numbers > 0)]
        return cls(float(above.min()), float(above.max())) if above.size else cls(1.0, 1.0)

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high

    def strengths(self, numbers: np.ndarray) -> np.ndarray:
        filled = np.nan_to_num(numbers.astype(np.float64), nan=0.0, posinf=self.high, neginf=0.0)
        logs = np.log(np.where(filled > 0, filled, np.nan))
        width = math.log(self.high) - math.log(self.low)
        places = (logs - math.log(self.low)) / width if width > 0 else np.where(np.isnan(logs), np.nan, 1.0)
        return np.clip(places, 0.0, 1.0)

    def told(self, number: float) -> str:
        if math.isnan(number):
            return "-"
        mantissa, _, exponent = f"{number:.0e}".partition("e")
        return f"{mantissa}e{int(exponent):+d}" if exponent and number > 0 else f"{number:.0f}"

    def brief(self, number: float) -> str:
        if number == 0:
            return "·"  # a 0 would read as 10^0
        return f"{math.log10(number):.1f}" if 0 < number < math.inf else self.told(number)

    def exact(self, number: float) -> str:
        return f"{number:.3g}"
