"""Server-sent events of a running training: new metrics, samples, probes and commands, as they are written.

The id of an event is a cursor: the version of metrics.jsonl and the byte up to which it was sent. A browser that lost
the connection sends the last id, so no line is lost or sent twice. Files are polled only while a browser listens.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from regard.studio import progress
from regard.train import control, probe

POLL_SECONDS = 0.5
HEARTBEAT_SECONDS = 5.0
"""seconds after which an event is sent even if nothing is new: it tells how long the training has been idle"""
RETRY = b"retry: 1000\n\n"
"""milliseconds after which a browser reconnects"""


class RunWatcher:
    """Polls a run: metrics after a cursor, and other state that has changed since the last poll."""

    def __init__(self, run: Path, cursor: str = "") -> None:
        version, _, since = cursor.rpartition("-")
        is_valid = since.isdecimal() and len(since) < 16
        self.run, self.version, self.since = run, version if is_valid else "", int(since) if is_valid else 0
        self.state: dict[str, Any] = {}
        self.samples_version: tuple[int, int] | None = None
        self.last_event = time.monotonic()

    @property
    def cursor(self) -> str:
        """Version of metrics.jsonl, and the byte up to which it was read."""
        return f"{self.version}-{self.since}"

    def poll(self) -> dict[str, Any] | None:
        """Everything that is new; None for nothing."""
        is_first, old_version = not self.state, self.version
        update = progress.read_metrics(self.run, self.version, self.since)
        self.version, self.since = update.pop("version"), update.pop("next")
        state: dict[str, Any] = {"command": control.pending_command(self.run), "probe": probe_info(self.run)}
        new = {name: value for name, value in state.items() if name not in self.state or value != self.state[name]}
        self.state = state
        samples_version = _file_version(self.run / "samples.jsonl")
        if is_first or samples_version != self.samples_version:
            self.samples_version, new["samples"] = samples_version, progress.read_samples(self.run)
        is_due = time.monotonic() - self.last_event > HEARTBEAT_SECONDS
        if not (is_first or new or update["rows"] or old_version != self.version or is_due):
            return None
        self.last_event = time.monotonic()
        return update | new | {"idle_seconds": progress.idle_seconds(self.run)}


def probe_info(run: Path) -> dict[str, Any] | None:
    """The probe sentence of a run and the steps at which it was recorded; None if the run has no probe."""
    text = probe.probe_text(run)
    return None if text is None else {"text": text, "steps": probe.probe_steps(run)}


async def stream(watcher: RunWatcher, closing: threading.Event) -> AsyncIterator[bytes]:
    """Events until the browser disconnects or the server closes.

    >>> from anyio.from_thread import start_blocking_portal
    >>> events = stream(RunWatcher(Path("nowhere")), threading.Event())
    >>> with start_blocking_portal() as portal:
    ...     portal.call(anext, events), portal.call(anext, events).split(b"data")[0]
    (b'retry: 1000\\n\\n', b'event: progress\\nid: -0\\n')
    """
    yield RETRY
    while not closing.is_set():
        update = await run_in_threadpool(watcher.poll)
        if update is not None:
            yield format_event(watcher.cursor, update)
        if update is None or not update["more"]:
            await asyncio.sleep(POLL_SECONDS)


def format_event(cursor: str, data: dict[str, Any]) -> bytes:
    """One server-sent event; JSON contains no line breaks.

    >>> format_event("a-12", {"rows": []})
    b'event: progress\\nid: a-12\\ndata: {"rows": []}\\n\\n'
    """
    return f"event: progress\nid: {cursor}\ndata: {json.dumps(data, allow_nan=False)}\n\n".encode()


def _file_version(file: Path) -> tuple[int, int] | None:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns
