"""Labeled matrix: numbers with a label per row and column, from which heat maps are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.look.color_scales import ColorScale, LinearScale
from regard.look.tokens import token_label


@dataclass(frozen=True, eq=False)
class Matrix:
    """Numbers with a label per row and column, and their color scale."""

    numbers: np.ndarray
    """(rows, columns)"""
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    title: str
    row_title: str = "target"
    column_title: str = "source"
    ceiling: float | None = None
    """value of the strongest color; None: the largest number"""
    color_scale: ColorScale | None = None
    """None: linear from 0 to the value of the strongest color"""
    summary_words: tuple[str, str] = ("weights", "looks most at")
    """for summary(): name of the numbers, and verb between a row and the column of its largest number"""

    def __post_init__(self) -> None:
        if self.numbers.shape != (len(self.rows), len(self.columns)):
            found = " x ".join(map(str, self.numbers.shape))
            raise ValueError(f"{self.title}: {len(self.rows)} x {len(self.columns)} labels for {found} numbers")

    @property
    def scale(self) -> ColorScale:
        """The color scale in use."""
        top = self.largest if self.ceiling is None else self.ceiling
        return LinearScale(top) if self.color_scale is None else self.color_scale

    @property
    def largest(self) -> float:
        """The largest finite number, or 0."""
        return float(self._finite.max()) if self._finite.size else 0.0

    @property
    def smallest(self) -> float:
        """The smallest finite number, or 0."""
        return float(self._finite.min()) if self._finite.size else 0.0

    @property
    def intensities(self) -> np.ndarray:
        """Position of each number on its color map."""
        return self.scale.intensities(self.numbers)

    @property
    def _finite(self) -> np.ndarray:
        return self.numbers[np.isfinite(self.numbers)]

    def summary(self, most: int = 12) -> str:
        """The matrix in one sentence, for screen readers.

        >>> Matrix(np.array([[0.25, 0.75]]), ("i",), ("je", "suis"), "attention").summary()
        '1 x 2 weights, from 0.2500 to 0.7500. Each target looks most at: i at suis (0.7500).'
        """
        exact, (name, verb) = self.scale.format_exact, self.summary_words
        size = f"{len(self.rows)} x {len(self.columns)} {name}, from {exact(self.smallest)} to {exact(self.largest)}."
        if not self.numbers.size:
            return size
        best = np.nan_to_num(self.numbers, nan=-np.inf).argmax(1)
        maxima = [
            f"{token_label(self.rows[i])} at {token_label(self.columns[j])} ({exact(float(self.numbers[i, j]))})"
            for i, j in list(enumerate(best))[:most]
        ]
        rest = f"; and {len(self.rows) - most} more" if len(self.rows) > most else ""
        return f"{size} Each {self.row_title} {verb}: {'; '.join(maxima)}{rest}."
