"""Progress callbacks of long-running work: preparation, evaluation, comparison, downloads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

DownloadProgress = Callable[[int, int], None]
"""Called while a file is downloaded: bytes so far, bytes in all"""


class Progress(Protocol):
    """Called with the name of the work, how much of it is done, and the total (0: unknown).

    >>> lines = []
    >>> progress: Progress = lambda what, done, total: lines.append(f"{what} {done}/{total}")
    >>> progress("reading", 3, 7)
    >>> lines
    ['reading 3/7']
    """

    def __call__(self, what: str, done: int, total: int) -> None: ...


def no_progress(what: str, done: int, total: int) -> None:
    """Report nothing."""
