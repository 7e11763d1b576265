"""Bases of data loaders: `BucketLoader` batches rows of similar length, `IndexLoader` numbers its batches per epoch.

Both implement `regard.objective.Loader`: the order of batches is a pure function of seed, epoch and index, so that
training can resume at any position, and each process takes its share of every batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Generic, TypeVar

import numpy as np

from regard.data.batches import Batches, BatchPosition, rank_share
from regard.data.shards import Shards
from regard.distributed import ProcessGroup

B = TypeVar("B")
"""A batch, as a task reads it."""


class BucketLoader(ABC, Generic[B]):
    """Loader of shards: batches of rows of similar length (bucketing), planned anew for each epoch."""

    train: Shards
    valid: Shards
    group: ProcessGroup

    @abstractmethod
    def plan(self, shards: Shards, epoch: int | None = None) -> Batches:
        """Which rows make a batch in an epoch of training; None: outside of training."""

    @abstractmethod
    def batch(self, shards: Shards, rows: np.ndarray, epoch: int | None = None) -> B:
        """Rows as a batch, in an epoch of training; None: without augmentation."""

    def train_batches(self, position: Mapping[str, int] | None) -> Iterator[tuple[B, Mapping[str, int]]]:
        at = BatchPosition(**(position or {}))
        while True:
            epoch = at.epoch
            for rows, after in self.plan(self.train, epoch).stream(at):
                yield self.batch(self.train, self._share(rows), epoch), asdict(after)
                at = after
                if at.epoch != epoch:
                    break

    def valid_batches(self) -> Iterator[B]:
        for rows in self.plan(self.valid).epoch(0):
            yield self.batch(self.valid, self._share(rows))

    def batches_per_epoch(self) -> int:
        return self.plan(self.train, 0).count()

    def _share(self, rows: np.ndarray) -> np.ndarray:
        return rank_share(rows, self.group.rank, self.group.size)


class IndexLoader(ABC, Generic[B]):
    """Loader whose batches are numbered in each epoch; a batch is a pure function of epoch and number."""

    @abstractmethod
    def batch(self, epoch: int, number: int) -> B:
        """This process's share of a training batch."""

    @abstractmethod
    def epoch_size(self, epoch: int) -> int:
        """Number of batches of an epoch."""

    @abstractmethod
    def valid_batches(self) -> Iterator[B]:
        """This process's share of the validation data, once."""

    def train_batches(self, position: Mapping[str, int] | None) -> Iterator[tuple[B, Mapping[str, int]]]:
        at = dict(position or {"epoch": 0, "batch": 0})
        while True:
            batch = self.batch(at["epoch"], at["batch"])
            at["batch"] += 1
            if at["batch"] >= self.epoch_size(at["epoch"]):
                at = {"epoch": at["epoch"] + 1, "batch": 0}
            yield batch, dict(at)

    def batches_per_epoch(self) -> int:
        return self.epoch_size(0)
