"""The `[task]` table of a forecasting recipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from regard.config import check_at_least
from regard.errors import ConfigError
from regard.spaces import Gaussian, Laplace, PointL1, Values

HEADS: dict[str, type[Values]] = {"point": PointL1, "gaussian": Gaussian, "laplace": Laplace}


@dataclass(frozen=True)
class ForecastConfig:
    """Forecasting: a window of past rows in, all rows of the horizon out."""

    kind: Literal["forecast"] = "forecast"
    """past rows of a series in, future rows out"""
    horizon: int = 24
    """rows that are forecast at once; longer forecasts are autoregressive"""
    window: int = 96
    """past rows that are read (lookback window); 0: only future covariates, as in a regression table"""
    patch: int | None = None
    """rows per position, patching as in PatchTST (Nie et al. 2023); not set: 1, and for an mlp the whole window"""
    head: Literal["point", "gaussian", "laplace"] = "gaussian"
    """output distribution: a point (median), Gaussian mean and deviation, or Laplace median and scale for outliers"""
    center: Literal["last", "mean", "none"] = "last"
    """what is subtracted from each window (centering): its last row, its mean, or nothing"""
    scale_by: Literal["series", "window"] = "series"
    """what windows are divided by: the deviation of the training series, or the window's own, as in RevIN (Kim et al.
    2022), for a series whose variance changes"""
    channels: Literal["joint", "independent"] = "joint"
    """whether all columns are read and forecast together, or each alone by the same weights (channel independence)"""
    linear_skip: Literal["shared", "per-column", "none"] = "shared"
    """a linear model of the window added to the network (Lai et al. 2018); one more per independent column; or none"""
    pool: Literal["last", "mean"] = "last"
    """how the encoder's states are pooled: the last one, or their mean"""
    season: int | None = None
    """rows per season, for seasonal naive and MASE; not set: a day of hours, a week of days, a year of months"""

    def __post_init__(self) -> None:
        for name, least in (("horizon", 1), ("window", 0), ("patch", 1), ("season", 1)):
            if getattr(self, name) is not None:
                check_at_least(self, least, name)
        if self.window == 0 and self.center != "none":
            raise ConfigError(f'window = 0 has no row to center on; use center = "none", not "{self.center}"')
        if self.window < 2 and self.scale_by == "window":
            raise ConfigError(f'window = {self.window} has no deviation to scale by; use scale_by = "series"')

    def space(self, outputs: int) -> Values:
        """Output space of so many forecast numbers."""
        return HEADS[self.head](outputs)

    def mean_and_scale(self, out_NC: Tensor) -> tuple[Tensor, Tensor]:
        """The expected value and the scale of each forecast number; a point forecast has scale 1."""
        if self.head == "point":
            return out_NC, torch.ones_like(out_NC)
        mean_NF, log_scale_NF = Gaussian.location_scale(out_NC)
        return mean_NF, log_scale_NF.exp()
