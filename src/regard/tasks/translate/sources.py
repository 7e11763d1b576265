"""Sources of sentence pairs: two aligned files, a file with tabs, JSON Lines; and Tatoeba and the built-in phrases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Literal, Protocol

from regard.data.lines import json_text, read_json_lines, read_lines
from regard.data.phrases.corpus import Phrases
from regard.data.sources import FileSource, ImportedSource
from regard.data.splits import SPLITS, check_valid_share
from regard.data.tatoeba import Tatoeba
from regard.errors import ConfigError, DataError

Pair = tuple[str, str]
"""Source and target sentence."""
VALID_SHARE = 0.02


class PairSource(Protocol):
    """Sentence pairs in splits."""

    def splits(self) -> tuple[str, ...]:
        """Names of the splits, "train" first."""
        ...

    def pairs(self, split: str) -> Iterator[Pair]:
        """The pairs of a split, in order, read lazily."""
        ...


@dataclass(frozen=True, kw_only=True)
class PairFiles:
    """Two aligned files per split: line n of one is the translation of line n of the other."""

    kind: Literal["files"] = "files"
    """two aligned files per split"""
    train: tuple[str, str]
    """the source file and the target file to train on"""
    valid: tuple[str, str] | None = None
    """the two files to validate on; without them, a share of train is held out"""
    test: tuple[str, str] | None = None
    """the two files to evaluate on"""
    valid_share: float = VALID_SHARE
    """share of the training pairs that is held out for validation if there are no valid files"""

    def __post_init__(self) -> None:
        check_valid_share(self.valid_share)
        for split in self.splits():
            if len(paths := getattr(self, split)) != 2:
                raise ConfigError(f"{split}: expected two files, the source and the target, got {len(paths)}")

    def splits(self) -> tuple[str, ...]:
        return tuple(split for split in SPLITS if getattr(self, split) is not None)

    def pairs(self, split: str) -> Iterator[Pair]:
        if split not in self.splits():
            names = ", ".join(self.splits())
            raise ConfigError(f'there is no split "{split}" (splits: {names}); name its files in the recipe')
        return read_pairs(*getattr(self, split))

    def fetch(self, progress: object = None) -> None:
        """Nothing to download."""

    def credit(self) -> str:
        """Origin and license, for the model card."""
        return f"{self.kind}: {' and '.join(self.train)}; license: not known (your own files)"


@dataclass(frozen=True, kw_only=True)
class PairTsv(FileSource):
    """One file per split with tab-separated columns and no header."""

    kind: Literal["tsv"] = "tsv"
    """one file with tab-separated columns per split"""
    source: int = 1
    """the source column, counted from 1"""
    target: int = 2
    """the target column, counted from 1"""
    valid_share: float = VALID_SHARE
    """share of the training pairs that is held out for validation if there is no valid file"""

    def __post_init__(self) -> None:
        check_valid_share(self.valid_share)
        for name, column in (("source", self.source), ("target", self.target)):
            if column < 1:
                raise ConfigError(f"{name} = {column}: columns are counted from 1")

    def pairs(self, split: str) -> Iterator[Pair]:
        return read_tsv(self.file(split), self.source, self.target)


@dataclass(frozen=True, kw_only=True)
class PairJsonl(FileSource):
    """One file per split with a JSON object per line (JSON Lines)."""

    kind: Literal["jsonl"] = "jsonl"
    """one JSON Lines file per split"""
    source: str = "source"
    """key of the source text"""
    target: str = "target"
    """key of the target text"""
    valid_share: float = VALID_SHARE
    """share of the training pairs that is held out for validation if there is no valid file"""

    def __post_init__(self) -> None:
        check_valid_share(self.valid_share)

    def pairs(self, split: str) -> Iterator[Pair]:
        return read_jsonl(self.file(split), self.source, self.target)


@dataclass(frozen=True, kw_only=True)
class ImportedPairs(ImportedSource):
    """The training pairs of a model that was trained elsewhere and imported: they are not here."""

    kind: Literal["imported"] = "imported"
    """the pairs that an imported model was trained on, by others; they are not here"""

    def pairs(self, split: str) -> Iterator[Pair]:
        """An error: there are no pairs."""
        raise self.not_here("pairs", "data.kind=files data.train=[SOURCE,TARGET]", "SOURCE TARGET")


FilePairs = PairFiles | PairTsv | PairJsonl
Corpus = PairFiles | PairTsv | PairJsonl | Tatoeba | Phrases
"""One corpus: choices of data.kind beside a mix of them"""


def describe_corpus(corpus: Corpus | ImportedPairs) -> str:
    """Kind, origin and license of a corpus, for the model card."""
    if isinstance(corpus, FilePairs | ImportedPairs):
        return corpus.credit()
    return f"{corpus.kind} {corpus.direction}. {corpus.credit()}"


def read_pairs(source: str | Path, target: str | Path) -> Iterator[Pair]:
    """The lines of two aligned files; files of different length are an error."""
    sources = targets = 0
    for line, other in zip_longest(read_lines(source), read_lines(target)):
        sources += line is not None
        targets += other is not None
        if sources == targets:
            yield line, other
    if sources != targets:
        raise DataError(f"{source} has {sources} lines but {target} has {targets}; sentence pairs need the same number")
    if not sources:
        raise DataError(f"{source} and {target} are empty; expected one sentence per line")


def read_tsv(path: str | Path, source: int = 1, target: int = 2) -> Iterator[Pair]:
    """Two columns of a file with tabs, counted from 1; other columns are ignored."""
    needed = max(source, target)
    number = 0
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split("\t")
        if len(columns) < needed:
            raise DataError(
                f"{path}, line {number}: expected at least {needed} tab-separated columns, found {len(columns)}"
            )
        yield columns[source - 1], columns[target - 1]
    if not number:
        raise DataError(f"{path} is empty; expected one sentence pair per line")


def read_jsonl(path: str | Path, source: str = "source", target: str = "target") -> Iterator[Pair]:
    """Two texts of the JSON object on each line; other keys are ignored."""
    for where, entry in read_json_lines(path):
        yield json_text(entry, source, where), json_text(entry, target, where)
