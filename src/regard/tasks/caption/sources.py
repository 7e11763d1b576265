"""Captioned images: rendered shapes, and files of your own that name images and their captions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from regard.config import check_at_least
from regard.data.images import ImageShapeConfig
from regard.data.lines import json_text, read_json_lines, read_lines
from regard.data.shapes import SPLITS as SHAPE_SPLITS
from regard.data.shapes import make_scene
from regard.data.sources import FileSource
from regard.data.splits import check_valid_share
from regard.errors import ConfigError, DataError


@dataclass(frozen=True)
class CaptionedImage:
    """An image and its captions."""

    image: str
    """reference to the image (data/images.py)"""
    captions: tuple[str, ...]
    """one or several"""
    where: str
    """file and line of the first caption, for messages"""


@dataclass(frozen=True, kw_only=True)
class CaptionSource(ImageShapeConfig, ABC):
    """Images with captions, in splits."""

    kind: str
    resize: Literal["crop", "pad", "stretch"] = "pad"

    @abstractmethod
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""

    @abstractmethod
    def examples(self, split: str) -> list[CaptionedImage]:
        """Images and captions of a split."""

    @abstractmethod
    def scored_on(self, path: Path) -> CaptionSource:
        """The same source with a file of captions as its test split."""

    @abstractmethod
    def credit(self) -> str:
        """Origin and license, for the model card."""


@dataclass(frozen=True, kw_only=True)
class RenderedShapes(CaptionSource):
    """Colored shapes in relations that are drawn by rules: no download."""

    kind: Literal["shapes"] = "shapes"
    """pairs of colored shapes of 32 x 32 pixels, rendered by rules, without a download; the splits
    "unseen" and "unseen-pairs" have combinations of color, shape and relation, and of color and shape, that the others
    lack"""
    count: int = 6000
    """images to train on; a tenth as many to validate on, a sixth each to evaluate on (test, unseen, unseen-pairs)"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, 60, "count")

    def splits(self) -> tuple[str, ...]:
        return SHAPE_SPLITS

    def examples(self, split: str) -> list[CaptionedImage]:
        sizes = dict.fromkeys(SHAPE_SPLITS, self.count // 6) | {"train": self.count, "valid": self.count // 10}
        if split not in sizes:
            raise ConfigError(f'there is no split "{split}" (splits: {", ".join(SHAPE_SPLITS)})')
        names = [f"shapes#{split}/{i}" for i in range(sizes[split])]
        return [CaptionedImage(name, make_scene(i, split).captions, name) for i, name in enumerate(names)]

    def scored_on(self, path: Path) -> CaptionSource:
        return CaptionTsv(train=str(path), size=self.size, color=self.color, resize=self.resize).scored_on(path)

    def credit(self) -> str:
        return "rendered shapes with captions by a grammar, part of regard; MIT license"


@dataclass(frozen=True, kw_only=True)
class CaptionFiles(FileSource, CaptionSource):
    """Files of your own that name images and captions, one file per split."""

    images: str | None = None
    """folder of the images; without it, the folder of the file that names them"""
    valid_share: float = 0.1
    """share of the training images held out for validation if there is no valid file"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_valid_share(self.valid_share)

    @abstractmethod
    def read(self, path: Path) -> Iterator[tuple[str, str, str]]:
        """Location, image and caption of each line."""

    def examples(self, split: str) -> list[CaptionedImage]:
        path = Path(self.file(split))
        return group_captions(path, Path(self.images) if self.images else path.parent, self.read(path))

    def scored_on(self, path: Path) -> CaptionFiles:
        kind = CaptionJsonl if path.suffix == ".jsonl" else CaptionTsv
        settings = {name: getattr(self, name) for name in ("size", "color", "resize", "images")}
        return kind(train=str(path), test=str(path), **settings)


@dataclass(frozen=True, kw_only=True)
class CaptionTsv(CaptionFiles):
    """An image, a tab and a caption on each line."""

    kind: Literal["tsv"] = "tsv"
    """a file with an image, a tab and a caption on each line; an image may have several lines"""

    def read(self, path: Path) -> Iterator[tuple[str, str, str]]:
        for number, line in enumerate(read_lines(path), 1):
            if not line.strip():
                continue
            image, tab, caption = line.partition("\t")
            where = f"{path}, line {number}"
            if not tab:
                raise DataError(f"{where}: expected an image, a tab and a caption, found no tab")
            yield where, image.strip(), caption


@dataclass(frozen=True, kw_only=True)
class CaptionJsonl(CaptionFiles):
    """A JSON object on each line (JSON Lines)."""

    kind: Literal["jsonl"] = "jsonl"
    """a JSON Lines file: {"image": "photo.png", "captions": ["...", "..."]}, or "caption" with one text"""

    def read(self, path: Path) -> Iterator[tuple[str, str, str]]:
        for where, entry in read_json_lines(path):
            image, several = json_text(entry, "image", where), entry.get("captions")
            if several is None:
                yield where, image, json_text(entry, "caption", where)
                continue
            if not isinstance(several, list) or not several:
                raise DataError(f'{where}: expected a list of texts under "captions", found {str(several)[:60]}')
            for caption in several:
                yield where, image, json_text({"captions": caption}, "captions", where)


def group_captions(path: Path, folder: Path, rows: Iterator[tuple[str, str, str]]) -> list[CaptionedImage]:
    """The captions of each image, in the order in which the images are named; every image must be there."""
    found: dict[str, CaptionedImage] = {}
    for where, image, caption in rows:
        if not image or not caption.strip():
            raise DataError(f"{where}: the {'caption' if image else 'name of the image'} is empty")
        file = str(folder / image)
        if file not in found:
            if not Path(file).is_file():
                raise DataError(f"{where}: there is no image {file}; correct the name, or data.images, its folder")
            found[file] = CaptionedImage(file, (), where)
        found[file] = replace(found[file], captions=(*found[file].captions, " ".join(caption.split())))
    if not found:
        raise DataError(f"{path} is empty; expected an image and its caption on each line")
    return list(found.values())


CaptionData = CaptionTsv | CaptionJsonl | RenderedShapes
"""Choices of data.kind"""
