"""Labeled texts and table rows: TSV, CSV and JSON-lines files, lines that begin with their label, movie reviews.

A column is given by its name in the header, or by its number, counted from 1. If all are numbers, there is no header.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from regard.data import tables
from regard.data.lines import json_text, read_json_lines, read_lines
from regard.data.movie_reviews import LabeledExample, MovieReviews
from regard.data.sources import FileSource, ImportedSource
from regard.data.splits import check_valid_share
from regard.errors import ConfigError, DataError
from regard.tasks.classify.clip_sources import ClipData
from regard.tasks.classify.image_sources import ImageData
from regard.tasks.classify.pairs import join_pair


@dataclass(frozen=True, kw_only=True)
class LabeledFiles(FileSource):
    """Files of labeled examples; without a valid file a share of train is held out."""

    valid_share: float = 0.1
    """share of the training examples held out for validation if there is no valid file"""

    def __post_init__(self) -> None:
        check_valid_share(self.valid_share)


@dataclass(frozen=True, kw_only=True)
class LabeledTexts(LabeledFiles):
    """Files of labeled texts; subclasses add the file format."""

    label_names: tuple[str, ...] | None = None
    """names for the labels in the files, each as LABEL=NAME: ["0=negative", "1=positive"]"""

    def __post_init__(self) -> None:
        super().__post_init__()
        for pair in self.label_names or ():
            if not all(part.strip() for part in pair.partition("=")):
                raise ConfigError(f'label_names: expected LABEL=NAME, such as "1=positive", got "{pair}"')

    def examples(self, split: str) -> Iterator[LabeledExample]:
        """The examples of a split in order, read lazily, with the names of their labels."""
        if not self.label_names:
            return self.read_examples(split)
        names = {label.strip(): name.strip() for label, _, name in (pair.partition("=") for pair in self.label_names)}
        return (self._with_name(example, names, self.file(split)) for example in self.read_examples(split))

    def _with_name(self, example: LabeledExample, names: Mapping[str, str], path: str) -> LabeledExample:
        if example.label in names:
            return example._replace(label=names[example.label])
        if example.label in names.values():  # a file of your own may use the names
            return example
        raise DataError(
            f'{path}, line {example.line}: the label "{example.label}" has no name; data.label_names has '
            f"{', '.join(names)}"
        )

    @abstractmethod
    def read_examples(self, split: str) -> Iterator[LabeledExample]:
        """The examples of a split as they are in its file."""


@dataclass(frozen=True, kw_only=True)
class LabeledColumns(LabeledTexts):
    """Files with a text and a label under names; a file to score is read by its ending."""

    text: str = "text"
    """the column of the text: its name in the header, or its number, counted from 1; in JSON lines its key"""
    label: str = "label"
    """the column of the label, in the same way; in JSON lines a string, an integer, true or false"""
    second: str | None = None
    """the column of the second text, if pairs of texts are classified; text is that of the first"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.second in (self.text, self.label):
            other = "text" if self.second == self.text else "label"
            raise ConfigError(f'second = "{self.second}" is the column of data.{other}; a pair needs two text columns')

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns of the text, or of both texts of a pair."""
        return (self.text,) if self.second is None else (self.text, self.second)

    def scored_on(self, path: Path) -> Self:
        ending, own = (Path(str(name).removesuffix(".gz")).suffix for name in (path, self.train))
        cls: Any = type(self) if ending == own else BY_ENDING.get(ending, type(self))
        shared = {
            name: getattr(self, name)
            for name in ("train", "valid", "valid_share", "text", "second", "label", "label_names")
        }
        return cls(test=str(path), **shared)


@dataclass(frozen=True, kw_only=True)
class LabeledTsv(LabeledColumns):
    """Tab-separated files, one per split."""

    kind: Literal["tsv"] = "tsv"
    """one tab-separated file per split"""

    def read_examples(self, split: str) -> Iterator[LabeledExample]:
        path = self.file(split)
        return read_examples(tables.tsv_rows(read_lines(path)), path, self.texts, self.label)


@dataclass(frozen=True, kw_only=True)
class LabeledCsv(LabeledColumns):
    """Comma-separated files, one per split; a quoted cell may hold commas and line breaks."""

    kind: Literal["csv"] = "csv"
    """one comma-separated file per split, cells in double quotes where needed"""

    def read_examples(self, split: str) -> Iterator[LabeledExample]:
        path = self.file(split)
        return read_examples(tables.csv_rows(read_lines(path), path), path, self.texts, self.label)


@dataclass(frozen=True, kw_only=True)
class LabeledJsonl(LabeledColumns):
    """JSON-lines files, one per split."""

    kind: Literal["jsonl"] = "jsonl"
    """one file of JSON objects per split"""

    def read_examples(self, split: str) -> Iterator[LabeledExample]:
        for number, (where, entry) in enumerate(read_json_lines(self.file(split)), 1):
            label = json_text(entry, self.label, where, or_number=True)
            text = join_texts([json_text(entry, key, where) for key in self.texts])
            yield LabeledExample(text, clean_label(label, where), number)


BY_ENDING = {".tsv": LabeledTsv, ".csv": LabeledCsv, ".jsonl": LabeledJsonl}
"""The source that reads a file, by the ending of its name."""


@dataclass(frozen=True, kw_only=True)
class LabeledLines(LabeledTexts):
    """Files whose lines are a label, a space and a text, as in the Stanford Sentiment Treebank."""

    kind: Literal["lines"] = "lines"
    """one file per split; each line is a label, a space and the text"""

    def read_examples(self, split: str) -> Iterator[LabeledExample]:
        path = self.file(split)
        rows = ((number, line.partition(" ")) for number, line in enumerate(read_lines(path), 1))
        return read_examples(((number, [label, text]) for number, (label, _, text) in rows), path, ("2",), "1")


class LabeledReviews(MovieReviews):
    """Movie reviews; a file of your own can be scored too."""

    def scored_on(self, path: Path) -> LabeledColumns:
        """A file with the columns text and label: .csv, .jsonl, otherwise tab-separated."""
        return LabeledTsv(train="train.tsv").scored_on(path)


@dataclass(frozen=True, kw_only=True)
class ImportedLabeledTexts(ImportedSource):
    """The training texts of a classifier that was trained elsewhere and imported: they are not here."""

    kind: Literal["imported-texts"] = "imported-texts"
    """the texts that an imported classifier was trained on, by others; they are not here"""

    def file(self, split: str) -> str:
        """What a split is read from, for messages."""
        return f"{split} of {self.source}"

    def examples(self, split: str) -> Iterator[LabeledExample]:
        """An error: there are no texts."""
        raise self.not_here("texts", "data.kind=tsv data.train=FILE")

    def scored_on(self, path: Path) -> LabeledColumns:
        """A file with the columns text and label: .csv, .jsonl, otherwise tab-separated."""
        return LabeledTsv(train="train.tsv").scored_on(path)


@dataclass(frozen=True, kw_only=True)
class LabeledTable(LabeledFiles):
    """Files with columns of numbers and one column of labels, for an MLP."""

    kind: Literal["table"] = "table"
    """rows of numbers with a label, separated by commas, semicolons or tabs"""
    label: str = "label"
    """the column of the label: its name in the header, or its number, counted from 1, in a file without a header"""
    columns: tuple[str, ...] = ()
    """the columns to read, by name or counted from 1; none: all that hold numbers, without the label's"""

    def rows(self, split: str) -> LabeledRows:
        """The numbers and labels of a split."""
        return read_table(self.file(split), self.label, self.columns)


