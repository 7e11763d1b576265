"""Tables of numbers: parsing, and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.data.tables import column_index, is_number, read_header, read_numeric_table, sniff_delimiter, tsv_rows
from regard.errors import ConfigError, DataError


def file(folder: Path, text: str) -> Path:
    path = folder / "series.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "names", "values"),
    [
        ("1\n2.5\n-3e2\n", ("1",), [[1.0], [2.5], [-300.0]]),
        ("1 2\n3   4\n", ("1", "2"), [[1.0, 2.0], [3.0, 4.0]]),
        ("a;b\n1;2\n", ("a", "b"), [[1.0, 2.0]]),
        ('"Month","Passengers"\r\n"1949-01",112\r\n\r\n"1949-02",118\r\n', ("Passengers",), [[112.0], [118.0]]),
        ("1949-01\t112\n1949-02\t118\n", ("2",), [[112.0], [118.0]]),
        ("7", ("1",), [[7.0]]),
    ],
)
def test_columns_of_numbers_are_found(text: str, names: tuple[str, ...], values: list[object], tmp_path: Path) -> None:
    found = read_numeric_table(file(tmp_path, text))
    assert (found.names, found.values.tolist()) == (names, values)


def test_columns_are_chosen_by_name_or_by_number(tmp_path: Path) -> None:
    path = file(tmp_path, "hour,load,price\n1,2,3\n4,5,6\n")
    assert read_numeric_table(path, ["price", "1"]).values.tolist() == [[3.0, 1.0], [6.0, 4.0]]


@pytest.mark.parametrize(
    ("text", "columns", "kind", "message"),
    [
        ("", (), DataError, "{}: there is no number in it; expected one row per line"),
        ("a,b\nc,d\n", (), DataError, "{}: none of the 2 columns holds a number in its first line"),
        ("a,b\n1,2\n1,two\n", (), DataError, '{}, line 3: "two" in column b is not a number'),
        ("1\n2\nnan\n", (), DataError, '{}, line 3: "nan" in column 1 is not a number'),
        ("1,2\n1,2,3\n", (), DataError, "{}, line 2: expected 2 columns as above, found 3"),
        ("a,b\n1,2\n", ("c",), ConfigError, 'data.columns: {} has no column "c" (columns: a, b)'),
    ],
)
def test_a_cell_that_is_not_a_number_is_reported_with_its_line(
    text: str, columns: tuple[str, ...], kind: type[Exception], message: str, tmp_path: Path
) -> None:
    path = file(tmp_path, text)
    with pytest.raises(kind) as caught:
        read_numeric_table(path, columns)
    assert str(caught.value) == message.format(path)


def test_rows_are_cut_at_the_delimiter_that_is_found() -> None:
    assert list(tsv_rows(["1\tso great", "", '0\t"so" bad'])) == [(1, ["1", "so great"]), (3, ["0", '"so" bad'])]
    assert (sniff_delimiter("1;2,5"), sniff_delimiter("1 2")) == (";", None)
    names, rows = read_header(["a;b", "1;2"], "t.csv", header=True)
    assert (names, list(rows)) == (["a", "b"], [(2, ["1", "2"])])
    assert [is_number(cell) for cell in (" 1e3 ", "nan", "")] == [True, False, False]


def test_a_column_is_found_by_name_or_number() -> None:
    assert column_index("a.tsv", 7, ["text", "stars"], ["so great", "5"], "stars") == 1
    with pytest.raises(DataError, match=r"a.tsv, line 7: expected 2 columns or more, found 1"):
        column_index("a.tsv", 7, None, ["so great"], "2")
