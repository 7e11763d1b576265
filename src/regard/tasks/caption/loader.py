"""Loader of captioned images: in each epoch an image comes with one of its captions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from regard.data import Shards
from regard.data.splitmix import row_seeds
from regard.objective import Batch
from regard.sequence import Tokens
from regard.tasks.caption.prepare import CAPTIONS, IMAGE, NAME, REFERENCES
from regard.tasks.image_loader import ImageLoader
from regard.text import Tokenizer


@dataclass(frozen=True)
class CaptionLoader(ImageLoader):
    """Batches of images with a caption each."""

    tokenizer: Tokenizer = field(kw_only=True)

    def batch(self, shards: Shards, rows: np.ndarray, epoch: int | None = None) -> Batch:
        """Images and one caption each: which one depends on seed, epoch and row alone; the first in validation."""
        seeds = row_seeds(rows, self.seed, 0 if epoch is None else epoch)
        pixels, captions = shards.take(rows, IMAGE), shards.take(rows, CAPTIONS)
        if epoch is None:
            source, chosen = self.image_input.collate(pixels), [self.split(ids)[0] for ids in captions]
        else:
            source = self.image_input.collate_augmented(pixels, seeds, 0.0)
            each = zip(map(self.split, captions), seeds.tolist(), strict=True)
            chosen = [several[seed % len(several)] for several, seed in each]
        return Batch(source, Tokens.pad(chosen, (self.tokenizer.sos,), (self.tokenizer.eos,)))

    def split(self, ids: Any) -> list[np.ndarray]:
        """The captions of an image, without their <EOS>."""
        ends = np.flatnonzero(np.asarray(ids) == self.tokenizer.eos)
        return [part[:-1] for part in np.split(np.asarray(ids), ends + 1)[:-1]]

    def valid_texts(self, rows: np.ndarray) -> tuple[list[str], list[list[str]]]:
        """References of validation images, and their captions."""
        names, references = (self.valid.take(rows, column) for column in (NAME, REFERENCES))
        return names, [text.split("\n") for text in references]
