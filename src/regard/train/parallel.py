"""Data-parallel training on one machine: the same command once per rank. On many machines torchrun does the same.

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

from regard.interrupts import SignalScope

GRACE = 60.0
"""seconds that the other ranks get to save and exit after one has failed"""


def launch(count: int, command: Sequence[str]) -> int:
    """Run `command` as `count` ranks and wait; returns the exit code of the first rank to fail, else 0.

    Ranks rendezvous through a file, so no port is opened, and gloo is bound to loopback. Signals are forwarded, so that
    every rank saves.
    """
    threads = max(1, (os.cpu_count() or 1) // count)
    with tempfile.TemporaryDirectory() as folder:
        shared = {"WORLD_SIZE": str(count), "REGARD_INIT_METHOD": f"file://{Path(folder, 'rendezvous')}"}
        shared |= {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads))}
        loopback = "lo" if Path("/sys/class/net/lo").exists() else "lo0"
        shared |= {"GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", loopback)}
        processes = []
        for rank in range(count):
            environment = {**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            # a session of its own: a terminal's Ctrl-C reaches a rank once, forwarded by this process
            processes.append(subprocess.Popen(list(command), env=environment, start_new_session=True))
        with _SignalForwarding(processes):
            return _wait(processes)


def tune_malloc() -> None:
    """Tell glibc's malloc to keep freed memory: page faults otherwise dominate large tensors of changing size."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # not glibc
        return
    trim_threshold, mmap_threshold, large = -1, -3, 1 << 30
    mallopt(trim_threshold, large)
    mallopt(mmap_threshold, large)


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


class _SignalForwarding(SignalScope):
    """Context in which SIGINT and SIGTERM are forwarded to every rank, and SIGHUP as SIGTERM."""

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        self.processes = processes

    def handle(self, number: int, frame: FrameType | None) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)
