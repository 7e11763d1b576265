"""Where sentence pairs come from: two aligned files, a table with tabs, or one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from regard.data.lines import read_lines
from regard.errors import ConfigError, DataError

T = TypeVar("T")
Pair = tuple[str, str]
"""What a model reads, and what it should write."""


class PairSource(Protocol):
    """Anything that has sentence pairs, in splits.

    >>> class Echo:
    ...     def splits(self) -> tuple[str, ...]:
    ...         return ("train",)
    ...     def pairs(self, split: str) -> Iterator[Pair]:
    ...         yield ("hello", "hello")
    >>> source: PairSource = Echo()
    >>> list(source.pairs("train"))
    [('hello', 'hello')]
    """

    def splits(self) -> tuple[str, ...]:
        """The names of the splits there are, "train" first."""
        ...

    def pairs(self, split: str) -> Iterator[Pair]:
        """The pairs of a split, in order, read as they are asked for."""
        ...


@dataclass(frozen=True, kw_only=True)
class Files:
    """Two files for each split; line n of one is the translation of line n of the other.

    >>> Files(train=("train.fr", "train.en"), test=("test.fr", "test.en")).splits()
    ('train', 'test')
    """

    kind: Literal["files"] = "files"
    """two aligned files for each split"""
    train: tuple[str, str]
    """the source file and the target file to learn from"""
    valid: tuple[str, str] | None = None
    """the two files to validate on; without them some of train is split off"""
    test: tuple[str, str] | None = None
    """the two files to score on"""

    def __post_init__(self) -> None:
        for split, paths in _given(self.train, self.valid, self.test).items():
            if len(paths) != 2:
                raise ConfigError(f"{split}: expected two files, the source and the target, got {len(paths)}")

    def splits(self) -> tuple[str, ...]:
        return tuple(_given(self.train, self.valid, self.test))

    def pairs(self, split: str) -> Iterator[Pair]:
        source, target = _chosen(_given(self.train, self.valid, self.test), split)
        return read_pairs(source, target)


@dataclass(frozen=True, kw_only=True)
class Tsv:
    """One file for each split, with tabs between its columns and no header.

    >>> Tsv(train="train.tsv", source=1, target=0).splits()
    ('train',)
    """

    kind: Literal["tsv"] = "tsv"
    """one file with tabs for each split"""
    train: str
    """the file to learn from"""
    valid: str | None = None
    """the file to validate on; without it some of train is split off"""
    test: str | None = None
    """the file to score on"""
    source: int = 0
    """the number of the source's column; the first is 0"""
    target: int = 1
    """the number of the target's column"""

    def __post_init__(self) -> None:
        for name, column in (("source", self.source), ("target", self.target)):
            if column < 0:
                raise ConfigError(f"{name}: expected the number of a column, 0 or more, got {column}")

    def splits(self) -> tuple[str, ...]:
        return tuple(_given(self.train, self.valid, self.test))

    def pairs(self, split: str) -> Iterator[Pair]:
        path = _chosen(_given(self.train, self.valid, self.test), split)
        return read_tsv(path, self.source, self.target)


@dataclass(frozen=True, kw_only=True)
class Jsonl:
    """One file for each split, with a JSON object on every line.

    >>> Jsonl(train="train.jsonl", source="fr", target="en").splits()
    ('train',)
    """

    kind: Literal["jsonl"] = "jsonl"
    """one file of JSON objects for each split"""
    train: str
    """the file to learn from"""
    valid: str | None = None
    """the file to validate on; without it some of train is split off"""
    test: str | None = None
    """the file to score on"""
    source: str = "source"
    """the key of the source text"""
    target: str = "target"
    """the key of the target text"""

    def splits(self) -> tuple[str, ...]:
        return tuple(_given(self.train, self.valid, self.test))

    def pairs(self, split: str) -> Iterator[Pair]:
        path = _chosen(_given(self.train, self.valid, self.test), split)
        return read_jsonl(path, self.source, self.target)


def read_pairs(source: str | Path, target: str | Path) -> Iterator[Pair]:
    """The lines of two files side by side; files of different length are an error.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     french, english = Path(folder, "fr"), Path(folder, "en")
    ...     _ = french.write_text("un\\ndeux\\n"), english.write_text("one\\ntwo\\n")
    ...     list(read_pairs(french, english))
    [('un', 'one'), ('deux', 'two')]
    """
    sources = targets = 0
    for line, other in zip_longest(read_lines(source), read_lines(target)):
        sources += line is not None
        targets += other is not None
        if sources == targets:
            yield line, other
    if sources != targets:
        raise DataError(f"{source} has {sources} lines but {target} has {targets}; sentence pairs need the same number")
    if not sources:
        raise DataError(f"{source} and {target} are empty; expected one sentence a line")


def read_tsv(path: str | Path, source: int = 0, target: int = 1) -> Iterator[Pair]:
    """Two columns of a file with tabs; further columns are passed over.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "pairs.tsv")
    ...     _ = file.write_text("1\\tun\\tone\\n2\\tdeux\\ttwo\\n")
    ...     list(read_tsv(file, source=1, target=2))
    [('un', 'one'), ('deux', 'two')]
    """
    wanted = max(source, target) + 1
    number = 0
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split("\t")
        if len(columns) < wanted:
            raise DataError(
                f"{path}, line {number}: expected {wanted} columns or more with tabs between, found {len(columns)}"
            )
        yield columns[source], columns[target]
    if not number:
        raise DataError(f"{path} is empty; expected one sentence pair a line")


def read_jsonl(path: str | Path, source: str = "source", target: str = "target") -> Iterator[Pair]:
    """Two texts of the JSON object on each line; further keys are passed over.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "pairs.jsonl")
    ...     _ = file.write_text('{"fr": "un", "en": "one", "id": 7}')
    ...     list(read_jsonl(file, source="fr", target="en"))
    [('un', 'one')]
    """
    number = 0
    for number, line in enumerate(read_lines(path), 1):
        where = f"{path}, line {number}"
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            raise DataError(f'{where}: expected a JSON object, found "{_shortened(line)}"') from None
        if not isinstance(entry, dict):
            raise DataError(f'{where}: expected a JSON object, found "{_shortened(line)}"')
        yield _text_at(entry, source, where), _text_at(entry, target, where)
    if not number:
        raise DataError(f"{path} is empty; expected one JSON object a line")


def _text_at(entry: dict[str, object], key: str, where: str) -> str:
    if key not in entry:
        keys = ", ".join(f'"{found}"' for found in entry) or "none"
        raise DataError(f'{where}: there is no key "{key}" (keys: {_shortened(keys)})')
    text = entry[key]
    if not isinstance(text, str):
        raise DataError(f'{where}: expected a text under "{key}", found {_shortened(json.dumps(text))}')
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:  # half of a pair of \u escapes: no tokenizer takes it
        half = f"\\u{ord(text[error.start]):04x}"
        raise DataError(f'{where}: the text under "{key}" has half a character, {half}') from None
    return text


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _given(train: T, valid: T | None, test: T | None) -> dict[str, T]:
    every = {"train": train, "valid": valid, "test": test}
    return {split: value for split, value in every.items() if value is not None}


def _chosen(splits: dict[str, T], split: str) -> T:
    if split not in splits:
        raise ConfigError(f'there is no split "{split}" (splits: {", ".join(splits)}); name its files in the recipe')
    return splits[split]
