"""Forecasts: what is asked of a series, and how it is made ready. What scales it has seen training and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from regard import config
from regard.data import ShardWriter
from regard.data.series import Table
from regard.data.timestamps import Clock
from regard.errors import ConfigError, DataError, ModelError
from regard.models.forecaster import Shape
from regard.objective import Tell
from regard.spaces import Gaussian, Laplace, Medians, Values
from regard.tasks.forecast.sources import Stretch, TimedSource
from regard.tasks.generate.numbers import Scale

FILE = "series.json"
COLUMN = "numbers"
HEADS: dict[str, type[Values]] = {"point": Medians, "gaussian": Gaussian, "laplace": Laplace}


@dataclass(frozen=True)
class ForecastConfig:
    """What is asked of a series: so much of it in, so much of it out.

    >>> ForecastConfig(horizon=0)
    Traceback (most recent call last):
    regard.errors.ConfigError: horizon = 0 must be at least 1
    """

    kind: Literal["forecast"] = "forecast"
    """the past of a series in, what comes next out"""
    horizon: int = 24
    """rows that are foretold at once; longer forecasts go on from their own"""
    window: int = 96
    """rows of the past that are read; 1: one to many; 0: nothing but what is known, as in a table"""
    patch: int | None = None
    """rows that are read at one place (Nie et al. 2023); not set: 1, and for an mlp all, as it sees one place alone"""
    head: Literal["point", "gaussian", "laplace"] = "gaussian"
    """what is said of each number: its median; mean and deviation; median and scale, for series with stray values"""
    around: Literal["last", "mean", "nothing"] = "last"
    """what the numbers of a window are measured from: its last row, its mean, or nothing"""
    unit: Literal["series", "window"] = "series"
    """what they are counted in: deviations of all of training, or of the window itself (Kim et al. 2022), for a series
    that is livelier at some times than at others"""
    columns: Literal["together", "apart"] = "together"
    """whether all columns are read and foretold at once, or one at a time by the same weights"""
    line: Literal["beside", "each", "none"] = "beside"
    """a linear model of the window beside the network (Lai et al. 2018); one more for each column that is read apart;
    or the network alone"""
    pool: Literal["last", "mean"] = "last"
    """what of the encoder's states is used: the last one, or their mean"""
    season: int | None = None
    """rows after which the series comes round again, for seasonal naive and MASE; not set: a day of hours, a week of
    days, a year of months"""

    def __post_init__(self) -> None:
        for name, least in (("horizon", 1), ("window", 0), ("patch", 1), ("season", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"{name} = {value} must be at least {least}")
        if self.window == 0 and self.around != "nothing":
            raise ConfigError(f'window = 0 has no row to be measured from; use around = "nothing", not "{self.around}"')
        if self.window < 2 and self.unit == "window":
            raise ConfigError(f'window = {self.window} has no deviation to count in; use unit = "series"')

    def space(self, answers: int) -> Values:
        """What is said, of so many numbers."""
        return HEADS[self.head](answers)

    def parts(self, out_NC: Tensor) -> tuple[Tensor, Tensor]:
        """The middle of each answer and its doubt; a point has none of its own, so it is 1 everywhere."""
        if self.head == "point":
            return out_NC, torch.ones_like(out_NC)
        middle_NF, log_NF = Gaussian.parts(out_NC)
        return middle_NF, log_NF.exp()


@dataclass(frozen=True)
class Gauge:
    """What a model must know for ever about the series it was trained on.

    >>> from regard.data.time_series import Wanted, parse_timeline
    >>> rows = parse_timeline(["load,still", "1,7", "3,7", "2,7"], "a.csv", Wanted())
    >>> found = Gauge.of(Stretch(rows), season=1)
    >>> found.names, found.moving, found.apart
    (('load', 'still'), (0,), (1.5, 0.0))
    """

    values: Scale
    """of the columns that are foretold"""
    known: Scale
    """of the columns whose future is known"""
    moving: tuple[int, ...]
    """the columns that changed in training; one that never did is carried on as it is"""
    clock: Clock
    season: int
    apart: tuple[float, ...]
    """how far a row of training is from the one a season before, on average: the unit of MASE"""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are foretold."""
        return self.values.names

    @classmethod
    def of(cls, stretch: Stretch, season: int | None) -> Gauge:
        """What training has seen, and nothing later."""
        rows = stretch.rows
        season = season or rows.clock.step.season
        if len(rows) <= season:
            raise DataError(
                f"there are {len(rows):,} rows to learn from, not one season of {season}; set task.season, or give more"
            )
        moving = np.flatnonzero(rows.values.max(0) > rows.values.min(0))
        if not len(moving):
            raise DataError(
                f"no column ever changes in training ({', '.join(rows.names)}); there is nothing to foretell"
            )
        apart = np.abs(rows.values[season:] - rows.values[:-season]).mean(0)
        known = Scale.of(Table(rows.known_names, rows.known))
        values = Scale.of(Table(rows.names, rows.values))
        return cls(values, known, tuple(moving.tolist()), rows.clock, season, tuple(apart.tolist()))

    def mase(self, off: Sequence[float]) -> float:
        """The mean MASE of columns that move, from their MAE in deviations; MAE where a series repeats exactly."""
        units = [(self.values.deviation[i], self.apart[i]) for i in self.moving]
        found = [error * deviation / apart for error, (deviation, apart) in zip(off, units, strict=True) if apart]
        return sum(found or off) / len(found or off)

    def shape(self, task: ForecastConfig, patch: int) -> Shape:
        """What a model reads and says."""
        columns, known = len(self.moving), len(self.known.names)
        apart = columns if task.columns == "apart" else 1
        shown = columns // apart
        rows = task.window + (task.horizon if known else 0)
        straight = shown + known if task.line != "none" else 0
        owned = apart if task.line == "each" and apart > 1 else 0
        inputs = shown + known + bool(known)
        return Shape(rows, inputs, patch, task.horizon * shown, apart, straight, owned)

    def scaled(self, stretch: Stretch) -> tuple[np.ndarray, np.ndarray]:
        """The columns that move, and what is known, in units of training; other columns than training's are told."""
        rows = stretch.rows
        for ours, theirs, what in ((self.names, rows.names, "columns"), (self.known.names, rows.known_names, "known")):
            if ours != theirs:
                here, there = (", ".join(names) or "none" for names in (theirs, ours))
                raise DataError(
                    f"the series has the columns {here}, training had {there}; name those that both have in data.{what}"
                )
        if not rows.clock.step.like(self.clock.step):
            raise DataError(f"rows are {rows.clock.step} apart, in training they were {self.clock.step}")
        return self.values.apply(rows.values)[:, self.moving], self.known.apply(rows.known)

    def save(self, path: Path) -> None:
        """Write a JSON file."""
        path.write_text(json.dumps(config.plain(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Gauge:
        """What `save` wrote."""
        try:
            return config.parse(cls, json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, ConfigError):
            raise ModelError(f"{path} cannot be read: expected what preparation knows of the series") from None


@dataclass(frozen=True)
class TimedPreparation:
    """A series in; its gauge, and the scaled numbers of training and validation, out.

    >>> from regard.tasks.forecast.sources import Timed
    >>> TimedPreparation(Timed(train="load.csv"), ForecastConfig(window=7)).identity()["window"]
    7
    """

    data: TimedSource
    task: ForecastConfig

    def identity(self) -> dict[str, Any]:
        """The settings that what is prepared depends on."""
        return {"data": config.plain(self.data), "window": self.task.window, "season": self.task.season}

    def run(self, folder: Path, tell: Tell) -> Mapping[str, Mapping[str, int]]:
        """Write series.json, and the numbers of train and valid, into `folder`; how many rows each has."""
        counts, gauge = {}, None
        for split in ("train", "valid"):
            tell(f"reading {split}", 0, total=0)
            stretch = self.data.stretch(split, self.task.window)
            gauge = gauge or Gauge.of(stretch, self.task.season)
            both = np.concatenate([part[: len(stretch.rows)] for part in gauge.scaled(stretch)], 1)
            with ShardWriter(folder / split, {COLUMN: 1 << 32}) as writer:
                writer.append([(both.astype("<f4").reshape(-1).view("<u4").tolist(),)])
            counts[split] = {"rows": stretch.asked, "past": stretch.first, "carried": stretch.filled}
        assert gauge is not None
        gauge.save(folder / FILE)
        return counts
