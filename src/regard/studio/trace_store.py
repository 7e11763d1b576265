"""Traces by number: the latest in memory, the last hundred in a folder. A name from outside never becomes a path."""

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
from regard.look import Recording
from regard.studio.errors import Refusal

NUMBER = re.compile(r"[0-9a-z]{7,16}")
SUMMARY = ("id", "model", "kind", "text", "answer", "made", "seconds", "decode")
"""of a header, what a list of traces shows"""


@dataclass(frozen=True, eq=False)
class Kept:
    """A trace that can be shown: what led to the answer, and its header.

    >>> from regard.trace import Trace
    >>> Kept(Recording(Trace()), {"id": "example"}).summary()
    {'id': 'example'}
    """

    recording: Recording
    header: Mapping[str, Any]

    def summary(self) -> dict[str, Any]:
        """A line of a list."""
        return {name: self.header[name] for name in SUMMARY if name in self.header}


class Shelf:
    """Where traces are kept: `near` of them in memory, `far` of them in the folder, at most `room` bytes there.

    >>> import tempfile
    >>> from regard.trace import Trace
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shelf = Shelf(Path(folder))
    ...     number = shelf.put(Recording(Trace()), {"text": "je"}).header["id"]
    ...     shelf.get(number).header["text"], len(shelf.recent())
    ('je', 1)
    """

    def __init__(self, folder: Path, near: int = 8, far: int = 100, room: int = 1 << 30) -> None:
        self.folder, self.near, self.far, self.room = folder, near, far, room
        self._lock = threading.Lock()
        self._memory: OrderedDict[str, Kept] = OrderedDict()
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, recording: Recording, header: Mapping[str, Any], number: str | None = None) -> Kept:
        """Keep a trace; it gets a number unless it has one."""
        number = secrets.token_hex(6) if number is None else number
        kept = Kept(recording, {"id": number, **header})
        try:
            text = json.dumps(kept.header, ensure_ascii=False, allow_nan=False)
        except ValueError:
            told = "the model's numbers are not finite any more (NaN or infinity)"
            raise Refusal(422, "not-finite", told, "its training has diverged; choose another model") from None
        recording.save(self.folder / f"{number}.safetensors")
        temporary = self.folder / f".{number}.json"
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(self.folder / f"{number}.json")
        self._remember(number, kept)
        self._prune()
        return kept

    def get(self, number: str) -> Kept:
        """The trace of a number."""
        with self._lock:
            if number in self._memory:
                self._memory.move_to_end(number)
                return self._memory[number]
        path = self._files().get(number)
        if path is None:
            raise Refusal(404, "unknown-trace", "there is no such trace", "go to the start page and make it again")
        try:
            header = json.loads(path.read_text(encoding="utf-8"))
            kept = Kept(Recording.load(path.with_suffix(".safetensors")), header)
        except (OSError, ValueError, RegardError) as error:
            raise Refusal(410, "damaged-trace", f"the trace cannot be read: {error}", "make it again") from None
        self._remember(number, kept)
        return kept

    def has(self, number: str) -> bool:
        """Whether there is a trace of this number."""
        return number in self._files()

    def path(self, number: str) -> Path:
        """The file of a trace, as Recording.load opens it."""
        self.get(number)
        return self._files()[number].with_suffix(".safetensors")

    def recent(self, most: int = 20) -> list[dict[str, Any]]:
        """The latest traces, the newest first."""
        found = []
        for path in sorted(self._files().values(), key=_age, reverse=True)[:most]:
            with suppress(OSError, ValueError):
                header = json.loads(path.read_text(encoding="utf-8"))
                found.append({name: header[name] for name in SUMMARY if name in header})
        return found

    def _remember(self, number: str, kept: Kept) -> None:
        with self._lock:
            self._memory[number] = kept
            self._memory.move_to_end(number)
            while len(self._memory) > self.near:
                self._memory.popitem(last=False)

    def _files(self) -> dict[str, Path]:
        return {path.stem: path for path in self.folder.glob("*.json") if NUMBER.fullmatch(path.stem)}

    def _prune(self) -> None:
        used = 0
        for place, path in enumerate(sorted(self._files().values(), key=_age, reverse=True)):
            data = path.with_suffix(".safetensors")
            with suppress(OSError):
                used += data.stat().st_size
                if place and (place >= self.far or used > self.room):
                    path.unlink(missing_ok=True)
                    data.unlink(missing_ok=True)


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # removed by another studio meanwhile
        return 0.0
