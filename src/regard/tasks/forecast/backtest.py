"""Rolling evaluation: a forecast from one row after the other, as if each were today, beside what anybody could say."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regard.errors import DataError
from regard.metrics import Score
from regard.metrics.forecast import Beside, Rolling, Unit
from regard.models.forecaster import Forecaster
from regard.objective import Tell
from regard.tasks.forecast.baselines import Linear, naive, seasonal_naive
from regard.tasks.forecast.predict import answers
from regard.tasks.forecast.prepare import ForecastConfig, Gauge
from regard.tasks.forecast.sources import Stretch, TimedSource
from regard.tasks.forecast.windows import Windows

LEVEL = 0.8
"""the share of intervals that should hold what comes"""
CHUNK = 256
"""windows between two signs of life"""


@dataclass(frozen=True)
class Track:
    """The rows that are rolled over, in units of training and in their own.

    >>> from regard.data.time_series import Wanted, parse_timeline
    >>> rows = parse_timeline(["load", "1", "3", "2", "4"], "a.csv", Wanted())
    >>> gauge = Gauge.of(Stretch(rows), season=1)
    >>> track = Track(ForecastConfig(horizon=1, window=2), gauge, Stretch(rows), "a.csv")
    >>> track.own(naive(track.windows, track.origins))[:, 0, 0].round(6).tolist()
    [3.0, 2.0]
    """

    task: ForecastConfig
    gauge: Gauge
    stretch: Stretch
    name: str
    """for messages"""

    @cached_property
    def windows(self) -> Windows:
        """What is read, and what is wanted."""
        return Windows(self.task, *self.gauge.scaled(self.stretch), self.stretch.first)

    @cached_property
    def origins(self) -> np.ndarray:
        """The rows from which something is foretold."""
        found = self.windows.origins
        if not len(found):
            window, horizon = self.task.window, self.task.horizon
            raise DataError(
                f"{self.name}: there are {len(self.stretch.rows):,} rows, and one window takes {window + horizon:,}: "
                f"{window} of the past and {horizon} of the horizon"
            )
        return found

    def own(self, said_NHC: np.ndarray) -> np.ndarray:
        """(N, H, F) in the units of the series; a column that never changed in training is carried on."""
        moving, scale = list(self.gauge.moving), self.gauge.values
        found = np.repeat(self.stretch.rows.values[self.origins - 1][:, None], self.task.horizon, 1)
        found[..., moving] = said_NHC * np.array(scale.deviation)[moving] + np.array(scale.mean)[moving]
        return found

    def came(self) -> np.ndarray:
        """(N, H, F): what came."""
        return self.stretch.rows.values[self.origins[:, None] + np.arange(self.task.horizon)]

    def said(self, model: Forecaster, tell: Tell) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(N, H, F) each: what a model expects, and the ends of its intervals."""
        found, total = [], len(self.origins)
        for start in range(0, total, CHUNK):
            found.append(answers(model, self.windows, self.origins[start : start + CHUNK]))
            tell("forecasting", min(start + CHUNK, total), total)
        middle, doubt = (np.concatenate([part[i] for part in found]) for i in (0, 1))
        half = model.reach(LEVEL).numpy().reshape(self.task.horizon, -1) * doubt
        return self.own(middle), self.own(middle - half), self.own(middle + half)


def fitted(data: TimedSource, task: ForecastConfig, gauge: Gauge, tell: Tell) -> Linear:
    """The linear model that stands beside a network: it learns from training, and is chosen on validation, as that is.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from regard.tasks.forecast.sources import Timed
    >>> from regard.objective import silent
    >>> task = ForecastConfig(horizon=1, window=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("".join(f"{i % 5}\\n" for i in range(50)))
    ...     data = Timed(train=f"{folder}/a.csv")
    ...     linear = fitted(data, task, Gauge.of(data.stretch("train"), 5), silent)
    >>> len(linear.lines)
    1
    """
    tell("fitting a linear model", 0, total=0)
    stretches = (data.stretch(split, task.window) for split in ("train", "valid"))
    return Linear.fit(*(Windows(task, *gauge.scaled(stretch), stretch.first) for stretch in stretches))


def scored(model: Forecaster, track: Track, linear: Linear, tell: Tell) -> tuple[list[Score], Beside]:
    """The scores of a model, and its table beside the simple ones, a column a line; `linear` is that of `fitted`."""
    gauge, windows, origins = track.gauge, track.windows, track.origins
    deviations = [d if i in gauge.moving else 0.0 for i, d in enumerate(gauge.values.deviation)]
    units = tuple(map(Unit, gauge.names, deviations, gauge.apart))
    rolling = Rolling(units, track.came(), gauge.season)
    middle, lower, upper = track.said(model, tell)
    said = {
        "model": middle,
        "naive": track.own(naive(windows, origins)),
        "seasonal": track.own(seasonal_naive(windows, origins, gauge.season)),
        "linear": track.own(linear.predict(windows, origins)),
    }
    measures = {"MASE": rolling.mase, "MAE": rolling.mae, "RMSE": rolling.rmse}
    found = {name: {who: measure(what) for who, what in said.items()} for name, measure in measures.items()}
    beside = Beside(gauge.names, found, rolling.coverage(lower, upper), LEVEL)
    return rolling.scores(middle, lower, upper, LEVEL), beside
