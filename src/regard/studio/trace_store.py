"""Trace store: the latest traces in memory, the last hundred on disk. An id from a request never becomes a path."""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.files import write_text_atomically
from regard.look import Recording
from regard.studio.errors import ApiError

TRACE_ID = re.compile(r"[0-9a-z]{7,16}")
SUMMARY = ("id", "model", "kind", "text", "answer", "created", "seconds", "decode")
"""keys of a header in a list of traces"""
WINDOW = "w"
"""between the id of a trace and the number of a later window of its text"""


@dataclass(frozen=True, eq=False)
class StoredTrace:
    """A condensed recording and its header."""

    recording: Recording
    header: Mapping[str, Any]


class TraceStore:
    """Keeps `in_memory` traces in memory and `on_disk` traces, of at most `max_bytes` together, in a folder."""

    def __init__(self, folder: Path, in_memory: int = 8, on_disk: int = 100, max_bytes: int = 1 << 30) -> None:
        self.folder, self.in_memory, self.on_disk, self.max_bytes = folder, in_memory, on_disk, max_bytes
        self._lock = threading.Lock()
        self._memory: OrderedDict[str, StoredTrace] = OrderedDict()
        folder.mkdir(parents=True, exist_ok=True)

    @staticmethod
    def new_id() -> str:
        """An id that no other trace has."""
        return secrets.token_hex(6)

    def put(self, recording: Recording, header: Mapping[str, Any], trace_id: str | None = None) -> StoredTrace:
        """Store a trace, by default under a new id."""
        trace_id = self.new_id() if trace_id is None else trace_id
        trace = StoredTrace(recording, {"id": trace_id, **header})
        try:
            text = json.dumps(trace.header, ensure_ascii=False, allow_nan=False)
        except ValueError:
            message = "the model's outputs are not finite (NaN or infinity)"
            raise ApiError(422, "not-finite", message, "its training has diverged; choose another model") from None
        recording.save(self.folder / f"{trace_id}.safetensors")
        write_text_atomically(self.folder / f"{trace_id}.json", text)
        self._cache(trace_id, trace)
        self._prune()
        return trace

    def get(self, trace_id: str) -> StoredTrace:
        """The trace with an id."""
        with self._lock:
            if trace_id in self._memory:
                self._memory.move_to_end(trace_id)
                return self._memory[trace_id]
        path = self._files().get(trace_id)
        if path is None:
            raise ApiError(404, "unknown-trace", "no such trace", "go to the start page and run the text again")
        try:
            header = json.loads(path.read_text(encoding="utf-8"))
            trace = StoredTrace(Recording.load(path.with_suffix(".safetensors")), header)
        except (OSError, ValueError, RegardError) as error:
            message = f"the trace cannot be read: {error}"
            raise ApiError(410, "damaged-trace", message, "run the text again") from None
        self._cache(trace_id, trace)
        return trace

    def has(self, trace_id: str) -> bool:
        """Whether there is a trace with this id."""
        return trace_id in self._files()

    def path(self, trace_id: str) -> Path:
        """The file of a trace, for Recording.load."""
        self.get(trace_id)
        return self._files()[trace_id].with_suffix(".safetensors")

    def recent(self, limit: int = 20) -> list[dict[str, Any]]:
        """Summaries of the latest traces, newest first; those of later windows are left out."""
        summaries = []
        files = [path for path in self._files().values() if WINDOW not in path.stem]
        for path in sorted(files, key=_modified_at, reverse=True)[:limit]:
            with suppress(OSError, ValueError):
                header = json.loads(path.read_text(encoding="utf-8"))
                summaries.append({name: header[name] for name in SUMMARY if name in header})
        return summaries

    def _cache(self, trace_id: str, trace: StoredTrace) -> None:
        with self._lock:
            self._memory[trace_id] = trace
            self._memory.move_to_end(trace_id)
            while len(self._memory) > self.in_memory:
                self._memory.popitem(last=False)

    def _files(self) -> dict[str, Path]:
        return {path.stem: path for path in self.folder.glob("*.json") if TRACE_ID.fullmatch(path.stem)}

    def _prune(self) -> None:
        used, traces = 0, list[str]()  # a trace is kept or removed with all of its windows
        for path in sorted(self._files().values(), key=_modified_at, reverse=True):
            trace, data = path.stem.partition(WINDOW)[0], path.with_suffix(".safetensors")
            if trace not in traces:
                traces.append(trace)
            rank = traces.index(trace)
            with suppress(OSError):
                used += data.stat().st_size
                if rank and (rank >= self.on_disk or used > self.max_bytes):
                    path.unlink(missing_ok=True)
                    data.unlink(missing_ok=True)


def _modified_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # removed by another studio meanwhile
        return 0.0
