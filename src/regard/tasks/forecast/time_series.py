"""Time series in CSV files: read into arrays; gaps and cells that are no numbers are reported with their line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from regard.data.tables import Row, check_width, csv_rows, is_number, parse_number, sniff_delimiter
from regard.errors import ConfigError, DataError
from regard.tasks.forecast.timestamps import (
    NUMBERED,
    ROW,
    Frequency,
    TimeFeature,
    TimeIndex,
    count_missing,
    cyclic_features,
    guess_format,
    infer_frequency,
    parse_time,
)

DELIMITERS = "\t;,|"
ABSENT = frozenset({"", "nan", "na", "n/a", "null", "none", "-", "?"})
"""Cells that mean a missing value."""
Gaps = Literal["error", "ffill"]


@dataclass(frozen=True)
class ColumnSpec:
    """The time column, the columns to forecast and the covariates of a file, and what to do with missing values."""

    time: str | None = None
    format: str | None = None
    columns: Sequence[str] = ()
    covariates: Sequence[str] = ()
    time_features: Sequence[TimeFeature] = ()
    missing: Gaps = "error"


@dataclass(frozen=True)
class TimeSeries:
    """A multivariate time series: one row per time, one column per variable.

    >>> found = parse_time_series(["day,load", "2024-01-01,5", "2024-01-02,7"], "a.csv", ColumnSpec())
    >>> found.names, found.values.tolist(), found.index.format_times(found.timestamps)
    (('load',), [[5.0], [7.0]], ['2024-01-01', '2024-01-02'])
    """

    names: tuple[str, ...]
    values: np.ndarray
    """(N, F)"""
    covariate_names: tuple[str, ...]
    covariates: np.ndarray
    """(N + M, K): covariates whose future is known, for M rows after the last values"""
    timestamps: np.ndarray
    """(N + M,) times, or row numbers"""
    index: TimeIndex
    filled: np.ndarray
    """(N,) number of cells of each row that were missing and filled with the last values"""

    def __len__(self) -> int:
        return len(self.values)

    def slice(self, start: int, end: int) -> TimeSeries:
        """Rows from `start` to `end`; covariates of later rows are left out."""
        cut = slice(start, end)
        values, covariates, times, filled = (
            x[cut] for x in (self.values, self.covariates, self.timestamps, self.filled)
        )
        return replace(self, values=values, covariates=covariates, timestamps=times, filled=filled)

    def extend(self, count: int, time_features: Sequence[TimeFeature]) -> TimeSeries:
        """Extend timestamps and time features to `count` rows after the last values."""
        more = count - (len(self.timestamps) - len(self.values))
        if more <= 0:
            return self
        given = len(self.covariate_names) - 2 * len(time_features)
        if given:
            raise DataError(
                f"{', '.join(self.covariate_names[:given])}: future covariates must be known for {count} rows after "
                f"the last value, and are for {count - more}; add rows at the end that leave the values empty"
            )
        times = np.concatenate([self.timestamps, self.index.frequency.next_times(self.timestamps[-1], more)])
        covariates = np.concatenate([self.covariates, cyclic_features(times[-more:], time_features)])
        return replace(self, timestamps=times, covariates=covariates)


class MissingColumn(ConfigError):
    """A setting names a column that a file does not have."""

    def __init__(self, setting: str, fault: str) -> None:
        super().__init__(f"{setting}: {fault}")
        self.fault = fault


def parse_time_series(lines: Iterable[str], name: str | Path, spec: ColumnSpec) -> TimeSeries:
    """Parse the lines of a CSV file; `name` is for messages."""
    names, rows = _read_rows(lines, name)
    time, format = _time_column(rows, names, name, spec)
    chosen = _value_columns(rows, names, name, time, spec)
    covariates = _find_columns(spec.covariates, names, name, "data.future_covariates")
    for i in set(chosen) & set(covariates):
        raise ConfigError(f'"{names[i]}" is in data.columns and in data.future_covariates; a covariate is not forecast')
    columns, width = (*chosen, *covariates), len(chosen)
    numbers = np.array([[_parse_cell(row, names, i, name) for i in columns] for row in rows])
    future = _future_rows(numbers[:, :width]) if covariates else 0
    if len(rows) - future < 2:
        raise DataError(f"{name}: there are {len(rows) - future} rows with values; expected at least 2, one per time")
    timestamps, index, lost = _parse_timestamps(rows, names, name, time, format)
    if lost.any():
        _check_rows(lost, timestamps, index, rows, name, spec.missing)
        numbers, timestamps = _insert_rows(numbers, timestamps, lost, index)
    values = slice(0, len(numbers) - future)
    empty = np.isnan(numbers)
    empty[values.stop :, :width] = False  # values of the future
    if empty.any():
        _check_cells(empty, rows, [names[i] for i in columns], name, spec.missing)
        numbers = _forward_fill(numbers)
    if index.format == NUMBERED and spec.time_features:
        raise ConfigError(f"data.time_features: {name} has no column with times; name it in data.time, or leave it out")
    features = cyclic_features(timestamps, spec.time_features)
    feature_names = (f"{feature} {turn}" for feature in spec.time_features for turn in ("sine", "cosine"))
    return TimeSeries(
        tuple(names[i] for i in chosen),
        numbers[values, :width],
        (*(names[i] for i in covariates), *feature_names),
        np.concatenate([numbers[:, width:], features], 1),
        timestamps,
        index,
        empty[values].sum(1),
    )


def _read_rows(lines: Iterable[str], name: str | Path) -> tuple[list[str], list[Row]]:
    """The names of the columns, and the rows below them."""
    held = list(lines)
    top = next((line for line in held if line.strip()), None)
    if top is None:
        raise DataError(f"{name}: it is empty; expected a CSV file, one time per line")
    delimiter = sniff_delimiter(top, DELIMITERS) or ","
    rows = [(number, [cell.strip() for cell in cells]) for number, cells in csv_rows(held, name, delimiter)]
    first, header = rows[0][1], _has_header(rows)
    names = first if header else [str(i + 1) for i in range(len(first))]
    repeated = [column for i, column in enumerate(names) if column in names[:i]]
    if repeated:
        raise DataError(f'{name}: two columns are called "{repeated[0]}"; give each a name of its own')
    rows = rows[1:] if header else rows
    if not rows:
        raise DataError(f"{name}: there are no rows below the names of its columns")
    for number, cells in rows:
        check_width(cells, names, f"{name}, line {number}")
    return names, rows


def _has_header(rows: list[Row]) -> bool:
    """Whether the first row is a header: it has no number, or a word above a number."""
    first, second = rows[0][1], rows[1][1] if len(rows) > 1 else []
    top = [is_number(cell) or guess_format(cell) is not None for cell in first]
    below = [is_number(cell) or guess_format(cell) is not None for cell in second]
    word_above = any(low and not high and cell.lower() not in ABSENT for cell, high, low in zip(first, top, below))
    return word_above or not any(top)


def _time_column(rows: list[Row], names: list[str], name: str | Path, spec: ColumnSpec) -> tuple[int | None, str]:
    """The column that holds times, and their format; None: rows are numbered."""
    if spec.time is None:
        found = [(i, format) for i, cell in enumerate(rows[0][1]) if (format := spec.format or guess_format(cell))]
        found = [(i, format) for i, format in found if parse_time(rows[0][1][i], format)]
        if spec.format and not found:
            raise DataError(f'{name}, line {rows[0][0]}: no column holds a time of the format "{spec.format}"')
        return found[0] if found else (None, NUMBERED)
    at = _find_columns([spec.time], names, name, "data.time")[0]
    number, cells = rows[0]
    format = spec.format or guess_format(cells[at])
    if format is None:
        raise DataError(
            f'{name}, line {number}: the format of the time "{cells[at]}" in column {names[at]} is not recognized; set '
            'data.format, such as "%d.%m.%Y" or, for years, "%Y"'
        )
    return at, format


def _value_columns(
    rows: list[Row], names: list[str], name: str | Path, time: int | None, spec: ColumnSpec
) -> list[int]:
    """The columns to forecast."""
    if spec.columns:
        return _find_columns(spec.columns, names, name, "data.columns")
    excluded = {time, *_find_columns(spec.covariates, names, name, "data.future_covariates")}
    found = [
        i
        for i in range(len(names))
        if i not in excluded and is_number(next((c[i] for _, c in rows if c[i].lower() not in ABSENT), ""))
    ]
    if not found:
        raise DataError(f"{name}: none of its {len(names)} columns holds numbers ({', '.join(names)})")
    return found


def _find_columns(columns: Sequence[str], names: list[str], name: str | Path, setting: str) -> list[int]:
    wrong = [column for column in columns if column not in names]
    if wrong:
        raise MissingColumn(setting, f'{name} has no column "{wrong[0]}" (columns: {", ".join(names)})')
    return [names.index(column) for column in columns]


def _parse_cell(row: Row, names: list[str], at: int, name: str | Path) -> float:
    """The number in a cell; NaN if it is missing."""
    number, cells = row
    return math.nan if cells[at].lower() in ABSENT else parse_number(cells[at], names[at], f"{name}, line {number}")


def _future_rows(values: np.ndarray) -> int:
    """Number of rows at the end without values: those that have covariates only."""
    there = np.flatnonzero(~np.isnan(values).all(1))
    return len(values) - 1 - int(there[-1]) if len(there) else len(values)


def _parse_timestamps(
    rows: list[Row], names: list[str], name: str | Path, time: int | None, format: str
) -> tuple[np.ndarray, TimeIndex, np.ndarray]:
    """The timestamps of rows, their index, and how many rows are missing before each but the first."""
    if time is None:
        return np.arange(1, len(rows) + 1), TimeIndex(ROW, NUMBERED, Frequency(1)), np.zeros(len(rows) - 1, int)
    times = []
    for number, cells in rows:
        found = parse_time(cells[time], format)
        if found is None:
            raise DataError(
                f'{name}, line {number}: "{cells[time]}" in column {names[time]} is not a time of the format '
                f'"{format}" as above'
            )
        times.append(found)
    timestamps = np.array(times, "datetime64[us]")
    frequency = infer_frequency(timestamps)
    written = [cells[time] for _, cells in rows]
    lost = count_missing(timestamps, frequency, str(name), [number for number, _ in rows], written)
    return timestamps, TimeIndex(names[time], format, frequency), lost


def _check_rows(
    lost: np.ndarray, timestamps: np.ndarray, index: TimeIndex, rows: list[Row], name: str | Path, missing: Gaps
) -> None:
    """Refuse missing rows that are not to be filled."""
    if missing == "error":
        at = int(np.flatnonzero(lost)[0])
        before, after = index.format_times(timestamps[at : at + 2])
        count = "1 row is" if lost[at] == 1 else f"{int(lost[at])} rows are"
        raise DataError(
            f"{name}, line {rows[at + 1][0]}: {count} missing between {before} and {after} (rows are {index.frequency} "
            f'apart; {int(lost.sum())} missing in all); data.missing = "ffill" repeats the last values'
        )


def _insert_rows(
    numbers: np.ndarray, timestamps: np.ndarray, lost: np.ndarray, index: TimeIndex
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and timestamps with empty rows inserted where rows are missing."""
    places = np.arange(len(timestamps)) + np.concatenate([[0], np.cumsum(lost)])
    whole = np.full((int(places[-1]) + 1, numbers.shape[1]), math.nan)
    whole[places] = numbers
    return whole, np.concatenate([timestamps[:1], index.frequency.next_times(timestamps[0], len(whole) - 1)])


def _check_cells(empty: np.ndarray, rows: list[Row], names: list[str], name: str | Path, missing: Gaps) -> None:
    """Refuse empty cells that are not to be filled, or cannot be."""
    row, column = (int(at[0]) for at in np.nonzero(empty))
    if missing == "error":  # then no row was inserted, and rows are lines
        raise DataError(
            f"{name}, line {rows[row][0]}: column {names[column]} is empty ({int(empty.sum())} such cells); "
            'data.missing = "ffill" repeats the last values'
        )
    if empty[0].any():
        column = int(np.flatnonzero(empty[0])[0])
        raise DataError(
            f"{name}, line {rows[0][0]}: column {names[column]} is empty, and there is no value before it to repeat; "
            "begin the file later"
        )


def _forward_fill(numbers: np.ndarray) -> np.ndarray:
    """Replace each empty cell by the last value above it."""
    places = np.where(np.isnan(numbers), 0, np.arange(len(numbers))[:, None])
    return np.take_along_axis(numbers, np.maximum.accumulate(places, 0), 0)
