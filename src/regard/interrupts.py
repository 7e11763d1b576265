"""Handling of SIGINT (Ctrl-C), SIGTERM and SIGHUP while a block runs, and of the death of a parent process."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import threading
import time
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


def request_death_signal(parent: int, number: int) -> bool:
    """Request a signal for this process when its parent dies (Linux); False if that fails or the parent is dead."""
    parent_death_signal = 1  # PR_SET_PDEATHSIG
    try:
        accepted = ctypes.CDLL(None).prctl(parent_death_signal, int(number), 0, 0, 0) == 0
    except (OSError, AttributeError, TypeError):
        return False
    return accepted and os.getppid() == parent


def exit_with_parent(worker: int = 0) -> None:
    """End this worker process when its parent dies, so that it keeps no lock of it; elsewhere than on Linux after 1 s.

    For workers of torch's DataLoader (`worker_init_fn`): one whose parent was killed otherwise waits forever for its
    queue to be read.
    """
    parent, started_by = os.getppid(), multiprocessing.parent_process()
    if started_by is None or not started_by.is_alive():
        os._exit(1)
    if request_death_signal(parent, signal.SIGKILL) and started_by.is_alive():
        return

    def poll() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=poll, daemon=True).start()
