"""Texts with a condition each, a class or a row of numbers, for models of p(text | condition): files and built-in data.

A column is given by its name in the header, or by its number, counted from 1. If all are numbers, there is no header.
"""

from __future__ import annotations

import functools
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from regard.data import tables
from regard.data.lines import json_text, read_json_lines, read_lines
from regard.data.phrases import descriptions, english, french, numerals, sentences
from regard.data.sources import FileSource
from regard.data.splits import SPLITS, check_valid_share, held_out_split, is_held_out
from regard.data.texts import Piece, TextUnit
from regard.errors import ConfigError, DataError
from regard.progress import DownloadProgress


class ConditionedExample(NamedTuple):
    """A text and its condition: the name of a class, or a row of numbers."""

    condition: str | tuple[float, ...]
    text: str
    where: str
    """its place, for messages"""


class ConditionedTexts(ABC):
    """Texts with a condition each; without the conditions they are texts that end, like lines."""

    @property
    def unit(self) -> TextUnit:
        return "line"

    @property
    @abstractmethod
    def number_names(self) -> tuple[str, ...]:
        """Names of the numbers that a text is conditioned on; (): it is conditioned on a class."""

    @abstractmethod
    def examples(self, split: str) -> Iterator[ConditionedExample]:
        """The examples of a split in order, read lazily."""

    def pieces(self, split: str) -> Iterator[Piece]:
        """The texts of a split, None after each."""
        for example in self.examples(split):
            yield from (example.text, None)


@dataclass(frozen=True, kw_only=True)
class ConditionedFiles(FileSource, ConditionedTexts):
    """Tables of your own in which each row has a text and its condition."""

    kind: Literal["conditioned"] = "conditioned"
    """tables of your own with a text and its condition in each row: .jsonl, .tsv, otherwise comma-separated"""
    text: str = "text"
    """the column of the text: its name in the header, or its number, counted from 1; in JSON lines its key"""
    label: str | None = None
    """the column of the class that a text is conditioned on"""
    numbers: tuple[str, ...] = ()
    """the columns of the numbers that a text is conditioned on, instead of a class"""
    valid_share: float = 0.1
    """share of the training texts held out for validation if there is no valid file"""

    holds_out: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_valid_share(self.valid_share)
        if (self.label is None) == (not self.numbers):
            raise ConfigError(
                'data: a text is conditioned on a class or on numbers; give either label = "COLUMN" or '
                'numbers = ["COLUMN", ...]'
            )
        if self.text in (self.label, *self.numbers):
            raise ConfigError(f'data.text = "{self.text}" is also a column of the condition; name another')

    @property
    def number_names(self) -> tuple[str, ...]:
        return self.numbers

    def examples(self, split: str) -> Iterator[ConditionedExample]:
        path, empty = self.file(split), True
        holds_out = split != "test" and self.valid is None
        for example in self._read(path):
            empty = False
            if not example.text.strip():
                raise DataError(f"{example.where}: the text is empty; give every row one, or leave the row out")
            if not holds_out or is_held_out(example.text, self.valid_share) == (split == "valid"):
                yield example
        if empty:
            raise DataError(f"{path} has no row; expected a text and its condition on each line")

    def _read(self, path: str) -> Iterator[ConditionedExample]:
        ending = Path(path.removesuffix(".gz")).suffix
        if ending == ".jsonl":
            for where, entry in read_json_lines(path):
                numbers = tuple(json_number(entry, key, where) for key in self.numbers)
                label = "" if self.label is None else json_text(entry, self.label, where, or_number=True)
                yield ConditionedExample(
                    numbers or _class_name(label, where), json_text(entry, self.text, where), where
                )
            return
        lines = read_lines(path)
        yield from self._read_rows(tables.tsv_rows(lines) if ending == ".tsv" else tables.csv_rows(lines, path), path)

    def _read_rows(self, rows: Iterator[tables.Row], path: str) -> Iterator[ConditionedExample]:
        columns = self.numbers if self.label is None else (self.label,)
        names: Sequence[str] | None = None
        if not all(column.isdigit() for column in (self.text, *columns)):
            names = [name.strip() for name in next(rows, (0, []))[1]]
        for number, cells in rows:
            where = f"{path}, line {number}"
            at, *of = (tables.column_index(path, number, names, cells, column) for column in (self.text, *columns))
            if self.numbers:
                found = tuple(tables.parse_number(cells[i], name, where) for i, name in zip(of, columns, strict=True))
                yield ConditionedExample(found, cells[at], where)
            else:
                yield ConditionedExample(_class_name(cells[of[0]], where), cells[at], where)


