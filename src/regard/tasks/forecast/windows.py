"""Windows of a time series: the past goes in, the whole horizon comes out.

Each window is centered on its last row or its mean, so that a series that has drifted since training looks the same;
and optionally scaled by its own deviation (RevIN, Kim et al. 2022), so that one whose variance has changed does.
Columns are read jointly, or independently by the same weights with an embedding that tells them apart. With future
covariates the rows of the horizon are read too, with their values left empty.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from regard.data import Shards
from regard.objective import Batch
from regard.sequence import Tokens
from regard.tasks.forecast.config import ForecastConfig
from regard.tasks.forecast.prepare import COLUMN, SeriesStats

MIN_SCALE = 0.1
"""Smallest deviation that a window is divided by, in deviations of training: a constant window is not blown up."""


@dataclass(frozen=True)
class WindowNormalizer:
    """Normalization of windows: subtracts a center and divides by a scale."""

    center: np.ndarray
    """(B, 1, C)"""
    scale: np.ndarray
    """(B, 1, C)"""

    def normalize(self, values_BLC: np.ndarray) -> np.ndarray:
        found: np.ndarray = (values_BLC - self.center) / self.scale
        return found

    def denormalize(self, values_BLC: np.ndarray) -> np.ndarray:
        found: np.ndarray = values_BLC * self.scale + self.center
        return found


@dataclass(frozen=True)
class Windows:
    """The windows of a series: inputs before an origin row, targets from that row on.

    >>> windows = Windows(ForecastConfig(horizon=1, window=2), np.arange(5.0)[:, None], np.zeros((5, 0)))
    >>> batch = windows.batch(np.array([0, 2]))
    >>> batch.source.data[..., 0].tolist(), batch.target.tolist()
    ([[-1.0, 0.0], [-1.0, 0.0]], [[1.0], [1.0]])
    """

    task: ForecastConfig
    values: np.ndarray
    """(N, C) standardized varying columns"""
    covariates: np.ndarray
    """(N or more, K) standardized"""
    first: int = 0
    """the first row that may be an origin"""

    @classmethod
    def open(cls, task: ForecastConfig, stats: SeriesStats, folder: Path, context: int) -> Windows:
        """The windows of a prepared split."""
        columns = len(stats.varying) + len(stats.covariate_scaler.names)
        both = Shards.open(folder).flat(COLUMN).reshape(-1, columns)
        return cls(task, both[:, : len(stats.varying)], both[:, len(stats.varying) :], context)

    @cached_property
    def origins(self) -> np.ndarray:
        """The first row of each complete horizon that has a complete window before it."""
        return np.arange(max(self.first, self.task.window), len(self.values) - self.task.horizon + 1)

    @property
    def channels(self) -> int:
        """Columns that are read independently."""
        return self.values.shape[1] if self.task.channels == "independent" else 1

    def __len__(self) -> int:
        """Number of examples: windows, times the columns that are read independently."""
        return len(self.origins) * self.channels

    def batch(self, rows: np.ndarray) -> Batch:
        """Windows and their targets, by example number."""
        origins, columns = self.origins[rows // self.channels], rows % self.channels
        source, normalizer = self.source(origins, columns)
        future_BHC = self.take(origins[:, None] + np.arange(self.task.horizon), columns)
        targets = normalizer.normalize(future_BHC).reshape(len(rows), -1).astype(np.float32)
        return Batch(source, torch.from_numpy(targets))

    def target_scale(self, rows: np.ndarray) -> torch.Tensor:
        """(B, outputs): the scale of each target, in deviations of training."""
        origins, columns = self.origins[rows // self.channels], rows % self.channels
        scale_B1C = self.scale(self.take(origins[:, None] + np.arange(-self.task.window, 0), columns))
        return torch.from_numpy(np.repeat(scale_B1C, self.task.horizon, 1).reshape(len(rows), -1).astype(np.float32))

    def source(self, origins: np.ndarray, columns: np.ndarray) -> tuple[Tokens, WindowNormalizer]:
        """Model inputs of windows, and their normalization."""
        past_BLC = self.take(origins[:, None] + np.arange(-self.task.window, 0), columns)
        normalizer = WindowNormalizer(self.center(past_BLC), self.scale(past_BLC))
        parts = [normalizer.normalize(past_BLC)]
        if self.covariates.shape[1]:
            horizon = self.task.horizon
            covariates = self.covariates[origins[:, None] + np.arange(-self.task.window, horizon)]
            blank = np.zeros((len(origins), horizon, parts[0].shape[2]))
            is_future = (np.arange(covariates.shape[1]) >= self.task.window)[:, None]
            parts = [
                np.concatenate([parts[0], blank], 1),
                covariates,
                np.broadcast_to(is_future, (*covariates.shape[:2], 1)),
            ]
        source = Tokens.full(torch.from_numpy(np.concatenate(parts, 2).astype(np.float32)))
        if self.channels > 1:
            column_BR = np.repeat(columns[:, None], parts[0].shape[1], 1)
            source = replace(source, segments=torch.from_numpy(column_BR))
        return source, normalizer

    def take(self, rows_BL: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The values of rows: of all columns, or of one column each."""
        if self.channels == 1:
            return self.values[rows_BL]
        return self.values[rows_BL, columns[:, None]][..., None]

    def center(self, past_BLC: np.ndarray) -> np.ndarray:
        """The center of windows."""
        if self.task.center == "none":
            return np.zeros((len(past_BLC), 1, past_BLC.shape[2]), past_BLC.dtype)
        return past_BLC[:, -1:] if self.task.center == "last" else past_BLC.mean(1, keepdims=True)

    def scale(self, past_BLC: np.ndarray) -> np.ndarray:
        """The scale of windows."""
        if self.task.scale_by == "series":
            return np.ones((len(past_BLC), 1, past_BLC.shape[2]), past_BLC.dtype)
        found: np.ndarray = np.sqrt(past_BLC.var(1, keepdims=True) + MIN_SCALE**2)
        return found
