"""Forecasting with a trained model: a series in, what comes next out, with times that go on and intervals around it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from regard.data.time_series import Timeline
from regard.data.timestamps import Clock, Part
from regard.errors import ConfigError, DataError, ModelError
from regard.models.forecaster import Forecaster
from regard.tasks.forecast.prepare import ForecastConfig, Gauge
from regard.tasks.forecast.sources import Stretch
from regard.tasks.forecast.windows import Windows

CHUNK = 1024
"""Windows that are read together."""
LONGEST = 100_000
"""Rows of the longest forecast."""


@dataclass(frozen=True)
class Forecast:
    """What comes after the end of a series.

    >>> from regard.data.timestamps import Step
    >>> one = np.array([[3.0]])
    >>> found = Forecast(Clock("row", "", Step(1)), np.array([9]), ("load",), one, one - 1, one + 1, 0.8)
    >>> print(found.csv(), end="")
    row,load,load_lower,load_upper
    9,3,2,4
    """

    clock: Clock
    stamps: np.ndarray
    """(H,)"""
    names: tuple[str, ...]
    middle: np.ndarray
    """(H, F): what is expected"""
    lower: np.ndarray
    upper: np.ndarray
    level: float
    """the share of intervals that should hold what comes"""

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The names of columns, and the rows below them, as a CSV file has them."""
        head = [self.clock.column, *(f"{name}{end}" for name in self.names for end in ("", "_lower", "_upper"))]
        numbers = np.stack([self.middle, self.lower, self.upper], 2).reshape(len(self.stamps), -1)
        digits = [digits_of(size) for size in np.abs(self.middle).max(0).tolist() for _ in range(3)]
        times = self.clock.written(self.stamps)
        rows = [[rounded(x, n) for x, n in zip(row, digits, strict=True)] for row in numbers.tolist()]
        return head, [[time, *row] for time, row in zip(times, rows, strict=True)]

    def csv(self) -> str:
        """Times, and of each column what is expected and the ends of its interval."""
        head, rows = self.table()
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([head, *rows])
        return out.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        parts = {"expected": self.middle, "lower": self.lower, "upper": self.upper}
        columns = [
            {"name": name, **{part: numbers[:, i].tolist() for part, numbers in parts.items()}}
            for i, name in enumerate(self.names)
        ]
        return {"level": self.level, "times": self.clock.written(self.stamps), "columns": columns}


def digits_of(size: float) -> int:
    """How many digits after the point are worth telling of numbers so large: a model counts with seven in all.

    >>> digits_of(0.5), digits_of(31.0), digits_of(2e9), digits_of(0.0)
    (7, 5, 0, 10)
    """
    return min(max(0, 6 - math.floor(math.log10(size))), 10) if size > 0 else 10


def rounded(number: float, digits: int) -> str:
    """A number with at most so many digits after the point, and none that tell nothing.

    >>> rounded(31.51403659, 5), rounded(-7.3e-9, 5), rounded(3.0, 5)
    ('31.51404', '0', '3')
    """
    return f"{round(number, digits) + 0.0:.10g}"


