"""Tagged sentences: CoNLL columns, or one sentence per line; each token has a tag, a number or an angle."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from regard.data.lines import read_lines
from regard.data.sources import FileSource, ImportedSource
from regard.data.splits import SPLITS, held_out_split
from regard.errors import ConfigError, DataError

SNIFFED_LINES = 100
"""Lines that the separator is guessed from."""
TokenUnit = Literal["word", "character"]
"""How plain text is tokenized."""
TargetName = Literal["tags", "text", "numbers", "angles"]
"""What a token is labeled with: a tag, its written form, a number, an angle in degrees."""


@dataclass(frozen=True)
class TaggedSentence:
    """The tokens of a sentence with their tags, and the file and lines they are from."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    """as written in the file, numbers too"""
    path: str = ""
    lines: tuple[int, ...] = ()

    def location(self, i: int) -> str:
        """Location of a token, for messages."""
        return f"{self.path}, line {self.lines[i]}"


class EvalSource(Protocol):
    """Tagged sentences to score a model on."""

    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""

    def sentences(self, split: str) -> Iterator[TaggedSentence]:
        """The sentences of a split in order, read lazily."""


class TaggedSource(EvalSource, Protocol):
    """Tagged sentences to train on."""

    @property
    def unit(self) -> TokenUnit: ...

    @property
    def label_type(self) -> TargetName: ...

    def scored_on(self, path: Path) -> EvalSource:
        """The sentences of another file, in the same format."""


@dataclass(frozen=True, kw_only=True)
class TaggedFiles(FileSource):
    """Files of tagged sentences; without a valid or test file, shares of train are held out by a hash of the words."""

    valid_share: float = 0.1
    """share of the sentences of train held out for validation if there is no valid file"""
    test_share: float = 0.0
    """share of the sentences of train held out for evaluation if there is no test file"""
    label_type: Literal["tags", "numbers", "angles"] = "tags"
    """what the labels are: tags, numbers, or angles in degrees"""

    holds_out: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.valid_share < 1 or not 0 <= self.test_share < 1 - self.valid_share:
            raise ConfigError(
                f"valid_share = {self.valid_share} must be above 0, test_share = {self.test_share} at least 0, and "
                "their sum below 1"
            )

    @property
    @abstractmethod
    def unit(self) -> TokenUnit:
        """How plain text is tokenized when the model is used."""

    @abstractmethod
    def read(self, path: str | Path) -> Iterator[TaggedSentence]:
        """The sentences of a file."""

    def splits(self) -> tuple[str, ...]:
        return SPLITS if self.test is not None or self.test_share else SPLITS[:2]

    def sentences(self, split: str) -> Iterator[TaggedSentence]:
        """The sentences of a split: of its file, or its share of train; equal sentences are in the same split."""
        path = self.file(split)
        if split != "train" and getattr(self, split) is not None:
            yield from self.read(path)
            return
        test_share = 0.0 if self.test is not None else self.test_share
        valid_share = 0.0 if self.valid is not None else self.valid_share
        read = kept = 0
        for sentence in self.read(self.train):
            read += 1
            if held_out_split(" ".join(sentence.words), valid_share, test_share) == split:
                kept += 1
                yield sentence
        if not kept:
            shares = (
                f"shares of {valid_share:g} and {test_share:g} are" if test_share else f"a share of {valid_share:g} is"
            )
            raise DataError(
                f"{self.train}: none of its {read:,} sentences falls to {split} when {shares} held out; name files for "
                "data.valid and data.test, or give more sentences"
            )


@dataclass(frozen=True, kw_only=True)
class ConllFiles(TaggedFiles):
    """CoNLL files: one word per line with its tag in another column, and a blank line after each sentence."""

    kind: Literal["conll"] = "conll"
    """one word per line with its tag, a blank line after each sentence"""
    word: int = 1
    """the column of the words, counted from 1"""
    tag: int = -1
    """the column of the tags, counted from 1; -1 is the last"""
    separator: str = ""
    """the column separator; empty: a tab if the first lines have one, else spaces"""
    skip: str = ""
    """lines that match this regular expression are skipped: ^# comments, ^(#|[0-9]+[-.]) all that CoNLL-U adds"""
    unit: TokenUnit = "word"
    """how plain text is tokenized when the model is used: into words and punctuation, or into characters"""

    def __post_init__(self) -> None:
        if self.word < 1:
            raise ConfigError(f"word = {self.word}: columns are counted from 1")
        if self.tag < 1 and self.tag != -1:
            raise ConfigError(f"tag = {self.tag}: columns are counted from 1; -1 is the last")
        try:
            re.compile(self.skip)
        except re.error as error:
            raise ConfigError(f"skip = {self.skip!r} is not a regular expression: {error}") from None
        super().__post_init__()

    def read(self, path: str | Path) -> Iterator[TaggedSentence]:
        return read_conll(path, self.word, self.tag, self.separator, self.skip)


