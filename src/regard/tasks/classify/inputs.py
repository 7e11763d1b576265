"""What a classifier reads: a text, or a row of numbers. How it is kept, what a model sees of it, how it is shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch

from regard.data import RowLengths, Shards
from regard.data.cells import comma_rows
from regard.data.tabular import is_number, separator_of, to_number
from regard.errors import DataError
from regard.sequence import Tokens
from regard.spaces import Space, Values, Vectors, Words
from regard.tasks.generate.numbers import Scale
from regard.tasks.translate.prepare import tokens_of
from regard.text import Tokenizer
from regard.text.kinds import check_characters

COLUMN = "text"
"""Of the shards: what is read."""


@dataclass(frozen=True)
class Piece:
    """One text or row, as far as it is read.

    >>> Piece([7, 8, 9], left_out=0).row
    [7, 8, 9]
    """

    row: Sequence[Any]
    """ids, or numbers; empty: there is nothing to read"""
    left_out: int
    """tokens that the text has and that are not read"""


class Matter(ABC):
    """What stands in one example.

    >>> Measures(Scale(("width",), (2.0,), (1.0,))).read(["3.0"])[0].row
    [1.0]
    """

    @abstractmethod
    def space(self) -> Space:
        """What stands at one place."""

    @abstractmethod
    def vocabulary(self) -> int:
        """How many different ids are kept on the disk."""

    @abstractmethod
    def read(self, lines: Sequence[str], first_line: int = 1) -> list[Piece]:
        """What somebody gave, one piece a line; `first_line` is the number of the first, for messages."""

    @abstractmethod
    def packed(self, row: Sequence[Any]) -> Sequence[int]:
        """What is read as ids for the disk."""

    @abstractmethod
    def stored(self, shards: Shards, rows: np.ndarray) -> list[Any]:
        """What was kept, by the numbers of its rows."""

    @abstractmethod
    def lengths(self, shards: Shards) -> RowLengths:
        """How many places each row takes in a batch."""

    @abstractmethod
    def tokens(self, rows: Sequence[Any]) -> Tokens:
        """Rows as a model reads them, together."""

    @abstractmethod
    def words(self, row: Sequence[Any]) -> list[str]:
        """What stands at each place, for people."""

    def heading(self, line: str) -> Matter | None:
        """How lines are read under a line of names, if this is one."""
        return None

    def forgotten(self, rows: Sequence[Any], seeds: np.ndarray, share: float) -> Sequence[Any]:
        """Rows of which a share is read as unknown, chosen by one seed a row; numbers are never unknown."""
        return rows


@dataclass(frozen=True)
class Counted:
    """Lengths of texts with what a batch puts in front of them.

    >>> import tempfile
    >>> from regard.data import ShardWriter
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with ShardWriter(f"{home}/train", {"text": 9}) as writer:
    ...         writer.append([([4, 5],), ([6],)])
    ...     Counted(Shards.open(f"{home}/train"), before=1)[np.array([1, 0])]
    array([2, 3])
    """

    shards: Shards
    before: int

    def __len__(self) -> int:
        return len(self.shards)

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray:
        return self.shards.lengths(COLUMN)[rows] + self.before


@dataclass(frozen=True)
class Prose(Matter):
    """Text, cut into tokens.

    >>> from regard.text import TokenizerConfig
    >>> tokenizer = Tokenizer.train(["so great", "so bad"], TokenizerConfig(kind="word"))
    >>> prose = Prose(tokenizer, limit=2, starts=True)
    >>> piece = prose.read(["so so so great"])[0]
    >>> prose.words(piece.row), piece.left_out
    (['<SOS>', 'so', 'so'], 2)
    """

    tokenizer: Tokenizer
    limit: int
    """the most tokens that are read of a text"""
    keep: Literal["beginning", "end"] = "beginning"
    """which tokens of a longer one"""
    starts: bool = False
    """whether <SOS> stands in front, whose place then speaks for the whole, as BERT's [CLS]"""
    table: int = 0
    """numbers of a word's vector, where it has a width of its own"""

    def space(self) -> Words:
        return Vectors(self.tokenizer.size, table=self.table) if self.table else Words(self.tokenizer.size)

    def vocabulary(self) -> int:
        return self.tokenizer.size

    def read(self, lines: Sequence[str], first_line: int = 1) -> list[Piece]:
        for number, text in enumerate(lines, first_line):
            check_characters(text, f"line {number}")
        return [self.cut(ids) for ids in self.tokenizer.encode_batch([text.strip() for text in lines])]

    def cut(self, ids: list[int]) -> Piece:
        """As much of a text as is read."""
        kept = ids[: self.limit] if self.keep == "beginning" else ids[-self.limit :]
        return Piece(kept, len(ids) - len(kept))

    def packed(self, row: Sequence[Any]) -> Sequence[int]:
        return row

    def stored(self, shards: Shards, rows: np.ndarray) -> list[np.ndarray]:
        return shards.take(rows, COLUMN)

    def lengths(self, shards: Shards) -> Counted:
        return Counted(shards, int(self.starts))

    def tokens(self, rows: Sequence[Any]) -> Tokens:
        return tokens_of(rows, (self.tokenizer.sos,) if self.starts else (), ())

    def words(self, row: Sequence[Any]) -> list[str]:
        return ["<SOS>"] * self.starts + self.tokenizer.tokens(row)

    def forgotten(self, rows: Sequence[Any], seeds: np.ndarray, share: float) -> list[np.ndarray]:
        return [
            np.where(drawn(seed, len(row)) < share, self.tokenizer.unk, row)
            for row, seed in zip(rows, seeds, strict=True)
        ]