def json_number(entry: dict[str, Any], key: str, where: str) -> float:
    """The number under a key of a JSON object."""
    if key not in entry:
        raise DataError(f'{where}: there is no key "{key}" (keys: {", ".join(entry)[:60]})')
    if isinstance(entry[key], bool) or not isinstance(entry[key], int | float):
        raise DataError(f'{where}: expected a number under "{key}", found {str(entry[key])[:40]!r}')
    return tables.parse_number(str(entry[key]), key, where)


def _class_name(label: str, where: str) -> str:
    if not label.strip():
        raise DataError(f"{where}: the class is empty; give every text one, or leave the row out")
    return " ".join(label.split())


class BuiltInConditionedTexts(ConditionedTexts):
    """Texts made by the rules of the built-in phrases."""

    def splits(self) -> tuple[str, ...]:
        return SPLITS

    def fetch(self, progress: DownloadProgress | None = None) -> None:
        """Nothing to download."""

    def credit(self) -> str:
        """Origin and license."""
        return "Made by the rules of regard. License: MIT"

    def scored_on(self, path: Path) -> ConditionedFiles:
        """A table with the column text and those of the condition as its test split."""
        label = None if self.number_names else "label"
        return ConditionedFiles(train=str(path), test=str(path), label=label, numbers=self.number_names)

    def examples(self, split: str) -> Iterator[ConditionedExample]:
        if split not in SPLITS:
            raise ConfigError(f"no split is called {split!r}; there are: {', '.join(SPLITS)}")
        for number, example in enumerate(self.all_examples(), 1):
            if held_out_split(example[1], HELD_OUT, HELD_OUT) == split:
                yield ConditionedExample(*example, f"example {number}")

    @abstractmethod
    def all_examples(self) -> Sequence[tuple[Any, str]]:
        """Condition and text of all splits."""


HELD_OUT = 0.05
"""share of the built-in texts in the validation and in the test split"""
KINDS: dict[str, sentences.Pattern] = {
    "command": descriptions.command_sentence,
    "comparison": descriptions.comparison_sentence,
    "date": numerals.date_sentence,
    "opinion": descriptions.opinion_sentence,
    "possession": descriptions.possession_sentence,
    "profession": sentences.profession_sentence,
    "question": descriptions.question_sentence,
    "time": numerals.time_sentence,
}
"""kinds of sentences, and the pattern that makes each"""
Language = Literal["en", "fr"]


@dataclass(frozen=True, kw_only=True)
class SentenceKinds(BuiltInConditionedTexts):
    """Generated sentences, conditioned on their kind: a command, a question, a date, ...

    >>> next(SentenceKinds(count=400).examples("train"))[:2]
    ('command', 'sell your ill duck')
    """

    kind: Literal["sentence-kinds"] = "sentence-kinds"
    """built-in generated sentences, conditioned on their kind: command, comparison, date, opinion, ..."""
    language: Language = "en"
    """language of the sentences"""
    count: int = 8_000
    """number of distinct sentences, all splits together"""
    seed: int = 1
    """seed of the sentences"""

    def __post_init__(self) -> None:
        if not 400 <= self.count <= 40_000:
            raise ConfigError(f"count: expected 400 to 40,000 sentences, got {self.count:,}")

    @property
    def number_names(self) -> tuple[str, ...]:
        return ()

    def all_examples(self) -> Sequence[tuple[str, str]]:
        return _sentences_of_kinds(self.language, self.count, self.seed)


@functools.lru_cache(maxsize=2)
def _sentences_of_kinds(language: Language, count: int, seed: int) -> list[tuple[str, str]]:
    """Distinct sentences of all kinds in turn."""
    draw = random.Random(seed)
    made: dict[tuple[str, str], None] = {}
    while len(made) < count:
        for name, pattern in KINDS.items():
            made[name, pattern(draw)[0 if language == "fr" else 1]] = None
    return list(made)[:count]


@dataclass(frozen=True, kw_only=True)
class NumberNames(BuiltInConditionedTexts):
    """The names of the numbers from 0 to 999, conditioned on their three digits.

    >>> NumberNames().all_examples()[243]
    ((2.0, 4.0, 3.0), 'two hundred and forty-three')
    """

    kind: Literal["number-names"] = "number-names"
    """built-in names of the numbers from 0 to 999, conditioned on their digits: hundreds, tens, units"""
    language: Language = "en"
    """language of the names"""

    @property
    def number_names(self) -> tuple[str, ...]:
        return "hundreds", "tens", "units"

    def all_examples(self) -> Sequence[tuple[tuple[float, ...], str]]:
        name = french.number if self.language == "fr" else english.number
        return [((float(n // 100), float(n // 10 % 10), float(n % 10)), name(n)) for n in range(1000)]
