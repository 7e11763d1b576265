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
from regard.plurals import count_noun

MAX_TARGET = 72
"""terminal columns of the target text in a title"""


@dataclass(frozen=True)
class GradientDecay:
    """Norm of dL_t/dh_s against the distance t - s: geometric mean over all pairs of a distance.

    Losses differ in size by orders of magnitude, and only late ones have distant pairs. So the norms of a loss are
    divided by its own norm at distance 0 first. States of the source have no distance 0: their norms stay as they are.

    >>> decay = GradientDecay.from_norms("rnn", np.array([[8.0, 0.0, 0.0], [1.0, 2.0, 0.0], [1.0, 2.0, 4.0]]),
    ...     np.array([[0, -1, -2], [1, 0, -1], [2, 1, 0]]))
    >>> decay.norms, round(decay.rate, 6)
    ((1.0, 0.5, 0.25), 0.5)
    >>> decay.summary()
    'rnn: each step further back multiplies the gradient by 0.5000; at 2 steps it is 0.2500 x that at 0'
    """

    label: str
    distances: tuple[int, ...]
    norms: tuple[float, ...]
    counts: tuple[int, ...]
    """number of pairs per distance"""
    rate: float = math.nan
    """factor of the norm per step of distance: slope of the regression line through the mean logarithms, weighted by
    their pairs, or, where norms are not relative, through all logarithms with an intercept per loss. Distance 0, the
    state that the loss is computed from, is left out; NaN: there are not two other distances"""
    relative: bool = False
    """whether the norms of each loss were divided by its own at distance 0"""

    @classmethod
    def from_norms(cls, label: str, norms: np.ndarray, distances: np.ndarray) -> GradientDecay:
        """The curve of a matrix, without pairs of the future and without zeros, which have no logarithm."""
        norms, distances = (array.reshape(-1, array.shape[-1]).astype(np.float64) for array in (norms, distances))
        counted = (norms > 0) & np.isfinite(norms) & (distances >= 0)
        own = np.where(counted & (distances == 0), norms, 0.0).sum(1, keepdims=True)  # one state per loss, or none
        relative = bool(own.any())
        if relative:
            counted &= own > 0
            norms = norms / np.where(own > 0, own, 1.0)
        logs = np.log(np.where(counted, norms, 1.0))
        rows = []
        for distance in np.unique(distances[counted]).tolist():
            pairs = logs[counted & (distances == distance)]
            rows.append((int(distance), math.exp(pairs.mean()), len(pairs)))
        if not rows:
            return cls(label, (), (), ())
        groups = (1, -1) if relative else logs.shape  # relative to themselves, losses need no intercept of their own
        far = (counted & (distances > 0)).reshape(groups)
        slope = _slope_within_rows(logs.reshape(groups), distances.reshape(groups), far)
        reached, means, counts = (tuple(column) for column in zip(*rows))
        return cls(label, reached, means, counts, math.exp(slope), relative)

    @property
    def logs(self) -> tuple[float, ...]:
        """Mean natural logarithms of the norms."""
        return tuple(math.log(norm) for norm in self.norms)

    def summary(self) -> str:
        """The curve in one line."""
        if not self.norms:
            return f"{self.label}: no gradient at all"
        first, last = (f"{self.norms[i]:#.4g}" for i in (0, -1))
        farthest = count_noun(self.distances[-1], "step")
        ends = f"from {first} at {self.distances[0]} to {last} at {farthest}"
        if self.relative:
            ends = f"at {farthest} it is {last} x that at 0"
        if math.isnan(self.rate):
            return f"{self.label}: {ends}"
        return f"{self.label}: each step further back multiplies the gradient by {self.rate:#.4g}; {ends}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        lists = {name: list(getattr(self, name)) for name in ("distances", "norms", "counts")}
        rate = None if math.isnan(self.rate) else self.rate
        return {"label": self.label, **lists, "rate": rate, "relative": self.relative}


def _slope_within_rows(y: np.ndarray, x: np.ndarray, counted: np.ndarray) -> float:
    """Least-squares slope of y over x with an intercept per row; NaN if no row has two values of x.

    >>> _slope_within_rows(np.array([[5.0, 6.0], [0.0, 1.0]]), np.array([[1, 2], [5, 6]]), np.ones((2, 2), bool))
    1.0
    """
    count = np.maximum(counted.sum(1, keepdims=True), 1)
    x, y = (np.where(counted, z - (z * counted).sum(1, keepdims=True) / count, 0.0) for z in (x, y))
    spread = float((x * x).sum())
    return float((x * y).sum()) / spread if spread else math.nan


@dataclass(frozen=True, eq=False)
class DecayView(MatrixView):
    """Gradient decay of several models in one chart."""

    curves: tuple[GradientDecay, ...]
    title: str = "|dL_t/dh_s| against the distance t - s"
    target: str | None = None
    """target text of all models, whose losses are differentiated; None: the text that they read"""

    @property
    def heading(self) -> str:
        """The title, and what the norms are relative to."""
        relative = any(curve.relative for curve in self.curves)
        return f"{self.title}, each loss relative to its norm at 0" if relative else self.title

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
            numbers, tuple(map(str, rows)), labels, self.heading, "distance", "model",
            color_scale=LogScale.fit(numbers), summary_words=("norms", "is largest in"),
        )  # fmt: skip

    def svg(self) -> str:
        """All curves in one chart, norms in powers of ten."""
        curves = [Curve(curve.label, curve.distances, curve.norms) for curve in self.curves]
        title = "; ".join([self.heading, *(truncate(line, MAX_TARGET) for line in self._target_lines())])
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
