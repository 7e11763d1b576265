"""Status output on stderr: a progress bar on a terminal, a line every few seconds elsewhere, each with an ETA."""

from __future__ import annotations

import shutil
import sys
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Self, TextIO

from regard.cli.options import global_options

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

PAUSE = 10.0
"""seconds between two plain lines of progress"""


def format_duration(seconds: float) -> str:
    """A duration in words.

    >>> format_duration(42.4), format_duration(200), format_duration(3 * 3600 + 1250)
    ('42 s', '3 min', '3 h 21 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, rest = divmod(round(seconds / 60), 60)
    return f"{hours} h {rest} min" if hours else f"{rest} min"


def format_clock(seconds: float) -> str:
    """A duration as minutes and seconds, and hours if there are any."""
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60:02}:{rest % 60:02}"


def format_progress(done: int, total: int | None, elapsed: float, start: int = 0) -> str:
    """Count, percentage, elapsed < remaining time; what was done before `start` took none of the elapsed time.

    >>> format_progress(25, 100, elapsed=10.0)
    '25/100  25%  00:10 < 00:30'
    """
    if not total:
        return f"{done:,}  {format_clock(elapsed)}"
    made = done - start
    remaining = format_clock(elapsed * (total - done) / made) if made > 0 else "--:--"
    return f"{done:,}/{total:,}  {100 * done // total}%  {format_clock(elapsed)} < {remaining}"


class ProgressReporter(ABC):
    """Reports the progress of one piece of work; a context manager."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def update(self, done: int, note: str = "") -> None:
        """Report how much is done."""

    def close(self) -> None:  # noqa: B027
        """Remove what is shown on the terminal."""


class SilentProgress(ProgressReporter):
    """Reports nothing."""

    def update(self, done: int, note: str = "") -> None:
        return


class LineProgress(ProgressReporter):
    """A plain line every few seconds, for logs and pipes."""

    def __init__(self, what: str, total: int | None, file: TextIO, start: int = 0, pause: float = PAUSE) -> None:
        self.what, self.total, self.file, self.start, self.pause = what, total, file, start, pause
        self._began = self._last = time.monotonic()

    def update(self, done: int, note: str = "") -> None:
        now = time.monotonic()
        if now - self._last >= self.pause:
            self._last = now
            text = format_progress(done, self.total, now - self._began, self.start)
            with suppress(OSError):  # the reader is gone
                print(f" {self.what}  {text}{'  ' if note else ''}{note}", file=self.file, flush=True)


class BarProgress(ProgressReporter):
    """A live progress bar on a terminal (rich)."""

    def __init__(self, what: str, total: int | None, file: TextIO, start: int = 0) -> None:
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self.total, self.start, self._began = total, start, time.monotonic()
        columns = (TextColumn(" {task.description}"), BarColumn(34), TextColumn("{task.fields[status]}"))
        console = RichConsole(file=file)
        self.bar: RichProgress = RichProgress(*columns, console=console, transient=True, refresh_per_second=4)
        self.task = self.bar.add_task(what, total=total, completed=start, status="")
        self.bar.start()

    def update(self, done: int, note: str = "") -> None:
        status = format_progress(done, self.total, time.monotonic() - self._began, self.start)
        self.bar.update(self.task, completed=done, status=status + ("  " + note if note else ""))

    def close(self) -> None:
        with suppress(OSError):
            self.bar.stop()


class Console:
    """The stderr of a verb; with `quiet`, only warnings are printed.

    A terminal that was closed, or a pipe whose reader has ended, makes it quiet: training goes on, or saves on SIGHUP.
    """

    def __init__(self, quiet: bool = False, file: TextIO | None = None) -> None:
        self.quiet, self.file = quiet, file or sys.stderr
        self._bar: BarProgress | None = None

    @classmethod
    def of_verb(cls) -> Console:
        """The console of the command that is running; --quiet silences it."""
        return cls(global_options().quiet)

    @property
    def terminal(self) -> bool:
        return self.file.isatty()

    @property
    def width(self) -> int:
        """Columns of the terminal; unlimited for a file."""
        return shutil.get_terminal_size().columns if self.terminal else 10_000

    def print(self, text: str, always: bool = False) -> None:
        """Print one line, above the progress bar if there is one; `always`: also with --quiet."""
        if self.quiet and not always:
            return
        try:
            if self._bar is not None:
                self._bar.bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
            else:
                print(text, file=self.file, flush=True)
        except OSError:
            self.quiet = True

    def warn(self, text: str) -> None:
        """Print a warning, also with --quiet: the result is not what was asked for, and only this line says so."""
        self.print(f" warning: {text}", always=True)

    def progress(self, what: str, total: int | None = None, start: int = 0) -> ProgressReporter:
        """A bar on a terminal, lines elsewhere, nothing with --quiet."""
        if self.quiet:
            return SilentProgress()
        if not self.terminal:
            return LineProgress(what, total, self.file, start)
        self.close()
        self._bar = BarProgress(what, total, self.file, start)
        return self._bar

    def close(self) -> None:
        """Remove the progress bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class StageProgress:
    """Shows stages that follow each other, by name; a Progress callback (regard.progress)."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._what = ""
        self._progress: ProgressReporter = SilentProgress()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.console.close()

    def __call__(self, what: str, done: int, total: int) -> None:
        if what != self._what:
            self._what = what
            self._progress = self.console.progress(what, total or None)
        self._progress.update(done)

    def download(self, done: int, total: int) -> None:
        """Progress of a download, in bytes; a DownloadProgress callback."""
        self("downloading", done, total)