TextData = LabeledTsv | LabeledCsv | LabeledJsonl | LabeledLines | LabeledReviews | ImportedLabeledTexts
DataConfig = TextData | LabeledTable | ImageData | ClipData


@dataclass(frozen=True)
class LabeledRows:
    """Rows of numbers with column names, and a label per row."""

    table: tables.NumericTable
    """(N, F)"""
    labels: tuple[str, ...]
    lines: tuple[int, ...]
    """the line of the file of each row"""

    def select(self, mask: Sequence[bool]) -> LabeledRows:
        """The rows where `mask` is True."""
        at = [i for i, keep in enumerate(mask) if keep]
        table = replace(self.table, values=self.table.values[at])
        return LabeledRows(table, tuple(self.labels[i] for i in at), tuple(self.lines[i] for i in at))


def read_table(path: str | Path, label: str, columns: Sequence[str] = ()) -> LabeledRows:
    """Read the given columns of a file, or all that hold numbers, and the labels."""
    names, rows = tables.read_header(read_lines(path), path, header=not label.isdigit())
    first = next(rows, None)
    if first is None:
        raise DataError(f"{path} has no rows; expected numbers and a label on each line")
    of = tables.column_index(path, first[0], names, first[1], label)
    at = _number_columns(path, first, names, columns, of)
    titles = names or [str(i + 1) for i in range(len(first[1]))]
    values, labels, lines = [], [], []
    for number, cells in chain([first], rows):
        tables.check_width(cells, titles, f"{path}, line {number}")
        values.append([tables.parse_number(cells[i], titles[i], f"{path}, line {number}") for i in at])
        labels.append(clean_label(cells[of], f"{path}, line {number}"))
        lines.append(number)
    table = tables.NumericTable(
        tuple(titles[i] for i in at), np.array(values, np.float64).reshape(len(values), len(at))
    )
    return LabeledRows(table, tuple(labels), tuple(lines))


