"""Standard streams of the program: those that were closed before it started, and stdout at its end."""

from __future__ import annotations

import os
import sys
from typing import BinaryIO

from regard.errors import InputError, OutputError


def open_standard_streams() -> None:
    """Set the encoding of stdout and stderr, and take the place of those that are closed.

    A closed descriptor would go to the next file that is opened, and what is printed could end up in a checkpoint. A
    closed stdin stays None. A closed stdout is opened for reading: writing to it fails, as it should. What would have
    gone to a closed stderr is dropped.
    """
    for name, mode in (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        stream = getattr(sys, name)
        if stream is None:
            descriptor = os.open(os.devnull, mode)
            if name != "stdin":
                setattr(sys, name, open(descriptor, "w", encoding="utf-8", errors="replace"))  # noqa: PTH123, SIM115
        elif name != "stdin":
            stream.reconfigure(encoding="utf-8", errors="replace")


def stdin_bytes(instead: str) -> BinaryIO:
    """The bytes of stdin; `instead`: what to give where there is none."""
    if sys.stdin is None:
        raise InputError(f"stdin is closed, so there is nothing to read; give {instead}")
    return sys.stdin.buffer


def stdin_is_terminal() -> bool:
    """Whether stdin is a terminal; a closed one is not."""
    return sys.stdin is not None and sys.stdin.isatty()


def flush_stdout(code: int) -> int:
    """Flush stdout at the end of the program; the exit code, another one if the output could not be written."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # flushing the buffer again at exit must not fail
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError) and not code:  # a reader may close a pipe, as `head` does
            print(f"error: stdout: cannot be written ({error.strerror})", file=sys.stderr)
            return OutputError.exit_code
    return code
