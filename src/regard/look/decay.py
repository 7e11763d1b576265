"""How gradients fade or grow with distance: one curve a model, on a logarithmic axis."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from rich.cells import cell_len

from regard.look import terminal
from regard.look.chart import Curve, Linear, Logarithmic, chart
from regard.look.color_scales import Powers
from regard.look.matrix import Matrix
from regard.look.terminal import Colour
from regard.look.tokens import cut, visible

LETTERS = "abcdefghijklmnopqrstuvwxyz"
WANTED = 72
"""cells of a title that what was wanted may have"""


@dataclass(frozen=True)
class Decay:
    """The norm of dL_t/dh_s against the distance between t and s: the geometric mean over all pairs of a distance.

    >>> decay = Decay("rnn", (0, 1, 2, 3), (2.0, 1.0, 0.5, 0.25), (4, 3, 2, 1))
    >>> round(decay.rate, 6)
    0.5
    >>> decay.told()
    'rnn: each step further back multiplies the gradient by 0.5000; from 2.000 at 0 to 0.2500 at 3 steps'
    """

    label: str
    distances: tuple[int, ...]
    norms: tuple[float, ...]
    counts: tuple[int, ...]
    """how many pairs each mean is over"""

    @classmethod
    def of(cls, label: str, norms: np.ndarray, distances: np.ndarray) -> Decay:
        """The curve of a matrix. Pairs of the future have no gradient; a 0 has no logarithm: both are left out."""
        there = (norms > 0) & np.isfinite(norms) & (distances >= 0)
        found = []
        for distance in np.unique(distances[there]).tolist():
            of_it = norms[there & (distances == distance)].astype(np.float64)
            found.append((int(distance), math.exp(np.log(of_it).mean()), len(of_it)))
        return cls(label, *(tuple(column) for column in zip(*found))) if found else cls(label, (), (), ())

    @property
    def logs(self) -> tuple[float, ...]:
        """The mean logarithms (natural) that the norms are powers of."""
        return tuple(math.log(norm) for norm in self.norms)

    @property
    def rate(self) -> float:
        """What one more step between t and s multiplies the norm by: the slope of the line through the logarithms.

        Distances count by their pairs; the state that a loss is read from, distance 0, is no part of it.
        """
        far = [i for i, distance in enumerate(self.distances) if distance > 0]
        if len(far) < 2:
            return math.nan
        x, y, weight = (np.array([column[i] for i in far]) for column in (self.distances, self.logs, self.counts))
        x0, y0 = np.average(x, weights=weight), np.average(y, weights=weight)
        return math.exp((weight * (x - x0) * (y - y0)).sum() / (weight * (x - x0) ** 2).sum())

    def told(self) -> str:
        """The curve in one line."""
        if not self.norms:
            return f"{self.label}: no gradient at all"
        first, last = (f"{self.norms[i]:#.4g} at {self.distances[i]}" for i in (0, -1))
        ends = f"from {first} to {last} steps"
        if math.isnan(self.rate):
            return f"{self.label}: {ends}"
        return f"{self.label}: each step further back multiplies the gradient by {self.rate:#.4g}; {ends}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "label": self.label,
            "distances": list(self.distances),
            "norms": list(self.norms),
            "counts": list(self.counts),
            "rate": None if math.isnan(self.rate) else self.rate,
        }


@dataclass(frozen=True, eq=False)
class DecayView:
    """Several curves in one picture.

    >>> DecayView((Decay("rnn", (0, 1), (1.0, 0.5), (2, 1)), Decay("lstm", (0, 1), (1.0, 0.9), (2, 1)))).matrix.columns
    ('rnn', 'lstm')
    """

    curves: tuple[Decay, ...]
    title: str = "|dL_t/dh_s| against the distance t - s"
    wanted: str | None = None
    """the text whose words the losses are of, the same for all models; None: the one that they read"""

    @property
    def matrix(self) -> Matrix:
        """A row a distance, a column a curve; of long texts some distances only."""
        rows = thinned(sorted({distance for curve in self.curves for distance in curve.distances}))
        numbers = np.full((len(rows), len(self.curves)), math.nan)
        for j, curve in enumerate(self.curves):
            found = dict(zip(curve.distances, curve.norms))
            numbers[:, j] = [found.get(distance, math.nan) for distance in rows]
        labels = tuple(curve.label for curve in self.curves)
        return Matrix(
            numbers, tuple(map(str, rows)), labels, self.title, "distance", "model", given=Powers.of(numbers),
            spoken=("norms", "is largest in"),
        )  # fmt: skip

    def svg(self) -> str:
        """All curves in one picture, norms in powers of ten."""
        drawn = [Curve(curve.label, curve.distances, curve.norms) for curve in self.curves]
        title = "; ".join([self.title, *(cut(line, WANTED) for line in self._wanted())])
        return chart(drawn, title, Linear("distance t - s, in tokens"), Logarithmic("norm"))

    def text(self, width: int | None = None, colour: Colour | None = None) -> str:
        """A table of norms on their colours, and each curve in words; where names are long, letters stand for them."""
        matrix, keys = self.matrix, [""] * len(self.curves)
        if max(map(cell_len, matrix.columns), default=0) > terminal.WIDEST_LABEL:
            letters = tuple(LETTERS[i % len(LETTERS)] for i in range(len(self.curves)))
            matrix, keys = replace(matrix, columns=letters), [f"{letter}  " for letter in letters]
        told = [f"{key}{curve.told()}" for key, curve in zip(keys, self.curves)]
        return "\n".join([terminal.heat_map(matrix, width, colour), *self._wanted(), *told])

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {"title": self.title, "wanted": self.wanted, "curves": [curve.to_dict() for curve in self.curves]}

    def _wanted(self) -> list[str]:
        return [] if self.wanted is None else [f"wanted of all: {visible(self.wanted)}"]

    def _repr_html_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"DecayView({', '.join(curve.label for curve in self.curves)})"


def thinned(distances: list[int], most: int = 24) -> list[int]:
    """All of a few distances; of many those near 0 and then fewer and fewer, and the last.

    >>> thinned(list(range(100)), most=8)
    [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 99]
    """
    if len(distances) <= most:
        return distances
    marks = {0, 1} | {2**i for i in range(32)} | {3 * 2**i for i in range(32)}
    return [distance for distance in distances if distance in marks or distance == distances[-1]]
