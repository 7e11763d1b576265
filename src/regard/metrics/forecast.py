"""How far forecasts were off: MAE, RMSE, MASE (Hyndman and Koehler 2006), and how many intervals held what came.

Windows that follow one another see nearly the same, so the bootstrap draws blocks of them (Künsch 1989): an interval
that took them for independent would be far too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.errors import DataError
from regard.metrics.bootstrap import RESAMPLES, SEED, interval, resampled
from regard.metrics.score import Score


@dataclass(frozen=True)
class Unit:
    """What a column's errors are measured in.

    >>> Unit("load", deviation=2.0, apart=4.0).name
    'load'
    """

    name: str
    deviation: float
    """of the column in training; 0: it never changed, and is not scored"""
    apart: float
    """how far training's rows are from those a season before, on average; 0: it repeats exactly, and has no MASE"""


@dataclass(frozen=True)
class Rolling:
    """Forecasts from one row after the other, and what came.

    >>> came = np.array([[[1.0], [2.0]], [[2.0], [3.0]]])
    >>> rolled = Rolling((Unit("load", 2.0, 0.5),), came, season=1)
    >>> [round(score.value, 3) for score in rolled.scores(came + 1, came - 0.5, came + 1.5, 0.8)]
    [2.0, 1.0, 1.0, 100.0]
    """

    units: tuple[Unit, ...]
    came_NHF: np.ndarray
    season: int

    def __post_init__(self) -> None:
        if not len(self.came_NHF):
            raise DataError("there is not one whole window to score")

    @property
    def moving(self) -> list[int]:
        """The columns that changed in training: only they are scored."""
        return [i for i, unit in enumerate(self.units) if unit.deviation > 0]

    def mae(self, said_NHF: np.ndarray) -> list[float]:
        """Mean absolute error of each column, in its own unit."""
        return [float(x) for x in np.abs(self.came_NHF - said_NHF).mean((0, 1))]

    def rmse(self, said_NHF: np.ndarray) -> list[float]:
        """Root of the mean squared error of each column, in its own unit."""
        return [float(x) for x in np.sqrt(np.square(self.came_NHF - said_NHF).mean((0, 1)))]

    def mase(self, said_NHF: np.ndarray) -> list[float]:
        """MAE by how far training's rows were from those a season before; where they are the same, NaN."""
        errors = self.mae(said_NHF)
        return [e / unit.apart if unit.apart > 0 else math.nan for e, unit in zip(errors, self.units, strict=True)]

    def coverage(self, lower_NHF: np.ndarray, upper_NHF: np.ndarray) -> list[float]:
        """Of each column the share of intervals, in percent, that held what came."""
        held = (lower_NHF <= self.came_NHF) & (self.came_NHF <= upper_NHF)
        return [float(x) for x in 100 * held.mean((0, 1))]

    def scores(self, said_NHF: np.ndarray, lower_NHF: np.ndarray, upper_NHF: np.ndarray, level: float) -> list[Score]:
        """Over all columns that move: of one, MAE and RMSE are in its unit; of several, in deviations of training."""
        kept = self.moving
        if not kept:
            raise DataError("no column changed in training; there is nothing to score by")
        off = (said_NHF - self.came_NHF)[..., kept]
        held = ((lower_NHF <= self.came_NHF) & (self.came_NHF <= upper_NHF))[..., kept]
        apart = np.array([self.units[i].apart for i in kept])
        width = np.array([self.units[i].deviation if len(kept) > 1 else 1.0 for i in kept])
        unit = "unit:deviation" if len(kept) > 1 else "unit:own"
        parts = (
            ("mase", np.abs(off[..., apart > 0]) / apart[apart > 0], _mean, f"season:{self.season}"),
            ("mae", np.abs(off) / width, _mean, unit),
            ("rmse", np.square(off / width), _root, unit),
            ("coverage", 100.0 * held, _mean, f"level:{level:g}"),
        )
        return [self._score(*part) for part in parts if part[1].size]

    def _score(self, name: str, found_NHF: np.ndarray, by: Callable[[Sequence[float]], float], told: str) -> Score:
        """A score from what adds up, with the interval that blocks of windows drawn anew give it."""
        n = len(found_NHF)
        stats_NS = np.stack([found_NHF.sum((1, 2)), np.full(n, float(found_NHF[0].size))], 1)
        low, high = interval(resampled(self.blocks(stats_NS), by))
        shape = f"horizon:{found_NHF.shape[1]}|windows:{n}|block:{self.block}"
        return Score(name, by(stats_NS.sum(0).tolist()), low, high, f"{told}|{shape}|bs:{RESAMPLES}|seed:{SEED}", n)

    @property
    def block(self) -> int:
        """How many windows that follow one another are drawn together: a horizon or a season, unless they are few."""
        n = len(self.came_NHF)
        return max(1, min(max(self.came_NHF.shape[1], self.season), n // 5))

    def blocks(self, stats_NS: np.ndarray) -> np.ndarray:
        """Sums over blocks of windows."""
        starts = np.arange(0, len(stats_NS), self.block)
        return np.add.reduceat(stats_NS, starts, 0)


def _mean(sums: Sequence[float]) -> float:
    return sums[0] / sums[1]


def _root(sums: Sequence[float]) -> float:
    return math.sqrt(sums[0] / sums[1])


@dataclass(frozen=True)
class Beside:
    """A model beside what anybody could have said, a column at a time.

    >>> systems = {"model": [0.5], "naive": [1.0]}
    >>> print(Beside(("load",), {"MASE": systems, "MAE": systems}, [81.0], 0.8).text())
    MASE     model    naive  80 % holds
    load    0.5000   1.0000      81.0 %
    MAE      model    naive
    load    0.5000   1.0000
    """

    columns: tuple[str, ...]
    measures: dict[str, dict[str, list[float]]]
    """of each measure and system, a number a column"""
    coverage: list[float]
    level: float

    def text(self) -> str:
        """Tables for people, one a measure; the mean of columns that have another unit each is left out."""
        margin = max(4, *(len(name) for name in self.columns))
        lines = []
        for number, (measure, systems) in enumerate(self.measures.items()):
            holds = f"  {100 * self.level:g} % holds" if number == 0 else ""
            lines.append(f"{measure:<{margin}}  " + " ".join(f"{name:>8}" for name in systems) + holds)
            for i, column in enumerate(self.columns):
                held = f"  {self.coverage[i]:8.1f} %" if number == 0 else ""
                lines.append(f"{column:<{margin}}  " + " ".join(_cell(found[i]) for found in systems.values()) + held)
            if measure == "MASE" and len(self.columns) > 1:
                held = f"  {_mean_of(self.coverage):8.1f} %"
                lines.append(
                    f"{'mean':<{margin}}  " + " ".join(_cell(_mean_of(found)) for found in systems.values()) + held
                )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold; what is not a number is null."""
        measures = {
            measure: {name: [None if math.isnan(x) else x for x in found] for name, found in systems.items()}
            for measure, systems in self.measures.items()
        }
        return {"columns": list(self.columns), **measures, "coverage": self.coverage, "level": self.level}


def _mean_of(numbers: Sequence[float]) -> float:
    kept = [number for number in numbers if not math.isnan(number)]
    return sum(kept) / len(kept) if kept else math.nan


def _cell(number: float) -> str:
    return f"{'-':>8}" if math.isnan(number) else f"{number:8.4f}" if abs(number) < 1000 else f"{number:8.1f}"
