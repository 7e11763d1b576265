"""A matrix with words on its sides: what every picture here is drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.look.tokens import shown


@dataclass(frozen=True, eq=False)
class Matrix:
    """Numbers from 0 on, one row for each target word and one column for each source word.

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

    def __post_init__(self) -> None:
        if self.numbers.shape != (len(self.rows), len(self.columns)):
            found = " x ".join(map(str, self.numbers.shape))
            raise ValueError(f"{self.title}: {len(self.rows)} x {len(self.columns)} labels for {found} numbers")

    @property
    def top(self) -> float:
        """What the strongest colour stands for."""
        return self.largest if self.ceiling is None else self.ceiling

    @property
    def largest(self) -> float:
        """The largest number; 0 of none."""
        return float(self._finite.max(initial=0.0))

    @property
    def smallest(self) -> float:
        """The smallest number; 0 of none."""
        return float(self._finite.min()) if self._finite.size else 0.0

    @property
    def strengths(self) -> np.ndarray:
        """Each number as a share of the strongest colour, from 0 to 1."""
        filled = np.nan_to_num(self.numbers.astype(np.float64), nan=0.0, posinf=self.top, neginf=0.0)
        return np.clip(filled / self.top, 0.0, 1.0) if self.top > 0 else np.zeros_like(filled)

    @property
    def _finite(self) -> np.ndarray:
        return self.numbers[np.isfinite(self.numbers)]

    def summary(self, most: int = 12) -> str:
        """The picture in words, for those who hear it.

        >>> Matrix(np.array([[0.25, 0.75]]), ("i",), ("je", "suis"), "attention").summary()
        '1 x 2 weights, from 0.2500 to 0.7500. Each target looks most at: i at suis (0.7500).'
        """
        size = f"{len(self.rows)} x {len(self.columns)} weights, from {self.smallest:.4f} to {self.largest:.4f}."
        if not self.numbers.size:
            return size
        best = np.nan_to_num(self.numbers, nan=-1.0).argmax(1)
        said = [
            f"{shown(self.rows[i])} at {shown(self.columns[j])} ({self.numbers[i, j]:.4f})"
            for i, j in list(enumerate(best))[:most]
        ]
        rest = f"; and {len(self.rows) - most} more" if len(self.rows) > most else ""
        return f"{size} Each {self.row_title} looks most at: {'; '.join(said)}{rest}."
