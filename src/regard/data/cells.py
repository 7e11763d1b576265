"""Tables in text files: rows of cells with tabs or commas between them, and which of them a name means."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from regard.data.lines import LONGEST
from regard.errors import DataError

Row = tuple[int, list[str]]
"""The number of a line, and its cells."""


def tab_rows(lines: Iterable[str]) -> Iterator[Row]:
    """Cells between tabs, as they are; lines without anything are passed over.

    >>> list(tab_rows(["1\\tso great", "", '0\\t"so" bad']))
    [(1, ['1', 'so great']), (3, ['0', '"so" bad'])]
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, line.split("\t")


def comma_rows(lines: Iterable[str], name: str | Path, separator: str = ",") -> Iterator[Row]:
    """Cells between commas; one in double quotes may hold commas, line ends and, doubled, quotes.

    >>> list(comma_rows(['1,"so, so', 'great ""film"" it is"', "0,bad"], "a.csv"))
    [(2, ['1', 'so, so\\ngreat "film" it is']), (3, ['0', 'bad'])]
    """
    csv.field_size_limit(LONGEST)  # the library's own limit is for the whole program, and less than a long text
    rows = csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=True)
    try:
        for cells in rows:
            if any(cell.strip() for cell in cells):
                yield rows.line_num, cells
    except csv.Error as error:
        raise DataError(
            f'{name}, line {rows.line_num}: {error}; expected cells with "{separator}" between them, those that hold '
            "it in double quotes, and a quote inside them doubled"
        ) from None


def position(path: str | Path, number: int, names: Sequence[str] | None, cells: Sequence[str], column: str) -> int:
    """Where a column stands in a row; `names` are those on top of the file, `column` one of them or counted from 1.

    >>> position("a.tsv", 7, ["text", "stars"], ["so great", "5"], "stars")
    1
    >>> position("a.tsv", 7, None, ["so great"], "2")
    Traceback (most recent call last):
    regard.errors.DataError: a.tsv, line 7: expected 2 columns or more, found 1
    """
    if names is None or (column.isdigit() and column not in names):
        if int(column) < 1:
            raise DataError(f"{path}: columns are counted from 1, got {column}")
        if int(column) > len(cells):
            raise DataError(f"{path}, line {number}: expected {int(column)} columns or more, found {len(cells)}")
        return int(column) - 1
    if column not in names:
        told = ", ".join(" ".join(name.split())[:30] for name in names)
        raise DataError(
            f'{path} has no column "{column}" (on top: {told}); name another in the recipe, or count them from 1 if '
            f"there are no names on top{other_kind(names)}"
        )
    if len(cells) != len(names):
        raise DataError(f"{path}, line {number}: expected {len(names)} columns as on top, found {len(cells)}")
    return names.index(column)


def other_kind(names: Sequence[str]) -> str:
    """What to try where the whole first line was taken for one name.

    >>> other_kind(["text,label"]), other_kind(["text", "stars"])
    ('; is data.kind = "csv" the right one?', '')
    """
    signs = {"{": "jsonl", "\t": "tsv", ",": "csv"}
    found = [kind for sign, kind in signs.items() if len(names) == 1 and sign in names[0]]
    return f'; is data.kind = "{found[0]}" the right one?' if found else ""
