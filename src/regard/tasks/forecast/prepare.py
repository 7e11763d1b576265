"""Preparation of a time series: its statistics in training, and the standardized values of train and valid."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard import config
from regard.data import ShardWriter
from regard.data.scaling import StandardScaler
from regard.data.tables import NumericTable
from regard.errors import ConfigError, DataError, ModelError
from regard.files import parse_json, write_text_atomically
from regard.manifest import read_kept
from regard.models.forecaster import ForecasterShape
from regard.progress import Progress
from regard.tasks.forecast.config import ForecastConfig
from regard.tasks.forecast.sources import SeriesSlice, SeriesSource
from regard.tasks.forecast.timestamps import TimeIndex

FILE = "series.json"
COLUMN = "numbers"
"""Shard column of the standardized values."""


@dataclass(frozen=True)
class SeriesStats:
    """Statistics of the training series that a model needs later."""

    target_scaler: StandardScaler
    covariate_scaler: StandardScaler
    varying: tuple[int, ...]
    """the columns that vary in training; a constant column is forecast by its last value"""
    index: TimeIndex
    season: int
    seasonal_error: tuple[float, ...]
    """mean absolute error of the seasonal naive forecast in training: the denominator of MASE"""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns to forecast."""
        return self.target_scaler.names

    @classmethod
    def fit(cls, train: SeriesSlice, season: int | None) -> SeriesStats:
        """The statistics of the training rows."""
        rows = train.rows
        season = season or rows.index.frequency.season
        if len(rows) <= season:
            raise DataError(
                f"there are {len(rows):,} training rows, less than one season of {season}; set task.season, or give "
                "more rows"
            )
        varying = np.flatnonzero(rows.values.max(0) > rows.values.min(0))
        if not len(varying):
            raise DataError(
                f"every column is constant in training ({', '.join(rows.names)}); there is nothing to forecast"
            )
        error = np.abs(rows.values[season:] - rows.values[:-season]).mean(0)
        covariates = StandardScaler.fit(NumericTable(rows.covariate_names, rows.covariates))
        targets = StandardScaler.fit(NumericTable(rows.names, rows.values))
        return cls(targets, covariates, tuple(varying.tolist()), rows.index, season, tuple(error.tolist()))

    def mase(self, mae: Sequence[float]) -> float:
        """Mean MASE of the varying columns from their standardized MAE; MAE if every column repeats exactly."""
        units = [(self.target_scaler.scale[i], self.seasonal_error[i]) for i in self.varying]
        found = [error * scale / naive for error, (scale, naive) in zip(mae, units, strict=True) if naive]
        return sum(found or mae) / len(found or mae)

    def shape(self, task: ForecastConfig, patch: int) -> ForecasterShape:
        """Input and output sizes of the model."""
        columns, covariates = len(self.varying), len(self.covariate_scaler.names)
        channels = columns if task.channels == "independent" else 1
        together = columns // channels
        rows = task.window + (task.horizon if covariates else 0)
        linear = together + covariates if task.linear_skip != "none" else 0
        per_column = channels if task.linear_skip == "per-column" and channels > 1 else 0
        inputs = together + covariates + bool(covariates)
        return ForecasterShape(rows, inputs, patch, task.horizon * together, channels, linear, per_column)

    def transform(self, part: SeriesSlice) -> tuple[np.ndarray, np.ndarray]:
        """Standardized varying columns and covariates; refuses other columns or another frequency than training's."""
        rows = part.rows
        for ours, theirs, setting in (
            (self.names, rows.names, "columns"),
            (self.covariate_scaler.names, rows.covariate_names, "future_covariates"),
        ):
            if ours != theirs:
                here, there = (", ".join(names) or "none" for names in (theirs, ours))
                raise DataError(
                    f"the series has the columns {here}, training had {there}; name those that both have in "
                    f"data.{setting}"
                )
        if not rows.index.frequency.matches(self.index.frequency):
            raise DataError(f"rows are {rows.index.frequency} apart, in training they were {self.index.frequency}")
        values = self.target_scaler.transform(rows.values)[:, self.varying]
        return values, self.covariate_scaler.transform(rows.covariates)

    def inverse_transform(self, values: np.ndarray) -> np.ndarray:
        """Standardized values of the varying columns in the units of the series."""
        columns, scaler = list(self.varying), self.target_scaler
        found: np.ndarray = values * np.array(scaler.scale)[columns] + np.array(scaler.mean)[columns]
        return found

    def save(self, path: Path) -> None:
        """Write a JSON file."""
        write_text_atomically(path, json.dumps(config.plain(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> SeriesStats:
        """Read the file that `save` wrote."""
        try:
            return config.parse(cls, parse_json(read_kept(path)))
        except (OSError, ValueError, ConfigError):
            raise ModelError(f"{path} cannot be read: expected the statistics of a series") from None


@dataclass(frozen=True)
class ForecastPreparation:
    """Prepares a time series: statistics and standardized values."""

    data: SeriesSource
    task: ForecastConfig

    def identity(self) -> dict[str, Any]:
        """The settings that the prepared files depend on."""
        return {"data": config.plain(self.data), "window": self.task.window, "season": self.task.season}

    def run(self, folder: Path, progress: Progress) -> Mapping[str, Mapping[str, int]]:
        """Write series.json and the values of train and valid into `folder`; the number of rows of each."""
        counts, stats = {}, None
        for split in ("train", "valid"):
            progress(f"reading {split}", 0, total=0)
            part = self.data.read_split(split, self.task.window)
            stats = stats or SeriesStats.fit(part, self.task.season)
            both = np.concatenate([values[: len(part.rows)] for values in stats.transform(part)], 1)
            with ShardWriter(folder / split, {COLUMN: "float32"}) as writer:
                writer.append([(both.reshape(-1),)])
            counts[split] = {"rows": len(part), "context": part.first, "filled": part.filled_cells}
        assert stats is not None
        stats.save(folder / FILE)
        return counts
