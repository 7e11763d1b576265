"""Images of a classifier: encoded as 8-bit pixels, normalized by the training data; and their preparation."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from regard.config import plain
from regard.data import ColumnKind, RowLengths, Shards, ShardWriter
from regard.data.clips import load_clip
from regard.data.images import ImageShape, LoadedImage, load_image
from regard.data.movie_reviews import LabeledExample
from regard.data.scaling import SCALE_FILE, StandardScaler
from regard.errors import DataError, InputError, LineError
from regard.interrupts import exit_with_parent
from regard.progress import Progress
from regard.sequence import Clips, Images
from regard.spaces import Pixels
from regard.tasks.classify.augment import AugmentConfig, augment_images
from regard.tasks.classify.image_sources import ImageSource, held_out_images
from regard.tasks.classify.inputs import EncodedInput, InputEncoder
from regard.tasks.classify.labels import LABELS, Labels
from regard.tasks.classify.prepare import EvalSet, check_split_size, held_out_of_train, shard_columns

READ_TOGETHER = 64
"""images that a worker process reads at once"""
FEW = 128
"""images up to which no worker process is started"""
PIXELS_TOGETHER = 512
"""numbers of an image that count as one position of a batch of predictions"""
LEAST_SCALE = 1.0
"""smallest standard deviation of a channel, of 255: images of one color are not divided by 0"""


def load_reference(reference: str, shape: ImageShape) -> LoadedImage:
    """Read the image, or the clip, of a reference."""
    return load_clip(reference, shape) if shape.frames else load_image(reference, shape)


class ImageFiles(Dataset[LoadedImage | DataError | InputError]):
    """Images by their references; an image that cannot be read is its error, which the caller raises."""

    def __init__(self, references: Sequence[str], shape: ImageShape) -> None:
        self.references, self.shape = references, shape

    def __len__(self) -> int:
        return len(self.references)

    def __getitem__(self, i: int) -> LoadedImage | DataError | InputError:
        try:
            return load_reference(self.references[i], self.shape)
        except (DataError, InputError) as error:
            return error


def read_images(references: Sequence[str], shape: ImageShape) -> Iterator[LoadedImage | DataError | InputError]:
    """Images in order, read in worker processes if they are many."""
    files = ImageFiles(references, shape)
    workers = 0 if len(references) <= FEW else min(4, os.cpu_count() or 1)
    for chunk in DataLoader(
        files, READ_TOGETHER, collate_fn=list, num_workers=workers, worker_init_fn=exit_with_parent
    ):
        yield from chunk


@dataclass(frozen=True)
class ImageInput(InputEncoder):
    """Encodes a reference to an image as its pixels; a batch is normalized by the training data."""

    scaler: StandardScaler
    """mean and standard deviation of each channel, of values from 0 to 255"""
    shape: ImageShape
    augmentation: AugmentConfig = AugmentConfig()

    @property
    def unit(self) -> str:  # type: ignore[override]
        return "clips" if self.shape.frames else "images"

    def space(self) -> Pixels:
        return Pixels(self.shape.channels, self.shape.height, self.shape.width)

    def column(self) -> ColumnKind:
        return "uint8"

    def summary(self) -> str:
        frames = f"{self.shape.frames} x " if self.shape.frames else ""
        color = "color" if self.shape.channels == 3 else "gray"
        return f"{self.unit}  {frames}{self.shape.height} x {self.shape.width} {color}"

    def encode(self, lines: Sequence[str], first_line: int = 1) -> list[EncodedInput]:
        """The pixels of each image; an empty line is an empty row."""
        named = [i for i, line in enumerate(lines) if line.strip()]
        encoded = [EncodedInput([], 0)] * len(lines)
        for i, found in zip(named, read_images([lines[i].strip() for i in named], self.shape), strict=True):
            if not isinstance(found, LoadedImage):
                raise LineError(str(found), first_line + i)
            encoded[i] = EncodedInput(found.pixels.reshape(-1), 0, ANIMATED if found.is_animated else "")
        return encoded

    def encode_pixels(self, pixels: np.ndarray) -> EncodedInput:
        """Pixels of the model's shape, from 0 to 255, as an encoded input."""
        return EncodedInput(np.asarray(pixels, np.uint8).reshape(-1), 0)

    def read(self, reference: str) -> np.ndarray:
        """Pixels of one image (channels, height, width), or of a clip (frames, channels, height, width), 8-bit."""
        return load_reference(reference.strip(), self.shape).pixels

    def lengths(self, shards: Shards) -> RowLengths:
        return np.ones(len(shards), np.int64)

    def pixels(self, rows: Sequence[Any]) -> torch.Tensor:
        """Rows as pixels (B, C, Y, X), of clips (B, T, C, Y, X), from 0 to 255."""
        shape = self.shape
        frames = (shape.frames,) if shape.frames else ()
        values = np.asarray(rows, np.uint8).reshape(len(rows), *frames, shape.channels, shape.height, shape.width)
        return torch.from_numpy(values).float()

    def normalize(self, pixels_BCYX: torch.Tensor) -> Images | Clips:
        """Pixels from 0 to 255 as the model reads them: mean 0, standard deviation 1 over the training images.

        The channels of a pixel lie together in memory, in which layout convolutions are faster on a CPU.
        """
        mean, scale = (
            torch.tensor(values, dtype=torch.float32)[:, None, None] for values in (self.scaler.mean, self.scaler.scale)
        )
        normal = (pixels_BCYX - mean) / scale
        return Clips(normal) if self.shape.frames else Images(normal.to(memory_format=torch.channels_last))

    def collate(self, rows: Sequence[Any]) -> Images | Clips:  # type: ignore[override]
        return self.normalize(self.pixels(rows))

    def collate_augmented(self, rows: Sequence[Any], seeds: np.ndarray, word_dropout: float) -> Images | Clips:  # type: ignore[override]
        pixels_BCYX = self.pixels(rows)
        if self.augmentation.is_used:
            pixels_BCYX = augment_images(pixels_BCYX, seeds, self.augmentation)
        return self.normalize(pixels_BCYX)

    def token_texts(self, row: Sequence[Any]) -> list[str]:
        # a Vision Transformer names its patches
        return [f"frame {i + 1}" for i in range(self.shape.frames)]

    def batch_length(self, row: Sequence[Any]) -> int:
        return -(-len(row) // PIXELS_TOGETHER)

    def trace_facts(self) -> dict[str, Any]:
        return {"pixel_mean": list(self.scaler.mean), "pixel_scale": list(self.scaler.scale)}


ANIMATED = "the image has several frames; the first was read"


@dataclass(frozen=True)
class LabeledImagePreparation:
    """Prepares labeled images: labels, mean and standard deviation of each channel, and shards of pixels."""

    data: ImageSource
    augmentation: AugmentConfig = AugmentConfig()

    artifacts = (LABELS, SCALE_FILE)

    def identity(self) -> dict[str, Any]:
        """The settings that the prepared files depend on."""
        return {"data": plain(self.data)}

    def load_encoder(self, run: Path) -> ImageInput:
        """The input encoder that preparation wrote."""
        return ImageInput(StandardScaler.load(run / SCALE_FILE), self.data.shape(), self.augmentation)

    def run(self, folder: Path, progress: Progress) -> Mapping[str, Mapping[str, int]]:
        """Write everything into `folder`; mean and standard deviation are those of the training images."""
        progress("reading", 0, total=0)
        labels = Labels.count((e.label for e in self.data.examples("train")), self.data.file("train"))
        statistics, counts = ChannelStatistics(self.data.shape()), {}
        for split in ("train", "valid"):
            counts[split] = self._write(split, folder / split, labels, statistics, progress)
        labels.save(folder)
        statistics.scaler().save(folder / SCALE_FILE)
        return counts

    def _write(
        self, split: str, folder: Path, labels: Labels, statistics: ChannelStatistics, progress: Progress
    ) -> Mapping[str, int]:
        examples, shape = self.examples(split), self.data.shape()
        columns: dict[str, ColumnKind] = shard_columns(ImageInput(statistics.scaler(), shape), labels, split)
        counts: Counter[str] = Counter({"read": 0, "animated": 0})
        with ShardWriter(folder, columns, metadata=self.identity()) as writer:
            found = read_images([example.text for example in examples], shape)
            for example, image in zip(examples, found, strict=True):
                if not isinstance(image, LoadedImage):
                    raise image
                if split == "train":
                    statistics.add(image.pixels)
                label = labels.index(example.label, example.text)
                text = (printable_reference(example.text),) if split == "valid" else ()
                writer.append([(image.pixels.reshape(-1), [label], *text)])
                counts["read"] += 1
                counts["animated"] += image.is_animated
                if counts["read"] % READ_TOGETHER == 0:
                    progress(f"reading {split}", counts["read"], total=len(examples))
        return counts

    def examples(self, split: str) -> list[LabeledExample]:
        """The examples of a split; without a valid split, a share of each class of train is held out."""
        if not held_out_of_train(self.data.splits(), split):
            return self.data.examples(split)
        whole = self.data.examples("train")
        held_out = held_out_images(whole, self.data.valid_share)
        found = [e for e, is_held_out in zip(whole, held_out, strict=True) if is_held_out == (split == "valid")]
        check_split_size(len(found), len(whole), split, self.data.valid_share, self.data.file("train"))
        return found

    def file(self, split: str) -> str:
        """What a split is read from."""
        return self.data.file("train" if held_out_of_train(self.data.splits(), split) else split)

    def eval_set(self, encoder: InputEncoder, split: str, file: Path | None) -> EvalSet:
        """A split of the recipe's data, or a folder with one sub-folder per class, to score a model on."""
        if file is not None:
            return replace(self, data=self.data.scored_on(file)).eval_set(encoder, "test", None)
        examples = self.examples(split)
        texts, labels, lines = ([getattr(e, name) for e in examples] for name in ("text", "label", "line"))
        return EvalSet(self.file(split), texts, labels, lines)


def printable_reference(reference: str) -> str:
    """A reference that can be stored as text: bytes of a file name that are not UTF-8 are replaced."""
    return reference.encode("utf-8", "replace").decode()


class ChannelStatistics:
    """Running sums for the mean and standard deviation of each channel."""

    def __init__(self, shape: ImageShape) -> None:
        self.names, self.count = shape.channel_names, 0
        self.sum_C, self.square_C = np.zeros(shape.channels), np.zeros(shape.channels)

    def add(self, pixels: np.ndarray) -> None:
        """Add an image (C, Y, X), or the frames (T, C, Y, X) of a clip."""
        pixels_CYX = pixels if pixels.ndim == 3 else np.moveaxis(pixels, 0, 1)
        values_CP = pixels_CYX.reshape(len(pixels_CYX), -1).astype(np.float64)
        self.sum_C += values_CP.sum(1)
        self.square_C += (values_CP**2).sum(1)
        self.count += values_CP.shape[1]

    def scaler(self) -> StandardScaler:
        """Mean and standard deviation so far."""
        mean_C = self.sum_C / max(1, self.count)
        deviation_C = np.sqrt(np.maximum(self.square_C / max(1, self.count) - mean_C**2, 0))
        scale_C = np.maximum(deviation_C, LEAST_SCALE)
        return StandardScaler(self.names, tuple(mean_C.tolist()), tuple(scale_C.tolist()))
