"""Base of the loaders of images or clips: batches of a fixed number of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.data import Batches, Shards
from regard.data.loaders import BucketLoader
from regard.distributed import ProcessGroup
from regard.objective import Batch
from regard.tasks.classify.images import ImageInput


@dataclass(frozen=True)
class ImageLoader(BucketLoader[Batch]):
    """Batches of images or clips, in another order in each epoch."""

    train: Shards
    valid: Shards
    image_input: ImageInput
    images: int = 64
    """images, or clips, of a batch"""
    seed: int = 1
    group: ProcessGroup = ProcessGroup()

    def plan(self, shards: Shards, epoch: int | None = None) -> Batches:
        return Batches((np.ones(len(shards), np.int64),), self.images, self.seed)
