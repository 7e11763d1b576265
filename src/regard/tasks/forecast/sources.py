"""Where a series to forecast comes from: a CSV file of one's own, or weather out of a registry; split by time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

from regard.data.download.datasets import Dataset, fetch, find
from regard.data.download.index import Progress
from regard.data.lines import read_lines
from regard.data.time_series import Gaps, Timeline, Wanted, parse_timeline
from regard.data.timestamps import Part
from regard.errors import ConfigError, DataError

Split = tuple[float, float, float]
SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Stretch:
    """Some rows of a series that are asked for, after others that may only be read.

    >>> from regard.data.time_series import parse_timeline
    >>> whole = parse_timeline(["1", "2", "3", "4"], "a.csv", Wanted())
    >>> Stretch(whole, first=3).asked
    1
    """

    rows: Timeline
    first: int = 0
    """the first row that is asked for; what comes before is its past"""

    @property
    def asked(self) -> int:
        """How many rows are asked for."""
        return len(self.rows) - self.first

    @property
    def filled(self) -> int:
        """How many cells of them were missing, and hold what stood before."""
        return int(self.rows.filled[self.first : len(self.rows)].sum())


class TimedSource(Protocol):
    """A series in splits, the oldest first.

    >>> source: TimedSource = Timed(train="load.csv", split=(0.8, 0.2, 0.0))
    >>> source.splits()
    ('train', 'valid')
    """

    @property
    def wanted(self) -> Wanted:
        """Which columns are what."""

    def splits(self) -> tuple[str, ...]:
        """The names of the splits."""

    def stretch(self, split: str, before: int = 0) -> Stretch:
        """The rows of a split, and up to `before` rows of the past that go before them."""

    def whole(self) -> Timeline:
        """All that is there, up to the last row: what a forecast goes on from."""

    def scored_on(self, path: Path) -> TimedSource:
        """The same kind of series, with this file as its test split."""

    def attribution(self) -> str:
        """Where it is from, whom to credit, and under which licence."""


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A CSV file of your own.

    >>> Timed(train="load.csv", split=(8640, 2880, 2880)).splits()
    ('train', 'valid', 'test')
    """

    kind: Literal["csv"] = "csv"
    """a CSV file of your own: a row a time, a column a thing that is measured"""
    train: str
    """the file; valid and test are cut from its end unless they are files of their own"""
    valid: str | None = None
    """the file to validate on"""
    test: str | None = None
    """the file to score on"""
    time: str | None = None
    """the column that holds times; not set: the first that does; without one, rows are counted"""
    format: str | None = None
    """how times are written, such as "%d.%m.%Y %H:%M"; not set: found, if the year comes first"""
    columns: tuple[str, ...] = ()
    """the columns to forecast; none: all that hold numbers"""
    known: tuple[str, ...] = ()
    """columns whose future is known, such as holidays; rows at the end that have nothing else are the future"""
    calendar: tuple[Part, ...] = ()
    """what of the calendar is read as well: hour (of the day), weekday, month (where in the year)"""
    gaps: Gaps = "refuse"
    """what is done about missing rows and empty cells: refuse them, or carry the last values on"""
    split: Split = (0.7, 0.1, 0.2)
    """how much of the file is for training, validation and test, in this order: shares, or numbers of rows"""

    def __post_init__(self) -> None:
        check_split(self.split)

    @property
    def wanted(self) -> Wanted:
        return Wanted(self.time, self.format, self.columns, self.known, self.calendar, self.gaps)

    def splits(self) -> tuple[str, ...]:
        """train and valid, and test if there is one."""
        return SPLITS if self.test is not None or self.split[2] else SPLITS[:2]

    def stretch(self, split: str, before: int = 0) -> Stretch:
        """The rows of a split; where it is cut from the middle of a file, some of the past goes before them."""
        check_there(split, self.splits())
        own = {"valid": self.valid, "test": self.test}.get(split)
        if own is not None:
            whole = read_timeline(own, self.wanted)
            return Stretch(whole, min(before, len(whole)))
        taken = (self.split[0], 0.0 if self.valid else self.split[1], 0.0 if self.test else self.split[2])
        return cut(read_timeline(self.train, self.wanted), taken, split, before, self.train)

    def whole(self) -> Timeline:
        """The last file there is, with rows at its end of which only what is known is told."""
        return read_timeline(self.test or self.valid or self.train, self.wanted)

    def scored_on(self, path: Path) -> Timed:
        """The same with another file to score on."""
        return replace(self, test=str(path))

    def attribution(self) -> str:
        """A path says nothing about whom to credit."""
        return f"{self.kind}: {self.train}; its licence is for whoever gave it to tell"


