"""Where a verb speaks while it works: stderr. A bar on a terminal, a line now and then elsewhere, each with an ETA."""

from __future__ import annotations

import shutil
import sys
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from regard.cli.options import manners

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

PAUSE = 10.0
"""seconds between two plain lines of progress"""


def minutes(seconds: float) -> str:
    """A time as people say it.

    >>> minutes(42.4), minutes(200), minutes(3 * 3600 + 1250)
    ('42 s', '3 min', '3 h 21 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    hours, rest = divmod(round(seconds / 60), 60)
    return f"{hours} h {rest} min" if hours else f"{rest} min"


def clock(seconds: float) -> str:
    """A time as clocks show it.

    >>> clock(202), clock(3725)
    ('03:22', '1:02:05')
    """
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60:02}:{rest % 60:02}"


@dataclass
class Pace:
    """How far something is, and so how long it will still take.

    >>> pace = Pace(total=100, start=0, began=0.0)
    >>> pace.told(25, now=10.0)
    '25/100  25%  00:10 < 00:30'
    """

    total: int | None
    start: int = 0
    """where it began: what was done before took none of this time"""
    began: float = field(default_factory=time.monotonic)

    def told(self, done: int, now: float | None = None) -> str:
        """Count, share, time taken < time left."""
        elapsed = (time.monotonic() if now is None else now) - self.began
        if not self.total:
            return f"{done:,}  {clock(elapsed)}"
        made = done - self.start
        left = clock(elapsed * (self.total - done) / made) if made > 0 else "--:--"
        return f"{done:,}/{self.total:,}  {100 * done // self.total}%  {clock(elapsed)} < {left}"


class Progress(ABC):
    """Something that takes a while; used in a with block."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @abstractmethod
    def update(self, done: int, note: str = "") -> None:
        """So much is done."""

    @abstractmethod
    def close(self) -> None:
        """It is over; nothing of it stays on a terminal."""


class Silent(Progress):
    """Progress that nobody wants to see.

    >>> Silent().update(3)
    """

    def update(self, done: int, note: str = "") -> None:
        return

    def close(self) -> None:
        return


class Ticker(Progress):
    """Plain lines every few seconds, for logs and pipes.

    >>> ticker = Ticker("translating", 10, sys.stdout, pause=0.0)
    >>> ticker.update(5)  # doctest: +ELLIPSIS
     translating  5/10  50%  00:00 < 00:00
    """

    def __init__(self, what: str, total: int | None, file: TextIO, start: int = 0, pause: float = PAUSE) -> None:
        self.what, self.file, self.pause = what, file, pause
        self.pace = Pace(total, start)
        self._last = self.pace.began

    def update(self, done: int, note: str = "") -> None:
        now = time.monotonic()
        if now - self._last >= self.pause:
            self._last = now
            print(f" {self.what}  {self.pace.told(done)}{'  ' if note else ''}{note}", file=self.file, flush=True)

    def close(self) -> None:
        return


class Bar(Progress):
    """A live bar on a terminal, by rich.

    >>> import io
    >>> bar = Bar("reading", total=10, file=io.StringIO())
    >>> bar.update(4, note="half of it")
    >>> bar.close()
    >>> bar.bar.tasks[0].percentage
    40.0
    """

    def __init__(self, what: str, total: int | None, file: TextIO, start: int = 0) -> None:
        from rich.console import Console as RichConsole
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self.pace = Pace(total, start)
        console = RichConsole(file=file)
        columns = (TextColumn(" {task.description}"), BarColumn(34), TextColumn("{task.fields[told]}"))
        self.bar: RichProgress = RichProgress(*columns, console=console, transient=True, refresh_per_second=4)
        self.task = self.bar.add_task(what, total=total, completed=start, told="")
        self.bar.start()

    def update(self, done: int, note: str = "") -> None:
        told = self.pace.told(done) + ("  " + note if note else "")
        self.bar.update(self.task, completed=done, told=told)

    def close(self) -> None:
        self.bar.stop()


class Console:
    """The stderr of a verb.

    >>> Console(quiet=True).say("unheard")
    """

    def __init__(self, quiet: bool = False, file: TextIO | None = None) -> None:
        self.quiet, self.file = quiet, file or sys.stderr
        self._bar: Bar | None = None

    @classmethod
    def of_verb(cls) -> Console:
        """The console of the command that is running: quiet if it was asked to be."""
        return cls(manners().quiet)

    @property
    def terminal(self) -> bool:
        return self.file.isatty()

    @property
    def width(self) -> int:
        """Columns of the terminal; a file has no edge."""
        return shutil.get_terminal_size().columns if self.terminal else 10_000

    def say(self, text: str) -> None:
        """One line, above the bar if there is one."""
        if self.quiet:
            return
        if self._bar is not None:
            self._bar.bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, file=self.file, flush=True)

    def progress(self, what: str, total: int | None = None, start: int = 0) -> Progress:
        """A bar, or lines, or nothing, as suits whoever reads."""
        if self.quiet:
            return Silent()
        if not self.terminal:
            return Ticker(what, total, self.file, start)
        self.close()
        self._bar = Bar(what, total, self.file, start)
        return self._bar

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class Stages:
    """Progress of things that happen one after the other, told by name; keeps the Tell contract.

    >>> Stages(Console(quiet=True))("reading", 100, 0)
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._what = ""
        self._progress: Progress = Silent()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.console.close()

    def __call__(self, what: str, done: int, total: int) -> None:
        if what != self._what:
            self._what = what
            self._progress = self.console.progress(what, total or None)
        self._progress.update(done)

    def bytes(self, done: int, total: int) -> None:
        """Progress of a download."""
        self("fetching", done, total)
