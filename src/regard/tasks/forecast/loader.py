"""The loader of a forecaster: windows in a new order each epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from regard.data import Permutation, rank_share
from regard.data.loaders import IndexLoader
from regard.distributed import ProcessGroup
from regard.errors import DataError
from regard.objective import Batch
from regard.tasks.forecast.windows import Windows


@dataclass(frozen=True)
class WindowLoader(IndexLoader[Batch]):
    """Batches of windows; every window once per epoch."""

    train: Windows
    valid: Windows
    rows: int = 64
    seed: int = 1
    group: ProcessGroup = ProcessGroup()

    def __post_init__(self) -> None:
        for windows, purpose, more in (
            (self.train, "train", "give more data"),
            (self.valid, "validate", "give data.split a larger second part"),
        ):
            if not len(windows.origins):
                task, rows = windows.task, len(windows.values)
                raise DataError(
                    f"there are {rows:,} rows to {purpose} on, and one window takes {task.window + task.horizon:,}: "
                    f"{task.window} of the past and {task.horizon} of the horizon; lower task.window or task.horizon, "
                    f"or {more}"
                )

    def batch(self, epoch: int, number: int) -> Batch:
        """This process's share of a batch: a pure function of seed, epoch and number."""
        positions = np.arange(number * self.rows, min(len(self.train), (number + 1) * self.rows))
        rows = Permutation(len(self.train), (self.seed, epoch)).at(positions)
        return self.train.batch(rank_share(rows, self.group.rank, self.group.size))

    def epoch_size(self, epoch: int) -> int:
        return -(-len(self.train) // self.rows)

    def valid_batches(self) -> Iterator[Batch]:
        for rows in self.valid_rows():
            yield self.valid.batch(rows)

    def valid_rows(self) -> Iterator[np.ndarray]:
        """This process's share of the validation windows, in the order of time, batch by batch."""
        mine = rank_share(np.arange(len(self.valid)), self.group.rank, self.group.size)
        for start in range(0, len(mine), self.rows):
            yield mine[start : start + self.rows]
