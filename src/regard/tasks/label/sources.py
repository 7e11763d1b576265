"""Sentences with something at each word: a tag, a number, an angle. From columns with blank lines between, or lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Literal, Protocol

from regard.data.lines import read_lines
from regard.data.splits import apart
from regard.errors import ConfigError, DataError

LOOKED_AT = 100
"""lines that tell what stands between columns"""
Unit = Literal["word", "character"]
"""What a place is, where plain text is read."""
Kind = Literal["tags", "text", "numbers", "angles"]
"""What is wanted at a place: one of some tags, how the place is written, a number, an angle in degrees."""


@dataclass(frozen=True)
class Sentence:
    """What is read, one thing a place, and what is wanted there.

    >>> Sentence(("je", "suis"), ("PRON", "AUX"), "train.conll", (7, 8)).at(1)
    'train.conll, line 8'
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    """as they are written, numbers too"""
    path: str = ""
    """the file it is from"""
    lines: tuple[int, ...] = ()
    """and the line of each word"""

    def at(self, place: int) -> str:
        """Where a word stands, for messages."""
        return f"{self.path}, line {self.lines[place]}"


class TaggedSource(Protocol):
    """Anything that has tagged sentences, in splits.

    >>> source: TaggedSource = Columns(train="train.conll", unit="character")
    >>> source.unit, source.answer
    ('character', 'tags')
    """

    @property
    def unit(self) -> Unit:
        """What a place is."""

    @property
    def answer(self) -> Kind:
        """What is wanted at a place."""

    def splits(self) -> tuple[str, ...]:
        """The names of the splits there are, "train" first."""

    def sentences(self, split: str) -> Iterator[Sentence]:
        """The sentences of a split, in order, read as they are asked for."""

    def scored_on(self, path: Path) -> Scored:
        """The sentences of another file, in the same format."""

    def attribution(self) -> str:
        """Where it is from, whom to credit, and under which licence."""


class Scored(Protocol):
    """What can be scored on.

    >>> scored: Scored = Lines(train="train.tsv").scored_on(Path("other.tsv"))
    >>> scored.splits()
    ('train', 'valid', 'test')
    """

    def splits(self) -> tuple[str, ...]:
        """The names of the splits there are."""

    def sentences(self, split: str) -> Iterator[Sentence]:
        """The sentences of a split."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """One word a line with its tag in another column, and a blank line after each sentence, as CoNLL has it.

    >>> Columns(train="train.conll").splits()
    ('train', 'valid')
    """

    kind: Literal["conll"] = "conll"
    """a word a line with its tag beside it, a blank line after each sentence"""
    train: str
    """the file to learn from"""
    valid: str | None = None
    """the file to validate on; without it some of train is kept apart"""
    test: str | None = None
    """the file to score on"""
    word: int = 0
    """the number of the words' column; the first is 0"""
    tag: int = -1
    """the number of the tags' column; -1 is the last"""
    separator: str = ""
    """what stands between columns; empty: tabs if the first lines have some, else spaces"""
    skip: str = ""
    """lines that this regular expression fits are passed over: ^# comments, ^(#|[0-9]+[-.]) all that CoNLL-U adds"""
    unit: Unit = "word"
    """how plain text is cut when the model is used: into words and signs, or into characters"""
    answer: Literal["tags", "numbers", "angles"] = "tags"
    """what the column holds: tags, numbers, or angles in degrees"""
    held_out: float = 0.1
    """without valid: the share of the sentences of train that is kept apart to validate on"""
    tested: float = 0.0
    """without test: the share of the sentences of train that is kept apart to score on"""

    def __post_init__(self) -> None:
        for name, column, least in (("word", self.word, 0), ("tag", self.tag, -1)):
            if column < least:
                raise ConfigError(f"{name}: expected the number of a column, {least} or more, got {column}")
        try:
            re.compile(self.skip)
        except re.error as error:
            raise ConfigError(f"skip = {self.skip!r} is no regular expression: {error}") from None
        check_shares(self.held_out, self.tested)

    def splits(self) -> tuple[str, ...]:
        """train and valid, and test if there is one."""
        return splits_of(self.test, self.tested)

    def sentences(self, split: str) -> Iterator[Sentence]:
        """The sentences of a split."""
        files = {"train": self.train, "valid": self.valid, "test": self.test}
        return parted(files, split, self.held_out, self.tested, self._read)

    def _read(self, path: str | Path) -> Iterator[Sentence]:
        return read_columns(path, self.word, self.tag, self.separator, self.skip)

    def scored_on(self, path: Path) -> Columns:
        """The same with another file to score on."""
        return replace(self, test=str(path))

    def attribution(self) -> str:
        """A path says nothing about whom to credit."""
        return f"{self.kind}: {self.train}; its licence is for whoever gave it to tell"


