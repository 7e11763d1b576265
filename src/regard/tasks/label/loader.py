"""The loader of a tagger: batches of prepared sentences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from regard.data import Batches, RowLengths, Shards
from regard.data.loaders import BucketLoader
from regard.distributed import ProcessGroup
from regard.objective import Batch
from regard.tasks.label.targets import TargetKind
from regard.tasks.label.vocab import WordTypes


@dataclass(frozen=True)
class LabelLoader(BucketLoader[Batch]):
    """Batches of tagged sentences of similar length."""

    train: Shards
    valid: Shards
    types: Shards
    """every distinct word: its ids and its text"""
    target: TargetKind
    tokens: int = 4096
    seed: int = 1
    group: ProcessGroup = ProcessGroup()
    subwords: bool = False
    """whether each word is a row of pieces, so that a sentence takes more positions than it has words"""

    @classmethod
    def open(
        cls,
        folder: Path,
        target: TargetKind,
        tokens: int,
        seed: int,
        group: ProcessGroup = ProcessGroup(),  # noqa: B008
        subwords: bool = False,
    ) -> LabelLoader:
        """The loader of a folder of prepared files."""
        train, valid, types = (Shards.open(folder / name) for name in ("train", "valid", "types"))
        return cls(train, valid, types, target, tokens, seed, group, subwords)

    @cached_property
    def word_types(self) -> WordTypes:
        """The ids of every distinct word."""
        return WordTypes.from_rows(self.types.take(np.arange(len(self.types)), "ids"))

    def plan(self, shards: Shards, epoch: int | None = None) -> Batches:
        return Batches((self.lengths(shards),), self.tokens, self.seed)

    def lengths(self, shards: Shards) -> RowLengths:
        """Positions that each sentence takes in a batch: its words, or its pieces with the special tokens."""
        return shards.flat("positions").astype(np.int64) if self.subwords else shards.lengths("words")

    def batch(self, shards: Shards, rows: np.ndarray, epoch: int | None = None) -> Batch:
        """Words and their targets."""
        return Batch(
            self.word_types.collate(shards.take(rows, "words")), self.target.collate(shards.take(rows, "tags"))
        )

    def words(self, shards: Shards, rows: np.ndarray) -> list[list[str]]:
        """The words of sentences."""
        numbers = shards.take(rows, "words")
        texts = iter(self.types.take(np.concatenate([np.zeros(0, np.int64), *numbers]).astype(np.int64), "text"))
        return [[next(texts) for _ in row] for row in numbers]

    def references(self, shards: Shards, rows: np.ndarray) -> list[list[str]]:
        """The correct labels of sentences."""
        return [self.target.decode(row) for row in shards.take(rows, "tags")]
