"""Loader of images or clips with numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from regard.data import Shards
from regard.objective import Batch
from regard.tasks.image_loader import ImageLoader
from regard.tasks.regress.prepare import IMAGE, NAME, NUMBERS


@dataclass(frozen=True)
class RegressLoader(ImageLoader):
    """Batches of images or clips, with their standardized numbers."""

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