@dataclass(frozen=True, kw_only=True)
class Lines:
    """A sentence a line: its words, a tab, and as many tags, with spaces between.

    >>> Lines(train="train.tsv", test="test.tsv").splits()
    ('train', 'valid', 'test')
    """

    kind: Literal["tsv"] = "tsv"
    """a sentence a line: its words, a tab, and as many tags"""
    train: str
    """the file to learn from"""
    valid: str | None = None
    """the file to validate on; without it some of train is kept apart"""
    test: str | None = None
    """the file to score on"""
    answer: Literal["tags", "numbers", "angles"] = "tags"
    """what the second column holds: tags, numbers, or angles in degrees"""
    held_out: float = 0.1
    """without valid: the share of the sentences of train that is kept apart to validate on"""
    tested: float = 0.0
    """without test: the share of the sentences of train that is kept apart to score on"""

    def __post_init__(self) -> None:
        check_shares(self.held_out, self.tested)

    @property
    def unit(self) -> Unit:
        return "word"

    def splits(self) -> tuple[str, ...]:
        """train and valid, and test if there is one."""
        return splits_of(self.test, self.tested)

    def sentences(self, split: str) -> Iterator[Sentence]:
        """The sentences of a split."""
        files = {"train": self.train, "valid": self.valid, "test": self.test}
        return parted(files, split, self.held_out, self.tested, read_tagged_lines)

    def scored_on(self, path: Path) -> Lines:
        """The same with another file to score on."""
        return replace(self, test=str(path))

    def attribution(self) -> str:
        """A path says nothing about whom to credit."""
        return f"{self.kind}: {self.train}; its licence is for whoever gave it to tell"


def check_shares(held_out: float, tested: float) -> None:
    """Refuse shares that leave nothing to learn from, or nothing to validate on.

    >>> check_shares(0.5, 0.5)
    Traceback (most recent call last):
    regard.errors.ConfigError: held_out = 0.5 must be above 0, tested = 0.5 at least 0, and both together below 1
    """
    if not 0 < held_out < 1 or not 0 <= tested < 1 - held_out:
        raise ConfigError(
            f"held_out = {held_out} must be above 0, tested = {tested} at least 0, and both together below 1"
        )


def splits_of(test: str | None, tested: float) -> tuple[str, ...]:
    """The splits that files and shares make.

    >>> splits_of(None, 0.1)
    ('train', 'valid', 'test')
    """
    return ("train", "valid", "test") if test is not None or tested else ("train", "valid")


