"""Data-parallel training on one machine: the same command once per rank. On many machines torchrun does the same.

On a CPU, N processes with one thread each are faster than one process with N threads (LOG.md).
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from regard.errors import RankLost, Terminated
from regard.interrupts import LAUNCHER, SignalScope, request_death_signal

GRACE = 60.0
"""seconds that the other ranks get to save and exit after one has failed, or after the launcher has died"""
LOST_GRACE = 10.0
"""the same after a rank was lost or a signal was repeated: one that hangs does not react, the others have stopped"""


def launch(count: int, command: Sequence[str]) -> int:
    """Run `command` as `count` ranks and wait; returns the exit code of the rank that failed, else 0.

    Ranks rendezvous through a file, so no port is opened, and gloo is bound to loopback. Signals are forwarded, so that
    every rank saves. RankLost if a rank is killed. If this process is killed, the ranks notice and stop.
    """
    threads = max(1, (os.cpu_count() or 1) // count)
    end_of_pipe, held = os.pipe()  # the other end is open for as long as this process lives
    launcher = f"{os.getpid()} {end_of_pipe}"
    try:
        with tempfile.TemporaryDirectory() as folder:
            shared = {"WORLD_SIZE": str(count), "REGARD_INIT_METHOD": f"file://{Path(folder, 'rendezvous')}"}
            shared |= {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads)), LAUNCHER: launcher}
            loopback = "lo" if Path("/sys/class/net/lo").exists() else "lo0"
            shared |= {"GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", loopback)}
            ranks = _Ranks()
            with ranks:
                for rank in range(count):
                    environment = {**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
                    # a session of its own: a terminal's Ctrl-C reaches a rank once, forwarded by this process
                    options = {"start_new_session": True, "pass_fds": [end_of_pipe]}
                    ranks.processes.append(subprocess.Popen(list(command), env=environment, **options))  # type: ignore[call-overload]
                return ranks.wait()
    finally:
        os.close(end_of_pipe)
        os.close(held)


def follow_launcher() -> None:
    """End this rank when the launcher of `--nproc` dies: as on SIGTERM, which saves, or at once after GRACE seconds."""
    if LAUNCHER not in os.environ:
        return
    launcher, end_of_pipe = map(int, os.environ[LAUNCHER].split())
    requested = request_death_signal(launcher, signal.SIGTERM)

    def wait_for_end() -> None:
        while os.read(end_of_pipe, 1):
            pass
        if not requested:
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE)
        os._exit(Terminated.exit_code)

    threading.Thread(target=wait_for_end, daemon=True).start()


def tune_malloc() -> None:
    """Tell glibc's malloc to keep freed memory: page faults otherwise dominate large tensors of changing size."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # not glibc
        return
    trim_threshold, mmap_threshold, large = -1, -3, 1 << 30
    mallopt(trim_threshold, large)
    mallopt(mmap_threshold, large)


class _Ranks(SignalScope):
    """The processes of a launch; SIGINT and SIGTERM are forwarded to each of them, and SIGHUP as SIGTERM."""

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self.sent: set[int] = set()
        """signals that ranks got from here"""
        self.asked: list[float] = []
        """when signals to stop came in, as monotonic times"""
        self.killed: RankLost | None = None
        """a rank that was killed by a signal that it did not get from here"""

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Forward a signal to stop; a rank that is stopped (SIGSTOP) is continued, or the others would wait for it."""
        self.asked.append(time.monotonic())
        self.send(signal.SIGTERM if number == signal.SIGHUP else number)
        self.send(signal.SIGCONT)

    def send(self, number: int) -> None:
        """Send a signal to all ranks that run."""
        self.sent.add(number)
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(number)

    def wait(self) -> int:
        """Wait for all ranks; after one has failed the others are stopped; after a repeated signal all are killed."""
        since = 0.0
        while None in (codes := self.poll()):
            if not since and any(codes):
                since = time.monotonic()
                self.send(signal.SIGTERM)
            grace = LOST_GRACE if self.killed or RankLost.exit_code in codes else GRACE
            if since and time.monotonic() - since > grace:
                self.send(signal.SIGKILL)
            if len(self.asked) > 1 and time.monotonic() - self.asked[1] > LOST_GRACE:
                self.send(signal.SIGKILL)
            time.sleep(0.05)
        return self.exit_code()

    def poll(self) -> list[int | None]:
        """Exit codes of the ranks, None while one runs; a rank that was killed is noted, before others are for it."""
        codes = [process.poll() for process in self.processes]
        for rank, code in enumerate(codes):
            if code is not None and code < 0 and -code not in self.sent and not self.killed:
                self.killed = RankLost(_killed_message(rank, self.processes[rank].pid, -code))
        return codes

    def exit_code(self) -> int:
        """Exit code of the launch: of the rank that failed by itself, rather than because of another one."""
        codes = [128 - code if code is not None and code < 0 else code or 0 for code in self.poll()]
        if self.killed:
            raise self.killed
        caused = (RankLost.exit_code, Terminated.exit_code, 128 + signal.SIGKILL)
        own = [code for code in codes if code not in (0, *caused)]
        return next(iter(own or [code for code in caused if code in codes]), 0)


def _killed_message(rank: int, process: int, number: int) -> str:
    """The error for a rank that was killed by a signal."""
    name = signal.Signals(number).name if number in set(signal.Signals) else "unknown"
    hint = ", perhaps because memory ran out" if number == signal.SIGKILL else ""
    advice = "run the same command again to resume from the last checkpoint"
    if number == signal.SIGKILL:
        advice += ", with fewer train.batch_tokens if memory is short"
    return f"rank {rank} (process {process}) was killed by signal {number} ({name}){hint}; {advice}"
