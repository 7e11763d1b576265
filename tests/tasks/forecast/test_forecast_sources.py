"""Time series in CSV files: inference of format and frequency, missing values, splits, errors with file and line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.errors import ConfigError, DataError, InputError
from regard.tasks.forecast.sources import CsvSeries, SeriesSlice, WeatherSeries, read_series
from regard.tasks.forecast.time_series import ColumnSpec, TimeSeries, parse_time_series
from regard.tasks.forecast.timestamps import Frequency, cyclic_features

DAYS = ["day,load,price", "2024-02-27,5,1.5", "2024-02-28,6,2.5", "2024-02-29,7,3.5", "2024-03-01,8,4.5"]


def read(lines: list[str], **columns: object) -> TimeSeries:
    return parse_time_series(lines, "a.csv", ColumnSpec(**columns))  # type: ignore[arg-type]


def refusal(lines: list[str], kind: type[Exception] = DataError, **columns: object) -> str:
    with pytest.raises(kind) as caught:
        read(lines, **columns)
    return str(caught.value)


# Inference of format and frequency


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_the_delimiter_is_taken_from_the_first_line(sign: str) -> None:
    found = read([line.replace(",", sign) for line in DAYS])
    assert found.names == ("load", "price")
    assert found.values[:, 0].tolist() == [5.0, 6.0, 7.0, 8.0]
    assert (found.index.column, found.index.format, str(found.index.frequency)) == ("day", "%Y-%m-%d", "1 day")


@pytest.mark.parametrize(
    ("first", "second", "step", "third"),
    [
        ("2016-07-01 00:00:00", "2016-07-01 01:00:00", "1 hour", "2016-07-01 02:00:00"),
        ("2010/12/31 23:45", "2011/01/01 00:00", "15 minutes", "2011/01/01 00:15"),
        ("1949-11", "1949-12", "1 month", "1950-01"),
        ("2023-12-31", "2024-01-31", "1 month", "2024-02-29"),
        ("2020-01-01", "2021-01-01", "12 months", "2022-01-01"),
        ("2024-01-01", "2024-01-08", "7 days", "2024-01-15"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:30Z", "30 seconds", "2024-01-01T00:01:00Z"),
        ("2024-01-01 23:00:00+0200", "2024-01-02 00:00:00+0200", "1 hour", "2024-01-01 23:00:00+0000"),
        ("2024-01-01 00:00:00.250000", "2024-01-01 00:00:00.500000", "0.25 seconds", "2024-01-01 00:00:00.750000"),
    ],
)
def test_future_times_have_the_format_of_the_past(first: str, second: str, step: str, third: str) -> None:
    found = read(["when,load", f"{first},1", f"{second},2"])
    assert str(found.index.frequency) == step
    assert found.index.format_times(found.index.frequency.next_times(found.timestamps[-1], 1)) == [third]


def test_a_custom_time_format_is_read_and_written() -> None:
    found = read(["wann;wert", "30.01.2024;1", "31.01.2024;2"], format="%d.%m.%Y")
    assert found.index.format_times(found.index.frequency.next_times(found.timestamps[-1], 1)) == ["01.02.2024"]
    years = read(["year,load", "2001,1", "2002,3"], time="year", format="%Y")
    assert (years.names, years.index.frequency.season) == (("load",), 1)


def test_rows_without_times_and_columns_without_names_are_numbered() -> None:
    found = read(["1,2", "3,4", "5,6"])
    assert (found.names, found.index.column, found.timestamps.tolist()) == (("1", "2"), "row", [1, 2, 3])
    assert found.index.format_times(found.index.frequency.next_times(found.timestamps[-1], 2)) == ["4", "5"]
    assert read(["year,2019,2020", "2024-01-01,5,6", "2024-01-02,7,8"]).names == ("2019", "2020")


def test_columns_are_chosen_and_non_numeric_ones_are_skipped() -> None:
    lines = ["day,sky,load,price", "2024-01-01,fog,,1", "2024-01-02,sun,2,3"]
    assert read(lines, columns=("price",)).names == ("price",)
    assert refusal(lines).startswith("a.csv, line 2: column load is empty (1 such cells); ")
    whole = [lines[0], lines[2], "2024-01-03,fog,3,4"]
    assert read(whole).names == ("load", "price")
    assert (read(whole, covariates=("price",)).names, read(whole, covariates=("price",)).covariate_names) == (
        ("load",),
        ("price",),
    )


@pytest.mark.parametrize(
    ("step", "season"),
    [
        (Frequency(months=1), 12),
        (Frequency(months=3), 4),
        (Frequency(3_600_000_000), 24),
        (Frequency(86_400_000_000), 7),
        (Frequency(1), 1),
    ],
)
def test_the_default_season_depends_on_the_frequency(step: Frequency, season: int) -> None:
    assert step.season == season


def test_time_features_are_cyclic() -> None:
    stamps = np.array(["2024-01-01T06:00", "2024-01-08T06:00", "2024-01-01T18:00"], "datetime64[us]")
    hour, week = cyclic_features(stamps, ["hour"]), cyclic_features(stamps, ["weekday"])
    assert np.allclose(hour[0], hour[1]) and np.allclose(hour[0], -hour[2])
    assert np.allclose(week[0], week[1]) and not np.allclose(week[0], week[2])
    assert cyclic_features(stamps, ["hour", "weekday", "month"]).shape == (3, 6)


def test_rows_at_the_end_with_only_covariates_are_the_future() -> None:
    found = read([*DAYS, "2024-03-02,,9"], columns=("load",), covariates=("price",))
    assert (len(found), found.covariates[:, 0].tolist()) == (4, [1.5, 2.5, 3.5, 4.5, 9.0])
    assert found.extend(1, ()) is found
    with pytest.raises(DataError) as caught:
        found.extend(3, ())
    assert str(caught.value) == (
        "price: future covariates must be known for 3 rows after the last value, and are for 1; add rows at the end "
        "that leave the values empty"
    )
    assert read(DAYS, time_features=("weekday",)).extend(2, ["weekday"]).covariates.shape == (6, 2)


# Gaps


def test_a_missing_row_is_refused_or_filled() -> None:
    lines = [DAYS[0], DAYS[1], DAYS[3], DAYS[4]]
    assert refusal(lines) == (
        "a.csv, line 3: 1 row is missing between 2024-02-27 and 2024-02-29 (rows are 1 day apart; 1 missing in all); "
        'data.missing = "ffill" repeats the last values'
    )
    found = read(lines, missing="ffill")
    assert found.values[:, 0].tolist() == [5.0, 5.0, 7.0, 8.0]
    assert found.index.format_times(found.timestamps) == ["2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01"]
    assert found.filled.tolist() == [0, 2, 0, 0]
    assert [SeriesSlice(found.slice(*ends)).filled_cells for ends in ((0, 2), (2, 4))] == [2, 0]
    months = read(["m,x", "2024-01,1", "2024-02,2", "2024-04,4", "2024-05,5"], missing="ffill")
    assert months.values[:, 0].tolist() == [1.0, 2.0, 2.0, 4.0, 5.0]


@pytest.mark.parametrize("cell", ["", "NaN", "nan", "NA", "null"])
def test_an_empty_cell_is_refused_or_filled(cell: str) -> None:
    lines = [*DAYS[:3], f"2024-02-29,{cell},3.5", DAYS[4]]
    assert refusal(lines) == (
        'a.csv, line 4: column load is empty (1 such cells); data.missing = "ffill" repeats the last values'
    )
    assert read(lines, missing="ffill").values[:, 0].tolist() == [5.0, 6.0, 6.0, 8.0]


def test_the_first_row_cannot_be_filled() -> None:
    assert refusal([DAYS[0], "2024-02-27,,1", *DAYS[2:]], missing="ffill") == (
        "a.csv, line 2: column load is empty, and there is no value before it to repeat; begin the file later"
    )


# Errors


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "a.csv: it is empty; expected a CSV file, one time per line"),
        (["", "  "], "a.csv: it is empty; expected a CSV file, one time per line"),
        (["day,load"], "a.csv: there are no rows below the names of its columns"),
        (["day,load", "2024-01-01,5"], "a.csv: there are 1 rows with values; expected at least 2, one per time"),
        ([*DAYS, "2024-03-02,x,1"], 'a.csv, line 6: "x" in column load is not a number'),
        ([*DAYS, "2024-03-02,inf,1"], 'a.csv, line 6: "inf" in column load is not a number'),
        ([*DAYS, "2024-03-02,1"], "a.csv, line 6: expected 3 columns as above, found 2"),
        ([*DAYS, "soon,1,1"], 'a.csv, line 6: "soon" in column day is not a time of the format "%Y-%m-%d" as above'),
        ([*DAYS, DAYS[-1]], "a.csv, line 6: 2024-03-01 comes again; expected each time once, the oldest first"),
        ([*DAYS, DAYS[1]],
         "a.csv, line 6: 2024-02-27 comes after 2024-03-01; expected each time once, the oldest first"),
        (["h,x", "2024-01-01 00:00,1", "2024-01-01 01:00,1", "2024-01-01 02:00,1", "2024-01-01 02:40,1"],
         "a.csv, line 5: 2024-01-01 02:40 is not a multiple of the frequency after 2024-01-01 02:00; most rows are "
         "1 hour apart, and forecasting needs a constant frequency: resample the series first"),
        (["load,load", "1,2", "3,4"], 'a.csv: two columns are called "load"; give each a name of its own'),
        (["day,sky", "2024-01-01,fog", "2024-01-02,sun"], "a.csv: none of its 2 columns holds numbers (day, sky)"),
    ],
)  # fmt: skip
def test_an_invalid_series_is_reported_with_its_line(lines: list[str], message: str) -> None:
    assert refusal(lines) == message


@pytest.mark.parametrize(
    ("columns", "kind", "message"),
    [
        ({"columns": ("wind",)}, ConfigError, 'data.columns: a.csv has no column "wind" (columns: day, load, price)'),
        ({"covariates": ("wind",)}, ConfigError,
         'data.future_covariates: a.csv has no column "wind" (columns: day, load, price)'),
        ({"time": "wind"}, ConfigError, 'data.time: a.csv has no column "wind" (columns: day, load, price)'),
        ({"columns": ("load",), "covariates": ("load",)}, ConfigError,
         '"load" is in data.columns and in data.future_covariates; a covariate is not forecast'),
        ({"time": "load"}, DataError,
         'a.csv, line 2: the format of the time "5" in column load is not recognized; set data.format, such as '
         '"%d.%m.%Y" or, for years, "%Y"'),
        ({"format": "%d.%m.%Y"}, DataError, 'a.csv, line 2: no column holds a time of the format "%d.%m.%Y"'),
    ],
)  # fmt: skip
def test_missing_columns_are_refused(columns: dict[str, object], kind: type[Exception], message: str) -> None:
    assert refusal(DAYS, kind, **columns) == message


def test_time_features_need_times() -> None:
    assert refusal(["1", "2", "3"], ConfigError, time_features=("hour",)) == (
        "data.time_features: a.csv has no column with times; name it in data.time, or leave it out"
    )


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(InputError, match=r"none\.csv: there is no such file"):
        read_series("none.csv", ColumnSpec())


# Splits


def series(folder: Path, rows: int = 20) -> str:
    (folder / "s.csv").write_text("".join(f"{i}\n" for i in range(rows)), encoding="utf-8")
    return str(folder / "s.csv")


@pytest.mark.parametrize("split", [(0.6, 0.2, 0.2), (12, 4, 4)])
def test_splits_are_consecutive_and_have_context_before_them(split: tuple, tmp_path: Path) -> None:
    data = CsvSeries(train=series(tmp_path), split=split)
    parts = [data.read_split(name, context=5) for name in data.splits()]
    assert [(len(part), part.first) for part in parts] == [(12, 0), (4, 5), (4, 5)]
    assert [part.rows.values[part.first, 0] for part in parts] == [0, 12, 16]
    assert len(data.read_all()) == 20


def test_a_separate_file_is_its_own_context(tmp_path: Path) -> None:
    other = tmp_path / "t.csv"
    other.write_text("".join(f"{i}\n" for i in range(100, 110)))
    data = CsvSeries(train=series(tmp_path), split=(0.6, 0.2, 0.2)).scored_on(other)
    assert len(data.read_split("train")) == 16  # its share of the test is free
    test = data.read_split("test", context=3)
    assert (test.first, len(test), test.rows.values[0, 0]) == (3, 7, 100)
    whole = CsvSeries(train=series(tmp_path), valid=str(other), test=str(other))
    assert [len(whole.read_split(name)) for name in whole.splits()] == [20, 10, 10]


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ((0.0, 0.5, 0.5), "split = [0, 0.5, 0.5]: training and validation need a part above 0"),
        ((12, 0.2, 0.2), "split = [12, 0.2, 0.2]: expected three shares below 1, or three whole numbers of rows"),
        ((0.7, 0.3, 0.3), "split = [0.7, 0.3, 0.3] is more than the whole: shares must add up to at most 1"),
    ],
)
def test_an_invalid_split_is_refused(split: tuple, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        CsvSeries(train="a.csv", split=split)
    assert str(caught.value) == message


def test_a_split_larger_than_the_file_is_refused(tmp_path: Path) -> None:
    path = series(tmp_path)
    with pytest.raises(DataError) as caught:
        CsvSeries(train=path, split=(12, 4, 5)).read_split("test")
    assert str(caught.value) == f"{path} has 20 rows, and data.split asks for 21; ask for fewer"
    with pytest.raises(ConfigError, match=r'there is no split "test" \(splits: train, valid\); give data.split'):
        CsvSeries(train=path, split=(0.8, 0.2, 0)).read_split("test")


def test_the_weather_is_credited_and_another_file_may_be_scored() -> None:
    assert WeatherSeries().credit() == "NOAA. License: public data"
    assert WeatherSeries(time_features=("hour",)).scored_on(Path("b.csv")).time_features == ("hour",)
