"""A training while it goes on: what it writes is told at once, as events, to whoever looks; nobody looks, nothing runs.

Each event has the place in metrics.jsonl that it reaches. A browser that lost the connection names the last place it
has seen, and is told what came after it: no line is lost, none comes twice.
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

PAUSE = 0.5
"""seconds between two looks at the files"""
BEAT = 5.0
"""seconds after which a word is said even if nothing is new: for how long the training has been silent"""
RETRY = b"retry: 1000\n\n"
"""milliseconds after which a browser comes back when the connection is lost"""


class Watch:
    """What is new about a training since the last look: rows from a place on, and whatever else has changed.

    >>> watch = Watch(Path("nowhere"))
    >>> first = watch.look()
    >>> first["rows"], first["anew"], first["probe"]
    ([], True, None)
    >>> watch.look() is None
    True
    """

    def __init__(self, run: Path, place: str = "") -> None:
        version, _, since = place.rpartition("-")
        known = since.isdecimal() and len(since) < 16
        self.run, self.version, self.since = run, version if known else "", int(since) if known else 0
        self.states: dict[str, Any] = {}
        self.samples: tuple[int, int] | None = None
        self.heard = time.monotonic()

    @property
    def place(self) -> str:
        """How far it has been told."""
        return f"{self.version}-{self.since}"

    def look(self) -> dict[str, Any] | None:
        """All that is new; None: nothing is."""
        first, before = not self.states, self.version
        told = progress.metrics(self.run, self.version, self.since)
        self.version, self.since = told.pop("version"), told.pop("next")
        states: dict[str, Any] = {"asked": control.pending(self.run), "probe": probes(self.run)}
        new = {name: state for name, state in states.items() if name not in self.states or state != self.states[name]}
        self.states = states
        written = _written(self.run / "samples.jsonl")
        if first or written != self.samples:
            self.samples, new["samples"] = written, progress.samples(self.run)
        late = time.monotonic() - self.heard > BEAT
        if not (first or new or told["rows"] or before != self.version or late):
            return None
        self.heard = time.monotonic()
        return told | new | {"silent": progress.silent(self.run)}


def probes(run: Path) -> dict[str, Any] | None:
    """The sentence that a run is probed with, and the steps at which it was; None: it is not probed.

    >>> probes(Path("nowhere")) is None
    True
    """
    text = probe.sentence(run)
    return None if text is None else {"text": text, "steps": probe.steps(run)}


async def stream(watch: Watch, ending: threading.Event) -> AsyncIterator[bytes]:
    """Events for as long as somebody listens and the server goes on.

    >>> from anyio.from_thread import start_blocking_portal
    >>> told = stream(Watch(Path("nowhere")), threading.Event())
    >>> with start_blocking_portal() as elsewhere:
    ...     elsewhere.call(anext, told), elsewhere.call(anext, told).split(b"data")[0]
    (b'retry: 1000\\n\\n', b'event: progress\\nid: -0\\n')
    """
    yield RETRY
    while not ending.is_set():
        told = await run_in_threadpool(watch.look)
        if told is not None:
            yield event(watch.place, told)
        if told is None or not told["more"]:
            await asyncio.sleep(PAUSE)


def event(place: str, table: dict[str, Any]) -> bytes:
    """One event as it is sent: JSON has no line break of its own.

    >>> event("a-12", {"rows": []})
    b'event: progress\\nid: a-12\\ndata: {"rows": []}\\n\\n'
    """
    return f"event: progress\nid: {place}\ndata: {json.dumps(table, allow_nan=False)}\n\n".encode()


def _written(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