def parted(
    files: dict[str, str | None],
    split: str,
    held_out: float,
    tested: float,
    read: Callable[[str | Path], Iterator[Sentence]],
) -> Iterator[Sentence]:
    """The sentences of a split: those of its own file, or the share of train that falls to it.

    Which share a sentence falls to is for its words to say: one that is repeated is never in two.

    >>> every = [Sentence((f"word {i}",), ("X",)) for i in range(100)]
    >>> files = {"train": "a", "valid": None, "test": None}
    >>> [len(list(parted(files, split, 0.1, 0.0, lambda path: iter(every)))) for split in ("train", "valid")]
    [88, 12]
    """
    names = splits_of(files["test"], tested)
    if split not in names:
        raise ConfigError(f'there is no split "{split}" (splits: {", ".join(names)}); name its file in the recipe')
    own, train = files[split], files["train"]
    assert train is not None
    if split != "train" and own is not None:
        yield from read(own)
        return
    tested = 0.0 if files["test"] is not None else tested
    held_out = 0.0 if files["valid"] is not None else held_out
    found = kept = 0
    for sentence in read(train):
        found += 1
        name, text = "train", " ".join(sentence.words)
        if apart(text, tested):
            name = "test"
        elif apart(text, tested + held_out):
            name = "valid"
        if name == split:
            kept += 1
            yield sentence
    if not kept:
        share = f"shares of {held_out:g} and {tested:g} are" if tested else f"a share of {held_out:g} is"
        raise DataError(
            f"{train}: none of its {found:,} sentences falls to {split} when {share} kept apart; name files for "
            "data.valid and data.test, or give more sentences"
        )


def read_columns(
    path: str | Path, word: int = 0, tag: int = -1, separator: str = "", skip: str = ""
) -> Iterator[Sentence]:
    """The sentences of a file with a word a line and blank lines between sentences.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.conll")
    ...     _ = file.write_text("I PRON\\nam AUX\\n\\nYes INTJ\\n")
    ...     [(sentence.words, sentence.lines) for sentence in read_columns(file)]
    [(('I', 'am'), (1, 2)), (('Yes',), (4,))]
    """
    rows: list[tuple[str, str, int]] = []
    wanted, width, sentences = max(word, tag) + 1 if tag >= 0 else max(word + 1, 2), 0, 0
    lines = read_lines(path)
    head = list(islice(lines, LOOKED_AT))
    between = separator or ("\t" if any("\t" in line for line in head) else " ")
    for number, line in enumerate(chain(head, lines), 1):
        if skip and re.search(skip, line):
            continue
        if line.strip():
            cells = [cell for cell in line.split(" ") if cell] if between == " " else line.split(between)
            width = width or len(cells)
            where = f"{path}, line {number}"
            if len(cells) < wanted:
                guess = '; is it a comment? data.skip = "^#" passes over such' if line.startswith("#") else ""
                raise DataError(f"{where}: expected {wanted} columns or more, found {len(cells)}{guess}")
            if tag < 0 and len(cells) != width:
                raise DataError(f"{where}: expected {width} columns as above, found {len(cells)}")
            if not cells[word].strip() or not cells[tag].strip():
                raise DataError(f"{where}: column {word if cells[tag].strip() else tag} is empty")
            rows.append((cells[word], cells[tag], number))
        elif rows:
            sentences += 1
            yield _sentence(rows, path)
            rows = []
    if rows:
        sentences += 1
        yield _sentence(rows, path)
    if not sentences:
        raise DataError(
            f"{path} is empty; expected one word a line, its tag beside it, and a blank line after a sentence"
        )


def _sentence(rows: list[tuple[str, str, int]], path: str | Path) -> Sentence:
    words, tags, lines = zip(*rows, strict=True)
    return Sentence(words, tags, str(path), lines)


def read_tagged_lines(path: str | Path) -> Iterator[Sentence]:
    """The sentences of a file with words, a tab and as many tags on each line; a blank line is passed over.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.tsv")
    ...     _ = file.write_text("I am\\tPRON AUX\\n")
    ...     [sentence.tags for sentence in read_tagged_lines(file)]
    [('PRON', 'AUX')]
    """
    sentences = 0
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        cells = line.split("\t")
        if len(cells) != 2:
            raise DataError(f"{path}, line {number}: expected words, a tab and tags, found {len(cells)} columns")
        words, tags = (tuple(cell.split()) for cell in cells)
        if len(words) != len(tags):
            raise DataError(
                f"{path}, line {number}: there are {len(words)} words and {len(tags)} tags; each word needs one"
            )
        sentences += 1
        yield Sentence(words, tags, str(path), (number,) * len(words))
    if not sentences:
        raise DataError(f"{path} is empty; expected a sentence a line: its words, a tab, and as many tags")
