"""Timestamps of a series: format detection, frequency, missing rows, and cyclic time features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np

from regard.errors import DataError

FORMATS = (
    "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%Y-%m", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M",
    "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S.%fZ",
    "%Y-%m-%d %H:%M:%S%z", "%Y-%m-%d %H:%M%z", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S.%f%z",
    "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y/%m/%d", "%Y/%m", "%Y.%m.%d",
)  # fmt: skip
"""Formats that are detected: the year comes first, so that no day can be taken for a month."""
NUMBERED = ""
"""Format of rows without a time column: they are numbered."""
ROW = "row"
"""Name of the column of row numbers."""
SECOND = 1_000_000
UNITS = {"day": 86_400 * SECOND, "hour": 3_600 * SECOND, "minute": 60 * SECOND, "second": SECOND}
TimeFeature = Literal["hour", "weekday", "month"]
"""Position in the day, the week, the year."""


@dataclass(frozen=True)
class Frequency:
    """Distance between two rows: months, or microseconds; of numbered rows, 1.

    >>> str(Frequency(months=1)), str(Frequency(3_600 * SECOND)), str(Frequency(900 * SECOND)), str(Frequency(1))
    ('1 month', '1 hour', '15 minutes', '1 row')
    """

    length: int = 0
    months: int = 0
    day: int = 1
    """of months: the day of the month of each row; past the end of a month: its last day"""

    def __str__(self) -> str:
        if self.months:
            return f"{self.months} month{'s' * (self.months > 1)}"
        for name, unit in UNITS.items():
            if self.length % unit == 0:
                count = self.length // unit
                return f"{count} {name}{'s' * (count > 1)}"
        return "1 row" if self.length == 1 else f"{self.length / SECOND:g} seconds"

    def matches(self, other: Frequency) -> bool:
        """Whether the distance is the same, on whatever day of the month."""
        return (self.length, self.months) == (other.length, other.months)

    @property
    def season(self) -> int:
        """Usual seasonal period in rows: a year of months, a week of days, a day of hours."""
        if self.months:
            return 12 // self.months if 12 % self.months == 0 else 1
        if self.length == 7 * UNITS["day"]:
            return 52
        for whole in (UNITS["day"], 7 * UNITS["day"]):
            if SECOND <= self.length < whole and whole % self.length == 0:
                return whole // self.length
        return 1

    def next_times(self, last: Any, count: int) -> np.ndarray:
        """The next `count` timestamps after one.

        >>> Frequency(months=1, day=31).next_times(np.datetime64("2024-01-31", "us"), 2).astype("datetime64[D]")
        array(['2024-02-29', '2024-03-31'], dtype='datetime64[D]')
        """
        steps = np.arange(1, count + 1)
        if not self.months:
            return np.asarray(last + steps * self.length)
        month = last.astype("datetime64[M]")
        within = last - last.astype("datetime64[D]").astype(last.dtype)
        return _on_day(month + steps * self.months, self.day) + within


def _on_day(months: np.ndarray, day: int) -> np.ndarray:
    """The given day of each month, or its last where it has no such day."""
    ends = (months + 1).astype("datetime64[D]") - 1
    return np.minimum(months.astype("datetime64[D]") + (day - 1), ends).astype("datetime64[us]")


@dataclass(frozen=True)
class TimeIndex:
    """Time index of a series: the time column, the format of its timestamps, and their frequency."""

    column: str
    format: str
    frequency: Frequency

    def format_times(self, timestamps: np.ndarray) -> list[str]:
        """Timestamps in the format of the file; those with a time zone in UTC."""
        if self.format == NUMBERED:
            return [str(number) for number in timestamps.tolist()]
        zone = UTC if "%z" in self.format else None
        return [time.replace(tzinfo=zone).strftime(self.format) for time in timestamps.tolist()]


def guess_format(cell: str) -> str | None:
    """The format of a timestamp, if it can be detected.

    >>> guess_format("2016-07-01 00:00:00"), guess_format("1949-01"), guess_format("20.5")
    ('%Y-%m-%d %H:%M:%S', '%Y-%m', None)
    """
    return next((format for format in FORMATS if parse_time(cell, format) is not None), None)


def parse_time(cell: str, format: str) -> datetime | None:
    """The time in a cell of this format, in UTC if it has a time zone; None if it is not a time."""
    try:
        time = datetime.strptime(cell, format)
    except ValueError:
        return None
    return time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time


def infer_frequency(timestamps: np.ndarray) -> Frequency:
    """The most common distance of rows; months differ in days, and are one frequency all the same."""
    days = timestamps.astype("datetime64[D]")
    months = timestamps.astype("datetime64[M]")
    day = (days - months.astype("datetime64[D]")).astype(int) + 1
    common = _most_common(np.diff(months).astype(int))
    anchor = int(day.max())
    within = set((timestamps - days.astype("datetime64[us]")).astype(int).tolist())
    if common > 0 and len(within) == 1 and (_on_day(months, anchor).astype("datetime64[D]") == days).all():
        return Frequency(months=common, day=anchor)
    return Frequency(_most_common(np.diff(timestamps).astype(int)))


def _most_common(apart: np.ndarray) -> int:
    """The most common distance; of a tie, the smaller, since rows may be missing."""
    counts = Counter(apart.tolist())
    return min(counts, key=lambda length: (-counts[length], length))


def count_missing(
    timestamps: np.ndarray, frequency: Frequency, name: str, lines: Sequence[int], written: Sequence[str]
) -> np.ndarray:
    """Number of rows missing before each row after the first; refuses timestamps out of order or off the frequency."""
    if frequency.months:
        apart = np.diff(timestamps.astype("datetime64[M]")).astype(int)
        size = frequency.months
    else:
        apart, size = np.diff(timestamps).astype(int), frequency.length
    late = np.flatnonzero(apart <= 0)
    if len(late) or size <= 0:
        at = int(late[0]) if len(late) else 0
        how = "again" if apart[at] == 0 else f"after {written[at]}"
        raise DataError(
            f"{name}, line {lines[at + 1]}: {written[at + 1]} comes {how}; expected each time once, the oldest first"
        )
    odd = np.flatnonzero(apart % size)
    if len(odd):
        at = int(odd[0])
        raise DataError(
            f"{name}, line {lines[at + 1]}: {written[at + 1]} is not a multiple of the frequency after {written[at]}; "
            f"most rows are {frequency} apart, and forecasting needs a constant frequency: resample the series first"
        )
    return apart // size - 1


def cyclic_features(timestamps: np.ndarray, parts: Sequence[TimeFeature]) -> np.ndarray:
    """Cyclic time features: sine and cosine of the position in the day, the week or the year."""
    if not parts:
        return np.zeros((len(timestamps), 0))
    days = timestamps.astype("datetime64[D]")
    day = (timestamps - days.astype("datetime64[us]")).astype(float) / UNITS["day"]
    weekday = (days.astype(int) + 3) % 7  # the first day of 1970 was a Thursday
    year = (timestamps - timestamps.astype("datetime64[Y]").astype("datetime64[us]")).astype(float) / UNITS["day"]
    share = {"hour": day, "weekday": (weekday + day) / 7, "month": year / 365.25}
    found = [turn(2 * np.pi * share[part]) for part in parts for turn in (np.sin, np.cos)]
    return np.stack(found, 1)
