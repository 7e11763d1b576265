"""Images and clips with numbers to predict: a table of your own, and the next position of rendered moving shapes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

from regard.config import check_at_least
from regard.data.clips import RenderedClips
from regard.data.images import ImageShape, ImageShapeConfig
from regard.data.lines import read_lines
from regard.data.sources import FileSource
from regard.data.splits import check_valid_share
from regard.data.tables import column_index, is_number, parse_number, read_header
from regard.errors import ConfigError, DataError


@dataclass(frozen=True)
class MeasuredImage:
    """An image or a clip, and the numbers that belong to it."""

    reference: str
    """reference to the image (data/images.py) or the clip (data/clips.py)"""
    numbers: tuple[float, ...]
    where: str
    """file and line, for messages"""


@dataclass(frozen=True)
class MeasuredImages:
    """Images or clips with a number each in every column."""

    names: tuple[str, ...]
    """names of the numbers"""
    rows: Sequence[MeasuredImage]


@dataclass(frozen=True, kw_only=True)
class RegressSource(ImageShapeConfig, ABC):
    """Images or clips with numbers, in splits."""

    kind: str
    frames: int = 0
    """frames of a clip that the model reads, evenly spaced; 0: single images"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(self, 0, "frames")
        if self.frames == 1:
            raise ConfigError("frames = 1: a clip has at least 2 frames; use 0 for single images")

    def shape(self) -> ImageShape:
        return replace(super().shape(), frames=self.frames)

    @abstractmethod
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""

    @abstractmethod
    def file(self, split: str) -> str:
        """What a split is read from, for messages."""

    @abstractmethod
    def examples(self, split: str) -> MeasuredImages:
        """The examples of a split."""

    @abstractmethod
    def scored_on(self, path: Path) -> RegressSource:
        """The same source with a table as its test split."""

    @abstractmethod
    def credit(self) -> str:
        """Origin and license, for the model card."""


@dataclass(frozen=True, kw_only=True)
class MeasuredTable(FileSource, RegressSource):
    """A table of your own that names a file and its numbers in each row, one table per split."""

    kind: Literal["table"] = "table"
    """a table with a header; each row names an image, an animated file or a folder of frames, and its numbers"""
    resize: Literal["crop", "pad", "stretch"] = "stretch"
    path: str = "file"
    """the column with the names of the files, relative to the folder of the table"""
    columns: tuple[str, ...] = ()
    """the columns of numbers to predict; none: all that hold numbers"""
    valid_share: float = 0.1
    """share of the training examples held out for validation if there is no valid table"""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_valid_share(self.valid_share)

    def examples(self, split: str) -> MeasuredImages:
        return read_measured(Path(self.file(split)), self.path, self.columns)

    def scored_on(self, path: Path) -> Self:
        return replace(self, test=str(path))


def read_measured(path: Path, column: str, columns: Sequence[str]) -> MeasuredImages:
    """The files and numbers of a table; every file must be there."""
    names, rows = read_header(read_lines(path), path, header=True)
    first = next(rows, None)
    if first is None or names is None:
        raise DataError(f"{path} has no rows; expected a header, then a file and its numbers on each line")
    of = column_index(path, first[0], names, first[1], column)
    at = [column_index(path, first[0], names, first[1], name) for name in columns]
    at = at or [i for i, cell in enumerate(first[1]) if i != of and is_number(cell)]
    if not at or of in at:
        raise DataError(f"{path}, line {first[0]}: expected a column of numbers beside {column}; data.columns names it")
    found = []
    for number, cells in (first, *rows):
        where = f"{path}, line {number}"
        column_index(path, number, names, cells, column)  # refuses rows of another width
        file = path.parent / cells[of].strip()
        if not cells[of].strip() or not file.exists():
            raise DataError(f"{where}: there is no file {file}; names are relative to the folder of the table")
        numbers = tuple(parse_number(cells[i], names[i], where) for i in at)
        found.append(MeasuredImage(str(file), numbers, where))
    return MeasuredImages(tuple(names[i] for i in at), found)


@dataclass(frozen=True, kw_only=True)
class NextPositions(RenderedClips, RegressSource):
    """Rendered clips of moving shapes, with the position after the last frame."""

    kind: Literal["moving-shapes"] = "moving-shapes"
    """rendered clips of a shape that moves, 6 frames of 24 x 24 pixels: where its middle will be in the next frame,
    x and y in pixels from the left and upper edge"""

    def examples(self, split: str) -> MeasuredImages:
        rows = [MeasuredImage(name, clip.next_position, name) for name, clip in self.clips(split)]
        return MeasuredImages(("x", "y"), rows)

    def scored_on(self, path: Path) -> MeasuredTable:
        given = {name: getattr(self, name) for name in ("size", "color", "resize", "frames")}
        return MeasuredTable(train=str(path), test=str(path), **given)


RegressData = MeasuredTable | NextPositions
"""Choices of data.kind"""