@dataclass(frozen=True, kw_only=True)
class TaggedTsv(TaggedFiles):
    """Files with one sentence per line: its words, a tab, and as many tags, separated by spaces."""

    kind: Literal["tsv"] = "tsv"
    """one sentence per line: its words, a tab, and as many tags"""

    @property
    def unit(self) -> TokenUnit:
        return "word"

    def read(self, path: str | Path) -> Iterator[TaggedSentence]:
        return read_tagged_tsv(path)


@dataclass(frozen=True, kw_only=True)
class ImportedTags(ImportedSource):
    """The training sentences of a tagger that was trained elsewhere and imported: they are not here."""

    kind: Literal["imported"] = "imported"
    """the sentences that an imported tagger was trained on, by others; they are not here"""

    @property
    def unit(self) -> TokenUnit:
        return "word"

    @property
    def label_type(self) -> TargetName:
        return "tags"

    def sentences(self, split: str) -> Iterator[TaggedSentence]:
        """An error: there are no sentences."""
        raise self.not_here("sentences", "data.kind=conll data.train=FILE")

    def scored_on(self, path: Path) -> TaggedFiles:
        """A file of CoNLL columns; one that ends with .tsv has a sentence and its tags per line."""
        cls = TaggedTsv if path.name.removesuffix(".gz").endswith(".tsv") else ConllFiles
        return cls(train=str(path), test=str(path))


def read_conll(
    path: str | Path, word: int = 1, tag: int = -1, separator: str = "", skip: str = ""
) -> Iterator[TaggedSentence]:
    """The sentences of a CoNLL file; columns are counted from 1, -1 is the last."""
    rows: list[tuple[str, str, int]] = []
    needed, width, sentences = max(word, tag) if tag > 0 else max(word, 2), 0, 0
    lines = read_lines(path)
    head = list(islice(lines, SNIFFED_LINES))
    between = separator or ("\t" if any("\t" in line for line in head) else " ")
    word_at, tag_at = word - 1, tag - 1 if tag > 0 else -1
    for number, line in enumerate(chain(head, lines), 1):
        if skip and re.search(skip, line):
            continue
        if line.strip():
            cells = [cell for cell in line.split(" ") if cell] if between == " " else line.split(between)
            width = width or len(cells)
            where = f"{path}, line {number}"
            if len(cells) < needed:
                guess = '; is it a comment? data.skip = "^#" skips such lines' if line.startswith("#") else ""
                raise DataError(f"{where}: expected {needed} columns or more, found {len(cells)}{guess}")
            if tag < 0 and len(cells) != width:
                raise DataError(f"{where}: expected {width} columns as above, found {len(cells)}")
            if not cells[word_at].strip() or not cells[tag_at].strip():
                raise DataError(f"{where}: column {word if cells[tag_at].strip() else tag} is empty")
            rows.append((cells[word_at], cells[tag_at], number))
        elif rows:
            sentences += 1
            yield _sentence(rows, path)
            rows = []
    if rows:
        sentences += 1
        yield _sentence(rows, path)
    if not sentences:
        raise DataError(
            f"{path} is empty; expected one word per line with its tag, and a blank line after each sentence"
        )


def _sentence(rows: list[tuple[str, str, int]], path: str | Path) -> TaggedSentence:
    words, tags, lines = zip(*rows, strict=True)
    return TaggedSentence(words, tags, str(path), lines)


def read_tagged_tsv(path: str | Path) -> Iterator[TaggedSentence]:
    """The sentences of a file with words, a tab and as many tags on each line; blank lines are skipped."""
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
        yield TaggedSentence(words, tags, str(path), (number,) * len(words))
    if not sentences:
        raise DataError(f"{path} is empty; expected one sentence per line: its words, a tab, and as many tags")
