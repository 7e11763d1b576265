"""Time series to forecast: CSV files, or the weather of Seattle from PyPI; split in the order of time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from regard.data.download.datasets import Dataset, find_dataset
from regard.data.lines import read_lines
from regard.data.sources import DownloadedSource, FileSource
from regard.data.splits import SPLITS
from regard.errors import ConfigError, DataError
from regard.tasks.forecast.time_series import ColumnSpec, Gaps, TimeSeries, parse_time_series
from regard.tasks.forecast.timestamps import TimeFeature

Split = tuple[float, float, float]


@dataclass(frozen=True)
class SeriesSlice:
    """Consecutive rows of a series, after past rows that are only context."""

    rows: TimeSeries
    first: int = 0
    """the first row of the slice itself; earlier rows are context"""

    def __len__(self) -> int:
        return len(self.rows) - self.first

    @property
    def filled_cells(self) -> int:
        """Number of missing cells that were filled."""
        return int(self.rows.filled[self.first : len(self.rows)].sum())


class SeriesSource(ABC):
    """A series in splits, the oldest first."""

    split: Split

    @property
    @abstractmethod
    def column_spec(self) -> ColumnSpec:
        """The columns to read."""

    @abstractmethod
    def splits(self) -> tuple[str, ...]:
        """Names of the splits."""

    @abstractmethod
    def read_split(self, split: str, context: int = 0) -> SeriesSlice:
        """The rows of a split, and up to `context` rows before them."""

    @abstractmethod
    def read_all(self) -> TimeSeries:
        """The series up to its last row, from which a forecast continues."""

    @abstractmethod
    def scored_on(self, path: Path) -> SeriesSource:
        """The same kind of series with another file as its test split."""


@dataclass(frozen=True, kw_only=True)
class CsvSeries(FileSource, SeriesSource):
    """CSV files; without valid and test files, they are the end of train."""

    kind: Literal["csv"] = "csv"
    """a CSV file of your own: one row per time step, one column per variable"""
    train: str
    """the file; without files of their own, valid and test are its end"""
    time: str | None = None
    """the time column; not set: the first that holds times; without one, rows are numbered"""
    format: str | None = None
    """format of times, such as "%d.%m.%Y %H:%M"; not set: inferred, if the year comes first"""
    columns: tuple[str, ...] = ()
    """the columns to forecast; none: all that hold numbers"""
    future_covariates: tuple[str, ...] = ()
    """columns that are known in advance, such as holidays; rows at the end that hold nothing else are the future"""
    time_features: tuple[TimeFeature, ...] = ()
    """calendar features that are read as well: hour (of the day), weekday, month (of the year)"""
    missing: Gaps = "error"
    """missing rows and empty cells: an error, or forward fill (ffill)"""
    split: Split = (0.7, 0.1, 0.2)
    """sizes of train, valid and test, in this order: shares, or numbers of rows"""

    def __post_init__(self) -> None:
        check_split(self.split)

    @property
    def column_spec(self) -> ColumnSpec:
        return ColumnSpec(
            self.time, self.format, self.columns, self.future_covariates, self.time_features, self.missing
        )

    def splits(self) -> tuple[str, ...]:
        return SPLITS if self.test is not None or self.split[2] else SPLITS[:2]

    def read_split(self, split: str, context: int = 0) -> SeriesSlice:
        """The rows of a split; in a file of its own, the first rows are the context."""
        check_split_name(split, self.splits())
        own = {"valid": self.valid, "test": self.test}.get(split)
        if own is not None:
            whole = read_series(own, self.column_spec)
            return SeriesSlice(whole, min(context, len(whole)))
        sizes = (self.split[0], 0.0 if self.valid else self.split[1], 0.0 if self.test else self.split[2])
        return split_series(read_series(self.train, self.column_spec), sizes, split, context, self.train)

    def read_all(self) -> TimeSeries:
        return read_series(self.test or self.valid or self.train, self.column_spec)


@dataclass(frozen=True, kw_only=True)
class WeatherSeries(DownloadedSource, SeriesSource):
    """The weather of Seattle, downloaded from PyPI and cached."""

    kind: Literal["weather"] = "weather"
    """the weather of Seattle, downloaded from PyPI"""
    series: Literal["seattle-temps", "seattle-weather"] = "seattle-temps"
    """the hourly temperature of a year, or daily rain, temperatures and wind of four years"""
    columns: tuple[str, ...] = ()
    """the columns to forecast; none: all that hold numbers and are not future covariates"""
    future_covariates: tuple[str, ...] = ()
    """columns that are known in advance"""
    time_features: tuple[TimeFeature, ...] = ("hour",)
    """calendar features that are read as well: hour (of the day), weekday, month (of the year)"""
    split: Split = (0.7, 0.1, 0.2)
    """sizes of train, valid and test, in this order: shares, or numbers of rows"""

    def __post_init__(self) -> None:
        check_split(self.split)

    @property
    def column_spec(self) -> ColumnSpec:
        # an hour is missing where daylight saving time begins
        return ColumnSpec(None, None, self.columns, self.future_covariates, self.time_features, "ffill")

    def splits(self) -> tuple[str, ...]:
        return SPLITS if self.split[2] else SPLITS[:2]

    def dataset(self) -> Dataset:
        return find_dataset(self.series)

    def read_split(self, split: str, context: int = 0) -> SeriesSlice:
        check_split_name(split, self.splits())
        return split_series(self.read_all(), self.split, split, context, self.series)

    def read_all(self) -> TimeSeries:
        return read_series(self.fetch(), self.column_spec)

    def scored_on(self, path: Path) -> CsvSeries:
        return CsvSeries(train=str(path), test=str(path), time_features=self.time_features, missing="ffill")


def read_series(path: str | Path, spec: ColumnSpec) -> TimeSeries:
    """Read the given columns of a CSV file."""
    return parse_time_series(read_lines(path), path, spec)


def check_split(split: Split) -> None:
    """Refuse split sizes that leave no rows for training or validation."""
    train, valid, test = split
    setting = f"split = [{train:g}, {valid:g}, {test:g}]"
    shares = all(part < 1 for part in split)
    if min(train, valid) <= 0 or test < 0:
        raise ConfigError(f"{setting}: training and validation need a part above 0")
    if not shares and any(part != int(part) for part in split):
        raise ConfigError(f"{setting}: expected three shares below 1, or three whole numbers of rows")
    if shares and sum(split) > 1 + 1e-9:
        raise ConfigError(f"{setting} is more than the whole: shares must add up to at most 1")


def check_split_name(split: str, splits: tuple[str, ...]) -> None:
    """Refuse a split that does not exist."""
    if split not in splits:
        raise ConfigError(f'there is no split "{split}" (splits: {", ".join(splits)}); give data.split a third part')


def split_series(series: TimeSeries, sizes: Split, split: str, context: int, name: str) -> SeriesSlice:
    """One split of a series; a part of size 0 has a file of its own, and its rows fall to training."""
    n = len(series)
    train, valid, test = (int(size) if size >= 1 else round(size * n) for size in sizes)
    if not (sizes[1] and sizes[2]):
        train = n - valid - test
    if train + valid + test > n:
        raise DataError(f"{name} has {n:,} rows, and data.split asks for {train + valid + test:,}; ask for fewer")
    ends = {"train": (0, train), "valid": (train, train + valid), "test": (train + valid, train + valid + test)}
    start, end = ends[split]
    past = min(context, start)
    return SeriesSlice(series.slice(start - past, end), past)
