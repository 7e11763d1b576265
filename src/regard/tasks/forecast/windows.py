"""Windows of a series: the past goes in, the whole horizon comes out.

A window is measured from its own last row, or its mean, so that a series that has drifted away from where it was in
training looks the same; and, if asked, counted in its own deviation (Kim et al. 2022), so that one that has become
livelier does. Columns are read together, or one at a time by the same weights, which are then told which column it is.
Where something of the future is known, the rows of the horizon are read too, their numbers left empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from regard.data import Order, Shards, share
from regard.distributed import World
from regard.errors import DataError
from regard.objective import Batch
from regard.sequence import Tokens
from regard.tasks.forecast.prepare import COLUMN, ForecastConfig, Gauge

STILL = 0.1
"""The deviation that a window is never taken to be below, in deviations of training: stillness is not blown up."""


@dataclass(frozen=True)
class Measure:
    """How the numbers of some windows are measured.

    >>> measure = Measure(np.array([[[3.0]]]), np.array([[[2.0]]]))
    >>> measure.applied(np.array([[[7.0], [3.0]]])).ravel().tolist(), measure.undone(np.array([[[2.0]]])).item()
    ([2.0, 0.0], 7.0)
    """

    level: np.ndarray
    """(B, 1, C): what they are measured from"""
    unit: np.ndarray
    """(B, 1, C): what they are counted in"""

    def applied(self, numbers_BLC: np.ndarray) -> np.ndarray:
        """As a model reads them."""
        found: np.ndarray = (numbers_BLC - self.level) / self.unit
        return found

    def undone(self, read_BLC: np.ndarray) -> np.ndarray:
        """What a model says, as it was before."""
        found: np.ndarray = read_BLC * self.unit + self.level
        return found


@dataclass(frozen=True)
class Windows:
    """The windows of a series: what is read before a row, and what is wanted from that row on.

    >>> windows = Windows(ForecastConfig(horizon=1, window=2), np.arange(5.0)[:, None], np.zeros((5, 0)))
    >>> batch = windows.batch(np.array([0, 2]))
    >>> batch.source.data[..., 0].tolist(), batch.target.tolist()
    ([[-1.0, 0.0], [-1.0, 0.0]], [[1.0], [1.0]])
    """

    task: ForecastConfig
    values: np.ndarray
    """(N, C) scaled, the columns that move"""
    known: np.ndarray
    """(N or more, K) scaled"""
    first: int = 0
    """the first row that may be asked for"""

    @classmethod
    def opened(cls, task: ForecastConfig, gauge: Gauge, folder: Path, past: int) -> Windows:
        """What preparation has written of a split."""
        columns = len(gauge.moving) + len(gauge.known.names)
        both = Shards.open(folder).flat(COLUMN).view("<f4").reshape(-1, columns)
        return cls(task, both[:, : len(gauge.moving)], both[:, len(gauge.moving) :], past)

    @cached_property
    def origins(self) -> np.ndarray:
        """The first row of each horizon that is whole and has a window before it."""
        return np.arange(max(self.first, self.task.window), len(self.values) - self.task.horizon + 1)

    @property
    def apart(self) -> int:
        """Columns that are read one at a time."""
        return self.values.shape[1] if self.task.columns == "apart" else 1

    def __len__(self) -> int:
        """Rows of batches that there are: windows, times the columns that are read one at a time."""
        return len(self.origins) * self.apart

    def batch(self, rows: np.ndarray) -> Batch:
        """Windows and what is wanted of them, by their numbers."""
        origins, columns = self.origins[rows // self.apart], rows % self.apart
        source, measure = self.source(origins, columns)
        ahead_BHC = self.taken(origins[:, None] + np.arange(self.task.horizon), columns)
        return Batch(source, torch.from_numpy(measure.applied(ahead_BHC).reshape(len(rows), -1).astype(np.float32)))

    def units(self, rows: np.ndarray) -> torch.Tensor:
        """(B, answers): what each wanted number of some windows is counted in, in deviations of training."""
        origins, columns = self.origins[rows // self.apart], rows % self.apart
        unit_B1C = self.unit(self.taken(origins[:, None] + np.arange(-self.task.window, 0), columns))
        return torch.from_numpy(np.repeat(unit_B1C, self.task.horizon, 1).reshape(len(rows), -1).astype(np.float32))

    def source(self, origins: np.ndarray, columns: np.ndarray) -> tuple[Tokens, Measure]:
        """What is read before some rows, and how it is measured."""
        past_BLC = self.taken(origins[:, None] + np.arange(-self.task.window, 0), columns)
        measure = Measure(self.level(past_BLC), self.unit(past_BLC))
        parts = [measure.applied(past_BLC)]
        if self.known.shape[1]:
            ahead = self.task.horizon
            seen = self.known[origins[:, None] + np.arange(-self.task.window, ahead)]
            blank = np.zeros((len(origins), ahead, parts[0].shape[2]))
            to_come = np.broadcast_to((np.arange(seen.shape[1]) >= self.task.window)[:, None], (*seen.shape[:2], 1))
            parts = [np.concatenate([parts[0], blank], 1), seen, to_come]
        source = Tokens.full(torch.from_numpy(np.concatenate(parts, 2).astype(np.float32)))
        if self.apart > 1:
            which_BR = np.repeat(columns[:, None], parts[0].shape[1], 1)
            source = replace(source, segments=torch.from_numpy(which_BR))
        return source, measure

    def taken(self, places_BL: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The numbers at some rows: of all columns, or of one each."""
        if self.apart == 1:
            return self.values[places_BL]
        return self.values[places_BL, columns[:, None]][..., None]

    def level(self, past_BLC: np.ndarray) -> np.ndarray:
        """What a window is measured from."""
        if self.task.around == "nothing":
            return np.zeros((len(past_BLC), 1, past_BLC.shape[2]), past_BLC.dtype)
        return past_BLC[:, -1:] if self.task.around == "last" else past_BLC.mean(1, keepdims=True)

    def unit(self, past_BLC: np.ndarray) -> np.ndarray:
        """What a window is counted in."""
        if self.task.unit == "series":
            return np.ones((len(past_BLC), 1, past_BLC.shape[2]), past_BLC.dtype)
        found: np.ndarray = np.sqrt(past_BLC.var(1, keepdims=True) + STILL**2)
        return found


