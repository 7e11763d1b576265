"""Atomic replacement of texts, appends of whole lines, and error messages."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import PATIENCE
from regard.errors import OutputError
from regard.files import append_line, cannot_write, read_json_rows, write_file, write_text_atomically


def test_a_text_replaces_another_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    for text in ("α = 1\n", "β = 2\n"):
        write_text_atomically(path, text)
        assert path.read_text("utf-8") == text
    assert [file.name for file in tmp_path.iterdir()] == ["recipe.toml"]


def test_a_failed_replacement_leaves_the_old_file_and_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "folder"
    (path / "inside").mkdir(parents=True)
    with pytest.raises(OutputError) as caught:
        write_text_atomically(path, "text")
    assert str(caught.value) == f"{path}: cannot be written (Is a directory)"
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


def test_a_file_is_never_written_over(tmp_path: Path) -> None:
    write_file(tmp_path / "a", [b"old"])
    with pytest.raises(FileExistsError):
        write_file(tmp_path / "a", [b"new"])
    assert (tmp_path / "a").read_bytes() == b"old"


def test_an_incomplete_last_line_is_not_read_and_is_removed_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    append_line(path, '{"step": 1}')
    with path.open("ab") as file:
        file.write('{"näme'.encode()[:-4])
    assert list(read_json_rows(path)) == [{"step": 1}]
    append_line(path, '{"step": 2}')
    assert path.read_bytes() == b'{"step": 1}\n{"step": 2}\n'


@pytest.mark.parametrize("torn", [1, 65535, 65536, 65537, 200_000])
def test_an_incomplete_line_is_removed_whatever_its_length(tmp_path: Path, torn: int) -> None:
    for start in (b"", b"first\n"):
        path = tmp_path / f"{len(start)}.jsonl"
        path.write_bytes(start + b"x" * torn)
        append_line(path, "second")
        assert path.read_bytes() == start + b"second\n"


def test_a_line_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one line expected, got 2: 'a\\\\nb'"):
        append_line(tmp_path / "metrics.jsonl", "a\nb")


def test_only_a_newline_ends_a_line(tmp_path: Path) -> None:
    lines = ["a\rb", "c\u2028d", "e\x85f", ""]
    for line in lines:
        append_line(tmp_path / "metrics.jsonl", line)
    assert (tmp_path / "metrics.jsonl").read_bytes().decode().split("\n") == [*lines, ""]


def test_damaged_lines_of_json_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n{"b": "\xff"}\n[]\n' + b"[" * 100_000 + b'\n{"step": 2}\n{"step": 3}')
    assert [row["step"] for row in read_json_rows(path)] == [1, 2]


FULL = """
import resource, signal, sys
from pathlib import Path
from regard.errors import OutputError
from regard.files import append_line
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
path = Path(sys.argv[1])
append_line(path, "x" * 59)
try:
    append_line(path, "y" * 59)
except OutputError as error:
    print(error)
"""


def test_a_line_that_fits_only_in_part_is_not_written_at_all(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", FULL, path], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert done.stdout.startswith(f"{path}: needs 60 bytes and ")
    assert path.read_bytes() == b"x" * 59 + b"\n"


def test_the_error_names_the_bytes_needed_and_the_bytes_free(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints" / "00000800"

    def message(number: int) -> str:
        return str(cannot_write(path, 91_234_567, OSError(number, os.strerror(number))))

    start, end = (
        f"{path}: needs 91,234,567 bytes and ",
        "what was saved before is intact: make room, then go on from there",
    )
    for number, reason in ((errno.ENOSPC, "No space left on device"), (errno.EDQUOT, "Disk quota exceeded")):
        assert message(number).startswith(start)
        assert message(number).endswith(f" are free ({reason}); {end}")
    assert message(errno.EFBIG).endswith("raise `ulimit -f`")
    yours = "write to a folder that is yours and not read-only"
    assert message(errno.EACCES) == f"{path}: cannot be written (Permission denied); {yours}"
    assert message(errno.EROFS) == f"{path}: cannot be written (Read-only file system); {yours}"
    assert message(errno.EIO) == f"{path}: cannot be written (Input/output error)"
