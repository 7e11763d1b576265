"""Loader of masked language modeling: batches of sequences with their masks, and segments where the task has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.data import Batches, Shards
from regard.data.loaders import BucketLoader
from regard.data.splitmix import row_seeds
from regard.distributed import ProcessGroup
from regard.objective import Batch
from regard.sequence import PAD, Rows, Tokens
from regard.tasks.fill.config import FillConfig
from regard.tasks.fill.masking import Masking
from regard.tasks.fill.prepare import COLUMN
from regard.tasks.fill.segments import SegmentPairLengths, SegmentPairs, Segments, SequenceLengths
from regard.text import Tokenizer

VALID = "valid"
"""in place of the epoch outside of training: the masks of validation are always the same"""


@dataclass(frozen=True)
class FillTargets(Rows):
    """Targets of masked language modeling and next-sentence prediction."""

    ids: Tensor
    """(B, L) the original tokens"""
    masked: Tensor
    """(B, L) boolean, True where the original token is predicted"""
    follows: Tensor | None = None
    """(B,) 1: the second segment follows the first; 0: it does not; -1: there is none. None: not predicted"""


@dataclass(frozen=True)
class FillLoader(BucketLoader[Batch]):
    """Batches of sequences of similar length; masks and segments depend on seed, epoch and row alone."""

    train: Shards
    valid: Shards
    tokenizer: Tokenizer
    task: FillConfig
    masking: Masking
    tokens: int = 4096
    seed: int = 1
    group: ProcessGroup = ProcessGroup()

    def plan(self, shards: Shards, epoch: int | None = None) -> Batches:
        pairs = self.pairs(shards, epoch)
        return Batches((SegmentPairLengths(pairs) if pairs else SequenceLengths(shards),), self.tokens, self.seed)

    def batch(self, shards: Shards, rows: np.ndarray, epoch: int | None = None) -> Batch:
        pairs = self.pairs(shards, epoch)
        segments = pairs.draw(rows) if pairs else [Segments(ids, ids[:0], -1) for ids in shards.take(rows, COLUMN)]
        return self.collate(segments, row_seeds(rows, *self.key(epoch)))

    def key(self, epoch: int | None) -> tuple[int | str, int | str]:
        """What the draws of a row depend on, beside its number."""
        return self.seed, VALID if epoch is None else epoch

    def pairs(self, shards: Shards, epoch: int | None) -> SegmentPairs | None:
        """The segments of an epoch; None without next-sentence prediction."""
        return SegmentPairs(shards, self.task.room, self.key(epoch)) if self.task.next_sentence else None

    def collate(self, segments: Sequence[Segments], seeds: np.ndarray) -> Batch:
        """Sequences as [CLS] first [SEP], or [CLS] first [SEP] second [SEP], with masks drawn from one seed each."""
        cls, sep = self.tokenizer.sos, self.tokenizer.eos
        sizes = [(len(one.first), len(one.second)) for one in segments]
        lengths = [2 + first + (second + 1 if second else 0) for first, second in sizes]
        shape = len(segments), max(lengths, default=0)
        original, read = np.full(shape, PAD, np.int64), np.full(shape, PAD, np.int64)
        masked, second_BL = np.zeros(shape, bool), np.zeros(shape, np.int64)
        for i, (one, seed, (first, _), length) in enumerate(zip(segments, seeds, sizes, lengths, strict=True)):
            row = self.masking.apply(np.concatenate([one.first, one.second]).astype(np.int64), seed)
            for data, ids in ((original, np.concatenate([one.first, one.second])), (read, row.ids)):
                data[i, 0], data[i, first + 1], data[i, length - 1] = cls, sep, sep
                data[i, 1 : first + 1], data[i, first + 2 : length - 1] = ids[:first], ids[first:]
            masked[i, 1 : first + 1], masked[i, first + 2 : length - 1] = row.masked[:first], row.masked[first:]
            second_BL[i, first + 2 : length] = 1
        ragged = len(set(lengths)) > 1
        follows = torch.tensor([one.follows for one in segments]) if self.task.next_sentence else None
        numbers = torch.from_numpy(second_BL) if self.task.next_sentence else None
        source = Tokens(torch.from_numpy(read), torch.tensor(lengths, dtype=torch.long), ragged, numbers)
        return Batch(source, FillTargets(torch.from_numpy(original), torch.from_numpy(masked), follows))
