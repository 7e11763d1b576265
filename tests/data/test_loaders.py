"""Loader bases: the order of batches is reproducible, resumable and complete, for one process and for several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from regard.data import Batches, Shards, ShardWriter
from regard.data.loaders import BucketLoader, IndexLoader
from regard.distributed import ProcessGroup


@dataclass(frozen=True)
class Rows(BucketLoader[tuple[list[int], int | None]]):
    """Row numbers, and the epoch that they are augmented in."""

    train: Shards
    valid: Shards
    group: ProcessGroup = ProcessGroup()

    def plan(self, shards: Shards, epoch: int | None = None) -> Batches:
        return Batches((shards.lengths("ids"),), budget=12, seed=1)

    def batch(self, shards: Shards, rows: np.ndarray, epoch: int | None = None) -> tuple[list[int], int | None]:
        return rows.tolist(), epoch


@dataclass(frozen=True)
class Numbered(IndexLoader[tuple[int, int]]):
    """Epochs of 2, 3, 4, ... batches."""

    def batch(self, epoch: int, number: int) -> tuple[int, int]:
        return epoch, number

    def epoch_size(self, epoch: int) -> int:
        return epoch + 2

    def valid_batches(self) -> Iterator[tuple[int, int]]:
        return iter(())


@pytest.fixture
def shards(tmp_path: Path) -> Shards:
    with ShardWriter(tmp_path / "train", {"ids": 10}) as writer:
        writer.append([([1] * (1 + i % 4),) for i in range(40)])
    return Shards.open(tmp_path / "train")


def test_every_row_comes_once_per_epoch_and_the_epoch_is_passed_on(shards: Shards) -> None:
    loader = Rows(shards, shards)
    count = loader.batches_per_epoch()
    batches = [batch for batch, _ in islice(loader.train_batches(None), 2 * count)]
    for epoch in range(2):
        found = batches[epoch * count : (epoch + 1) * count]
        assert sorted(row for rows, _ in found for row in rows) == list(range(40))
        assert {number for _, number in found} == {epoch}
    assert sorted(row for rows, _ in loader.valid_batches() for row in rows) == list(range(40))
    assert {number for _, number in loader.valid_batches()} == {None}


@pytest.mark.parametrize("stop", [1, 5, 13, 14, 20])
def test_a_bucket_loader_resumes_at_any_position(shards: Shards, stop: int) -> None:
    loader = Rows(shards, shards)
    whole = list(islice(loader.train_batches(None), 30))
    assert list(islice(loader.train_batches(whole[stop - 1][1]), 30 - stop)) == whole[stop:]


def test_ranks_share_each_batch(shards: Shards) -> None:
    whole = [rows for (rows, _), _ in islice(Rows(shards, shards).train_batches(None), 9)]
    parts = [
        [rows for (rows, _), _ in islice(Rows(shards, shards, ProcessGroup(rank, 2)).train_batches(None), 9)]
        for rank in range(2)
    ]
    assert [sorted(first + second) for first, second in zip(*parts, strict=True)] == [sorted(rows) for rows in whole]


def test_an_index_loader_counts_batches_and_epochs_and_resumes() -> None:
    whole = list(islice(Numbered().train_batches(None), 7))
    assert [batch for batch, _ in whole] == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1)]
    assert whole[1][1] == {"epoch": 1, "batch": 0} and Numbered().batches_per_epoch() == 2
    for stop in range(1, 7):
        assert list(islice(Numbered().train_batches(whole[stop - 1][1]), 7 - stop)) == whole[stop:]
