"""Forecast metrics: MAE, RMSE, MASE (Hyndman and Koehler 2006), and the coverage of prediction intervals.

Consecutive windows overlap, so the bootstrap draws blocks of them (Künsch 1989): an interval that treats them as
independent would be far too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.errors import DataError
from regard.metrics.bootstrap import RESAMPLES, SEED, bootstrap_scores, mean_of_sums, percentile_interval
from regard.metrics.score import Score


@dataclass(frozen=True)
class ColumnStats:
    """Training statistics of a column, by which its errors are scaled."""

    name: str
    std: float
    """standard deviation in training; 0: the column is constant, and not scored"""
    naive_mae: float
    """MAE of the seasonal naive forecast in training; 0: the column repeats exactly, and has no MASE"""


@dataclass(frozen=True)
class ForecastErrors:
    """Errors of rolling forecasts of a test set.

    >>> actual = np.array([[[1.0], [2.0]], [[2.0], [3.0]]])
    >>> errors = ForecastErrors((ColumnStats("load", 2.0, 0.5),), actual, season=1)
    >>> [round(score.value, 3) for score in errors.scores(actual + 1, actual - 0.5, actual + 1.5, 0.8)]
    [2.0, 1.0, 1.0, 100.0]
    """

    columns: tuple[ColumnStats, ...]
    actual_NHF: np.ndarray
    season: int

    def __post_init__(self) -> None:
        if not len(self.actual_NHF):
            raise DataError("there is no complete window to score")

    @property
    def scored_columns(self) -> list[int]:
        """The columns that are not constant in training: only they are scored."""
        return [i for i, column in enumerate(self.columns) if column.std > 0]

    def mae(self, predicted_NHF: np.ndarray) -> list[float]:
        """Mean absolute error of each column, in its own unit."""
        return [float(x) for x in np.abs(self.actual_NHF - predicted_NHF).mean((0, 1))]

    def rmse(self, predicted_NHF: np.ndarray) -> list[float]:
        """Root mean squared error of each column, in its own unit."""
        return [float(x) for x in np.sqrt(np.square(self.actual_NHF - predicted_NHF).mean((0, 1)))]

    def mase(self, predicted_NHF: np.ndarray) -> list[float]:
        """Mean absolute scaled error: MAE over that of the seasonal naive forecast in training; NaN where that is 0."""
        errors = self.mae(predicted_NHF)
        return [e / c.naive_mae if c.naive_mae > 0 else math.nan for e, c in zip(errors, self.columns, strict=True)]

    def coverage(self, lower_NHF: np.ndarray, upper_NHF: np.ndarray) -> list[float]:
        """Coverage of each column: the share of intervals, in percent, that contain the actual value."""
        held = (lower_NHF <= self.actual_NHF) & (self.actual_NHF <= upper_NHF)
        return [float(x) for x in 100 * held.mean((0, 1))]

    def scores(
        self, predicted_NHF: np.ndarray, lower_NHF: np.ndarray, upper_NHF: np.ndarray, level: float
    ) -> list[Score]:
        """Scores over all scored columns; MAE and RMSE of one column are in its unit, of several in stds."""
        kept = self.scored_columns
        if not kept:
            raise DataError("all columns are constant in training; there is nothing to score")
        error = (predicted_NHF - self.actual_NHF)[..., kept]
        held = ((lower_NHF <= self.actual_NHF) & (self.actual_NHF <= upper_NHF))[..., kept]
        naive = np.array([self.columns[i].naive_mae for i in kept])
        scale = np.array([self.columns[i].std if len(kept) > 1 else 1.0 for i in kept])
        unit = "unit:deviation" if len(kept) > 1 else "unit:own"
        parts = (
            ("mase", np.abs(error[..., naive > 0]) / naive[naive > 0], mean_of_sums, f"season:{self.season}"),
            ("mae", np.abs(error) / scale, mean_of_sums, unit),
            ("rmse", np.square(error / scale), _root, unit),
            ("coverage", 100.0 * held, mean_of_sums, f"level:{level:g}"),
        )
        return [self._score(*part) for part in parts if part[1].size]

    def _score(self, name: str, values_NHF: np.ndarray, by: Callable[[Sequence[float]], float], how: str) -> Score:
        """A score from additive statistics, with a block-bootstrap interval."""
        n = len(values_NHF)
        stats_NS = np.stack([values_NHF.sum((1, 2)), np.full(n, float(values_NHF[0].size))], 1)
        low, high = percentile_interval(bootstrap_scores(self.blocks(stats_NS), by))
        shape = f"horizon:{values_NHF.shape[1]}|windows:{n}|block:{self.block}"
        return Score(name, by(stats_NS.sum(0).tolist()), low, high, f"{how}|{shape}|bs:{RESAMPLES}|seed:{SEED}", n)

    @property
    def block(self) -> int:
        """Block length: consecutive windows that are drawn together, a horizon or a season, unless they are few."""
        n = len(self.actual_NHF)
        return max(1, min(max(self.actual_NHF.shape[1], self.season), n // 5))

    def blocks(self, stats_NS: np.ndarray) -> np.ndarray:
        """Sums over blocks of windows."""
        starts = np.arange(0, len(stats_NS), self.block)
        return np.add.reduceat(stats_NS, starts, 0)


def _root(sums: Sequence[float]) -> float:
    return math.sqrt(sums[0] / sums[1])


@dataclass(frozen=True)
class BaselineTable:
    """Scores of a model and of baselines, per column."""

    columns: tuple[str, ...]
    measures: dict[str, dict[str, list[float]]]
    """per metric and system, one number per column"""
    coverage: list[float]
    level: float

    def text(self) -> str:
        """One text table per metric; the mean over columns is given for MASE only, as other units differ."""
        margin = max(4, *(len(name) for name in self.columns))
        lines = []
        for number, (measure, systems) in enumerate(self.measures.items()):
            holds = f"  {100 * self.level:g} % holds" if number == 0 else ""
            lines.append(f"{measure:<{margin}}  " + " ".join(f"{name:>8}" for name in systems) + holds)
            for i, column in enumerate(self.columns):
                held = f"  {self.coverage[i]:8.1f} %" if number == 0 else ""
                lines.append(f"{column:<{margin}}  " + " ".join(_cell(found[i]) for found in systems.values()) + held)
            if measure == "MASE" and len(self.columns) > 1:
                held = f"  {_nanmean(self.coverage):8.1f} %"
                lines.append(
                    f"{'mean':<{margin}}  " + " ".join(_cell(_nanmean(found)) for found in systems.values()) + held
                )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """JSON-serializable data; NaN becomes null."""
        measures = {
            measure: {name: [None if math.isnan(x) else x for x in found] for name, found in systems.items()}
            for measure, systems in self.measures.items()
        }
        return {"columns": list(self.columns), **measures, "coverage": self.coverage, "level": self.level}


def _nanmean(numbers: Sequence[float]) -> float:
    kept = [number for number in numbers if not math.isnan(number)]
    return sum(kept) / len(kept) if kept else math.nan


def _cell(number: float) -> str:
    return f"{'-':>8}" if math.isnan(number) else f"{number:8.4f}" if abs(number) < 1000 else f"{number:8.1f}"
