"""Series in CSV files: what is found by itself, what is filled in, and what is refused, with file and line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.data.time_series import Timeline, Wanted, parse_timeline
from regard.data.timestamps import Step, angles
from regard.errors import ConfigError, DataError, InputError
from regard.tasks.forecast.sources import Stretch, Timed, Weather, read_timeline

DAYS = ["day,load,price", "2024-02-27,5,1.5", "2024-02-28,6,2.5", "2024-02-29,7,3.5", "2024-03-01,8,4.5"]


def read(lines: list[str], **wanted: object) -> Timeline:
    return parse_timeline(lines, "a.csv", Wanted(**wanted))  # type: ignore[arg-type]


def refusal(lines: list[str], kind: type[Exception] = DataError, **wanted: object) -> str:
    with pytest.raises(kind) as caught:
        read(lines, **wanted)
    return str(caught.value)


# What is found


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_cells_are_told_apart_by_the_sign_that_the_first_line_has(sign: str) -> None:
    found = read([line.replace(",", sign) for line in DAYS])
    assert found.names == ("load", "price")
    assert found.values[:, 0].tolist() == [5.0, 6.0, 7.0, 8.0]
    assert (found.clock.column, found.clock.format, str(found.clock.step)) == ("day", "%Y-%m-%d", "1 day")


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
def test_times_go_on_as_they_are_written(first: str, second: str, step: str, third: str) -> None:
    found = read(["when,load", f"{first},1", f"{second},2"])
    assert str(found.clock.step) == step
    assert found.clock.written(found.clock.step.after(found.stamps[-1], 1)) == [third]


def test_a_form_of_ones_own_is_read_and_written() -> None:
    found = read(["wann;wert", "30.01.2024;1", "31.01.2024;2"], form="%d.%m.%Y")
    assert found.clock.written(found.clock.step.after(found.stamps[-1], 1)) == ["01.02.2024"]
    years = read(["year,load", "2001,1", "2002,3"], time="year", form="%Y")
    assert (years.names, years.clock.step.season) == (("load",), 1)


def test_without_times_rows_are_counted_and_without_names_columns_are() -> None:
    found = read(["1,2", "3,4", "5,6"])
    assert (found.names, found.clock.column, found.stamps.tolist()) == (("1", "2"), "row", [1, 2, 3])
    assert found.clock.written(found.clock.step.after(found.stamps[-1], 2)) == ["4", "5"]
    assert read(["year,2019,2020", "2024-01-01,5,6", "2024-01-02,7,8"]).names == ("2019", "2020")


def test_columns_are_chosen_and_those_that_hold_no_numbers_are_passed_over() -> None:
    lines = ["day,sky,load,price", "2024-01-01,fog,,1", "2024-01-02,sun,2,3"]
    assert read(lines, columns=("price",)).names == ("price",)
    assert refusal(lines).startswith("a.csv, line 2: column load is empty (1 such cells); ")
    whole = [lines[0], lines[2], "2024-01-03,fog,3,4"]
    assert read(whole).names == ("load", "price")
    assert (read(whole, known=("price",)).names, read(whole, known=("price",)).known_names) == (("load",), ("price",))


@pytest.mark.parametrize(
    ("step", "season"),
    [(Step(months=1), 12), (Step(months=3), 4), (Step(3_600_000_000), 24), (Step(86_400_000_000), 7), (Step(1), 1)],
)
def test_a_season_is_what_the_step_makes_likely(step: Step, season: int) -> None:
    assert step.season == season


def test_the_calendar_is_the_same_at_the_same_hour_day_and_date() -> None:
    stamps = np.array(["2024-01-01T06:00", "2024-01-08T06:00", "2024-01-01T18:00"], "datetime64[us]")
    hour, week = angles(stamps, ["hour"]), angles(stamps, ["weekday"])
    assert np.allclose(hour[0], hour[1]) and np.allclose(hour[0], -hour[2])
    assert np.allclose(week[0], week[1]) and not np.allclose(week[0], week[2])
    assert angles(stamps, ["hour", "weekday", "month"]).shape == (3, 6)


def test_rows_at_the_end_that_have_only_what_is_known_are_the_future() -> None:
    found = read([*DAYS, "2024-03-02,,9"], columns=("load",), known=("price",))
    assert (len(found), found.known[:, 0].tolist()) == (4, [1.5, 2.5, 3.5, 4.5, 9.0])
    assert found.ahead(1, ()) is found
    with pytest.raises(DataError) as caught:
        found.ahead(3, ())
    assert str(caught.value) == (
        "price: what is known must be known for 3 rows after the last value, and is for 1; add rows at the end that "
        "leave the values empty"
    )
    assert read(DAYS, calendar=("weekday",)).ahead(2, ["weekday"]).known.shape == (6, 2)


# Gaps


def test_a_missing_row_is_refused_or_carried() -> None:
    lines = [DAYS[0], DAYS[1], DAYS[3], DAYS[4]]
    assert refusal(lines) == (
        "a.csv, line 3: 1 row is missing between 2024-02-27 and 2024-02-29 (rows are 1 day apart; 1 missing in all); "
        'data.gaps = "carry" goes on with the last values'
    )
    found = read(lines, gaps="carry")
    assert found.values[:, 0].tolist() == [5.0, 5.0, 7.0, 8.0]
    assert found.clock.written(found.stamps) == ["2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01"]
    assert found.filled.tolist() == [0, 2, 0, 0]
    assert [Stretch(found.between(*ends)).filled for ends in ((0, 2), (2, 4))] == [2, 0]
    months = read(["m,x", "2024-01,1", "2024-02,2", "2024-04,4", "2024-05,5"], gaps="carry")
    assert months.values[:, 0].tolist() == [1.0, 2.0, 2.0, 4.0, 5.0]


@pytest.mark.parametrize("cell", ["", "NaN", "nan", "NA", "null"])
def test_an_empty_cell_is_refused_or_carried(cell: str) -> None:
    lines = [*DAYS[:3], f"2024-02-29,{cell},3.5", DAYS[4]]
    assert refusal(lines) == (
        'a.csv, line 4: column load is empty (1 such cells); data.gaps = "carry" goes on with the last values'
    )
    assert read(lines, gaps="carry").values[:, 0].tolist() == [5.0, 6.0, 6.0, 8.0]


def test_nothing_can_be_carried_into_the_first_row() -> None:
    assert refusal([DAYS[0], "2024-02-27,,1", *DAYS[2:]], gaps="carry") == (
        "a.csv, line 2: column load is empty, and there is nothing before it to go on with; begin the file later"
    )


# What is refused


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "a.csv: it is empty; expected a CSV file, one time a line"),
        (["", "  "], "a.csv: it is empty; expected a CSV file, one time a line"),
        (["day,load"], "a.csv: there are no rows below the names of its columns"),
        (["day,load", "2024-01-01,5"], "a.csv: there are 1 rows with values; expected at least 2, one a time"),
        ([*DAYS, "2024-03-02,x,1"], 'a.csv, line 6: "x" in column load is not a number'),
        ([*DAYS, "2024-03-02,inf,1"], 'a.csv, line 6: "inf" in column load is not a number'),
        ([*DAYS, "2024-03-02,1"], "a.csv, line 6: expected 3 columns as above, found 2"),
        ([*DAYS, "soon,1,1"], 'a.csv, line 6: "soon" in column day is no time of the form "%Y-%m-%d" as above'),
        ([*DAYS, DAYS[-1]], "a.csv, line 6: 2024-03-01 comes again; expected each time once, the oldest first"),
        ([*DAYS, DAYS[1]],
         "a.csv, line 6: 2024-02-27 comes after 2024-03-01; expected each time once, the oldest first"),
        (["h,x", "2024-01-01 00:00,1", "2024-01-01 01:00,1", "2024-01-01 02:00,1", "2024-01-01 02:40,1"],
         "a.csv, line 5: 2024-01-01 02:40 is not a whole number of steps after 2024-01-01 02:00; most rows are 1 hour "
         "apart, and a forecast needs all of them so: bring the series to one step first"),
        (["load,load", "1,2", "3,4"], 'a.csv: two columns are called "load"; give each a name of its own'),
        (["day,sky", "2024-01-01,fog", "2024-01-02,sun"], "a.csv: none of its 2 columns holds numbers (day, sky)"),
    ],
)  # fmt: skip
def test_what_is_no_series_is_told_with_its_line(lines: list[str], message: str) -> None:
    assert refusal(lines) == message


@pytest.mark.parametrize(
    ("wanted", "kind", "message"),
    [
        ({"columns": ("wind",)}, ConfigError, 'data.columns: a.csv has no column "wind" (columns: day, load, price)'),
        ({"known": ("wind",)}, ConfigError, 'data.known: a.csv has no column "wind" (columns: day, load, price)'),
        ({"time": "wind"}, ConfigError, 'data.time: a.csv has no column "wind" (columns: day, load, price)'),
        ({"columns": ("load",), "known": ("load",)}, ConfigError,
         '"load" is in data.columns and in data.known; what is known is not forecast'),
        ({"time": "load"}, DataError,
         'a.csv, line 2: "5" in column load is no time that is known by itself; tell its form in data.format, such as '
         '"%d.%m.%Y" or, for years, "%Y"'),
        ({"form": "%d.%m.%Y"}, DataError, 'a.csv, line 2: no column holds a time of the form "%d.%m.%Y"'),
    ],
)  # fmt: skip
def test_columns_that_are_not_there_are_told(wanted: dict[str, object], kind: type[Exception], message: str) -> None:
    assert refusal(DAYS, kind, **wanted) == message


def test_a_calendar_needs_times() -> None:
    assert refusal(["1", "2", "3"], ConfigError, calendar=("hour",)) == (
        "data.calendar: a.csv has no column with times; name it in data.time, or leave it out"
    )


def test_a_missing_file_is_told() -> None:
    with pytest.raises(InputError, match=r"none\.csv: there is no such file"):
        read_timeline("none.csv", Wanted())


# Splits


def series(folder: Path, rows: int = 20) -> str:
    (folder / "s.csv").write_text("".join(f"{i}\n" for i in range(rows)), encoding="utf-8")
    return str(folder / "s.csv")


@pytest.mark.parametrize("split", [(0.6, 0.2, 0.2), (12, 4, 4)])
def test_splits_follow_one_another_and_the_past_goes_before_them(split: tuple, tmp_path: Path) -> None:
    data = Timed(train=series(tmp_path), split=split)
    parts = [data.stretch(name, before=5) for name in data.splits()]
    assert [(part.asked, part.first) for part in parts] == [(12, 0), (4, 5), (4, 5)]
    assert [part.rows.values[part.first, 0] for part in parts] == [0, 12, 16]
    assert len(data.whole()) == 20


def test_files_of_their_own_are_their_own_past(tmp_path: Path) -> None:
    other = tmp_path / "t.csv"
    other.write_text("".join(f"{i}\n" for i in range(100, 110)))
    data = Timed(train=series(tmp_path), split=(0.6, 0.2, 0.2)).scored_on(other)
    assert data.stretch("train").asked == 16  # its share of the test is free
    test = data.stretch("test", before=3)
    assert (test.first, test.asked, test.rows.values[0, 0]) == (3, 7, 100)
    whole = Timed(train=series(tmp_path), valid=str(other), test=str(other))
    assert [whole.stretch(name).asked for name in whole.splits()] == [20, 10, 10]


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ((0.0, 0.5, 0.5), "split = [0, 0.5, 0.5]: training and validation need a part above 0"),
        ((12, 0.2, 0.2), "split = [12, 0.2, 0.2]: expected three shares below 1, or three whole numbers of rows"),
        ((0.7, 0.3, 0.3), "split = [0.7, 0.3, 0.3] is more than the whole: shares must add up to at most 1"),
    ],
)
def test_a_split_that_cannot_be_is_refused(split: tuple, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Timed(train="a.csv", split=split)
    assert str(caught.value) == message


def test_a_split_asks_for_no_more_rows_than_there_are(tmp_path: Path) -> None:
    path = series(tmp_path)
    with pytest.raises(DataError) as caught:
        Timed(train=path, split=(12, 4, 5)).stretch("test")
    assert str(caught.value) == f"{path} has 20 rows, and data.split asks for 21; ask for fewer"
    with pytest.raises(ConfigError, match=r'there is no split "test" \(splits: train, valid\); give data.split'):
        Timed(train=path, split=(0.8, 0.2, 0)).stretch("test")


def test_the_weather_is_credited_and_another_file_may_be_scored() -> None:
    assert Weather().attribution() == "NOAA. Licence: public data"
    assert Weather(calendar=("hour",)).scored_on(Path("b.csv")).calendar == ("hour",)
