"""Rows of numbers with a label: tables of one's own, as for an MLP."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np

from regard.data.cells import Row, comma_rows, position
from regard.data.labelled import chosen, given, named, unknown
from regard.data.lines import read_lines
from regard.data.series import Table
from regard.errors import DataError


@dataclass(frozen=True, kw_only=True)
class LabelledTable:
    """One file for each split: columns of numbers, and one that holds the label.

    >>> LabelledTable(train="flowers.csv", label="species").splits()
    ('train',)
    """

    kind: Literal["table"] = "table"
    """rows of numbers, each with a label"""
    train: str
    """the file to learn from, with commas, semicolons or tabs between its columns"""
    valid: str | None = None
    """the file to validate on; without it some of train is kept apart (task.held_out)"""
    test: str | None = None
    """the file to score on"""
    label: str = "label"
    """the column of the label: its name on top, or counted from 1 in a file without names"""
    columns: tuple[str, ...] = ()
    """the columns to read, by name or counted from 1; none: all that hold numbers, the label's left out"""

    def splits(self) -> tuple[str, ...]:
        return tuple(given(self))

    def file(self, split: str) -> str:
        return chosen(given(self), split)

    def rows(self, split: str) -> LabelledRows:
        """The numbers and labels of a split."""
        path = self.file(split)
        return read_table(path, self.label, self.columns)

    def scored_on(self, path: Path) -> LabelledTable:
        return replace(self, test=str(path))

    def attribution(self) -> str:
        return unknown(self)


@dataclass(frozen=True)
class LabelledRows:
    """Numbers with the names of their columns, and a label a row.

    >>> rows = LabelledRows(Table(("width",), np.array([[1.0], [2.0]])), ("a", "b"), (2, 3))
    >>> rows.only([False, True]).labels
    ('b',)
    """

    table: Table
    """(N, F)"""
    labels: tuple[str, ...]
    lines: tuple[int, ...]
    """of each row, the line of its file"""

    def only(self, kept: Sequence[bool]) -> LabelledRows:
        """The rows that are kept."""
        at = [i for i, keep in enumerate(kept) if keep]
        values = self.table.values[at]
        return LabelledRows(
            replace(self.table, values=values), tuple(self.labels[i] for i in at), tuple(self.lines[i] for i in at)
        )


def read_table(path: str | Path, label: str, columns: Sequence[str] = ()) -> LabelledRows:
    """The columns of a file that were asked for, or all that hold numbers, and the labels.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "flowers.csv")
    ...     _ = file.write_text("name,width,height,kind\\nrose,1,2,a\\nlily,3,4,b\\n")
    ...     found = read_table(file, "kind")
    >>> found.table.names, found.table.values.tolist(), found.labels
    (('width', 'height'), [[1.0, 2.0], [3.0, 4.0]], ('a', 'b'))
    """
    names, rows = opened(read_lines(path), path, named=not label.isdigit())
    first = next(rows, None)
    if first is None:
        raise DataError(f"{path} has no rows; expected numbers and a label on each line")
    of = position(path, first[0], names, first[1], label)
    at = _columns(path, first, names, columns, of)
    titles = names or [str(i + 1) for i in range(len(first[1]))]
    values, labels, lines = [], [], []
    for number, cells in chain([first], rows):
        if len(cells) != len(titles):
            raise DataError(f"{path}, line {number}: expected {len(titles)} columns as above, found {len(cells)}")
        values.append([to_number(cells[i], titles[i], f"{path}, line {number}") for i in at])
        labels.append(named(cells[of], f"{path}, line {number}"))
        lines.append(number)
    table = Table(tuple(titles[i] for i in at), np.array(values, np.float64).reshape(len(values), len(at)))
    return LabelledRows(table, tuple(labels), tuple(lines))


def opened(lines: Iterable[str], name: str | Path, named: bool) -> tuple[list[str] | None, Iterator[Row]]:
    """The names on top of a table, if it has any, and its rows; what stands between cells is found by itself.

    >>> names, rows = opened(["a;b", "1;2"], "t.csv", named=True)
    >>> names, list(rows)
    (['a', 'b'], [(2, ['1', '2'])])
    """
    stream = iter(lines)
    top = next(stream, "")
    rows = comma_rows(chain([top], stream), name, separator_of(top))
    names = next(rows, (0, []))[1] if named else None
    return [" ".join(title.split()) for title in names] if names is not None else None, rows


def separator_of(line: str) -> str:
    """What stands between the cells of a line: a tab, a semicolon, or else a comma.

    >>> separator_of("1;2,5")
    ';'
    """
    return next((sign for sign in "\t;" if sign in line), ",")


def to_number(cell: str, column: str, where: str) -> float:
    """A cell as a number.

    >>> to_number("tall", "height", "a.csv, line 7")
    Traceback (most recent call last):
    regard.errors.DataError: a.csv, line 7: "tall" in column height is not a number
    """
    if not is_number(cell):
        raise DataError(f'{where}: "{cell.strip()[:40]}" in column {column} is not a number')
    return float(cell)


def is_number(cell: str) -> bool:
    """Whether a cell holds a number; nan and inf are none.

    >>> is_number(" 1e3 "), is_number("nan"), is_number("")
    (True, False, False)
    """
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _columns(
    path: str | Path, first: Row, names: Sequence[str] | None, columns: Sequence[str], label: int
) -> list[int]:
    """Which columns are read."""
    number, cells = first
    if columns:
        found = [position(path, number, names, cells, column) for column in columns]
        if label in found:
            raise DataError(f"{path}: data.columns names the label's own column; leave it out")
        return found
    found = [i for i, cell in enumerate(cells) if i != label and is_number(cell)]
    if not found:
        raise DataError(f"{path}, line {number}: none of its {len(cells)} columns but the label's holds a number")
    return found
