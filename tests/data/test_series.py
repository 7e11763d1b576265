"""Files of real numbers: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.data.series import Numbers, Table, read_numbers
from regard.errors import ConfigError, DataError, InputError


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
    found = read_numbers(file(tmp_path, text))
    assert (found.names, found.values.tolist()) == (names, values)


def test_columns_are_chosen_by_name_or_by_number(tmp_path: Path) -> None:
    path = file(tmp_path, "hour,load,price\n1,2,3\n4,5,6\n")
    assert read_numbers(path, ["price", "1"]).values.tolist() == [[3.0, 1.0], [6.0, 4.0]]


@pytest.mark.parametrize(
    ("text", "columns", "kind", "message"),
    [
        ("", (), DataError, "{}: there is no number in it; expected one line a place"),
        ("a,b\nc,d\n", (), DataError, "{}: none of the 2 columns holds a number in its first line"),
        ("a,b\n1,2\n1,two\n", (), DataError, '{}, line 3: "two" in column b is not a number'),
        ("1\n2\nnan\n", (), DataError, '{}, line 3: "nan" in column 1 is not a number'),
        ("1,2\n1,2,3\n", (), DataError, "{}, line 2: expected 2 columns as above, found 3"),
        ("a,b\n1,2\n", ("c",), ConfigError, 'data.columns: {} has no column "c" (columns: a, b)'),
    ],
)
def test_what_is_no_number_is_told_with_its_line(
    text: str, columns: tuple[str, ...], kind: type[Exception], message: str, tmp_path: Path
) -> None:
    path = file(tmp_path, text)
    with pytest.raises(kind) as caught:
        read_numbers(path, columns)
    assert str(caught.value) == message.format(path)


def test_the_end_is_kept_apart_and_files_of_its_own_leave_train_whole(tmp_path: Path) -> None:
    path = file(tmp_path, "\n".join(map(str, range(20))))
    data = Numbers(train=str(path), held_out=0.25)
    assert [len(data.table(split).values) for split in data.splits()] == [15, 5]
    assert data.table("valid").values[0] == 15
    own = Numbers(train=str(path), valid=str(path), test=str(path))
    assert [len(own.table(split).values) for split in own.splits()] == [20, 20, 20]
    assert isinstance(data.scored_on(path).table("test"), Table)
    with pytest.raises(ConfigError, match=r'there is no split "test" \(splits: train, valid\); name it in the recipe'):
        data.table("test")
    with pytest.raises(InputError, match=r"none\.csv: there is no such file"):
        Numbers(train="none.csv").table("train")