@dataclass(frozen=True)
class Foreteller:
    """A model that foretells, with all it must know of the series that it was trained on.

    >>> from regard.data.timestamps import Step
    >>> from regard.data.time_series import Wanted, parse_timeline
    >>> from regard.models.mlp import MLPConfig
    >>> from regard.sequence import last
    >>> from regard.spaces import Values
    >>> from regard.tasks.generate.numbers import Scale
    >>> task, clock = ForecastConfig(horizon=2, window=3), Clock("row", "", Step(1))
    >>> gauge = Gauge(Scale(("a",), (0.0,), (1.0,)), Scale((), (), ()), (0,), clock, 1, (1.0,))
    >>> shape = gauge.shape(task, patch=3)
    >>> model = Forecaster(MLPConfig(width=4).build_encoder(Values(3)), last, task.space(2), shape)
    >>> rows = parse_timeline(["a", "1", "2", "3", "4"], "a.csv", Wanted())
    >>> Foreteller(model, task, gauge).forecast(rows, horizon=5).stamps
    array([5, 6, 7, 8, 9])
    """

    model: Forecaster
    task: ForecastConfig
    gauge: Gauge
    calendar: Sequence[Part] = ()

    def forecast(self, rows: Timeline, horizon: int | None = None, level: float = 0.8) -> Forecast:
        """What comes after the last row; beyond the horizon that was learnt it goes on from what it said itself."""
        horizon = self.task.horizon if horizon is None else horizon
        if not 1 <= horizon <= LONGEST:
            raise ConfigError(f"horizon = {horizon} must be at least 1 and at most {LONGEST:,}")
        if not 0 < level < 1:
            raise ConfigError(f"level = {level} must be above 0 and below 1, such as 0.8")
        if len(rows) < self.task.window:
            raise DataError(
                f"there are {len(rows):,} rows, and this model reads the last {self.task.window}; give it as many"
            )
        blocks = -(-horizon // self.task.horizon)
        rows = rows.ahead(blocks * self.task.horizon, self.calendar)
        middle, half = self.rolled(rows, blocks, level)
        scale = self.gauge.values
        moving = list(self.gauge.moving)
        found = np.repeat(rows.values[-1:], horizon, 0)
        ends = np.zeros_like(found)
        found[:, moving] = middle[:horizon] * np.array(scale.deviation)[moving] + np.array(scale.mean)[moving]
        ends[:, moving] = half[:horizon] * np.array(scale.deviation)[moving]
        stamps = rows.stamps[len(rows) :][:horizon]
        return Forecast(rows.clock, stamps, rows.names, found, found - ends, found + ends, level)

    def rolled(self, rows: Timeline, blocks: int, level: float) -> tuple[np.ndarray, np.ndarray]:
        """(blocks x horizon, C) what is expected, and how far its interval goes: after a block, doubts add up.

        A window is measured from its last rows, so what they are off by, all that follows is off by as well.
        """
        values, known = self.gauge.scaled(Stretch(rows))
        reach = self.model.reach(level).numpy().reshape(self.task.horizon, -1)
        halves, before = [], np.zeros(values.shape[1])
        for block in range(blocks):
            windows = Windows(self.task, values, known)
            with np.errstate(over="ignore", invalid="ignore"):  # told below
                middle, doubt = answers(self.model, windows, np.array([len(values)]))
                halves.append(np.sqrt((reach * doubt[0]) ** 2 + before**2))
            if not (np.isfinite(middle).all() and np.isfinite(halves[-1]).all()):
                raise ModelError(
                    f"the forecast grows beyond all numbers after {block * self.task.horizon:,} rows: this model "
                    "cannot go on so far from what it said itself; ask for a shorter horizon, or train it for longer"
                )
            before = halves[-1][-1]
            values = np.concatenate([values, middle[0].astype(values.dtype)])
        return values[len(rows) :], np.concatenate(halves)


@torch.no_grad()
def answers(model: Forecaster, windows: Windows, origins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N, H, C) what a model expects from some rows on, and its doubt, in units of training.

    >>> from regard.models.mlp import MLPConfig
    >>> from regard.models.forecaster import Shape
    >>> from regard.sequence import last
    >>> from regard.spaces import Values
    >>> task = ForecastConfig(horizon=2, window=3, columns="apart")
    >>> shape = Shape(rows=3, columns=1, patch=3, answers=2, apart=3)
    >>> encoder = MLPConfig(width=4).build_encoder(Values(shape.inputs))
    >>> model = Forecaster(encoder, last, task.space(2), shape)
    >>> windows = Windows(task, np.zeros((9, 3), np.float32), np.zeros((9, 0), np.float32))
    >>> [found.shape for found in answers(model, windows, windows.origins)]
    [(5, 2, 3), (5, 2, 3)]
    """
    found, apart, task = [], windows.apart, windows.task
    rows = np.arange(len(origins) * apart)
    for start in range(0, len(rows), CHUNK):
        part = rows[start : start + CHUNK]
        source, measure = windows.source(origins[part // apart], part % apart)
        middle_BA, doubt_BA = task.parts(model.readout(model(source)))
        middle_BHC, doubt_BHC = (x.numpy().reshape(len(part), task.horizon, -1) for x in (middle_BA, doubt_BA))
        found.append(np.stack([measure.undone(middle_BHC), doubt_BHC * measure.unit]))
    both = np.concatenate(found, 1)
    if apart > 1:
        both = both.reshape(2, len(origins), apart, task.horizon).swapaxes(2, 3)
    return both[0], both[1]
