"""Handling of SIGINT (Ctrl-C), SIGTERM and SIGHUP while a block runs."""

from __future__ import annotations

import signal
import threading
from abc import ABC, abstractmethod
from types import FrameType
from typing import Any, Self

LAUNCHER = "REGARD_LAUNCHER"
"""environment variable of ranks of `--nproc`: process of the launcher, descriptor of a pipe from it (parallel.py)"""


class SignalScope(ABC):
    """Context manager that handles SIGINT and SIGTERM inside its block, and restores the old handlers after it.

    Outside the main thread it does nothing: Python allows signal handlers there only. A SIGHUP that is ignored stays
    ignored, as under nohup.

    >>> import os
    >>> class Counting(SignalScope):
    ...     caught = 0
    ...     def handle(self, number, frame):
    ...         self.caught += 1
    >>> with Counting() as counting:
    ...     os.kill(os.getpid(), signal.SIGINT)
    ...     counting.caught
    1
    """

    numbers: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM)

    def __enter__(self) -> Self:
        self._before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in self.numbers:
                if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self.handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @abstractmethod
    def handle(self, number: int, frame: FrameType | None) -> None:
        """Called when a signal arrives."""
