"""Progress of a training, read from its files: new rows of metrics.jsonl, the latest samples, whether it has ended."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from regard.files import open_regular, parse_json
from regard.run_summary import json_safe

MAX_BYTES = 2 << 20
"""bytes of metrics.jsonl per response; the client requests the rest"""
TAIL_BYTES = 1 << 16
"""bytes at the end of the file that are searched for the last row"""
MAX_SAMPLES = 40
"""number of the latest samples that are sent"""


def read_metrics(run: Path, version: str, since: int) -> dict[str, Any]:
    """Rows of metrics.jsonl from byte `since` on.

    A resumed training may have rewritten the file: its version differs then, and all rows are sent again ("reset").
    """
    try:
        with open_regular(run / "metrics.jsonl") as file:
            stat = os.fstat(file.fileno())
            new_version = f"{stat.st_ino:x}"
            reset = new_version != version or since > stat.st_size
            since = 0 if reset else since
            file.seek(since)
            block = file.read(MAX_BYTES)
    except OSError:
        return {"rows": [], "version": "", "next": 0, "more": False, "reset": True}
    complete = block[: block.rfind(b"\n") + 1]  # a partly written line is sent next time
    end = since + len(complete)
    rows = [row for line in complete.splitlines() if (row := _parse_row(line)) is not None]
    more = bool(complete) and end < stat.st_size
    return {"rows": rows, "version": new_version, "next": end, "more": more, "reset": reset}


def read_samples(run: Path) -> list[dict[str, Any]]:
    """Sample outputs of the latest validations."""
    try:
        with open_regular(run / "samples.jsonl") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_BYTES))
            lines = file.read(MAX_BYTES).splitlines()[-MAX_SAMPLES:]
    except OSError:
        return []
    return [row for line in lines if (row := _parse_row(line)) is not None]


def idle_seconds(run: Path) -> float | None:
    """Seconds since the training last wrote metrics; None if it never did."""
    try:
        return round(max(0.0, time.time() - (run / "metrics.jsonl").stat().st_mtime), 1)
    except OSError:
        return None


def has_ended(run: Path) -> bool:
    """Whether the last row of metrics.jsonl is the end of the training."""
    try:
        with open_regular(run / "metrics.jsonl") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            lines = file.read(TAIL_BYTES).splitlines()
    except OSError:
        return False
    row = _parse_row(lines[-1]) if lines else None
    return row is not None and row.get("event") == "ended"


def _parse_row(line: bytes) -> dict[str, Any] | None:
    """A row; NaN and infinity, which are not JSON, become None, and a line damaged by a crash is skipped."""
    try:
        row = json_safe(parse_json(line))
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
