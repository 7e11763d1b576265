"""Forecasting baselines: last value, seasonal naive, and ridge regression on the window.

The regression reads what the model reads, with the same centering. Its penalty (ridge, Hoerl and Kennard 1970), and
whether it reads one column or all, are chosen on validation for each column, by the error that is scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.tasks.forecast.windows import Windows

PENALTIES = (0.001, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
"""Ridge penalties to choose from; inputs have a deviation of about 1."""
MAX_INPUTS = 3000
"""Inputs of the widest regression on all columns."""


def naive(windows: Windows, origins: np.ndarray) -> np.ndarray:
    """(N, H, C): the last value."""
    return np.repeat(windows.values[origins - 1][:, None], windows.task.horizon, 1)


def seasonal_naive(windows: Windows, origins: np.ndarray, season: int) -> np.ndarray:
    """(N, H, C): the value one season ago; the last value where the series is too short."""
    rows = origins[:, None] - season + np.arange(windows.task.horizon) % season
    return np.where((rows >= 0)[..., None], windows.values[rows.clip(min=0)], naive(windows, origins))


@dataclass(frozen=True)
class ColumnRegression:
    """Linear regression of one column."""

    reads: np.ndarray
    """the columns it reads"""
    weights: np.ndarray
    """(inputs + 1, H); the last row is the intercept"""
    penalty: float

    def predict(self, windows: Windows, origins: np.ndarray, column: int) -> np.ndarray:
        """(N, H) forecasts of one column."""
        return inputs(windows, origins, self.reads) @ self.weights + centers(windows, origins)[..., column]


@dataclass(frozen=True)
class LinearBaseline:
    """Ridge regression from the window to the horizon, one per column."""

    columns: tuple[ColumnRegression, ...]

    @classmethod
    def fit(cls, train: Windows, valid: Windows) -> LinearBaseline:
        """The regressions with the lowest validation error, fitted to training."""
        count = train.values.shape[1]
        best: list[ColumnRegression] = []
        everything = np.arange(count)
        width = inputs(train, train.origins[:1], everything).shape[1]
        joint = _solve(train, everything) if count > 1 and width <= MAX_INPUTS else {}
        for column in range(count):
            own = np.array([column])
            candidates = [ColumnRegression(own, weights, p) for p, weights in _solve(train, own).items()]
            for penalty, weights in joint.items():
                weights = weights.reshape(len(weights), -1, count)[..., column]
                candidates.append(ColumnRegression(everything, weights, penalty))
            actual = targets(valid, valid.origins)[..., column]
            errors = [float(np.abs(c.predict(valid, valid.origins, column) - actual).mean()) for c in candidates]
            best.append(candidates[int(np.argmin(errors))])
        return cls(tuple(best))

    def predict(self, windows: Windows, origins: np.ndarray) -> np.ndarray:
        """(N, H, C) forecasts from origin rows."""
        return np.stack([c.predict(windows, origins, column) for column, c in enumerate(self.columns)], 2)


def targets(windows: Windows, origins: np.ndarray) -> np.ndarray:
    """(N, H, C): the actual values from origin rows on."""
    return windows.values[origins[:, None] + np.arange(windows.task.horizon)]


def ridge(squares: np.ndarray, products: np.ndarray) -> dict[float, np.ndarray]:
    """Ridge solutions for each penalty from X^T X and X^T Y; the last column of X is 1 and has no penalty."""
    penalized = np.eye(len(squares))
    penalized[-1, -1] = 0.0
    return {penalty: np.linalg.solve(squares + penalty * penalized, products) for penalty in PENALTIES}


def centers(windows: Windows, origins: np.ndarray) -> np.ndarray:
    """(N, 1, C): the centers of windows."""
    return windows.center(_past(windows, origins))


def inputs(windows: Windows, origins: np.ndarray, reads: Sequence[int] | np.ndarray) -> np.ndarray:
    """(N, inputs + 1): the centered window of some columns, all covariates, and a 1."""
    past = _past(windows, origins)
    past = (past - windows.center(past))[..., reads]
    covariates = windows.covariates[origins[:, None] + np.arange(-windows.task.window, windows.task.horizon)]
    parts = [part.reshape(len(origins), -1) for part in (past, covariates)]
    return np.concatenate([*parts, np.ones((len(origins), 1))], 1, dtype=np.float64)


def _past(windows: Windows, origins: np.ndarray) -> np.ndarray:
    return windows.values[origins[:, None] + np.arange(-windows.task.window, 0)]


def _solve(windows: Windows, columns: np.ndarray) -> dict[float, np.ndarray]:
    """The weights (inputs + 1, H x columns) for each penalty, from the normal equations."""
    x = inputs(windows, windows.origins, columns)
    y = targets(windows, windows.origins) - centers(windows, windows.origins)
    return ridge(x.T @ x, x.T @ y[..., columns].reshape(len(x), -1))
