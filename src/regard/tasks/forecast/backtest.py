"""Backtest: rolling forecasts from every row of a split, next to those of the baselines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regard.errors import DataError
from regard.metrics import Score
from regard.metrics.forecast import BaselineTable, ColumnStats, ForecastErrors
from regard.models.forecaster import Forecaster
from regard.progress import Progress
from regard.tasks.forecast.baselines import LinearBaseline, naive, seasonal_naive
from regard.tasks.forecast.config import ForecastConfig
from regard.tasks.forecast.predict import predict_windows
from regard.tasks.forecast.prepare import SeriesStats
from regard.tasks.forecast.sources import SeriesSlice, SeriesSource
from regard.tasks.forecast.windows import Windows

LEVEL = 0.8
"""Nominal coverage of the intervals."""
CHUNK = 256
"""Windows between two progress reports."""


@dataclass(frozen=True)
class Backtest:
    """The rows to backtest on, standardized and in the units of the series."""

    task: ForecastConfig
    stats: SeriesStats
    data: SeriesSlice
    name: str
    """for messages"""

    @cached_property
    def windows(self) -> Windows:
        """The standardized windows."""
        return Windows(self.task, *self.stats.transform(self.data), self.data.first)

    @cached_property
    def origins(self) -> np.ndarray:
        """The rows from which forecasts start."""
        found = self.windows.origins
        if not len(found):
            window, horizon = self.task.window, self.task.horizon
            raise DataError(
                f"{self.name}: there are {len(self.data.rows):,} rows, and one window takes {window + horizon:,}: "
                f"{window} of the past and {horizon} of the horizon"
            )
        return found

    def to_series_units(self, forecast_NHC: np.ndarray) -> np.ndarray:
        """(N, H, F) forecasts in the units of the series; a constant column keeps its last value."""
        found = np.repeat(self.data.rows.values[self.origins - 1][:, None], self.task.horizon, 1)
        found[..., list(self.stats.varying)] = self.stats.inverse_transform(forecast_NHC)
        return found

    def actual(self) -> np.ndarray:
        """(N, H, F): the actual values."""
        return self.data.rows.values[self.origins[:, None] + np.arange(self.task.horizon)]

    def forecasts(self, model: Forecaster, progress: Progress) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(N, H, F) each: the forecasts of a model, and the ends of its intervals."""
        found, total = [], len(self.origins)
        for start in range(0, total, CHUNK):
            found.append(predict_windows(model, self.windows, self.origins[start : start + CHUNK]))
            progress("forecasting", min(start + CHUNK, total), total)
        mean, scale = (np.concatenate([part[i] for part in found]) for i in (0, 1))
        half = model.interval_half_width(LEVEL).cpu().numpy().reshape(self.task.horizon, -1) * scale
        return self.to_series_units(mean), self.to_series_units(mean - half), self.to_series_units(mean + half)

    def evaluate(
        self, model: Forecaster, linear: LinearBaseline, progress: Progress
    ) -> tuple[list[Score], BaselineTable]:
        """The scores of a model, and a table of it and the baselines per column."""
        stats, windows, origins = self.stats, self.windows, self.origins
        scales = [d if i in stats.varying else 0.0 for i, d in enumerate(stats.target_scaler.scale)]
        columns = tuple(map(ColumnStats, stats.names, scales, stats.seasonal_error))
        errors = ForecastErrors(columns, self.actual(), stats.season)
        mean, lower, upper = self.forecasts(model, progress)
        forecasts = {
            "model": mean,
            "naive": self.to_series_units(naive(windows, origins)),
            "seasonal": self.to_series_units(seasonal_naive(windows, origins, stats.season)),
            "linear": self.to_series_units(linear.predict(windows, origins)),
        }
        metrics = {"MASE": errors.mase, "MAE": errors.mae, "RMSE": errors.rmse}
        table = {name: {system: metric(f) for system, f in forecasts.items()} for name, metric in metrics.items()}
        baselines = BaselineTable(stats.names, table, errors.coverage(lower, upper), LEVEL)
        return errors.scores(mean, lower, upper, LEVEL), baselines


def fit_linear(data: SeriesSource, task: ForecastConfig, stats: SeriesStats, progress: Progress) -> LinearBaseline:
    """The linear baseline of a recipe's data: fitted to training and chosen on validation, as the model is."""
    progress("fitting a linear model", 0, total=0)
    parts = (data.read_split(split, task.window) for split in ("train", "valid"))
    return LinearBaseline.fit(*(Windows(task, *stats.transform(part), part.first) for part in parts))
