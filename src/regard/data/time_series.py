"""A CSV file of numbers with their times: read into arrays, with every hole and every stray cell told by its line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from regard.data.cells import Row, comma_rows
from regard.data.timestamps import NUMBERED, ROW, Clock, Part, Step, angles, form_of, missing, parsed, step_of
from regard.errors import ConfigError, DataError

SIGNS = "\t;,|"
"""What may stand between cells; the first that the first line holds is it."""
ABSENT = frozenset({"", "nan", "na", "n/a", "null", "none", "-", "?"})
"""How a cell says that it holds nothing."""
Gaps = Literal["refuse", "carry"]


@dataclass(frozen=True)
class Wanted:
    """Which columns of a file are what, and what is done where something is missing.

    >>> Wanted(columns=("load",), known=("holiday",)).gaps
    'refuse'
    """

    time: str | None = None
    form: str | None = None
    columns: Sequence[str] = ()
    known: Sequence[str] = ()
    calendar: Sequence[Part] = ()
    gaps: Gaps = "refuse"


@dataclass(frozen=True)
class Timeline:
    """Numbers in the order of time: a row a step, a column a thing that is measured.

    >>> found = parse_timeline(["day,load", "2024-01-01,5", "2024-01-02,7"], "a.csv", Wanted())
    >>> found.names, found.values.tolist(), found.clock.written(found.stamps)
    (('load',), [[5.0], [7.0]], ['2024-01-01', '2024-01-02'])
    """

    names: tuple[str, ...]
    values: np.ndarray
    """(N, F)"""
    known_names: tuple[str, ...]
    known: np.ndarray
    """(N + M, K): what is known of each row before it comes; of M rows more than there are values"""
    stamps: np.ndarray
    """(N + M,) moments, or the numbers of rows"""
    clock: Clock
    filled: np.ndarray
    """(N,) of each row, how many cells were missing and hold what stood before them"""

    def __len__(self) -> int:
        return len(self.values)

    def between(self, start: int, end: int) -> Timeline:
        """Some of the rows; what is known of later ones is left out."""
        cut = slice(start, end)
        values, known, stamps, filled = (x[cut] for x in (self.values, self.known, self.stamps, self.filled))
        return replace(self, values=values, known=known, stamps=stamps, filled=filled)

    def ahead(self, count: int, calendar: Sequence[Part]) -> Timeline:
        """The same with what is known of the `count` rows after the last one, as far as a calendar can tell."""
        more = count - (len(self.stamps) - len(self.values))
        if more <= 0:
            return self
        given = len(self.known_names) - 2 * len(calendar)
        if given:
            raise DataError(
                f"{', '.join(self.known_names[:given])}: what is known must be known for {count} rows after the last "
                f"value, and is for {count - more}; add rows at the end that leave the values empty"
            )
        stamps = np.concatenate([self.stamps, self.clock.step.after(self.stamps[-1], more)])
        known = np.concatenate([self.known, angles(stamps[-more:], calendar)])
        return replace(self, stamps=stamps, known=known)


def parse_timeline(lines: Iterable[str], name: str | Path, wanted: Wanted) -> Timeline:
    """Lines of a CSV file as numbers in time; `name` is for messages.

    >>> parse_timeline(["1;2", "3;x"], "a.csv", Wanted())
    Traceback (most recent call last):
    regard.errors.DataError: a.csv, line 2: "x" in column 2 is not a number
    """
    names, rows = _cells(lines, name)
    time, form = _time(rows, names, name, wanted)
    chosen = _chosen(rows, names, name, time, wanted)
    known = _named(wanted.known, names, name, "data.known")
    for i in set(chosen) & set(known):
        raise ConfigError(f'"{names[i]}" is in data.columns and in data.known; what is known is not forecast')
    numbers = np.array([[_number(row, names, i, name) for i in (*chosen, *known)] for row in rows])
    future = _future(numbers[:, : len(chosen)]) if known else 0
    if len(rows) - future < 2:
        raise DataError(f"{name}: there are {len(rows) - future} rows with values; expected at least 2, one a time")
    stamps, clock, lost = _stamps(rows, names, name, time, form)
    if lost.any():
        numbers, stamps = _filled_in(numbers, stamps, lost, clock, rows, name, wanted.gaps)
    there = slice(0, len(numbers) - future)
    empty = np.isnan(numbers)
    empty[there.stop :, : len(chosen)] = False  # what is not there yet
    if empty.any():
        _check_empty(empty, rows, [names[i] for i in (*chosen, *known)], name, wanted.gaps)
        numbers = _carried(numbers)
    if clock.format == NUMBERED and wanted.calendar:
        raise ConfigError(f"data.calendar: {name} has no column with times; name it in data.time, or leave it out")
    calendar = angles(stamps, wanted.calendar)
    told = tuple(f"{part} {turn}" for part in wanted.calendar for turn in ("sine", "cosine"))
    return Timeline(
        tuple(names[i] for i in chosen),
        numbers[there, : len(chosen)],
        (*(names[i] for i in known), *told),
        np.concatenate([numbers[:, len(chosen) :], calendar], 1),
        stamps,
        clock,
        empty[there].sum(1),
    )


def _cells(lines: Iterable[str], name: str | Path) -> tuple[list[str], list[Row]]:
    """The names of the columns, and the rows below them."""
    held = list(lines)
    top = next((line for line in held if line.strip()), None)
    if top is None:
        raise DataError(f"{name}: it is empty; expected a CSV file, one time a line")
    sign = next((sign for sign in SIGNS if sign in top), ",")
    rows = [(number, [cell.strip() for cell in cells]) for number, cells in comma_rows(held, name, sign)]
    first, named = rows[0][1], _is_named(rows)
    names = first if named else [str(i + 1) for i in range(len(first))]
    twice = [column for i, column in enumerate(names) if column in names[:i]]
    if twice:
        raise DataError(f'{name}: two columns are called "{twice[0]}"; give each a name of its own')
    rows = rows[1:] if named else rows
    if not rows:
        raise DataError(f"{name}: there are no rows below the names of its columns")
    for number, cells in rows:
        if len(cells) != len(names):
            raise DataError(f"{name}, line {number}: expected {len(names)} columns as above, found {len(cells)}")
    return names, rows


def _is_named(rows: list[Row]) -> bool:
    """Whether the first row holds names: no number, or a word above one."""
    first, second = rows[0][1], rows[1][1] if len(rows) > 1 else []
    counts = [_is_number(cell) or form_of(cell) is not None for cell in first]
    below = [_is_number(cell) or form_of(cell) is not None for cell in second]
    above = any(low and not top and cell.lower() not in ABSENT for cell, top, low in zip(first, counts, below))
    return above or not any(counts)


def _time(rows: list[Row], names: list[str], name: str | Path, wanted: Wanted) -> tuple[int | None, str]:
    """Which column holds times, and in which form; None: rows are counted."""
    if wanted.time is None:
        found = [(i, form) for i, cell in enumerate(rows[0][1]) if (form := wanted.form or form_of(cell))]
        found = [(i, form) for i, form in found if parsed(rows[0][1][i], form)]
        if wanted.form and not found:
            raise DataError(f'{name}, line {rows[0][0]}: no column holds a time of the form "{wanted.form}"')
        return found[0] if found else (None, NUMBERED)
    at = _named([wanted.time], names, name, "data.time")[0]
    number, cells = rows[0]
    form = wanted.form or form_of(cells[at])
    if form is None:
        raise DataError(
            f'{name}, line {number}: "{cells[at]}" in column {names[at]} is no time that is known by itself; tell its '
            'form in data.format, such as "%d.%m.%Y" or, for years, "%Y"'
        )
    return at, form


def _chosen(rows: list[Row], names: list[str], name: str | Path, time: int | None, wanted: Wanted) -> list[int]:
    """Which columns are forecast."""
    if wanted.columns:
        return _named(wanted.columns, names, name, "data.columns")
    apart = {time, *_named(wanted.known, names, name, "data.known")}
    found = [
        i
        for i in range(len(names))
        if i not in apart and _is_number(next((c[i] for _, c in rows if c[i].lower() not in ABSENT), ""))
    ]
    if not found:
        raise DataError(f"{name}: none of its {len(names)} columns holds numbers ({', '.join(names)})")
    return found


def _named(columns: Sequence[str], names: list[str], name: str | Path, setting: str) -> list[int]:
    wrong = [column for column in columns if column not in names]
    if wrong:
        raise ConfigError(f'{setting}: {name} has no column "{wrong[0]}" (columns: {", ".join(names)})')
    return [names.index(column) for column in columns]


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def _number(row: Row, names: list[str], at: int, name: str | Path) -> float:
    """The number in a cell; NaN: there is none."""
    cell = row[1][at]
    if cell.lower() in ABSENT:
        return math.nan
    if not _is_number(cell):
        raise DataError(f'{name}, line {row[0]}: "{cell}" in column {names[at]} is not a number')
    return float(cell)


def _future(values: np.ndarray) -> int:
    """How many rows at the end have no values: those of which only what is known is told."""
    there = np.flatnonzero(~np.isnan(values).all(1))
    return len(values) - 1 - int(there[-1]) if len(there) else len(values)


def _stamps(
    rows: list[Row], names: list[str], name: str | Path, time: int | None, form: str
) -> tuple[np.ndarray, Clock, np.ndarray]:
    """The moments of rows, how they are written, and how many are missing before each but the first."""
    if time is None:
        return np.arange(1, len(rows) + 1), Clock(ROW, NUMBERED, Step(1)), np.zeros(len(rows) - 1, int)
    moments = []
    for number, cells in rows:
        moment = parsed(cells[time], form)
        if moment is None:
            raise DataError(
                f'{name}, line {number}: "{cells[time]}" in column {names[time]} is no time of the form "{form}" as '
                "above"
            )
        moments.append(moment)
    stamps = np.array(moments, "datetime64[us]")
    step = step_of(stamps)
    written = [cells[time] for _, cells in rows]
    return stamps, Clock(names[time], form, step), missing(stamps, step, str(name), [n for n, _ in rows], written)


def _filled_in(
    numbers: np.ndarray,
    stamps: np.ndarray,
    lost: np.ndarray,
    clock: Clock,
    rows: list[Row],
    name: str | Path,
    gaps: Gaps,
) -> tuple[np.ndarray, np.ndarray]:
    """The rows with empty ones where some are missing."""
    if gaps == "refuse":
        at = int(np.flatnonzero(lost)[0])
        before, after = clock.written(stamps[at : at + 2])
        raise DataError(
            f"{name}, line {rows[at + 1][0]}: {_rows(int(lost[at]))} missing between {before} and {after} (rows are "
            f'{clock.step} apart; {int(lost.sum())} missing in all); data.gaps = "carry" goes on with the last values'
        )
    places = np.arange(len(stamps)) + np.concatenate([[0], np.cumsum(lost)])
    whole = np.full((int(places[-1]) + 1, numbers.shape[1]), math.nan)
    whole[places] = numbers
    return whole, np.concatenate([stamps[:1], clock.step.after(stamps[0], len(whole) - 1)])


def _rows(count: int) -> str:
    return "1 row is" if count == 1 else f"{count} rows are"


def _check_empty(empty: np.ndarray, rows: list[Row], names: list[str], name: str | Path, gaps: Gaps) -> None:
    """Refuse empty cells that are not to be filled, or cannot be."""
    row, column = (int(at[0]) for at in np.nonzero(empty))
    if gaps == "refuse":  # then no row was filled in, and rows are lines
        raise DataError(
            f"{name}, line {rows[row][0]}: column {names[column]} is empty ({int(empty.sum())} such cells); "
            'data.gaps = "carry" goes on with the last values'
        )
    if empty[0].any():
        column = int(np.flatnonzero(empty[0])[0])
        raise DataError(
            f"{name}, line {rows[0][0]}: column {names[column]} is empty, and there is nothing before it to go on "
            "with; begin the file later"
        )


def _carried(numbers: np.ndarray) -> np.ndarray:
    """Each empty cell as the last one above it that is not."""
    places = np.where(np.isnan(numbers), 0, np.arange(len(numbers))[:, None])
    return np.take_along_axis(numbers, np.maximum.accumulate(places, 0), 0)
