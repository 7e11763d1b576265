"""The loader of a classifier: batches of prepared examples, with word dropout in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from regard.data import Batches, Shards
from regard.data.loaders import BucketLoader
from regard.data.splitmix import row_seeds
from regard.distributed import ProcessGroup
from regard.objective import Batch
from regard.tasks.classify.inputs import COLUMN, InputEncoder

TEXT = "given"
"""Shard column of validation: the input as it was read, before truncation."""


@dataclass(frozen=True)
class ExampleLoader(BucketLoader[Batch]):
    """Batches of labeled examples of similar length."""

    train: Shards
    valid: Shards
    input_encoder: InputEncoder
    tokens: int = 4096
    seed: int = 1
    group: ProcessGroup = ProcessGroup()
    word_dropout: float = 0.0
    """share of the training tokens that become unknown; which ones depends on seed, epoch and row alone"""

    def plan(self, shards: Shards, epoch: int | None = None) -> Batches:
        return Batches((self.input_encoder.lengths(shards),), self.tokens, self.seed)

    def batch(self, shards: Shards, rows: np.ndarray, epoch: int | None = None) -> Batch:
        """Rows and their class indices; varied by word dropout or augmentation in an epoch of training."""
        labels_B = torch.from_numpy(shards.flat("label")[rows].astype(np.int64))
        inputs: Sequence[Any] = shards.take(rows, COLUMN)
        if epoch is None:
            return Batch(self.input_encoder.collate(inputs), labels_B)
        return Batch(self.input_encoder.collate_augmented(inputs, self.seeds(rows, epoch), self.word_dropout), labels_B)

    def seeds(self, rows: np.ndarray, epoch: int) -> np.ndarray:
        """One seed per row in an epoch."""
        return row_seeds(rows, self.seed, epoch)

    def valid_texts(self, rows: np.ndarray) -> tuple[list[str], list[int]]:
        """Untruncated inputs of validation rows, and their class indices."""
        return self.valid.take(rows, TEXT), self.valid.flat("label")[rows].tolist()