@dataclass(frozen=True, kw_only=True)
class Weather:
    """The weather of Seattle, fetched once and kept in the cache.

    >>> Weather().dataset().title
    'Temperature of Seattle, every hour of a year'
    """

    kind: Literal["weather"] = "weather"
    """the weather of Seattle, fetched from a registry"""
    series: Literal["seattle-temps", "seattle-weather"] = "seattle-temps"
    """the temperature every hour of a year, or rain, temperatures and wind every day of four years"""
    columns: tuple[str, ...] = ()
    """the columns that are foretold; none: all that hold numbers and are not known"""
    known: tuple[str, ...] = ()
    """columns whose future is known"""
    calendar: tuple[Part, ...] = ("hour",)
    """what of the calendar is read as well: hour (of the day), weekday, month (where in the year)"""
    split: Split = (0.7, 0.1, 0.2)
    """how much is for training, validation and test, in this order: shares, or numbers of rows"""

    def __post_init__(self) -> None:
        check_split(self.split)

    @property
    def wanted(self) -> Wanted:
        # an hour is missing where summer time begins
        return Wanted(columns=self.columns, known=self.known, calendar=self.calendar, gaps="carry")

    def splits(self) -> tuple[str, ...]:
        """train and valid, and test if there is one."""
        return SPLITS if self.split[2] else SPLITS[:2]

    def dataset(self) -> Dataset:
        """The entry of the catalogue."""
        return find(self.series)

    def fetch(self, progress: Progress | None = None) -> Path:
        """The file: the one in the cache, else out of a registry."""
        return fetch(self.dataset(), progress=progress)

    def stretch(self, split: str, before: int = 0) -> Stretch:
        """The rows of a split, and some of the past before them."""
        check_there(split, self.splits())
        return cut(self.whole(), self.split, split, before, self.series)

    def whole(self) -> Timeline:
        """All rows."""
        return read_timeline(self.fetch(), self.wanted)

    def scored_on(self, path: Path) -> Timed:
        """Another file to score on."""
        return Timed(train=str(path), test=str(path), calendar=self.calendar, gaps="carry")

    def attribution(self) -> str:
        """Whom to credit, and under which licence.

        >>> Weather().attribution()
        'NOAA. Licence: public data'
        """
        entry = self.dataset()
        return f"{entry.attribution}. Licence: {entry.licence}"


def read_timeline(path: str | Path, wanted: Wanted) -> Timeline:
    """The columns of a CSV file that are wanted.

    >>> read_timeline("none.csv", Wanted())
    Traceback (most recent call last):
    regard.errors.InputError: none.csv: there is no such file
    """
    return parse_timeline(read_lines(path), path, wanted)


def check_split(split: Split) -> None:
    """Refuse shares, or numbers of rows, that leave nothing to learn from or to validate on.

    >>> check_split((0.5, 0.6, 0.1))
    Traceback (most recent call last):
    regard.errors.ConfigError: split = [0.5, 0.6, 0.1] is more than the whole: shares must add up to at most 1
    """
    train, valid, test = split
    told = f"split = [{train:g}, {valid:g}, {test:g}]"
    shares = all(part < 1 for part in split)
    if min(train, valid) <= 0 or test < 0:
        raise ConfigError(f"{told}: training and validation need a part above 0")
    if not shares and any(part != int(part) for part in split):
        raise ConfigError(f"{told}: expected three shares below 1, or three whole numbers of rows")
    if shares and sum(split) > 1 + 1e-9:
        raise ConfigError(f"{told} is more than the whole: shares must add up to at most 1")


def check_there(split: str, splits: tuple[str, ...]) -> None:
    """Refuse a split that is not there.

    >>> check_there("test", ("train", "valid"))
    Traceback (most recent call last):
    regard.errors.ConfigError: there is no split "test" (splits: train, valid); give data.split a third part
    """
    if split not in splits:
        raise ConfigError(f'there is no split "{split}" (splits: {", ".join(splits)}); give data.split a third part')


def cut(whole: Timeline, parts: tuple[float, float, float], split: str, before: int, name: str) -> Stretch:
    """One part of a series, in time's order; a share that another file holds falls to training.

    >>> from regard.data.time_series import parse_timeline
    >>> rows = parse_timeline([str(i) for i in range(10)], "a.csv", Wanted())
    >>> found = cut(rows, (0.6, 0.2, 0.2), "valid", 3, "a.csv")
    >>> found.rows.values[:, 0].tolist(), found.first
    ([3.0, 4.0, 5.0, 6.0, 7.0], 3)
    """
    n = len(whole)
    train, valid, test = (int(part) if part >= 1 else round(part * n) for part in parts)
    if not (parts[1] and parts[2]):
        train = n - valid - test  # what is not kept apart here is kept apart in another file
    if train + valid + test > n:
        raise DataError(f"{name} has {n:,} rows, and data.split asks for {train + valid + test:,}; ask for fewer")
    ends = {"train": (0, train), "valid": (train, train + valid), "test": (train + valid, train + valid + test)}
    start, end = ends[split]
    past = min(before, start)
    return Stretch(whole.between(start - past, end), past)
