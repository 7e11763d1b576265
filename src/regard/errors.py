"""Errors that a user can fix, each with the exit code of the command line.

A message says where, what was expected, what was found and what to do, in one or two sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class RegardError(Exception):
    """An error that a user can fix; the command line prints it without a traceback."""

    exit_code = 1

    def __init_subclass__(cls, exit_code: int | None = None) -> None:
        super().__init_subclass__()
        cls.exit_code = cls.exit_code if exit_code is None else exit_code


class ConfigError(RegardError, exit_code=2):
    """A recipe, a setting or a flag is wrong."""


class ModelError(RegardError, exit_code=3):
    """A model, a run or a checkpoint cannot be used."""


class DataError(RegardError, exit_code=4):
    """Data was read and is not usable."""


class LineError(DataError):
    """One line of the input cannot be processed; `line` is its number, from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@contextmanager
def at_line(line: int) -> Iterator[str]:
    """Turn a DataError about one line of the input into a LineError; gives "line N" for its message."""
    try:
        yield f"line {line}"
    except DataError as error:
        raise LineError(str(error), line) from None


class Diverged(RegardError, exit_code=5):
    """Training diverged: the loss or the gradient norm is far too large, NaN or infinite."""


class ThresholdMissed(RegardError, exit_code=6):
    """A required score was not reached."""


class InputError(RegardError, exit_code=66):
    """An input file or folder cannot be opened."""


class NetworkError(RegardError, exit_code=69):
    """A download failed, or the server sent something unexpected."""


class RankLost(RegardError, exit_code=71):
    """A process of multi-process training was killed or hangs; `is_reported`: another process says so."""

    def __init__(self, message: str, is_reported: bool = False) -> None:
        super().__init__(message)
        self.is_reported = is_reported


class OutputError(RegardError, exit_code=74):
    """Output cannot be written: the disk is full, or permission is missing."""


class RunLocked(RegardError, exit_code=75):
    """Another process writes the run."""


class Interrupted(RegardError, exit_code=130):
    """Ctrl-C; the state was saved."""


class Terminated(RegardError, exit_code=143):
    """SIGTERM; the state was saved."""


def kind_of_exit_code(code: int) -> type[RegardError]:
    """The kind of error that a process ended with.

    >>> kind_of_exit_code(5).__name__, kind_of_exit_code(99).__name__
    ('Diverged', 'RegardError')
    """
    return next((kind for kind in RegardError.__subclasses__() if kind.exit_code == code), RegardError)
