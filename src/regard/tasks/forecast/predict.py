"""Prediction with a trained forecaster: a series in, its future rows out, with times and prediction intervals."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from regard.device import module_device
from regard.errors import ConfigError, DataError, ModelError
from regard.models.forecaster import Forecaster
from regard.tasks.forecast.config import ForecastConfig
from regard.tasks.forecast.prepare import SeriesStats
from regard.tasks.forecast.sources import SeriesSlice
from regard.tasks.forecast.time_series import TimeSeries
from regard.tasks.forecast.timestamps import TimeFeature, TimeIndex
from regard.tasks.forecast.windows import Windows
from regard.trace import tap

CHUNK = 1024
"""Windows per batch."""
MAX_HORIZON = 100_000
"""Rows of the longest forecast."""


@dataclass(frozen=True)
class Forecast:
    """A forecast: the rows after the end of a series, with prediction intervals.

    >>> from regard.tasks.forecast.timestamps import Frequency
    >>> one = np.array([[3.0]])
    >>> found = Forecast(TimeIndex("row", "", Frequency(1)), np.array([9]), ("load",), one, one - 1, one + 1, 0.8)
    >>> print(found.csv(), end="")
    row,load,load_lower,load_upper
    9,3,2,4
    """

    index: TimeIndex
    timestamps: np.ndarray
    """(H,)"""
    names: tuple[str, ...]
    mean: np.ndarray
    """(H, F): the expected values"""
    lower: np.ndarray
    upper: np.ndarray
    level: float
    """nominal coverage of the intervals"""

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of a CSV file."""
        header = [self.index.column, *(f"{name}{end}" for name in self.names for end in ("", "_lower", "_upper"))]
        numbers = np.stack([self.mean, self.lower, self.upper], 2).reshape(len(self.timestamps), -1)
        digits = [significant_decimals(size) for size in np.abs(self.mean).max(0).tolist() for _ in range(3)]
        times = self.index.format_times(self.timestamps)
        rows = [[format_number(x, n) for x, n in zip(row, digits, strict=True)] for row in numbers.tolist()]
        return header, [[time, *row] for time, row in zip(times, rows, strict=True)]

    def csv(self) -> str:
        """The forecast as CSV: times, and for each column its expected value and the ends of its interval."""
        header, rows = self.table()
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([header, *rows])
        return out.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """The forecast as plain JSON."""
        parts = {"expected": self.mean, "lower": self.lower, "upper": self.upper}
        columns = [
            {"name": name, **{part: numbers[:, i].tolist() for part, numbers in parts.items()}}
            for i, name in enumerate(self.names)
        ]
        return {"level": self.level, "times": self.index.format_times(self.timestamps), "columns": columns}


def significant_decimals(size: float) -> int:
    """Decimal places of a number of this size in float32, which has seven significant digits."""
    return min(max(0, 6 - math.floor(math.log10(size))), 10) if size > 0 else 10


def format_number(number: float, decimals: int) -> str:
    """A number with at most so many decimals, without trailing zeros."""
    return f"{round(number, decimals) + 0.0:.10g}"


@dataclass(frozen=True)
class ForecastPredictor:
    """A forecaster with the statistics of its training series."""

    model: Forecaster
    task: ForecastConfig
    stats: SeriesStats
    time_features: Sequence[TimeFeature] = ()

    def forecast(self, rows: TimeSeries, horizon: int | None = None, level: float = 0.8) -> Forecast:
        """Forecast the rows after the last one; beyond the training horizon, autoregressively."""
        horizon = self.task.horizon if horizon is None else horizon
        if not 1 <= horizon <= MAX_HORIZON:
            raise ConfigError(f"horizon = {horizon} must be at least 1 and at most {MAX_HORIZON:,}")
        if not 0 < level < 1:
            raise ConfigError(f"level = {level} must be above 0 and below 1, such as 0.8")
        if len(rows) < self.task.window:
            raise DataError(
                f"there are {len(rows):,} rows, and this model reads the last {self.task.window}; give at least as many"
            )
        blocks = -(-horizon // self.task.horizon)
        rows = rows.extend(blocks * self.task.horizon, self.time_features)
        mean, half = self.roll(rows, blocks, level)
        columns = list(self.stats.varying)
        found = np.repeat(rows.values[-1:], horizon, 0)
        half_widths = np.zeros_like(found)
        found[:, columns] = self.stats.inverse_transform(mean[:horizon])
        half_widths[:, columns] = half[:horizon] * np.array(self.stats.target_scaler.scale)[columns]
        timestamps = rows.timestamps[len(rows) :][:horizon]
        return Forecast(rows.index, timestamps, rows.names, found, found - half_widths, found + half_widths, level)

    def roll(self, rows: TimeSeries, blocks: int, level: float) -> tuple[np.ndarray, np.ndarray]:
        """(blocks x horizon, C) autoregressive forecasts, and the half-widths of their intervals.

        A window is centered on its last rows, so the error of a block carries over to the next: variances add up.
        """
        values, covariates = self.stats.transform(SeriesSlice(rows))
        half_width = self.model.interval_half_width(level).cpu().numpy().reshape(self.task.horizon, -1)
        halves, before = [], np.zeros(values.shape[1])
        for block in range(blocks):
            windows = Windows(self.task, values, covariates)
            with np.errstate(over="ignore", invalid="ignore"):  # reported below
                mean, scale = predict_windows(self.model, windows, np.array([len(values)]))
                halves.append(np.sqrt((half_width * scale[0]) ** 2 + before**2))
            if not (np.isfinite(mean).all() and np.isfinite(halves[-1]).all()):
                raise ModelError(
                    f"the autoregressive forecast diverges after {block * self.task.horizon:,} rows; ask for a shorter "
                    "horizon, or train the model longer"
                )
            before = halves[-1][-1]
            values = np.concatenate([values, mean[0].astype(values.dtype)])
        return values[len(rows) :], np.concatenate(halves)


@torch.no_grad()
def predict_windows(model: Forecaster, windows: Windows, origins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N, H, C) forecasts of a model from origin rows, and their scales, both standardized."""
    found, channels, task = [], windows.channels, windows.task
    rows = np.arange(len(origins) * channels)
    for start in range(0, len(rows), CHUNK):
        part = rows[start : start + CHUNK]
        source, normalizer = windows.source(origins[part // channels], part % channels)
        out_BA = model.readout(model(source.to(module_device(model))))
        outputs = task.mean_and_scale(tap(model, "forecast", out_BA, "batch width"))
        mean_BHC, scale_BHC = (x.cpu().numpy().reshape(len(part), task.horizon, -1) for x in outputs)
        found.append(np.stack([normalizer.denormalize(mean_BHC), scale_BHC * normalizer.scale]))
    both = np.concatenate(found, 1)
    if channels > 1:
        both = both.reshape(2, len(origins), channels, task.horizon).swapaxes(2, 3)
    return both[0], both[1]
