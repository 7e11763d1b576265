"""A matrix with words on its sides: what every picture here is drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.look.color_scales import Scale, Share
from regard.look.tokens import shown


@dataclass(frozen=True, eq=False)
class Matrix:
    """Numbers with a label for each row and each column, and the scale they are painted by.

    >>> Matrix(np.array([[0.25, 0.75]]), ("i",), ("je", "suis"), "attention").top
    0.75
    """

    numbers: np.ndarray
    """(rows, columns)"""
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    title: str
    row_title: str = "target"
    column_title: str = "source"
    ceiling: float | None = None
    """what the strongest colour stands for; None: the largest number"""
    given: Scale | None = None
    """how numbers become colours; None: as shares, from 0 to the strongest colour"""
    spoken: tuple[str, str] = ("weights", "looks most at")
    """what the numbers are called, and what a row does where its number is the largest"""

    def __post_init__(self) -> None:
        if self.numbers.shape != (len(self.rows), len(self.columns)):
            found = " x ".join(map(str, self.numbers.shape))
            raise ValueError(f"{self.title}: {len(self.rows)} x {len(self.columns)} labels for {found} numbers")

    @property
    def top(self) -> float:
        """What the strongest colour stands for."""
        return self.largest if self.ceiling is None else self.ceiling

    @property
    def scale(self) -> Scale:
        """How numbers become colours and digits."""
        return Share(self.top) if self.given is None else self.given

    @property
    def largest(self) -> float:
        """The largest number; 0 of none."""
        return float(self._finite.max()) if self._finite.size else 0.0

    @property
    def smallest(self) -> float:
        """The smallest number; 0 of none."""
        return float(self._finite.min()) if self._finite.size else 0.0

    @property
    def strengths(self) -> np.ndarray:
        """The place of each number on its ramp."""
        return self.scale.strengths(self.numbers)

    @property
    def _finite(self) -> np.ndarray:
        return self.numbers[np.isfinite(self.numbers)]

    def summary(self, most: int = 12) -> str:
        """The picture in words, for those who hear it.

        >>> Matrix(np.array([[0.25, 0.75]]), ("i",), ("je", "suis"), "attention").summary()
        '1 x 2 weights, from 0.2500 to 0.7500. Each target looks most at: i at suis (0.7500).'
        """
        told, (name, does) = self.scale.exact, self.spoken
        size = f"{len(self.rows)} x {len(self.columns)} {name}, from {told(self.smallest)} to {told(self.largest)}."
        if not self.numbers.size:
            return size
        best = np.nan_to_num(self.numbers, nan=-np.inf).argmax(1)
        said = [
            f"{shown(self.rows[i])} at {shown(self.columns[j])} ({told(float(self.numbers[i, j]))})"
            for i, j in list(enumerate(best))[:most]
        ]
        rest = f"; and {len(self.rows) - most} more" if len(self.rows) > most else ""
        return f"{size} Each {self.row_title} {does}: {'; '.join(said)}{rest}."
