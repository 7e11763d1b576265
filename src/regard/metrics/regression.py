"""Metrics of regression: mean absolute error, root of the mean squared error, and the coefficient of determination."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from regard.metrics.bootstrap import bootstrap_scores, mean_of_sums, percentile_interval
from regard.metrics.score import Score


@dataclass(frozen=True, eq=False)
class NumberPredictions:
    """Predicted numbers beside the true ones; scores are the mean over the columns.

    >>> found = NumberPredictions(("x",), np.array([[1.0], [3.0]]), np.array([[2.0], [5.0]]))
    >>> [(score.name, round(score.value, 4)) for score in found.scores()]
    [('mae', 1.5), ('rmse', 1.5811), ('r2', -0.1111)]
    """

    names: Sequence[str]
    predicted: np.ndarray
    """(N, F)"""
    target: np.ndarray
    """(N, F)"""

    @property
    def errors(self) -> np.ndarray:
        """(N, F): predicted - true."""
        found: np.ndarray = self.predicted - self.target
        return found

    def scores(self) -> list[Score]:
        """MAE, RMSE and R2, each with its 95 % interval."""
        columns, ones = len(self.names), np.ones((len(self.target), 1))
        signature = f"columns:{','.join(self.names)}"
        absolute = np.hstack([np.abs(self.errors).mean(1, keepdims=True), ones])
        squared = np.hstack([np.square(self.errors).mean(1, keepdims=True), ones])
        explained = np.hstack([np.square(self.errors), self.target, np.square(self.target), ones])
        return [
            _score("mae", absolute, mean_of_sums, signature),
            _score("rmse", squared, lambda sums: math.sqrt(mean_of_sums(sums)), signature),
            _score("r2", explained, lambda sums: _determination(sums, columns), f"{signature}|average:uniform"),
        ]

    def format_lines(self) -> list[str]:
        """One line per column."""
        wide = max(map(len, self.names))
        absolute, squared = np.abs(self.errors).mean(0), np.sqrt(np.square(self.errors).mean(0))
        rows = zip(self.names, absolute, squared, strict=True)
        return [f"{name:<{wide}}  MAE {mae:.4g}, RMSE {rmse:.4g}" for name, mae, rmse in rows]


def _score(name: str, stats_NS: np.ndarray, combine: Callable[[Sequence[float]], float], signature: str) -> Score:
    value = combine(stats_NS.sum(0).tolist())
    low, high = percentile_interval(bootstrap_scores(stats_NS, combine))
    return Score(name, value, low, high, signature, len(stats_NS))


def _determination(sums: Sequence[float], columns: int) -> float:
    """1 - squared error / variance of the true numbers, the mean over the columns; NaN if one is constant."""
    count, found = sums[-1], []
    for error, total, square in zip(sums[:columns], sums[columns : 2 * columns], sums[2 * columns : -1], strict=True):
        spread = square - total**2 / count
        found.append(1 - error / spread if spread > 0 else math.nan)
    return sum(found) / columns
