"""Gradient decay: gradient norms against distance, one curve per model, on a logarithmic axis."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from rich.cells import cell_len

from regard.look import terminal
from regard.look.chart import LETTERS, Curve, LinearAxis, LineChart, LogAxis
from regard.look.color_scales import LogScale
from regard.look.matrix import Matrix
from regard.look.terminal import ColorDepth
from regard.look.tokens import make_visible, truncate
from regard.look.view import MatrixView

MAX_TARGET = 72
"""terminal columns of the target text in a title"""


@dataclass(frozen=True)
class GradientDecay:
    """Norm of dL_t/dh_s against the distance t - s: geometric mean over all pairs of a distance.

    >>> decay = GradientDecay("rnn", (0, 1, 2, 3), (2.0, 1.0, 0.5, 0.25), (4, 3, 2, 1))
    >>> decay.summary()
    'rnn: each step further back multiplies the gradient by 0.5000; from 2.000 at 0 to 0.2500 at 3 steps'
    """

    label: str
    distances: tuple[int, ...]
    norms: tuple[float, ...]
    counts: tuple[int, ...]
    """number of pairs per distance"""

    @classmethod
    def from_norms(cls, label: str, norms: np.ndarray, distances: np.ndarray) -> GradientDecay:
        """The curve of a matrix, without pairs of the future and without zeros, which have no logarithm."""
        counted = (norms > 0) & np.isfinite(norms) & (distances >= 0)
        rows = []
        for distance in np.unique(distances[counted]).tolist():
            pairs = norms[counted & (distances == distance)].astype(np.float64)
            rows.append((int(distance), math.exp(np.log(pairs).mean()), len(pairs)))
        return cls(label, *(tuple(column) for column in zip(*rows))) if rows else cls(label, (), (), ())

    @property
    def logs(self) -> tuple[float, ...]:
        """Mean natural logarithms of the norms."""
        return tuple(math.log(norm) for norm in self.norms)

    @property
    def rate(self) -> float:
        """Factor of the norm per step of distance: slope of the regression line through the logarithms.

        Distances are weighted by their pairs; distance 0, the state that the loss is computed from, is left out.
        """
        far = [i for i, distance in enumerate(self.distances) if distance > 0]
        if len(far) < 2:
            return math.nan
        x, y, weight = (np.array([column[i] for i in far]) for column in (self.distances, self.logs, self.counts))
        x0, y0 = np.average(x, weights=weight), np.average(y, weights=weight)
        return math.exp((weight * (x - x0) * (y - y0)).sum() / (weight * (x - x0) ** 2).sum())

    def summary(self) -> str:
        """The curve in one line."""
        if not self.norms:
            return f"{self.label}: no gradient at all"
        first, last = (f"{self.norms[i]:#.4g} at {self.distances[i]}" for i in (0, -1))
        ends = f"from {first} to {last} steps"
        if math.isnan(self.rate):
            return f"{self.label}: {ends}"
        return f"{self.label}: each step further back multiplies the gradient by {self.rate:#.4g}; {ends}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        lists = {name: list(getattr(self, name)) for name in ("distances", "norms", "counts")}
        return {"label": self.label, **lists, "rate": None if math.isnan(self.rate) else self.rate}


@dataclass(frozen=True, eq=False)
class DecayView(MatrixView):
    """Gradient decay of several models in one chart."""

    curves: tuple[GradientDecay, ...]
    title: str = "|dL_t/dh_s| against the distance t - s"
    target: str | None = None
    """target text of all models, whose losses are differentiated; None: the text that they read"""

    @property
    def matrix(self) -> Matrix:
        """A row per distance, a column per curve; of long texts some distances only."""
        rows = thin_distances(sorted({distance for curve in self.curves for distance in curve.distances}))
        numbers = np.full((len(rows), len(self.curves)), math.nan)
        for j, curve in enumerate(self.curves):
            norms = dict(zip(curve.distances, curve.norms))
            numbers[:, j] = [norms.get(distance, math.nan) for distance in rows]
        labels = tuple(curve.label for curve in self.curves)
        return Matrix(
            numbers, tuple(map(str, rows)), labels, self.title, "distance", "model", color_scale=LogScale.fit(numbers),
            summary_words=("norms", "is largest in"),
        )  # fmt: skip

    def svg(self) -> str:
        """All curves in one chart, norms in powers of ten."""
        curves = [Curve(curve.label, curve.distances, curve.norms) for curve in self.curves]
        title = "; ".join([self.title, *(truncate(line, MAX_TARGET) for line in self._target_lines())])
        return LineChart(title, LinearAxis("distance t - s, in tokens"), LogAxis("norm"), curves).svg()

    def text(self, width: int | None = None, color: ColorDepth | None = None) -> str:
        """A table of norms, and a summary line per curve; letters stand for long names."""
        matrix, keys = self.matrix, [""] * len(self.curves)
        if max(map(cell_len, matrix.columns), default=0) > terminal.MAX_LABEL:
            letters = tuple(LETTERS[i % len(LETTERS)] for i in range(len(self.curves)))
            matrix, keys = replace(matrix, columns=letters), [f"{letter}  " for letter in letters]
        summaries = [f"{key}{curve.summary()}" for key, curve in zip(keys, self.curves)]
        return "\n".join([terminal.heat_map(matrix, width, color), *self._target_lines(), *summaries])

    def to_dict(self) -> dict[str, Any]:
        return {"title": self.title, "target": self.target, "curves": [curve.to_dict() for curve in self.curves]}

    def _target_lines(self) -> list[str]:
        return [] if self.target is None else [f"common target: {make_visible(self.target)}"]

    def __repr__(self) -> str:
        return f"DecayView({', '.join(curve.label for curve in self.curves)})"


def thin_distances(distances: list[int], most: int = 24) -> list[int]:
    """All of a few distances; of many those near 0, then ever fewer, and the last."""
    if len(distances) <= most:
        return distances
    marks = {0, 1} | {2**i for i in range(32)} | {3 * 2**i for i in range(32)}
    return [distance for distance in distances if distance in marks or distance == distances[-1]]
