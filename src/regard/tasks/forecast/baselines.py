"""What anybody could say without a network: as it was, as it was a season ago, or by a straight line from the window.

The line is given every fair chance: it reads what the model reads, measured from the same row, and how strongly it is
held back (ridge, Hoerl and Kennard 1970), and whether it reads its own column or all, is chosen on validation, a column
at a time, by the error that is scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.tasks.forecast.windows import Windows

STRENGTHS = (0.001, 0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
"""How strongly weights are held back; what is read has a deviation of about 1."""
WIDEST = 3000
"""Numbers that a line of all columns reads at most: its equations are solved, not stepped to."""


def naive(windows: Windows, origins: np.ndarray) -> np.ndarray:
    """(N, H, C): as it was in the last row.

    >>> from regard.tasks.forecast.prepare import ForecastConfig
    >>> windows = Windows(ForecastConfig(horizon=2, window=1), np.array([[3.0], [5.0], [7.0]]), np.zeros((3, 0)))
    >>> naive(windows, np.array([1])).tolist()
    [[[3.0], [3.0]]]
    """
    return np.repeat(windows.values[origins - 1][:, None], windows.task.horizon, 1)


def seasonal_naive(windows: Windows, origins: np.ndarray, season: int) -> np.ndarray:
    """(N, H, C): as it was a season ago; where nothing is that old, as it was in the last row.

    >>> from regard.tasks.forecast.prepare import ForecastConfig
    >>> values = np.array([[3.0], [5.0], [4.0], [6.0], [0.0]])
    >>> windows = Windows(ForecastConfig(horizon=3, window=1), values, np.zeros((5, 0)))
    >>> seasonal_naive(windows, np.array([4]), season=2).tolist()
    [[[4.0], [6.0], [4.0]]]
    """
    places = origins[:, None] - season + np.arange(windows.task.horizon) % season
    return np.where((places >= 0)[..., None], windows.values[places.clip(min=0)], naive(windows, origins))


@dataclass(frozen=True)
class Line:
    """One column, foretold by a linear model.

    >>> Line(np.array([0]), np.array([[2.0], [1.0]]), 1.0).weights.shape
    (2, 1)
    """

    reads: np.ndarray
    """which columns it reads"""
    weights: np.ndarray
    """(inputs + 1, H); the last row is what is added"""
    strength: float
    """how strongly weights were held back"""


@dataclass(frozen=True)
class Linear:
    """Ridge regression from the window to the horizon, a column at a time.

    >>> from regard.tasks.forecast.prepare import ForecastConfig
    >>> task = ForecastConfig(horizon=2, window=4)
    >>> wave = np.sin(np.arange(200.0) / 3)[:, None]
    >>> train, valid = (Windows(task, part, np.zeros((len(part), 0))) for part in (wave[:150], wave[150:]))
    >>> found = Linear.fit(train, valid).predict(valid, valid.origins)
    >>> float(abs(found - valid.values[valid.origins[:, None] + np.arange(2)]).max()) < 0.01
    True
    """

    lines: tuple[Line, ...]

    @classmethod
    def fit(cls, train: Windows, valid: Windows) -> Linear:
        """The best of all lines on validation, whose weights have seen training only."""
        columns = train.values.shape[1]
        best: list[tuple[float, Line]] = []
        everything = np.arange(columns)
        wide = inputs(train, train.origins[:1], everything).shape[1]
        together = _solved(train, everything) if columns > 1 and wide <= WIDEST else {}
        for column in range(columns):
            tried = []
            own = np.array([column])
            for strength, weights in _solved(train, own, own).items():
                tried.append(Line(own, weights, strength))
            for strength, weights in together.items():
                tried.append(Line(everything, _of_column(weights, column, columns), strength))
            wanted = ahead(valid, valid.origins)[..., column]
            errors = [float(np.abs(_said(line, valid, valid.origins, column) - wanted).mean()) for line in tried]
            at = int(np.argmin(errors))
            best.append((errors[at], tried[at]))
        return cls(tuple(line for _, line in best))

    def predict(self, windows: Windows, origins: np.ndarray) -> np.ndarray:
        """(N, H, C) what the lines say from some rows on."""
        return np.stack([_said(line, windows, origins, column) for column, line in enumerate(self.lines)], 2)


def ahead(windows: Windows, origins: np.ndarray) -> np.ndarray:
    """(N, H, C): what came.

    >>> from regard.tasks.forecast.prepare import ForecastConfig
    >>> windows = Windows(ForecastConfig(horizon=2, window=1), np.array([[3.0], [5.0], [7.0]]), np.zeros((3, 0)))
    >>> ahead(windows, np.array([1])).tolist()
    [[[5.0], [7.0]]]
    """
    return windows.values[origins[:, None] + np.arange(windows.task.horizon)]


def ridge(squares: np.ndarray, products: np.ndarray) -> dict[float, np.ndarray]:
    """The weights for each strength, from X^T X and X^T Y; the last column of X is the 1 that is not held back.

    >>> x = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> ridge(x.T @ x, x.T @ (3 * x[:, :1] + 5))[0.001].round(2).tolist()
    [[3.0], [5.0]]
    """
    held = np.eye(len(squares))
    held[-1, -1] = 0.0
    return {strength: np.linalg.solve(squares + strength * held, products) for strength in STRENGTHS}


def levels(windows: Windows, origins: np.ndarray) -> np.ndarray:
    """(N, 1, C): what windows are measured from.

    >>> from regard.tasks.forecast.prepare import ForecastConfig
    >>> windows = Windows(ForecastConfig(horizon=1, window=2), np.array([[3.0], [5.0], [7.0]]), np.zeros((3, 0)))
    >>> levels(windows, np.array([2])).tolist()
    [[[5.0]]]
    """
    return windows.level(_past(windows, origins))


def inputs(windows: Windows, origins: np.ndarray, reads: Sequence[int] | np.ndarray) -> np.ndarray:
    """(N, inputs + 1): the window of some columns, all that is known, and a 1.

    >>> from regard.tasks.forecast.prepare import ForecastConfig
    >>> windows = Windows(ForecastConfig(horizon=1, window=2), np.array([[3.0], [5.0], [7.0]]), np.zeros((3, 0)))
    >>> inputs(windows, np.array([2]), [0]).tolist()
    [[-2.0, 0.0, 1.0]]
    """
    past = _past(windows, origins)
    past = (past - windows.level(past))[..., reads]
    known = windows.known[origins[:, None] + np.arange(-windows.task.window, windows.task.horizon)]
    parts = [part.reshape(len(origins), -1) for part in (past, known)]
    return np.concatenate([*parts, np.ones((len(origins), 1))], 1, dtype=np.float64)


def _past(windows: Windows, origins: np.ndarray) -> np.ndarray:
    return windows.values[origins[:, None] + np.arange(-windows.task.window, 0)]


def _solved(windows: Windows, reads: np.ndarray, said: np.ndarray | None = None) -> dict[float, np.ndarray]:
    """The weights (inputs + 1, H x columns) for each strength, from the normal equations."""
    x = inputs(windows, windows.origins, reads)
    y = ahead(windows, windows.origins) - levels(windows, windows.origins)
    y = y[..., reads if said is None else said].reshape(len(x), -1)
    return ridge(x.T @ x, x.T @ y)


def _of_column(weights: np.ndarray, column: int, columns: int) -> np.ndarray:
    return weights.reshape(len(weights), -1, columns)[..., column]


def _said(line: Line, windows: Windows, origins: np.ndarray, column: int) -> np.ndarray:
    """(N, H) of one column."""
    return inputs(windows, origins, line.reads) @ line.weights + levels(windows, origins)[..., column]
