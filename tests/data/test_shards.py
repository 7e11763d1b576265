from __future__ import annotations

import multiprocessing
import os
import resource
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import PATIENCE
from regard.data import Shards, ShardWriter
from regard.errors import DataError, InputError, OutputError

ROWS = [([5, 6, 7], [8]), ([], [9, 9]), ([99], [])]


def write(folder: Path, rows: list[tuple[list[int], list[int]]] = ROWS) -> Path:
    with ShardWriter(folder, {"source": 100, "target": 70_000}, metadata={"tokenizer": "abc", 1: None}) as writer:
        writer.append(rows)
    return folder


def everything(shards: Shards) -> list[tuple[list[int], ...]]:
    return [tuple(ids.tolist() for ids in shards.row(i)) for i in range(len(shards))]


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


sequence = st.lists(st.integers(0, 99), max_size=6)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.tuples(sequence, sequence), max_size=5), max_size=5))
def test_rows_are_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[tuple[list[int], list[int]]]]
) -> None:
    folder = tmp_path_factory.getbasetemp() / "shards"
    with ShardWriter(folder, {"source": 100, "target": 70_000}) as writer:
        for rows in parts:
            writer.append(rows)
    shards, rows = Shards.open(folder), [row for part in parts for row in part]
    assert everything(shards) == rows
    numbers = np.arange(len(rows))[::-1]
    for i, column in enumerate(shards.columns):
        assert [ids.tolist() for ids in shards.take(numbers, column)] == [row[i] for row in reversed(rows)]
        assert len(shards.lengths(column)) == len(rows)
        assert shards.lengths(column)[numbers].tolist() == [len(row[i]) for row in reversed(rows)]


numbers = st.lists(st.floats(width=32, allow_nan=False), max_size=4)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(numbers, text), max_size=6))
def test_columns_of_numbers_and_texts_are_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[list[float], str]]
) -> None:
    folder = tmp_path_factory.getbasetemp() / "typed"
    with ShardWriter(folder, {"values": "float32", "text": "text"}) as writer:
        writer.append(rows)
    shards, every = Shards.open(folder), np.arange(len(rows))
    assert shards.take(every, "text") == [text for _, text in rows]
    values = shards.take(every, "values")
    assert all(row.dtype == np.float32 for row in values)
    assert [row.tolist() for row in values] == [numbers for numbers, _ in rows]
    assert shards.flat("values").tolist() == [number for numbers, _ in rows for number in numbers]


def test_float64_numbers_are_rounded_to_float32(tmp_path: Path) -> None:
    with ShardWriter(tmp_path / "x", {"values": "float32"}) as writer:
        writer.append([(np.array([0.1, 1e-50]),)])
    assert Shards.open(tmp_path / "x").row(0)[0].tolist() == np.float32([0.1, 1e-50]).tolist()


def test_ids_take_two_bytes_where_the_vocabulary_allows(tmp_path: Path) -> None:
    with ShardWriter(tmp_path / "x", {"a": 65_536, "b": 65_537}) as writer:
        writer.append([([65_535], [65_536])])
    a, b = Shards.open(tmp_path / "x").row(0)
    assert (a.dtype, a.tolist()) == (np.uint16, [65_535])
    assert (b.dtype, b.tolist()) == (np.uint32, [65_536])


def test_rows_are_read_only_views_of_the_file(tmp_path: Path) -> None:
    ids = Shards.open(write(tmp_path / "x")).row(0)[0]
    assert not ids.flags.owndata and not ids.flags.writeable


@pytest.mark.parametrize("row", [-1, 3])
def test_a_row_out_of_range_is_an_index_error(tmp_path: Path, row: int) -> None:
    with pytest.raises(IndexError):
        Shards.open(write(tmp_path / "x")).row(row)


def test_metadata_is_stored(tmp_path: Path) -> None:
    assert Shards.open(write(tmp_path / "x")).metadata == {"tokenizer": "abc", "1": None}


def test_a_folder_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path / "deep" / "x", {"a": 10})
    writer.append([([1],)])
    assert not (tmp_path / "deep" / "x").exists()
    writer.close()
    assert names(tmp_path / "deep") == ["x"]


def test_an_error_leaves_the_old_folder_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path / "x")
    with pytest.raises(KeyError), ShardWriter(tmp_path / "x", {"a": 10}) as writer:
        writer.append([([1],)])
        raise KeyError
    assert everything(Shards.open(tmp_path / "x")) == ROWS
    assert names(tmp_path) == ["x"]


def test_a_second_writing_replaces_the_first(tmp_path: Path) -> None:
    write(tmp_path / "x")
    write(tmp_path / "x", ROWS[:1])
    assert everything(Shards.open(tmp_path / "x")) == ROWS[:1]
    assert names(tmp_path) == ["x"]


