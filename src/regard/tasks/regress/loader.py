"""Loader of images or clips with numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from regard.data import Batches, Shards
from regard.data.loaders import BucketLoader
from regard.distributed import ProcessGroup
from regard.objective import Batch
from regard.tasks.classify.images import ImageInput
from regard.tasks.regress.prepare import IMAGE, NAME, NUMBERS


@dataclass(frozen=True)
class RegressLoader(BucketLoader[Batch]):
    """Batches of images or clips, with their standardized numbers."""

    train: Shards
    valid: Shards
    image_input: ImageInput
    images: int = 64
    """images, or clips, of a batch"""
    seed: int = 1
    group: ProcessGroup = ProcessGroup()

    def plan(self, shards: Shards, epoch: int | None = None) -> Batches:
        return Batches((np.ones(len(shards), np.int64),), self.images, self.seed)

    def batch(self, shards: Shards, rows: np.ndarray, epoch: int | None = None) -> Batch:
        """Pixels and numbers (B, F) of rows."""
        return Batch(self.image_input.collate(shards.take(rows, IMAGE)), self.numbers(shards, rows))

    def numbers(self, shards: Shards, rows: np.ndarray) -> torch.Tensor:
        """The standardized numbers (B, F) of rows."""
        return torch.from_numpy(np.array(shards.take(rows, NUMBERS), np.float32).reshape(len(rows), -1))

    def valid_names(self, rows: np.ndarray) -> list[str]:
        """References of validation examples."""
        found: list[str] = self.valid.take(rows, NAME)
        return found
