"""Time stamps of a series: read in the form they are written in, a step apart, and going on in the same form."""

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
"""Forms that are known by themselves: the year comes first, so that no day can be taken for a month."""
NUMBERED = ""
"""The form of rows that have no time: they are counted."""
ROW = "row"
"""What the column of rows that are counted is called."""
SECOND = 1_000_000
UNITS = {"day": 86_400 * SECOND, "hour": 3_600 * SECOND, "minute": 60 * SECOND, "second": SECOND}
Part = Literal["hour", "weekday", "month"]
"""Where in the day, the week, the year."""


@dataclass(frozen=True)
class Step:
    """How far two rows are apart: so many months, or so many millionths of a second; of counted rows, one.

    >>> str(Step(months=1)), str(Step(3_600 * SECOND)), str(Step(900 * SECOND)), str(Step(1))
    ('1 month', '1 hour', '15 minutes', '1 row')
    """

    length: int = 0
    months: int = 0
    day: int = 1
    """of months: the day of the month on which rows stand; past a month's end: its last"""

    def __str__(self) -> str:
        if self.months:
            return f"{self.months} month{'s' * (self.months > 1)}"
        for name, unit in UNITS.items():
            if self.length % unit == 0:
                count = self.length // unit
                return f"{count} {name}{'s' * (count > 1)}"
        return "1 row" if self.length == 1 else f"{self.length / SECOND:g} seconds"

    def like(self, other: Step) -> bool:
        """Whether rows are as far apart, on whatever day of the month."""
        return (self.length, self.months) == (other.length, other.months)

    @property
    def season(self) -> int:
        """The rows after which a series often comes round again: a year of months, a week of days, a day of hours.

        >>> Step(months=1).season, Step(UNITS["day"]).season, Step(900 * SECOND).season, Step(1).season
        (12, 7, 96, 1)
        """
        if self.months:
            return 12 // self.months if 12 % self.months == 0 else 1
        if self.length == 7 * UNITS["day"]:
            return 52
        for whole in (UNITS["day"], 7 * UNITS["day"]):
            if SECOND <= self.length < whole and whole % self.length == 0:
                return whole // self.length
        return 1

    def after(self, last: Any, count: int) -> np.ndarray:
        """The next `count` moments after one.

        >>> Step(months=1, day=31).after(np.datetime64("2024-01-31", "us"), 2).astype("datetime64[D]")
        array(['2024-02-29', '2024-03-31'], dtype='datetime64[D]')
        """
        steps = np.arange(1, count + 1)
        if not self.months:
            return np.asarray(last + steps * self.length)
        month = last.astype("datetime64[M]")
        within = last - last.astype("datetime64[D]").astype(last.dtype)
        return _on_day(month + steps * self.months, self.day) + within


def _on_day(months: np.ndarray, day: int) -> np.ndarray:
    """A day of each month, or its last where it has no such day."""
    ends = (months + 1).astype("datetime64[D]") - 1
    return np.minimum(months.astype("datetime64[D]") + (day - 1), ends).astype("datetime64[us]")


@dataclass(frozen=True)
class Clock:
    """How rows are dated: the column, the form of its stamps, and the step from one to the next.

    >>> clock = Clock("date", "%Y-%m-%d", Step(UNITS["day"]))
    >>> clock.written(clock.step.after(np.datetime64("2024-02-28", "us"), 2))
    ['2024-02-29', '2024-03-01']
    """

    column: str
    format: str
    step: Step

    def written(self, stamps: np.ndarray) -> list[str]:
        """Stamps as the file has them; those with a time zone in UTC."""
        if self.format == NUMBERED:
            return [str(number) for number in stamps.tolist()]
        zone = UTC if "%z" in self.format else None
        return [moment.replace(tzinfo=zone).strftime(self.format) for moment in stamps.tolist()]


def form_of(cell: str) -> str | None:
    """The form of a stamp, if it is one of those that are known by themselves.

    >>> form_of("2016-07-01 00:00:00"), form_of("1949-01"), form_of("20.5")
    ('%Y-%m-%d %H:%M:%S', '%Y-%m', None)
    """
    return next((form for form in FORMATS if parsed(cell, form) is not None), None)


def parsed(cell: str, form: str) -> datetime | None:
    """The moment that a cell tells in this form, in UTC if it has a time zone; None: it tells none.

    >>> parsed("2016-07-01 02:00+02:00", "%Y-%m-%d %H:%M%z")
    datetime.datetime(2016, 7, 1, 0, 0)
    """
    try:
        moment = datetime.strptime(cell, form)
    except ValueError:
        return None
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def step_of(stamps: np.ndarray) -> Step:
    """The step that most rows are apart; months differ in days, and are one step all the same.

    >>> str(step_of(np.array(["2024-01-01", "2024-02-01", "2024-03-01"], "datetime64[us]")))
    '1 month'
    """
    days = stamps.astype("datetime64[D]")
    months = stamps.astype("datetime64[M]")
    day = (days - months.astype("datetime64[D]")).astype(int) + 1
    common = _commonest(np.diff(months).astype(int))
    anchor = int(day.max())
    within = set((stamps - days.astype("datetime64[us]")).astype(int).tolist())
    if common > 0 and len(within) == 1 and (_on_day(months, anchor).astype("datetime64[D]") == days).all():
        return Step(months=common, day=anchor)
    return Step(_commonest(np.diff(stamps).astype(int)))


def _commonest(apart: np.ndarray) -> int:
    """The distance that most rows have; of two that as many have, the smaller, since rows may be missing."""
    counts = Counter(apart.tolist())
    return min(counts, key=lambda length: (-counts[length], length))


def missing(stamps: np.ndarray, step: Step, name: str, lines: Sequence[int], written: Sequence[str]) -> np.ndarray:
    """How many rows are missing before each row after the first; stamps that are no steps apart are told.

    >>> stamps = np.array(["2024-01-01", "2024-01-02", "2024-01-05"], "datetime64[us]")
    >>> missing(stamps, Step(UNITS["day"]), "a.csv", [2, 3, 4], ["2024-01-01", "2024-01-02", "2024-01-05"])
    array([0, 2])
    """
    if step.months:
        apart = np.diff(stamps.astype("datetime64[M]")).astype(int)
        size = step.months
    else:
        apart, size = np.diff(stamps).astype(int), step.length
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
            f"{name}, line {lines[at + 1]}: {written[at + 1]} is not a whole number of steps after {written[at]}; most "
            f"rows are {step} apart, and a forecast needs all of them so: bring the series to one step first"
        )
    return apart // size - 1


def angles(stamps: np.ndarray, parts: Sequence[Part]) -> np.ndarray:
    """Where in the day, the week and the year each moment is, as points on a circle: sine and cosine of each.

    >>> angles(np.array(["2024-01-01T06:00"], "datetime64[us]"), ["hour"]).round(6) + 0.0
    array([[1., 0.]])
    """
    if not parts:
        return np.zeros((len(stamps), 0))
    days = stamps.astype("datetime64[D]")
    day = (stamps - days.astype("datetime64[us]")).astype(float) / UNITS["day"]
    weekday = (days.astype(int) + 3) % 7  # the first day of 1970 was a Thursday
    year = (stamps - stamps.astype("datetime64[Y]").astype("datetime64[us]")).astype(float) / UNITS["day"]
    share = {"hour": day, "weekday": (weekday + day) / 7, "month": year / 365.25}
    found = [turn(2 * np.pi * share[part]) for part in parts for turn in (np.sin, np.cos)]
    return np.stack(found, 1)
