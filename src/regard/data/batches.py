"""Batching by length (bucketing): which rows make a batch, and in which order, as a pure function of (seed, epoch).

The shuffle of an epoch is a permutation that is computed, not stored. It is cut into pools; each pool is sorted by
length and cut into batches by a budget of positions, and its batches are shuffled. Only one pool is in memory at once.
The result does not depend on the number of processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import shake_128
from typing import Protocol

import numpy as np

from regard.errors import ConfigError, DataError

ROUNDS = 8
"""Rounds of the Feistel network; even, so that its two halves end where they began."""


class RowLengths(Protocol):
    """Lengths of rows: an array, or an object that computes them for the rows that are indexed."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray: ...


@dataclass(frozen=True)
class Permutation:
    """A pseudo-random permutation of range(n) that needs no array: a Feistel network with cycle walking."""

    n: int
    key: tuple[int, ...]
    """which permutation: seed, epoch, ..."""

    def at(self, places: np.ndarray) -> np.ndarray:
        """The values of the permutation at these positions."""
        bits = max(self.n - 1, 1).bit_length()
        keys = _round_keys(self.key)
        found = _permute(np.asarray(places, np.uint64), bits, keys)
        # the network permutes range(2**bits): walk on until inside
        while len(outside := np.flatnonzero(found >= self.n)):
            found[outside] = _permute(found[outside], bits, keys)
        return found.astype(np.int64)


def _round_keys(key: tuple[int, ...]) -> np.ndarray:
    """Two numbers per round: one to add, an odd one to multiply by."""
    digest = shake_128(" ".join(map(str, key)).encode()).digest(16 * ROUNDS)
    return np.frombuffer(digest, "<u8").reshape(ROUNDS, 2).astype(np.uint64) | np.array([0, 1], np.uint64)


def _permute(values: np.ndarray, bits: int, keys: np.ndarray) -> np.ndarray:
    """One bijection of range(2**bits); the two halves differ by a bit if `bits` is odd."""
    low, high = bits // 2, bits - bits // 2
    left, right = values >> np.uint64(low), values & _ones(low)
    for addend, factor in keys:
        mixed = (right + addend) * factor  # modulo 2**64: the upper bits depend on all, so they are folded down
        mixed = (mixed ^ mixed >> np.uint64(32)) * factor
        left, right = right, left ^ (mixed >> np.uint64(32) & _ones(high))
        low, high = high, low
    return left << np.uint64(low) | right


def _ones(bits: int) -> np.uint64:
    return np.uint64((1 << bits) - 1)


@dataclass(frozen=True)
class BatchPosition:
    """Position in the stream of batches: the next batch."""

    epoch: int = 0
    pool: int = 0
    batch: int = 0


START = BatchPosition()
"""Before the first batch of the first epoch."""


@dataclass(frozen=True)
class Batches:
    """Batches of rows of similar length, each within a budget of positions, padding included.

    The budget bounds rows x the longest sequence of any column. A row that is longer than the budget is a batch of its
    own. Every row comes once per epoch.

    >>> batches = Batches((np.array([3, 1, 2, 1]), np.array([3, 1, 3, 2])), budget=6, seed=0)
    >>> [batch.tolist() for batch in batches.epoch(0)]
    [[0, 2], [1, 3]]
    """

    lengths: tuple[RowLengths, ...]
    """one per column; the last is the target, which is padded least"""
    budget: int
    """most positions of a batch on one side, padding included"""
    seed: int = 0
    """seed of the order"""
    pool: int = 1 << 16
    """rows that are sorted together: larger pools have less padding and are shuffled less"""

    def __post_init__(self) -> None:
        for name, value in (("budget", self.budget), ("pool", self.pool)):
            if value < 1:
                raise ConfigError(f"{name}: expected 1 or more, got {value}")
        if not len(self.lengths[0]):
            raise DataError("there are no rows to make batches of")

    @property
    def pools(self) -> int:
        """Number of pools of an epoch."""
        return -(-len(self.lengths[0]) // self.pool)

    def pool_batches(self, epoch: int, pool: int) -> list[np.ndarray]:
        """The batches of one pool, as arrays of row numbers."""
        n = len(self.lengths[0])
        places = np.arange(pool * self.pool, min(n, (pool + 1) * self.pool))
        rows = Permutation(n, (self.seed, epoch)).at(places)
        columns = [np.asarray(lengths[rows]) for lengths in self.lengths]
        order = _by_length(columns)
        widths = np.maximum(np.max(columns, axis=0), 1)[order]
        batches = np.split(rows[order], _boundaries(widths, self.budget))
        return [batches[i] for i in Permutation(len(batches), (self.seed, epoch, pool)).at(np.arange(len(batches)))]

    def epoch(self, epoch: int) -> Iterator[np.ndarray]:
        """All batches of an epoch."""
        for pool in range(self.pools):
            yield from self.pool_batches(epoch, pool)

    def count(self, epoch: int = 0) -> int:
        """Exact number of batches of an epoch; only lengths are read."""
        return sum(len(self.pool_batches(epoch, pool)) for pool in range(self.pools))

    def stream(self, position: BatchPosition = START) -> Iterator[tuple[np.ndarray, BatchPosition]]:
        """Batches from `position` on, epoch after epoch without end, each with the position after it."""
        epoch, pool, first = position.epoch, position.pool, position.batch
        while True:
            batches = self.pool_batches(epoch, pool) if pool < self.pools else []
            if first >= len(batches):
                raise DataError(
                    f"epoch {epoch} has no batch {first} in pool {pool}; the data or the budget has changed"
                )
            following = BatchPosition(epoch, pool + 1) if pool + 1 < self.pools else BatchPosition(epoch + 1)
            for i in range(first, len(batches)):
                yield batches[i], BatchPosition(epoch, pool, i + 1) if i + 1 < len(batches) else following
            epoch, pool, first = following.epoch, following.pool, following.batch


def padding_share(lengths: RowLengths, batches: Iterable[np.ndarray]) -> float:
    """The share of padding in batches of rows of these lengths."""
    real = positions = 0
    for rows in batches:
        sizes = lengths[rows]
        real, positions = real + int(sizes.sum()), positions + int(sizes.max()) * len(rows)
    return round(1 - real / positions, 4)


def rank_share(batch: np.ndarray, rank: int, size: int) -> np.ndarray:
    """The rows of a batch that one of `size` processes takes: every size-th, so that lengths are similar."""
    return batch[rank::size]


def _by_length(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Sort rows by the last column, then alternately up and down by the others, so that neighbors are similar."""
    target = columns[-1]
    others = np.max(columns[:-1], axis=0) if len(columns) > 1 else np.zeros_like(target)
    # up in one group and down in the next: no jump from the longest source to the shortest where the target grows
    return np.lexsort((np.where(target % 2 == 0, others, -others), target))


def _boundaries(widths: np.ndarray, budget: int) -> list[int]:
    """Batch boundaries, greedily: as many rows as fit into the budget at the width of the widest."""
    cuts: list[int] = []
    start = 0
    while True:
        window = widths[start : start + max(1, budget // int(widths[start]))]
        positions = np.maximum.accumulate(window) * np.arange(1, len(window) + 1)
        start += max(1, int(np.searchsorted(positions, budget, side="right")))
        if start >= len(widths):
            return cuts
        cuts.append(start)
