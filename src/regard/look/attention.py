"""What a recording shows, as plain data that can draw itself: in a terminal, as SVG, in a notebook, as a dict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regard.look import svg, terminal
from regard.look.matrix import Matrix
from regard.look.terminal import Colour


@dataclass(frozen=True, eq=False)
class AttentionView:
    """One matrix of attention weights: who (rows) looks at whom (columns), how much.

    >>> view = AttentionView("decoder.layers.0.cross.weights", np.array([[0.25, 0.75]]), ["i"], ["je", "suis"], heads=4)
    >>> view.title
    'decoder.layers.0.cross.weights, mean of 4 heads'
    >>> print(view.text(width=60, colour="none").splitlines()[3])
    i  ░░0.25 ██0.75
    """

    name: str
    """of the record, such as "decoder.layers.0.cross.weights\""""
    weights: np.ndarray
    """(rows, columns), as the model used them; float64 where heads were averaged"""
    rows: list[str]
    """tokens that look"""
    columns: list[str]
    """tokens that are looked at"""
    heads: int = 1
    """how many heads there are"""
    head: int | None = None
    """which of them this is; None: the mean of all"""
    layer: int | None = None
    sides: tuple[str, str] = ("target", "source")
    """whose tokens the rows and the columns are"""

    @property
    def title(self) -> str:
        if self.heads == 1:
            return self.name
        which = f"mean of {self.heads} heads" if self.head is None else f"head {self.head} of {self.heads}"
        return f"{self.name}, {which}"

    @property
    def matrix(self) -> Matrix:
        """What pictures are drawn from."""
        return Matrix(self.weights, tuple(self.rows), tuple(self.columns), self.title, *self.sides)

    def svg(self) -> str:
        """The picture as one SVG text; it needs no other file."""
        return svg.picture(self.matrix)

    def text(self, width: int | None = None, colour: Colour | None = None) -> str:
        """The picture in characters; as wide and as colourful as the terminal unless told."""
        return terminal.heat_map(self.matrix, width, colour)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "name": self.name,
            "layer": self.layer,
            "head": self.head,
            "heads": self.heads,
            "sides": list(self.sides),
            "rows": list(self.rows),
            "columns": list(self.columns),
            "weights": self.weights.tolist(),
        }

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"AttentionView({self.title!r}, {len(self.rows)} x {len(self.columns)})"


@dataclass(frozen=True, eq=False)
class AttentionGrid:
    """All heads of one layer, one small matrix each, in colours that can be compared.

    >>> view = AttentionView("cross.weights", np.array([[0.25, 0.75]]), ["i"], ["je", "suis"], heads=2, head=0)
    >>> AttentionGrid((view, view)).svg().count("<title>i → suis: 0.7500</title>")
    2
    """

    views: tuple[AttentionView, ...]

    def svg(self) -> str:
        """The picture as one SVG text; it needs no other file."""
        top = max(view.matrix.largest for view in self.views)
        small = [replace(view.matrix, title=f"head {view.head}", ceiling=top) for view in self.views]
        return svg.small_multiples(small, self.views[0].name)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {"views": [view.to_dict() for view in self.views]}

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"AttentionGrid({self.views[0].name!r}, {len(self.views)} heads)"