def drawn(seed: int, count: int) -> np.ndarray:
    """Numbers from 0 to 1 that follow from a seed alone (SplitMix64, Steele et al. 2014).

    >>> drawn(7, 3).round(3), bool((drawn(7, 3) == drawn(7, 5)[:3]).all())
    (array([0.39 , 0.017, 0.901]), True)
    """
    mixed = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ mixed >> np.uint64(shift)) * np.uint64(factor)
    return (mixed ^ mixed >> np.uint64(31)) / 2.0**64


@dataclass(frozen=True)
class Measures(Matter):
    """A row of numbers, scaled by what training has seen: one place that holds them all.

    >>> row = Measures(Scale(("width", "height"), (1.0, 0.0), (1.0, 2.0)))
    >>> row.read(["3,4", ""])[0].row, row.heading("height,width,kind").read(["4,3,rose"])[0].row
    ([2.0, 2.0], [2.0, 2.0])
    """

    scale: Scale
    at: tuple[int, ...] = ()
    """where the columns stand in a line; (): in their order, and no others"""
    cells: int = 0
    """how many a line has; 0: one a column"""

    def space(self) -> Values:
        return Values(len(self.scale.names))

    def vocabulary(self) -> int:
        return 1 << 32

    def heading(self, line: str) -> Measures | None:
        given = [cell.strip() for cell in _cells(line, "line 1")]
        if not given or any(map(is_number, given)):
            return None
        missing = [name for name in self.scale.names if name not in given]
        if missing:
            raise DataError(
                f"line 1: there is no column {missing[0]} (columns: {', '.join(given)}); this model reads "
                f"{', '.join(self.scale.names)}"
            )
        return replace(self, at=tuple(given.index(name) for name in self.scale.names), cells=len(given))

    def read(self, lines: Sequence[str], first_line: int = 1) -> list[Piece]:
        return [self.row(line, f"line {number}") for number, line in enumerate(lines, first_line)]

    def row(self, line: str, where: str) -> Piece:
        """One line of numbers; one that holds nothing is read as nothing."""
        names, given = self.scale.names, _cells(line, where) if line.strip() else []
        if not given:
            return Piece([], 0)
        if len(given) != (self.cells or len(names)):
            raise DataError(
                f"{where}: expected {self.cells or len(names)} columns, found {len(given)}; this model reads "
                f"{', '.join(names)}"
            )
        places = self.at or range(len(names))
        values = [to_number(given[i], name, where) for i, name in zip(places, names, strict=True)]
        return Piece(self.scale.apply(np.array([values]))[0].tolist(), 0)

    def packed(self, row: Sequence[Any]) -> Sequence[int]:
        return np.asarray(row, "<f4").view("<u4").tolist()

    def stored(self, shards: Shards, rows: np.ndarray) -> list[np.ndarray]:
        return [bits.view("<f4") for bits in shards.take(rows, COLUMN)]

    def lengths(self, shards: Shards) -> RowLengths:
        return np.ones(len(shards), np.int64)

    def tokens(self, rows: Sequence[Any]) -> Tokens:
        numbers = np.asarray(rows, np.float32).reshape(len(rows), 1, len(self.scale.names))
        return Tokens.full(torch.from_numpy(numbers))

    def words(self, row: Sequence[Any]) -> list[str]:
        return ["row"]


def _cells(line: str, where: str) -> list[str]:
    return next(comma_rows([line], where, separator_of(line)), (0, []))[1]