def test_open_shards_survive_being_replaced(tmp_path: Path) -> None:
    shards = Shards.open(write(tmp_path / "x"))
    write(tmp_path / "x", ROWS[:1])
    assert everything(shards) == ROWS


def test_files_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=write_and_die, args=(tmp_path / "x",))
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL
    assert names(tmp_path) == [".x.part"]
    assert everything(Shards.open(write(tmp_path / "x"))) == ROWS
    assert names(tmp_path) == ["x"]


def write_and_die(folder: Path) -> None:
    writer = ShardWriter(folder, {"source": 100, "other": 100})
    writer.append(ROWS * 10_000)
    os.kill(os.getpid(), signal.SIGKILL)


def test_two_writers_of_one_folder_do_not_mix(tmp_path: Path) -> None:
    with ShardWriter(tmp_path / "x", {"a": 10}) as writer:
        writer.append([([1],)])
        with pytest.raises(OutputError) as caught:
            ShardWriter(tmp_path / "x", {"a": 10})
    assert str(caught.value) == f"{tmp_path / 'x'}: another process is writing it; wait for it, or stop it"
    assert everything(Shards.open(tmp_path / "x")) == [([1],)]


@pytest.mark.parametrize(("ids", "wrong"), [([3, 10], 10), ([-1, 3], -1)])
def test_an_id_outside_the_vocabulary_is_refused(tmp_path: Path, ids: list[int], wrong: int) -> None:
    with pytest.raises(DataError) as caught, ShardWriter(tmp_path / "x", {"a": 10}) as writer:
        writer.append([(ids,)])
    assert str(caught.value) == (
        f'column "a": the id {wrong} is outside its vocabulary of 10; was the text encoded with another tokenizer?'
    )


def test_a_full_disk_leaves_the_old_folder(tmp_path: Path) -> None:
    write(tmp_path / "x")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(OutputError) as caught:
            write(tmp_path / "x", ROWS * 10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(caught.value) == f"{tmp_path / 'x'} cannot be written: File too large"
    assert everything(Shards.open(tmp_path / "x")) == ROWS
    assert names(tmp_path) == ["x"]


def test_a_folder_without_a_manifest_is_no_data(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError) as caught:
            Shards.open(folder)
        assert str(caught.value) == (
            f"{folder} holds no prepared data: there is no manifest.json; prepare the data first"
        )


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "x") / "target.offsets"
    file.unlink()
    with pytest.raises(DataError) as caught:
        Shards.open(tmp_path / "x")
    assert str(caught.value) == f"{file} is missing; prepare the data again"


def test_a_truncated_file_is_named_with_both_sizes(tmp_path: Path) -> None:
    file = write(tmp_path / "x") / "target.ids"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DataError) as caught:
        Shards.open(tmp_path / "x")
    assert str(caught.value) == f"{file} has 11 bytes, expected 12; prepare the data again"


def test_a_changed_file_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "x") / "source.ids"
    content = bytearray(file.read_bytes())
    content[3] ^= 1
    file.write_bytes(content)
    with pytest.raises(DataError) as caught:
        Shards.open(tmp_path / "x")
    assert (
        str(caught.value) == f"{file} is damaged: its SHA-256 is not the one in manifest.json; prepare the data again"
    )


def test_data_of_another_format_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.data.shards.FORMAT", 1)
    write(tmp_path / "x")
    monkeypatch.undo()
    with pytest.raises(DataError) as caught:
        Shards.open(tmp_path / "x")
    assert str(caught.value) == (
        f"{tmp_path / 'x' / 'manifest.json'}: expected format 2, found 1; prepare the data again"
    )


def test_no_flipped_bit_and_no_cut_goes_unnoticed(tmp_path: Path) -> None:
    write(tmp_path / "x")
    numbers = np.random.default_rng(0)
    for file in sorted((tmp_path / "x").iterdir()):
        whole = file.read_bytes()
        flips = [(at, bit) for at in range(len(whole)) for bit in range(8)]
        for at, bit in numbers.permutation(flips)[:200]:
            file.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
            assert_refused_or_the_same(tmp_path / "x")
        for end in range(len(whole)):
            file.write_bytes(whole[:end])
            assert_refused_or_the_same(tmp_path / "x")
        file.write_bytes(whole)
    assert everything(Shards.open(tmp_path / "x")) == ROWS


def assert_refused_or_the_same(folder: Path) -> None:
    """White space in the manifest has no meaning; every other change has."""
    try:
        shards = Shards.open(folder)
    except DataError:
        return
    assert everything(shards) == ROWS and shards.metadata == {"tokenizer": "abc", "1": None}
