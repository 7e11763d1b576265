"""Attention view: one matrix of attention weights, or all heads of a layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regard.look import svg
from regard.look.matrix import Matrix
from regard.look.view import MatrixView, View
from regard.plurals import count_noun


@dataclass(frozen=True, eq=False, repr=False)
class AttentionView(MatrixView):
    """Attention weights of one head, or the mean of several: a row per query, a column per key.

    >>> view = AttentionView("decoder.layers.0.cross.weights", np.array([[0.25, 0.75]]), ["i"], ["je", "suis"], heads=4)
    >>> view.title
    'decoder.layers.0.cross.weights, mean of 4 heads'
    >>> print(view.text(width=60, color="none").splitlines()[3])
    i  ░░0.25 ██0.75
    """

    name: str
    """of the record, such as "decoder.layers.0.cross.weights\""""
    weights: np.ndarray
    """(rows, columns), as the model used them; float64 where heads were averaged"""
    rows: list[str]
    """tokens of the queries"""
    columns: list[str]
    """tokens of the keys"""
    heads: int = 1
    """number of heads"""
    head: int | None = None
    """index of the head; None: the mean of all"""
    layer: int | None = None
    sides: tuple[str, str] = ("target", "source")
    """sequences that the rows and the columns are tokens of"""

    @property
    def title(self) -> str:
        if self.heads == 1:
            return self.name
        which = f"mean of {self.heads} heads" if self.head is None else f"head {self.head} of {self.heads}"
        return f"{self.name}, {which}"

    @property
    def matrix(self) -> Matrix:
        return Matrix(self.weights, tuple(self.rows), tuple(self.columns), self.title, *self.sides)

    def to_dict(self) -> dict[str, Any]:
        return self._fields("name", "layer", "head", "heads", "sides", "rows", "columns", "weights")


@dataclass(frozen=True, eq=False)
class AttentionGrid(View):
    """All heads of one layer as small matrices on one color scale."""

    views: tuple[AttentionView, ...]

    def svg(self) -> str:
        """The heads side by side in one SVG."""
        top = max(view.matrix.largest for view in self.views)
        small = [replace(view.matrix, title=f"head {view.head}", ceiling=top) for view in self.views]
        return svg.small_multiples(small, self.views[0].name)

    def to_dict(self) -> dict[str, Any]:
        return {"views": [view.to_dict() for view in self.views]}

    def __repr__(self) -> str:
        return f"AttentionGrid({self.views[0].name!r}, {count_noun(len(self.views), 'head')})"
