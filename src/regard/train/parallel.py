"""Many processes on one machine: the same command, once a rank. On many machines torchrun does the same.

On a CPU, N processes with one thread each are faster than one process with N threads (LOG.md).
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

GRACE = 60.0
"""seconds that the others get to save and leave when one process has ended badly"""


def launch(count: int, command: Sequence[str]) -> int:
    """Run `command` as `count` ranks that meet through a file, and wait; the exit code of the first to fail.

    No port is opened for the meeting, and gloo is bound to loopback. Signals are handed on, so that every rank saves.

    >>> import sys
    >>> launch(2, [sys.executable, "-c", "import os; assert os.environ['WORLD_SIZE'] == '2'"])
    0
    """
    threads = max(1, (os.cpu_count() or 1) // count)
    with tempfile.TemporaryDirectory() as folder:
        shared = {"WORLD_SIZE": str(count), "REGARD_MEETING": f"file://{Path(folder, 'meeting')}"}
        shared |= {
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads)),
            "GLOO_SOCKET_IFNAME": _loopback(),
        }
        processes = []
        for rank in range(count):
            environment = {**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            # a session of its own: a terminal's Ctrl-C reaches a rank once, handed on by us
            processes.append(subprocess.Popen(list(command), env=environment, start_new_session=True))
        with _handing_on(processes):
            return _wait(processes)


def steady_memory() -> None:
    """Keep freed memory instead of giving it back: large tensors of changing size are otherwise bound by page faults.

    >>> steady_memory()
    """
    try:
        tune = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # not glibc
        return
    trim_threshold, mmap_threshold, large = -1, -3, 1 << 30
    tune(trim_threshold, large)
    tune(mmap_threshold, large)


def _loopback() -> str:
    return os.environ.get("GLOO_SOCKET_IFNAME", "lo" if Path("/sys/class/net/lo").exists() else "lo0")


def _wait(processes: Sequence[subprocess.Popen[bytes]]) -> int:
    failed, since = 0, 0.0
    while any(process.poll() is None for process in processes):
        time.sleep(0.05)
        bad = [process.returncode for process in processes if process.returncode]
        if bad and not failed:
            failed, since = bad[0], time.monotonic()
            for process in processes:
                if process.poll() is None:
                    process.terminate()
        if failed and time.monotonic() - since > GRACE:
            for process in processes:
                process.kill()
    codes = [failed, *(process.returncode for process in processes)]
    code = next((c for c in codes if c), 0)
    return 128 - code if code < 0 else code


class _handing_on:
    """While inside, Ctrl-C and SIGTERM reach every rank, and a closed terminal is a SIGTERM."""

    def __init__(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        self.processes = processes

    def __enter__(self) -> None:
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        self.before = {number: signal.signal(number, self._hand_on) for number in numbers}

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _hand_on(self, number: int, frame: FrameType | None) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)
