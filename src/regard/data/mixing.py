"""Sampling of several corpora by weight: which rows an epoch has, as a pure function of (seed, epoch)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.data.batches import Permutation, RowLengths


@dataclass(frozen=True)
class WeightedParts:
    """Rows of parts that lie one after the other, each with a weight: how often an epoch has each of its rows.

    A part is an endless shuffled stream, pass after pass over its rows, and an epoch takes the next weight x size of
    them: with weight 2 every row twice, with weight 0.5 one half of the rows and in the next epoch the other half.

    >>> parts = WeightedParts((4, 2), (0.5, 2.0), seed=1)
    >>> [sorted(parts.rows(epoch, np.arange(len(parts))).tolist()) for epoch in (0, 1)]
    [[0, 3, 4, 4, 5, 5], [1, 2, 4, 4, 5, 5]]
    """

    sizes: tuple[int, ...]
    """rows of each part"""
    weights: tuple[float, ...]
    """one per part, above 0"""
    seed: int = 0

    @property
    def counts(self) -> list[int]:
        """Rows of each part in an epoch, at least one."""
        return [max(1, round(weight * size)) for weight, size in zip(self.weights, self.sizes, strict=True)]

    def __len__(self) -> int:
        """Rows of an epoch."""
        return sum(self.counts)

    def rows(self, epoch: int, places: np.ndarray) -> np.ndarray:
        """The rows at these places of an epoch, 0 to len(self) - 1."""
        found = np.empty(len(places), np.int64)
        start = first = 0
        for part, (size, count) in enumerate(zip(self.sizes, self.counts, strict=True)):
            here = np.flatnonzero((places >= start) & (places < start + count))
            passes, inside = np.divmod(epoch * count + places[here] - start, size)
            for number in np.unique(passes).tolist():
                chosen = passes == number
                order = Permutation(size, (self.seed, -1 - part, number))
                found[here[chosen]] = first + order.at(inside[chosen])
            start, first = start + count, first + size
        return found


@dataclass(frozen=True)
class EpochLengths:
    """Lengths of the rows of one epoch of weighted parts, by their place in it."""

    lengths: RowLengths
    """of all rows"""
    parts: WeightedParts
    epoch: int

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, places: np.ndarray, /) -> np.ndarray:
        return np.asarray(self.lengths[self.parts.rows(self.epoch, places)])
