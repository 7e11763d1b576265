"""Which rows make a batch, and in which order: a pure function of (seed, epoch), whatever the number of processes.

An epoch's order is a permutation that is computed, not stored. Pool after pool is taken from it; a pool is sorted
by length, cut into batches by a budget of positions, and its batches are shuffled. Only one pool is ever in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import shake_128
from typing import Protocol

import numpy as np

from regard.errors import ConfigError, DataError

ROUNDS = 8
"""Of the Feistel network; even, so that its two halves end where they began."""


class RowLengths(Protocol):
    """The length of each row; an array, or something that works them out for the rows asked for.

    >>> lengths: RowLengths = np.array([3, 1, 2])
    >>> lengths[np.array([2, 0])]
    array([2, 3])
    """

    def __len__(self) -> int: ...

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray: ...


@dataclass(frozen=True)
class Order:
    """A pseudo-random permutation of range(n) that needs no array: a Feistel network with cycle walking.

    >>> Order(10, (0, 1)).at(np.arange(10))
    array([8, 5, 7, 2, 6, 1, 9, 0, 3, 4])
    """

    n: int
    key: tuple[int, ...]
    """which permutation: seed, epoch, ..."""

    def at(self, places: np.ndarray) -> np.ndarray:
        """What stands at these places, each in range(n)."""
        bits = max(self.n - 1, 1).bit_length()
        keys = _round_keys(self.key)
        found = _permuted(np.asarray(places, np.uint64), bits, keys)
        while len(
            outside := np.flatnonzero(found >= self.n)
        ):  # the network permutes range(2**bits): walk on until inside
            found[outside] = _permuted(found[outside], bits, keys)
        return found.astype(np.int64)


def _round_keys(key: tuple[int, ...]) -> np.ndarray:
    """Two numbers a round: one to add, an odd one to multiply by."""
    digest = shake_128(" ".join(map(str, key)).encode()).digest(16 * ROUNDS)
    return np.frombuffer(digest, "<u8").reshape(ROUNDS, 2).astype(np.uint64) | np.array([0, 1], np.uint64)


def _permuted(values: np.ndarray, bits: int, keys: np.ndarray) -> np.ndarray:
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
class Position:
    """Where in the stream of batches: the next one to give.

    >>> Position(epoch=2, pool=0, batch=17)
    Position(epoch=2, pool=0, batch=17)
    """

    epoch: int = 0
    pool: int = 0
    batch: int = 0


START = Position()
"""Before the first batch of the first epoch."""


@dataclass(frozen=True)
class Batches:
    """Rows of like length, grouped so that a batch with its padding stays within a budget.

    The budget bounds rows x the longest sequence of any column: the positions of the wider side, padding included.
    A row that is longer than the budget is a batch of its own. Every row comes once an epoch.

    >>> batches = Batches((np.array([3, 1, 2, 1]), np.array([3, 1, 3, 2])), budget=6, seed=0)
    >>> [batch.tolist() for batch in batches.epoch(0)]
    [[0, 2], [1, 3]]
    """

    lengths: tuple[RowLengths, ...]
    """one a column; the last is the target, which is padded least"""
    budget: int
    """the most positions a batch has on a side, padding included"""
    seed: int = 0
    """another seed, another order"""
    pool: int = 1 << 16
    """rows that are sorted together: more of them pad less and are shuffled less"""

    def __post_init__(self) -> None:
        for name, value in (("budget", self.budget), ("pool", self.pool)):
            if value < 1:
                raise ConfigError(f"{name}: expected 1 or more, got {value}")
        if not len(self.lengths[0]):
            raise DataError("there are no rows to make batches of")

    @property
    def pools(self) -> int:
        """How many pools an epoch has."""
        return -(-len(self.lengths[0]) // self.pool)

    def in_pool(self, epoch: int, pool: int) -> list[np.ndarray]:
        """The batches of one pool, each an array of row numbers."""
        n = len(self.lengths[0])
        places = np.arange(pool * self.pool, min(n, (pool + 1) * self.pool))
        rows = Order(n, (self.seed, epoch)).at(places)
        columns = [np.asarray(lengths[rows]) for lengths in self.lengths]
        order = _by_length(columns)
        widths = np.maximum(np.max(columns, axis=0), 1)[order]
        batches = np.split(rows[order], _cuts(widths, self.budget))
        return [batches[i] for i in Order(len(batches), (self.seed, epoch, pool)).at(np.arange(len(batches)))]

    def epoch(self, epoch: int) -> Iterator[np.ndarray]:
        """All batches of an epoch."""
        for pool in range(self.pools):
            yield from self.in_pool(epoch, pool)

    def count(self, epoch: int = 0) -> int:
        """How many batches an epoch has, exactly: it is planned, nothing is read but lengths."""
        return sum(len(self.in_pool(epoch, pool)) for pool in range(self.pools))

    def stream(self, position: Position = START) -> Iterator[tuple[np.ndarray, Position]]:
        """Batches from `position` on, epoch after epoch for ever, each with the position after it."""
        epoch, pool, first = position.epoch, position.pool, position.batch
        while True:
            batches = self.in_pool(epoch, pool) if pool < self.pools else []
            if first >= len(batches):
                raise DataError(
                    f"epoch {epoch} has no batch {first} in pool {pool}; the data or the budget is not what it was"
                )
            following = Position(epoch, pool + 1) if pool + 1 < self.pools else Position(epoch + 1)
            for i in range(first, len(batches)):
                yield batches[i], Position(epoch, pool, i + 1) if i + 1 < len(batches) else following
            epoch, pool, first = following.epoch, following.pool, following.batch


def share(batch: np.ndarray, rank: int, size: int) -> np.ndarray:
    """The rows of a batch that one of `size` processes takes: every size-th, so that all have like lengths.

    Together the shares are the batch. A batch with fewer rows than processes leaves some of them with none.

    >>> [share(np.array([4, 9, 2, 7, 5]), rank, 2).tolist() for rank in range(2)]
    [[4, 2, 5], [9, 7]]
    """
    return batch[rank::size]


def _by_length(columns: Sequence[np.ndarray]) -> np.ndarray:
    """The rows sorted by the last column, then to and fro by the others, so that neighbours are alike in all."""
    target = columns[-1]
    others = np.max(columns[:-1], axis=0) if len(columns) > 1 else np.zeros_like(target)
    # up in one group and down in the next: no jump from the longest source to the shortest where the target grows
    return np.lexsort((np.where(target % 2 == 0, others, -others), target))


def _cuts(widths: np.ndarray, budget: int) -> list[int]:
    """Where to cut, greedily: as many rows as rows x the widest stays within the budget."""
    cuts: list[int] = []
    start = 0
    while True:
        window = widths[start : start + max(1, budget // int(widths[start]))]
        positions = np.maximum.accumulate(window) * np.arange(1, len(window) + 1)
        start += max(1, int(np.searchsorted(positions, budget, side="right")))
        if start >= len(widths):
            return cuts
        cuts.append(start)
