from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import lines as module
from regard.data.lines import printable, read_lines
from regard.errors import DataError, InputError


def read(path: Path, content: bytes) -> list[str]:
    path.write_bytes(content)
    return list(read_lines(path))


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"\n\n", ["", ""]),
        (b"one", ["one"]),
        (b"one\n", ["one"]),
        (b"one\ntwo", ["one", "two"]),
        (b"one\n\ntwo\n", ["one", "", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"one\r\r\ntwo\rthree\r", ["one\r", "two\rthree"]),
        (b"\xef\xbb\xbfone\ntwo\n", ["one", "two"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbf\n", [""]),
        (b"one\n\xef\xbb\xbftwo\n", ["one", "\ufefftwo"]),
        ("a\u2028b\u2029c\x0bd\x0ce\x1cf\x85g\n".encode(), ["a\u2028b\u2029c\x0bd\x0ce\x1cf\x85g"]),
        ("le café\nΑθήνα\n東京\n😀".encode(), ["le café", "Αθήνα", "東京", "😀"]),
    ],
)
def test_only_a_newline_ends_a_line(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    assert read(tmp_path / "text", content) == lines


@settings(deadline=None)
@given(
    text=st.text(st.sampled_from("ab é😀\n\r\u2028\x85\x0c\ufeff"), max_size=80),
    block=st.integers(1, 9),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
def test_reading_in_blocks_of_any_size_equals_splitting_the_whole(
    tmp_path_factory: pytest.TempPathFactory, text: str, block: int, mark: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(mark + text.encode())
    text = path.read_bytes().decode("utf-8-sig")
    naive = [line.removesuffix("\r") for line in text.split("\n")]
    if naive[-1] == "" and not text.endswith("\r"):
        naive.pop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)
        assert list(read_lines(path)) == naive


def test_a_line_of_a_megabyte_is_read_whole(tmp_path: Path) -> None:
    long = "é" * 500_000 + "x" * 2_000_001
    assert read(tmp_path / "text", f"a\n{long}\nb".encode()) == ["a", long, "b"]


def test_a_file_longer_than_a_block_keeps_every_line(tmp_path: Path) -> None:
    lines = [f"line {i} is here, n'est-ce pas" for i in range(100_000)]
    assert read(tmp_path / "text", "\n".join(lines).encode()) == lines


def test_a_gzip_file_is_decompressed(tmp_path: Path) -> None:
    assert read(tmp_path / "text.gz", gzip.compress("un\nété\n".encode())) == ["un", "été"]


def test_lines_are_read_lazily(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"good\n" * 10 + b"x" * module.BLOCK * 2 + b"\xff\n")
    stream = read_lines(path)
    assert [next(stream) for _ in range(10)] == ["good"] * 10
    stream.close()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"un\ncaf\xe9\n",
            ", line 2: byte 4 (0xe9) is not UTF-8; convert the file, for example with: iconv -f LATIN1 -t UTF-8",
        ),
        (
            b"un\ndeux\xc3",
            ", line 2: byte 5 (0xc3) is not UTF-8; convert the file, for example with: iconv -f LATIN1 -t UTF-8",
        ),
        (
            b"un\ndeux\ntr\0is\n",
            ", line 3: there is a NUL byte; it looks like a binary or UTF-16 file, expected UTF-8 text",
        ),
        (
            "un\n".encode("utf-16"),
            ", line 1: there is a NUL byte; it looks like a binary or UTF-16 file, expected UTF-8 text",
        ),
    ],
)
def test_an_invalid_byte_is_reported_with_file_and_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "text"
    with pytest.raises(DataError) as caught:
        read(path, content)
    assert str(caught.value) == f"{path}{message}"


def test_the_line_of_an_invalid_byte_is_counted_over_blocks(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a line\n" * 400_000 + b"bad \xff\n")
    stream = read_lines(path)
    good = 0
    with pytest.raises(DataError, match=r"line 400001: byte 5 \(0xff\) is not UTF-8"):
        for _ in stream:
            good += 1
    assert good == 400_000


def test_a_line_without_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LONGEST", 2 << 20)
    path = tmp_path / "text"
    with pytest.raises(DataError) as caught:
        read(path, b"x" * (4 << 20))
    assert str(caught.value) == f"{path}: a line is longer than 2 MB; expected a text file with one text per line"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        list(read_lines(tmp_path / "nowhere"))
    assert str(caught.value) == f"{tmp_path / 'nowhere'}: there is no such file"


@pytest.mark.parametrize("name", ["$NO_SUCH_VARIABLE", "${NO_SUCH_VARIABLE}"])
def test_a_path_with_a_variable_that_is_not_set_says_so(name: str) -> None:
    with pytest.raises(InputError) as caught:
        list(read_lines(f"{name}/train.en"))
    assert str(caught.value) == f"{name}/train.en: there is no such file; {name} is not set"


def test_a_folder_is_not_a_text_file(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        list(read_lines(tmp_path))
    assert str(caught.value) == f"{tmp_path} is a folder; expected a text file"


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"x")
    path.chmod(0)
    with as_somebody_else(), pytest.raises(InputError) as caught:
        list(read_lines(path))
    assert str(caught.value) == f"{path} cannot be read: permission denied"


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Root may read every file, so the process runs as the user nobody for a while."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


@pytest.mark.parametrize(
    "content", [b"plain text\n", gzip.compress(b"some text\n" * 100)[:-9]], ids=["not gzip", "cut off"]
)
def test_a_broken_gzip_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "text.gz"
    with pytest.raises(DataError) as caught:
        read(path, content)
    assert str(caught.value) == f"{path} is not a complete gzip file; download it again, or name it without .gz"


def test_a_text_is_printed_on_one_line() -> None:
    assert printable("a\nb\u202ec") == "a bc"
