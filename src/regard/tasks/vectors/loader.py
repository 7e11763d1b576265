"""Loader of the vectors task: segments of the text with their word-context pairs and negative samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from regard.data.batches import Permutation
from regard.data.loaders import IndexLoader
from regard.distributed import ProcessGroup
from regard.errors import DataError
from regard.objective import Batch
from regard.sequence import EOS, Tokens
from regard.tasks.vectors.config import SEGMENT, VectorsConfig
from regard.tasks.vectors.prepare import WordFrequencies
from regard.tasks.vectors.word2vec import ContextPairs


@dataclass(frozen=True)
class ContextLoader(IndexLoader[Batch]):
    """Segments from all parts of a text, with the context mask of their words."""

    train: np.ndarray
    valid: np.ndarray
    frequencies: WordFrequencies
    task: VectorsConfig = VectorsConfig()
    rows: int = 32
    """segments per batch"""
    seed: int = 1
    group: ProcessGroup = ProcessGroup()

    def __post_init__(self) -> None:
        for name, text in (("training", self.train), ("validation", self.valid)):
            if len(text) < SEGMENT:
                raise DataError(f"the {name} text has {len(text):,} words; at least {SEGMENT} are needed")
        counts = self.frequencies.counts
        if np.count_nonzero(counts) < 2:
            raise DataError(
                "the text has fewer than two words of the vocabulary; give more text, or a larger text.vocab_size"
            )
        left = SEGMENT * float((self.keep * counts).sum() / counts.sum())
        if left < 2:
            kept = f"keeps {left:.1f} of {SEGMENT} words"
            raise DataError(f"task.subsample = {self.task.subsample} {kept}: no word has a context; raise it")

    @cached_property
    def keep(self) -> np.ndarray:
        """(V,): probability that subsampling keeps each word."""
        return self.frequencies.keep_probability(self.task.subsample)

    def segments(self, text: np.ndarray) -> int:
        """The number of whole segments of a text, for any offset."""
        return max(1, (len(text) - SEGMENT + 1) // SEGMENT)

    def offset(self, epoch: int) -> int:
        """The start of the first segment of an epoch: each epoch cuts the text elsewhere."""
        slack = min(SEGMENT, len(self.train) - self.segments(self.train) * SEGMENT + 1)
        return int(np.random.default_rng((0, self.seed, epoch)).integers(slack))

    def collate(self, text: np.ndarray, starts: np.ndarray, key: tuple[int, ...]) -> Batch:
        """This process's share of the segments at `starts` that have a pair; random draws depend on `key` alone."""
        generator = np.random.default_rng(key)
        shape = (len(starts), SEGMENT)
        chance, radius = generator.random(shape), generator.integers(1, self.task.window, shape, endpoint=True)
        draws = generator.random(self.task.shared_negatives)
        negatives = np.searchsorted(self.frequencies.noise_cdf, draws, side="right")
        mine = slice(self.group.rank, None, self.group.size)
        ids = text[starts[mine][:, None] + np.arange(SEGMENT)].astype(np.int64)
        kept = chance[mine] < self.keep[ids]
        words, texts, radii = (left_justify(x, kept) for x in (ids, (ids == EOS).cumsum(1), radius[mine]))
        mask = context_mask(texts, radii, kept.sum(1))
        some = mask.any((1, 2))
        lengths = torch.from_numpy(kept.sum(1)[some])
        ragged = bool(len(lengths)) and bool(lengths.amin() < words.shape[1])
        pairs = ContextPairs(torch.from_numpy(mask[some]), torch.from_numpy(negatives).expand(len(lengths), -1))
        return Batch(Tokens(torch.from_numpy(words[some]), lengths, ragged), pairs)

    def batch(self, epoch: int, number: int) -> Batch:
        """This process's share of the segments of a training batch."""
        order = Permutation(self.segments(self.train), (self.seed, epoch))
        rows = min(self.rows, order.n)
        chosen = order.at(np.arange(number * rows, (number + 1) * rows))
        return self.collate(self.train, self.offset(epoch) + chosen * SEGMENT, (1, self.seed, epoch, number))

    def valid_batches(self) -> Iterator[Batch]:
        """The validation text once, with the same random draws each time."""
        total = len(self.valid) // SEGMENT
        for number, start in enumerate(range(0, total, self.rows)):
            starts = SEGMENT * np.arange(start, min(total, start + self.rows))
            yield self.collate(self.valid, starts, (2, self.seed, number))

    def epoch_size(self, epoch: int) -> int:
        return max(1, self.segments(self.train) // self.rows)


def context_mask(texts_BL: np.ndarray, radius_BL: np.ndarray, lengths_B: np.ndarray) -> np.ndarray:
    """(B, L, L): whether a word is in the context window of another: within its radius, in the same text, not itself.

    >>> context_mask(np.array([[0, 0, 1]]), np.array([[2, 1, 1]]), np.array([3])).astype(int).tolist()
    [[[0, 1, 0], [1, 0, 0], [0, 0, 0]]]
    """
    position_L = np.arange(texts_BL.shape[1])
    distance_LL = np.abs(position_L[:, None] - position_L)
    real_BL = position_L < lengths_B[:, None]
    near_BLL = (distance_LL > 0) & (distance_LL <= radius_BL[:, :, None])
    mask: np.ndarray = near_BLL & (texts_BL[:, :, None] == texts_BL[:, None])
    return mask & real_BL[:, :, None] & real_BL[:, None]


def left_justify(rows: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Move the kept entries of each row to the left and pad with zeros."""
    lengths = kept.sum(1)
    justified = np.zeros((len(rows), int(lengths.max(initial=0))), np.int64)
    justified[np.arange(justified.shape[1]) < lengths[:, None]] = rows[kept]
    return justified
