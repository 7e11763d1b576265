"""Standard streams that are closed or cannot be written: one line that says so, and an exit code of its own."""

import shlex
import subprocess
import sys

import pytest

from helpers import PATIENCE, child_environment

CLOSED = "error: stdin is closed, so there is nothing to read; give a text, or a file with -i\n"
UNWRITABLE = "error: stdout: cannot be written (Bad file descriptor)\n"


def shell(command):
    """Run a command line of regard in a shell, as `regard ...`."""
    line = f"{shlex.quote(sys.executable)} -m regard {command}"
    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, encoding="utf-8", env=child_environment(), timeout=PATIENCE
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("translate none <&-", (66, "", CLOSED)),
        ("config explain seed >&-", (74, "", UNWRITABLE)),
        ("--version >&- <&-", (74, "", UNWRITABLE)),
        ("--version 2>&-", (0, "regard 0.1.0\n", "")),
        ("translate none <&- 2>&-", (66, "", "")),
    ],
)
def test_a_closed_stream_is_reported(command, expected):
    assert shell(command) == expected


@pytest.mark.parametrize("command", ["--version", "config explain seed"])
def test_a_full_disk_below_stdout_is_reported(command):
    message = "error: the output cannot be written (No space left on device)\n"
    assert shell(f"{command} > /dev/full") == (74, "", message)


def test_without_stdin_a_removal_cannot_be_confirmed(trained, run_cli, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    from regard.cli import invoke

    assert invoke(["runs", "rm", str(trained)]) == 2 and trained.exists()


def test_a_file_that_is_written_never_takes_the_place_of_a_closed_stream(trained, tmp_path):
    out = tmp_path / "out.txt"
    code, _, errors = shell(f'translate {trained} "le chat" -o {out} <&- >&-')
    assert (code, errors) == (0, "") and len(out.read_text(encoding="utf-8").splitlines()) == 1
