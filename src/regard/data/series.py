"""Real numbers in a text file, one place a line, one column or several."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from regard.data.lines import read_lines
from regard.data.texts import check_share
from regard.errors import ConfigError, DataError


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """A series of real numbers of your own.

    >>> Numbers(train="temperatures.csv").splits()
    ('train', 'valid')
    """

    kind: Literal["numbers"] = "numbers"
    """a series of real numbers, in a file of your own"""
    train: str
    """the file, one place a line: numbers with commas, semicolons, tabs or spaces between; names may stand on top"""
    valid: str | None = None
    """the file to validate on; without it the end of train is kept apart"""
    test: str | None = None
    """the file to score on"""
    columns: tuple[str, ...] = ()
    """the columns to read, by the names on top or counted from 1; none: all that hold numbers"""
    held_out: float = 0.1
    """without valid: the share at the end of train that is kept apart"""

    def __post_init__(self) -> None:
        check_share(self.held_out)

    def splits(self) -> tuple[str, ...]:
        """train and valid, and test if there is one."""
        return ("train", "valid") if self.test is None else ("train", "valid", "test")

    def scored_on(self, path: Path) -> Numbers:
        """The same with another file to score on."""
        return replace(self, test=str(path))

    def table(self, split: str) -> Table:
        """The numbers of a split."""
        if split not in self.splits():
            names = ", ".join(self.splits())
            raise ConfigError(f'there is no split "{split}" (splits: {names}); name it in the recipe')
        own = {"valid": self.valid, "test": self.test}.get(split)
        if own is not None:
            return read_numbers(own, self.columns)
        whole = read_numbers(self.train, self.columns)
        if self.valid is not None:
            return whole
        cut = int(len(whole.values) * (1 - self.held_out))
        return replace(whole, values=whole.values[:cut] if split == "train" else whole.values[cut:])

    def attribution(self) -> str:
        """A path says nothing about whom to credit."""
        return f"{self.kind}: {self.train}; its licence is for whoever gave it to tell"


@dataclass(frozen=True)
class Table:
    """Numbers, with the names of their columns.

    >>> Table(("hour", "load"), np.zeros((5, 2))).names
    ('hour', 'load')
    """

    names: tuple[str, ...]
    values: np.ndarray
    """(N, F)"""


def read_numbers(path: str | Path, columns: Sequence[str] = ()) -> Table:
    """The columns of a file that were asked for, or all that hold numbers.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "t.csv")
    ...     _ = file.write_text('"Date","Temp"\\n1981-01-01,20.7\\n1981-01-02,17.9\\n')
    ...     read_numbers(file)
    Table(names=('Temp',), values=array([[20.7],
           [17.9]]))
    """
    return parse_numbers(read_lines(path), path, columns)


def parse_numbers(lines: Iterable[str], name: str | Path, columns: Sequence[str] = ()) -> Table:
    """The same of lines that are there already; `name` is for messages.

    >>> parse_numbers(["1 2", "3 4"], "prompt").values.tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    rows = _rows(lines)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{name}: there is no number in it; expected one line a place")
    second = next(rows, None)
    named = second is not None and not any(map(_is_number, first[1]))
    names = first[1] if named else [str(i + 1) for i in range(len(first[1]))]
    given = [row for row in ((None if named else first), second) if row is not None]
    chosen = _chosen(name, names, given[0][1], columns)
    values = [_numbers(name, row, names, chosen) for row in (*given, *rows)]
    return Table(tuple(names[i] for i in chosen), np.array(values, np.float64).reshape(len(values), len(chosen)))


Row = tuple[int, list[str]]
"""The number of a line, and its cells."""


def _rows(lines: Iterable[str]) -> Iterator[Row]:
    separator: str | None = ""
    for number, line in enumerate(lines, 1):
        if line.strip():
            if separator == "":
                separator = next((sign for sign in "\t;," if sign in line), None)
            yield number, [cell.strip().strip('"') for cell in line.split(separator)]


def _chosen(path: str | Path, names: list[str], cells: list[str], columns: Sequence[str]) -> list[int]:
    """Which columns are read."""
    if not columns:
        found = [i for i, cell in enumerate(cells) if i < len(names) and _is_number(cell)]
        if not found:
            raise DataError(f"{path}: none of the {len(cells)} columns holds a number in its first line")
        return found
    counted = [str(i + 1) for i in range(len(names))]
    wrong = [column for column in columns if column not in names and column not in counted]
    if wrong:
        raise ConfigError(f'data.columns: {path} has no column "{wrong[0]}" (columns: {", ".join(names)})')
    return [names.index(column) if column in names else counted.index(column) for column in columns]


def _numbers(path: str | Path, row: Row, names: list[str], chosen: list[int]) -> list[float]:
    number, cells = row
    if len(cells) != len(names):
        raise DataError(f"{path}, line {number}: expected {len(names)} columns as above, found {len(cells)}")
    for i in chosen:
        if not _is_number(cells[i]):
            raise DataError(f'{path}, line {number}: "{cells[i]}" in column {names[i]} is not a number')
    return [float(cells[i]) for i in chosen]


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
