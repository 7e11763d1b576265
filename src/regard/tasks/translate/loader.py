"""Loader of the translate task: batches of sentence pairs of similar length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

from regard.data import Batches, Shards
from regard.data.batches import RowLengths
from regard.data.loaders import BucketLoader
from regard.data.mixing import EpochLengths, WeightedParts
from regard.distributed import ProcessGroup
from regard.errors import DataError
from regard.objective import Batch
from regard.sequence import Tokens
from regard.tasks.translate.prepare import PART, SIDES, TEXTS, Vocabularies
from regard.text import BPEDropout

POOL = 1 << 14
"""Rows that are sorted by length together with BPE dropout: each pool is tokenized again before its first batch"""

Retokenize = Callable[[int, np.ndarray, Sequence[Any]], Sequence[Any]]
"""Side (0: source), row numbers and their ids -> the ids with BPE dropout."""


@dataclass(frozen=True)
class PairLengths:
    """Lengths of the sentences of one side in a batch: with the special token that is added, and after BPE dropout."""

    shards: Shards
    side: int
    retokenize: Retokenize | None = None

    def __len__(self) -> int:
        return len(self.shards)

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray:
        if self.retokenize is None:
            return self.shards.lengths(SIDES[self.side])[rows] + 1
        sentences = self.retokenize(self.side, rows, self.shards.take(rows, SIDES[self.side]))
        return np.fromiter((len(ids) + 1 for ids in sentences), np.int64, len(rows))


@dataclass(frozen=True)
class PairLoader(BucketLoader[Batch]):
    """Batches of prepared sentence pairs."""

    train: Shards
    valid: Shards
    vocabularies: Vocabularies
    batch_tokens: int = 4096
    seed: int = 1
    dropout: float = 0.0
    """BPE dropout: share of merges left out of each sentence, drawn again for each epoch"""
    group: ProcessGroup = ProcessGroup()
    weights: tuple[float, ...] = ()
    """of the parts of a mix: how often an epoch has each of their pairs; none: every pair once"""

    def plan(self, shards: Shards, epoch: int | None = None) -> Batches:
        retokenize = self._retokenize(epoch)
        lengths: tuple[RowLengths, ...] = tuple(PairLengths(shards, i, retokenize) for i in range(len(SIDES)))
        if epoch is not None and self._parts is not None:
            lengths = tuple(EpochLengths(column, self._parts, epoch) for column in lengths)
        if retokenize is None:
            return Batches(lengths, self.batch_tokens, self.seed)
        return Batches(lengths, self.batch_tokens, self.seed, POOL)

    def batches_per_epoch(self) -> int:
        """Batches of an epoch; with BPE dropout, estimated from the first pool."""
        plan = self.plan(self.train, 0)
        if not self.dropout:
            return plan.count()
        rows = len(plan.lengths[0])
        return max(1, round(len(plan.pool_batches(0, 0)) * rows / min(rows, plan.pool)))

    def texts(self, rows: np.ndarray) -> tuple[list[str], list[str]]:
        """Sources and references of validation rows, before normalization and tokenization."""
        if not set(TEXTS) <= set(self.valid.columns):
            raise DataError("the validation data was prepared without its texts; prepare the data again")
        sources, references = (self.valid.take(rows, column) for column in TEXTS)
        return sources, references

    def batch(self, shards: Shards, rows: np.ndarray, epoch: int | None = None) -> Batch:
        """Sources end with <EOS>; targets begin with <SOS> and end with <EOS>. `rows`: those of the plan."""
        if epoch is not None and self._parts is not None:
            rows = self._parts.rows(epoch, rows)
        sides: list[Sequence[Any]] = [shards.take(rows, side) for side in SIDES]
        retokenize = self._retokenize(epoch)
        if retokenize is not None:
            sides = [retokenize(i, rows, side) for i, side in enumerate(sides)]
        source, target = self.vocabularies.source, self.vocabularies.target
        return Batch(Tokens.pad(sides[0], after=(source.eos,)), Tokens.pad(sides[1], (target.sos,), (target.eos,)))

    @cached_property
    def _parts(self) -> WeightedParts | None:
        """The weighted parts of the training data; None: every row comes once per epoch."""
        if set(self.weights) <= {1.0} or PART not in self.train.columns:
            return None
        sizes = np.bincount(self.train.flat(PART), minlength=len(self.weights))
        return WeightedParts(tuple(sizes.tolist()), self.weights, self.seed)

    @cached_property
    def _bpe_dropout(self) -> tuple[BPEDropout, BPEDropout]:
        return BPEDropout(self.vocabularies.source, self.dropout), BPEDropout(self.vocabularies.target, self.dropout)

    def _retokenize(self, epoch: int | None) -> Retokenize | None:
        """BPE dropout of an epoch, a pure function of seed, epoch and row; None: no dropout."""
        if not self.dropout or epoch is None:
            return None

        def retokenize(side: int, rows: np.ndarray, sentences: Sequence[Any]) -> Sequence[Any]:
            names = (f"{self.seed} {epoch} {side} {row}".encode() for row in rows.tolist())
            seeds = (int.from_bytes(blake2b(name, digest_size=8).digest()) for name in names)
            return [self._bpe_dropout[side](ids.tolist(), seed) for ids, seed in zip(sentences, seeds, strict=True)]

        return retokenize
