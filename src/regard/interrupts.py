"""Handling of SIGINT (Ctrl-C) and SIGTERM while a block runs."""

from __future__ import annotations

import signal
import threading
from abc import ABC, abstractmethod
from types import FrameType
from typing import Any, Self


class SignalScope(ABC):
    """Context manager that handles SIGINT and SIGTERM inside its block, and restores the old handlers after it.

    Outside the main thread it does nothing: Python allows signal handlers there only.

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
                self._before[number] = signal.signal(number, self.handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @abstractmethod
    def handle(self, number: int, frame: FrameType | None) -> None:
        """Called when a signal arrives."""
