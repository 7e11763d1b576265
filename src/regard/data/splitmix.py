"""Random numbers that depend on a seed alone, for augmentation that is a pure function of seed, epoch and row."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np


def row_seeds(rows: np.ndarray, *key: int | str) -> np.ndarray:
    """One seed per row, such as of a seed and an epoch.

    >>> row_seeds(np.array([0, 1]), 1, 5).tolist() == row_seeds(np.array([1, 0]), 1, 5).tolist()[::-1]
    True
    """
    start = "".join(f"{part} " for part in key)
    names = (f"{start}{row}".encode() for row in rows.tolist())
    return np.array([int.from_bytes(blake2b(name, digest_size=8).digest()) for name in names], np.uint64)


def splitmix64_uniform(seed: int | np.ndarray, count: int) -> np.ndarray:
    """Uniform numbers in [0, 1) that depend on the seed alone.

    Seeds (B,) give (B, count).

    >>> splitmix64_uniform(7, 3).round(3), bool((splitmix64_uniform(7, 3) == splitmix64_uniform(7, 5)[:3]).all())
    (array([0.39 , 0.017, 0.901]), True)
    """
    return splitmix64(seed, count) / 2.0**64


def splitmix64(seed: int | np.ndarray, count: int) -> np.ndarray:
    """Random whole numbers of 64 bits (SplitMix64, Steele et al. 2014). Seeds (B,) give (B, count)."""
    numbers = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = np.asarray(seed, np.uint64)[..., None] + numbers
    shifted = np.empty_like(mixed)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= np.right_shift(mixed, np.uint64(shift), out=shifted)
        mixed *= np.uint64(factor)
    mixed ^= np.right_shift(mixed, np.uint64(31), out=shifted)
    return mixed
