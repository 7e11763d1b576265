"""Ctrl-C and SIGTERM, answered in good order while a block runs."""

from __future__ import annotations

import signal
import threading
from abc import ABC, abstractmethod
from types import FrameType
from typing import Any, Self


class Answering(ABC):
    """Whoever answers SIGINT and SIGTERM inside its block; after it they are answered as before.

    Only the main thread may say so; elsewhere nothing is answered.

    >>> import os
    >>> class Counting(Answering):
    ...     caught = 0
    ...     def catch(self, number, frame):
    ...         self.caught += 1
    >>> with Counting() as counting:
    ...     os.kill(os.getpid(), signal.SIGINT)
    ...     counting.caught
    1
    """

    def __enter__(self) -> Self:
        self._before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self.catch)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @abstractmethod
    def catch(self, number: int, frame: FrameType | None) -> None:
        """What is done when a signal comes."""
