"""Preparation of the vectors task: a tokenizer, one long row of ids per split, and the frequency of each word."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from regard.data import Shards
from regard.errors import DataError
from regard.files import parse_json, write_text_atomically
from regard.manifest import read_kept
from regard.progress import Progress
from regard.tasks.generate.prepare import COLUMN, TextPreparation
from regard.text import Tokenizer

FREQUENCIES_FILE = "frequencies.json"
NOISE_POWER = 0.75
"""negative samples are drawn in proportion to the frequency to this power (Mikolov et al. 2013)"""
FIRST_WORD = 4
"""the first id that is a word; smaller ones are special tokens"""


@dataclass(frozen=True)
class WordFrequencies:
    """Word counts of the training text, for subsampling and negative sampling.

    >>> found = WordFrequencies.count(np.array([4, 4, 4, 5, 3]), size=6)
    >>> found.counts.tolist(), found.keep_probability(subsample=0.25).round(2).tolist()
    ([0, 0, 0, 0, 3, 1], [0.0, 0.0, 0.0, 0.0, 0.91, 1.0])
    """

    counts: np.ndarray
    """(V,), zero for special tokens"""

    @classmethod
    def count(cls, ids: np.ndarray, size: int) -> WordFrequencies:
        """The counts of a text with a vocabulary of `size`."""
        counts = np.bincount(ids, minlength=size)
        counts[:FIRST_WORD] = 0
        return cls(counts)

    def save(self, folder: Path) -> None:
        """Write a JSON file."""
        write_text_atomically(folder / FREQUENCIES_FILE, json.dumps(self.counts.tolist()))

    @classmethod
    def load(cls, folder: Path) -> WordFrequencies:
        """Read the file that `save` wrote."""
        path = folder / FREQUENCIES_FILE
        try:
            return cls(np.array([int(count) for count in parse_json(read_kept(path))], np.int64))
        except (OSError, ValueError, TypeError, OverflowError):
            raise DataError(f"{path} cannot be read; prepare the data again") from None

    def keep_probability(self, subsample: float) -> np.ndarray:
        """(V,): probability that subsampling keeps each word: sqrt(t / f) + t / f, as in word2vec's C program."""
        share = self.counts / max(1, self.counts.sum())
        ratio = np.divide(subsample, share, out=np.full(share.shape, np.inf), where=share > 0) if subsample else np.inf
        return np.where(self.counts > 0, np.minimum(1.0, np.sqrt(ratio) + ratio), 0.0)

    @cached_property
    def noise_cdf(self) -> np.ndarray:
        """(V,): cumulative distribution of the negative samples."""
        powers = np.cumsum(self.counts**NOISE_POWER)
        cdf: np.ndarray = powers / powers[-1]
        return cdf


@dataclass(frozen=True)
class VectorsPreparation(TextPreparation):
    """As for language models, and the frequency of each word."""

    def run(self, folder: Path, progress: Progress) -> Mapping[str, Mapping[str, int]]:
        counts = super().run(folder, progress)
        size = Tokenizer.load(folder / "tokenizer.json").size
        WordFrequencies.count(Shards.open(folder / "train").flat(COLUMN), size).save(folder)
        return counts
