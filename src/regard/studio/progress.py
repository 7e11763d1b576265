"""How a training goes: the lines that it has written since somebody last asked, whether it is over or still running."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

BLOCK = 2 << 20
"""bytes of a file that one answer tells; whoever wants more asks again"""
TAIL = 1 << 16
"""bytes at the end of a file in which its last line is looked for"""
SAMPLES = 40
"""lines of samples that are told, the last ones"""


def metrics(run: Path, version: str, since: int) -> dict[str, Any]:
    """Rows of metrics.jsonl from the byte `since` on. A run that was resumed may have rewritten the file: its version
    is another then, and all of it is told anew.

    >>> metrics(Path("nowhere"), "", 0)
    {'rows': [], 'version': '', 'next': 0, 'more': False, 'anew': True}
    """
    try:
        with (run / "metrics.jsonl").open("rb") as file:
            stat = os.fstat(file.fileno())
            now = f"{stat.st_ino:x}"
            anew = now != version or since > stat.st_size
            since = 0 if anew else since
            file.seek(since)
            block = file.read(BLOCK)
    except OSError:
        return {"rows": [], "version": "", "next": 0, "more": False, "anew": True}
    whole = block[: block.rfind(b"\n") + 1]  # what is half written comes next time
    after = since + len(whole)
    rows = [row for line in whole.splitlines() if (row := _row(line)) is not None]
    return {"rows": rows, "version": now, "next": after, "more": bool(whole) and after < stat.st_size, "anew": anew}


def samples(run: Path) -> list[dict[str, Any]]:
    """What the model said at its last validations.

    >>> samples(Path("nowhere"))
    []
    """
    try:
        lines = (run / "samples.jsonl").read_bytes().splitlines()[-SAMPLES:]
    except OSError:
        return []
    return [row for line in lines if (row := _row(line)) is not None]


def silent(run: Path) -> float | None:
    """Seconds since a training last wrote how it goes; None: it never did.

    >>> silent(Path("nowhere")) is None
    True
    """
    try:
        return round(max(0.0, time.time() - (run / "metrics.jsonl").stat().st_mtime), 1)
    except OSError:
        return None


def over(run: Path) -> bool:
    """Whether the last thing that a training wrote is that it ended.

    >>> over(Path("nowhere"))
    False
    """
    try:
        with (run / "metrics.jsonl").open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            lines = file.read().splitlines()
    except OSError:
        return False
    row = _row(lines[-1]) if lines else None
    return row is not None and row.get("event") == "ended"


def _row(line: bytes) -> dict[str, Any] | None:
    """A line as a table; JSON that no browser reads (NaN) and what a crash left are passed over."""
    try:
        row = json.loads(line, parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
