"""Watch over the ranks of multi-process training: who is missing, and waiting for work that the main rank does alone.

It uses the key-value store through which the ranks met (a file for `--nproc`, a server for torchrun). A collective
fails after `train.timeout`; each rank that sees it fail notes that in the store, so the one without a note is the one
that hangs. Work of the main rank alone (a download, preparation, decoding at a validation) may take hours: a thread of
the main rank sends a heartbeat, and the others wait for as long as it beats.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch.distributed as dist

from regard.errors import RankLost
from regard.interrupts import LAUNCHER

LONGEST_TIMEOUT = 1_000_000
"""minutes: the largest timeout that is passed on"""
START = 600.0
"""seconds that ranks wait for all to start: importing torch takes long on a busy machine"""
NOTE = 5.0
"""seconds that ranks which saw a collective fail wait for the notes of the others"""
BEAT = 5.0
"""seconds between heartbeats, at most"""
TIMED_OUT = ("timed out", "timeout")
CLOSED = (
    "connection closed",
    "connection was likely closed",
    "connection reset",
    "broken pipe",
    "socket closed",
    "connection refused",
)


class RankWatch:
    """One rank's view of the others; `timeout` in seconds."""

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: float) -> None:
        self.store, self.rank, self.size, self.timeout = store, rank, size, timeout
        self._waits = 0
        self._closed = threading.Event()
        self._heart: threading.Thread | None = None

    def wait_for_start(self) -> None:
        """Wait until all ranks have started; the main rank then sends heartbeats."""
        self.store.set(f"started/{self.rank}", f"process {os.getpid()} on host {socket.gethostname()}")
        missing = self._wait_for_keys("started", START)
        if missing:
            ranks = _enumerate([f"rank {rank}" for rank in missing])
            raise RankLost(f"{ranks} did not start within {START / 60:.0f} minutes", self.rank != self._first(missing))
        if self.rank == 0:
            self._heart = threading.Thread(target=self._send_heartbeats, daemon=True)
            self._heart.start()

    def close(self) -> None:
        """Stop the heartbeat, before the interpreter ends."""
        self._closed.set()
        if self._heart is not None:
            self._heart.join()

    def wait_for_main(self) -> None:
        """Wait until the main rank gets here, however long that takes, unless its heartbeat stops for `timeout`."""
        self._waits += 1
        with self.explain_failures():  # the process that hosts the store may end
            self._wait_for_main(f"done/{self._waits}")

    def _wait_for_main(self, key: str) -> None:
        if self.rank == 0:
            self.store.set(key, "")
            return
        beat, since, pause = b"", time.monotonic(), 0.01
        while not self.store.check([key]):
            time.sleep(pause)
            pause = min(1.2 * pause, 0.25)
            if (now := self._heartbeat()) != beat:
                beat, since = now, time.monotonic()
            elif time.monotonic() - since > self.timeout:
                raise self._hang_error([0])

    @contextmanager
    def explain_failures(self) -> Iterator[None]:
        """Turn the failure of a collective into a RankLost that names the ranks that hang or have ended."""
        try:
            yield
        except RuntimeError as error:
            text = str(error).lower()
            if not any(sign in text for sign in (*TIMED_OUT, *CLOSED)):
                raise  # not the fault of another rank
            hangs, missing = self._compare_notes(any(sign in text for sign in TIMED_OUT))
            if hangs:
                raise self._hang_error(missing) from error
            ended = _enumerate([self._describe(rank) for rank in missing]) or "another rank"
            reports = self.rank == 0 and LAUNCHER not in os.environ  # else the launcher, or the main rank, has said why
            raise RankLost(
                f"{ended} ended during training; see its output, then run the same command again to resume", not reports
            ) from error

    def _hang_error(self, missing: list[int]) -> RankLost:
        ranks = _enumerate([self._describe(rank) for rank in missing]) or "another rank"
        verb = "have" if len(missing) > 1 else "has"
        message = (
            f"{ranks} {verb} not answered for {self.timeout / 60:g} minutes (train.timeout): stopped or hanging; "
            "training ends here, run the same command again to resume"
        )
        return RankLost(message, self.rank != self._first(missing))

    def _first(self, missing: list[int]) -> int:
        """The rank that reports: the first that is not missing."""
        return next(rank for rank in range(self.size) if rank not in missing)

    def _compare_notes(self, timed_out: bool) -> tuple[bool, list[int]]:
        """Whether a rank saw a timeout, and the ranks that do not note within NOTE seconds that a collective failed."""
        with suppress(RuntimeError):
            self.store.set(f"failed/{self.rank}", "timeout" if timed_out else "closed")
            missing = self._wait_for_keys("failed", NOTE)
            noted = [self.store.get(f"failed/{rank}") for rank in range(self.size) if rank not in missing]
            return b"timeout" in noted, missing
        return timed_out, []  # the process that hosts the store is gone, too

    def _wait_for_keys(self, name: str, seconds: float) -> list[int]:
        """Ranks whose key is not in the store after at most this time."""
        end = time.monotonic() + seconds
        while missing := [rank for rank in range(self.size) if not self.store.check([f"{name}/{rank}"])]:
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        return missing

    def _describe(self, rank: int) -> str:
        with suppress(RuntimeError):
            return f"rank {rank} ({self.store.get(f'started/{rank}').decode()})"
        return f"rank {rank}"

    def _heartbeat(self) -> bytes:
        return self.store.get("heartbeat") if self.store.check(["heartbeat"]) else b""

    def _send_heartbeats(self) -> None:
        beat = 0
        with suppress(RuntimeError):  # the store is gone: training has ended
            while not self._closed.wait(min(BEAT, self.timeout / 4) if beat else 0):
                beat += 1
                self.store.set("heartbeat", str(beat))


def _enumerate(names: list[str]) -> str:
    """Names in a sentence.

    >>> _enumerate(["rank 1"]), _enumerate(["rank 1", "rank 2", "rank 3"])
    ('rank 1', 'rank 1, rank 2 and rank 3')
    """
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), *names[-1:]])