def _number_columns(
    path: str | Path, first: tables.Row, names: Sequence[str] | None, columns: Sequence[str], label: int
) -> list[int]:
    """Positions of the columns to read."""
    number, cells = first
    if columns:
        found = [tables.column_index(path, number, names, cells, column) for column in columns]
        if label in found:
            raise DataError(f"{path}: data.columns names the label's own column; leave it out")
        return found
    found = [i for i, cell in enumerate(cells) if i != label and tables.is_number(cell)]
    if not found:
        raise DataError(f"{path}, line {number}: none of its {len(cells)} columns but the label's holds a number")
    return found


def read_examples(
    rows: Iterable[tables.Row], path: str | Path, texts: Sequence[str], label: str
) -> Iterator[LabeledExample]:
    """The text (or both texts of a pair) and the label of each row; columns by name in the header, or counted from 1.

    >>> list(read_examples([(1, ["score", "review"]), (2, ["1", "so great"])], "a.tsv", ["review"], "score"))
    [LabeledExample(text='so great', label='1', line=2)]
    """
    stream = iter(rows)
    names = None
    if not all(column.isdigit() for column in (*texts, label)):
        names = [name.strip() for name in next(stream, (0, []))[1]]
    empty = True
    for number, cells in stream:
        *at, of = (tables.column_index(path, number, names, cells, column) for column in (*texts, label))
        empty = False
        yield LabeledExample(
            join_texts([cells[i] for i in at]), clean_label(cells[of], f"{path}, line {number}"), number
        )
    if empty:
        raise DataError(f"{path} has no example; expected a text and its label on each line")


def join_texts(texts: Sequence[str]) -> str:
    """One text as it is, or a pair as one line; a pair with an empty half is an empty text."""
    if len(texts) == 1:
        return texts[0]
    return join_pair(*texts) if all(text.strip() for text in texts) else ""


def clean_label(label: str, where: str) -> str:
    """A label with normalized whitespace; an empty one is refused."""
    if not label.strip():
        raise DataError(f"{where}: the label is empty; give every text one, or leave the line out")
    return " ".join(label.split())
