"""Tables in text files: CSV parsing, delimiter detection, columns by name or number, and tables of numbers."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from regard.data.lines import LONGEST, read_lines
from regard.errors import ConfigError, DataError

MAX_NUMBER = float(np.finfo(np.float32).max)
Row = tuple[int, list[str]]
"""The number of a line, and its cells."""


def tsv_rows(lines: Iterable[str]) -> Iterator[Row]:
    """Cells between tabs, as they are; blank lines are skipped."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, line.split("\t")


def csv_rows(lines: Iterable[str], name: str | Path, delimiter: str = ",") -> Iterator[Row]:
    """CSV parsing: a cell in double quotes may hold delimiters, line ends and, doubled, quotes.

    >>> list(csv_rows(['1,"so, so', 'great ""film"" it is"', "0,bad"], "a.csv"))
    [(2, ['1', 'so, so\\ngreat "film" it is']), (3, ['0', 'bad'])]
    """
    csv.field_size_limit(LONGEST)  # the library's limit is global, and less than a long text
    rows = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter, strict=True)
    try:
        for cells in rows:
            if any(cell.strip() for cell in cells):
                yield rows.line_num, cells
    except csv.Error as error:
        raise DataError(
            f'{name}, line {rows.line_num}: {error}; expected cells with "{delimiter}" between them, those that hold '
            "it in double quotes, and a quote inside them doubled"
        ) from None


def sniff_delimiter(line: str, candidates: str = "\t;,") -> str | None:
    """The first of the candidates that a line contains."""
    return next((sign for sign in candidates if sign in line), None)


def read_header(lines: Iterable[str], name: str | Path, header: bool) -> tuple[list[str] | None, Iterator[Row]]:
    """The column names of a CSV table, if it has a header, and its rows; the delimiter is detected."""
    stream = iter(lines)
    top = next(stream, "")
    rows = csv_rows(chain([top], stream), name, sniff_delimiter(top) or ",")
    names = next(rows, (0, []))[1] if header else None
    return [" ".join(title.split()) for title in names] if names is not None else None, rows


def column_index(path: str | Path, number: int, names: Sequence[str] | None, cells: Sequence[str], column: str) -> int:
    """Position of a column in a row; `names` are those of the header, `column` is one of them or counted from 1."""
    if names is None or (column.isdigit() and column not in names):
        if int(column) < 1:
            raise DataError(f"{path}: columns are counted from 1, got {column}")
        if int(column) > len(cells):
            raise DataError(f"{path}, line {number}: expected {int(column)} columns or more, found {len(cells)}")
        return int(column) - 1
    if column not in names:
        header = ", ".join(" ".join(name.split())[:30] for name in names)
        raise DataError(
            f'{path} has no column "{column}" (header: {header}); name another in the recipe, or count them from 1 if '
            f"there is no header{_suggest_kind(names)}"
        )
    if len(cells) != len(names):
        raise DataError(f"{path}, line {number}: expected {len(names)} columns as in the header, found {len(cells)}")
    return names.index(column)


def _suggest_kind(names: Sequence[str]) -> str:
    """The data.kind to try where the whole first line was taken for one name."""
    signs = {"{": "jsonl", "\t": "tsv", ",": "csv"}
    found = [kind for sign, kind in signs.items() if len(names) == 1 and sign in names[0]]
    return f'; is data.kind = "{found[0]}" the right one?' if found else ""


def is_number(cell: str) -> bool:
    """Whether a cell holds a finite number."""
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def parse_number(cell: str, column: str, where: str) -> float:
    """The number in a cell."""
    if not is_number(cell):
        raise DataError(f'{where}: "{cell.strip()[:40]}" in column {column} is not a number')
    if abs(number := float(cell)) > MAX_NUMBER:
        raise DataError(f'{where}: "{cell.strip()[:40]}" in column {column} is too large; models read float32 numbers')
    return number


def check_width(cells: Sequence[str], names: Sequence[str], where: str) -> None:
    """Refuse a row that has not one cell per column."""
    if len(cells) != len(names):
        raise DataError(f"{where}: expected {len(names)} columns as above, found {len(cells)}")


@dataclass(frozen=True)
class NumericTable:
    """Columns of numbers with their names."""

    names: tuple[str, ...]
    values: np.ndarray
    """(N, F)"""


def read_numeric_table(path: str | Path, columns: Sequence[str] = ()) -> NumericTable:
    """The given columns of a file, or all that hold numbers."""
    return parse_numeric_table(read_lines(path), path, columns)


def parse_numeric_table(lines: Iterable[str], name: str | Path, columns: Sequence[str] = ()) -> NumericTable:
    """The given columns of a table with commas, semicolons, tabs or spaces, or all that hold numbers."""
    rows = _unquoted_rows(lines)
    first = next(rows, None)
    if first is None:
        raise DataError(f"{name}: there is no number in it; expected one row per line")
    second = next(rows, None)
    header = second is not None and not any(map(is_number, first[1]))
    names = first[1] if header else [str(i + 1) for i in range(len(first[1]))]
    start = [row for row in ((None if header else first), second) if row is not None]
    chosen = _number_columns(name, names, start[0][1], columns)
    values = []
    for number, cells in (*start, *rows):
        where = f"{name}, line {number}"
        check_width(cells, names, where)
        values.append([parse_number(cells[i], names[i], where) for i in chosen])
    array = np.array(values, np.float64).reshape(len(values), len(chosen))
    return NumericTable(tuple(names[i] for i in chosen), array)


def _unquoted_rows(lines: Iterable[str]) -> Iterator[Row]:
    delimiter: str | None = ""
    for number, line in enumerate(lines, 1):
        if line.strip():
            delimiter = sniff_delimiter(line) if delimiter == "" else delimiter
            yield number, [cell.strip().strip('"') for cell in line.split(delimiter)]


def _number_columns(path: str | Path, names: list[str], cells: list[str], columns: Sequence[str]) -> list[int]:
    if not columns:
        found = [i for i, cell in enumerate(cells) if i < len(names) and is_number(cell)]
        if not found:
            raise DataError(f"{path}: none of the {len(cells)} columns holds a number in its first line")
        return found
    counted = [str(i + 1) for i in range(len(names))]
    wrong = [column for column in columns if column not in names and column not in counted]
    if wrong:
        raise ConfigError(f'data.columns: {path} has no column "{wrong[0]}" (columns: {", ".join(names)})')
    return [names.index(column) if column in names else counted.index(column) for column in columns]