@dataclass(frozen=True)
class WindowFeed:
    """Windows in an order of their own each epoch; every window once. Keeps the Feed contract.

    >>> task = ForecastConfig(horizon=1, window=2)
    >>> train, valid = (Windows(task, np.arange(n)[:, None], np.zeros((n, 0))) for n in (9, 4))
    >>> feed = WindowFeed(train, valid, rows=3)
    >>> feed.epoch(), [len(batch) for batch in feed.valid()], next(feed.stream(None))[1]
    (3, [2], {'epoch': 0, 'batch': 1})
    """

    train: Windows
    held_out: Windows
    rows: int = 64
    seed: int = 1
    world: World = World()

    def __post_init__(self) -> None:
        for windows, what, more in (
            (self.train, "learn from", "give more data"),
            (self.held_out, "validate on", "give data.split a larger second part"),
        ):
            if not len(windows.origins):
                task, there = windows.task, len(windows.values)
                raise DataError(
                    f"there are {there:,} rows to {what}, and one window takes {task.window + task.horizon:,}: "
                    f"{task.window} of the past and {task.horizon} of the horizon; lower task.window or task.horizon, "
                    f"or {more}"
                )

    def batch(self, epoch: int, number: int) -> Batch:
        """This process's share of a batch: a pure function of seed, epoch and number."""
        places = np.arange(number * self.rows, min(len(self.train), (number + 1) * self.rows))
        rows = Order(len(self.train), (self.seed, epoch)).at(places)
        return self.train.batch(share(rows, self.world.rank, self.world.size))

    def stream(self, position: Mapping[str, int] | None) -> Iterator[tuple[Batch, Mapping[str, int]]]:
        at = dict(position or {"epoch": 0, "batch": 0})
        while True:
            batch = self.batch(at["epoch"], at["batch"])
            at["batch"] += 1
            if at["batch"] >= self.epoch():
                at = {"epoch": at["epoch"] + 1, "batch": 0}
            yield batch, dict(at)

    def valid(self) -> Iterator[Batch]:
        """The windows of validation in the order of time."""
        for rows in self.valid_rows():
            yield self.held_out.batch(rows)

    def valid_rows(self) -> Iterator[np.ndarray]:
        """This process's share of them, by number."""
        mine = share(np.arange(len(self.held_out)), self.world.rank, self.world.size)
        for start in range(0, len(mine), self.rows):
            yield mine[start : start + self.rows]

    def epoch(self) -> int:
        return -(-len(self.train) // self.rows)
