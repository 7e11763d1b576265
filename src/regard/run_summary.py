"""Summaries of runs for lists, from their small files: model, step and best metrics; never an error."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard import config
from regard.errors import ModelError, RegardError
from regard.files import digest_bytes, parse_json, read_bounded
from regard.manifest import RECIPE, read_recipe_table
from regard.train.checkpoint_store import search_order
from regard.train.manifest import read_manifest

STATE = "state.json"
MAX_STATE = 16 << 20
MAX_TRIED = 3
"""damaged checkpoints that are passed over before a run is called unreadable"""


@dataclass(frozen=True)
class RunSummary:
    """What a list shows of a run."""

    path: Path
    recipe: config.Table = field(default_factory=dict)
    step: int | None = None
    """steps of the newest checkpoint; None if there is none"""
    steps: int | None = None
    """planned steps"""
    best: Mapping[str, float] = field(default_factory=dict)
    changed: float = 0.0
    """seconds since the epoch"""
    made_with: Mapping[str, Any] = field(default_factory=dict)
    """device, threads and processes of the training"""
    unreadable: str | None = None
    """why it cannot be read"""

    def kind(self, section: str) -> str | None:
        """The kind of a section of the recipe, such as model."""
        table = self.recipe.get(section)
        kind = table.get("kind") if isinstance(table, dict) else None
        return kind if isinstance(kind, str) else None


def display_path(path: Path | str) -> str:
    """A path as text that can be printed: bytes that are not UTF-8 are replaced."""
    return os.fsencode(path).decode(errors="replace")


def has_recipe(path: Path) -> bool:
    """Whether a folder claims to be a run: it has something called recipe.toml, readable or not."""
    try:
        return path.is_dir() and os.path.lexists(path / RECIPE)
    except OSError:
        return False


def summarize_run(path: Path) -> RunSummary:
    """The summary of a run; for a damaged or hostile folder, one that says why it is unreadable."""
    changed = modified_at(path)
    try:
        try:
            recipe, state = read_recipe_table(path), read_state(path)
        except OSError as error:
            raise ModelError(f"{error.filename or path}: cannot be read ({error.strerror or error})") from None
    except RegardError as error:
        return RunSummary(path, changed=changed, unreadable=display_path(str(error)))
    step, steps = (_whole(state.get(name)) for name in ("step", "steps"))
    made_with = {name: json_safe(state[name]) for name in ("device", "threads", "processes") if name in state}
    return RunSummary(path, recipe, step, steps, finite_numbers(state.get("best")), changed, made_with)


def read_state(path: Path) -> Mapping[str, Any]:
    """The training state of the newest good checkpoint, checked against its manifest; empty if there is none."""
    first: ModelError | None = None
    for folder in search_order(path)[:MAX_TRIED]:
        try:
            return _checkpoint_state(folder)
        except ModelError as error:
            first = first or error
    if first is not None:
        raise first
    return {}


def _checkpoint_state(folder: Path) -> Mapping[str, Any]:
    listed, file = read_manifest(folder), folder / STATE
    data = read_bounded(file, MAX_STATE)
    if listed.files.get(STATE) != digest_bytes(data):
        raise ModelError(f"{file}: its bytes have changed; this checkpoint is damaged")
    try:
        state = parse_json(data)["state"]
    except (ValueError, KeyError, TypeError):
        state = None
    if not isinstance(state, dict):
        raise ModelError(f"{file}: expected a training state, found something else")
    return state


def finite_numbers(table: Any) -> dict[str, float]:
    """The entries of a table that are finite numbers: NaN and infinity are not JSON.

    >>> finite_numbers({"loss": 0.5, "ppl": math.inf, "note": "good"})
    {'loss': 0.5}
    """
    items = table.items() if isinstance(table, dict) else ()
    return {json_safe(str(name)): number for name, number in items if is_finite(number)}


def is_finite(value: Any) -> bool:
    """Whether a value is a finite number that a float can hold."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300


def json_safe(value: Any) -> Any:
    """Parsed JSON or TOML as values that every JSON reader accepts: NaN and infinity become None, dates text.

    >>> json_safe({"loss": math.nan, "text": chr(0xD800)})
    {'loss': None, 'text': '?'}
    """
    if isinstance(value, dict):
        return {json_safe(str(name)): json_safe(item) for name, item in value.items()}
    if isinstance(value, list):
        return [json_safe(item) for item in value]
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value).encode(errors="replace").decode()


def _whole(value: Any) -> int | None:
    return value if is_finite(value) and isinstance(value, int) else None


def modified_at(path: Path) -> float:
    """Time of the newest checkpoint, else of the folder; 0 if it was removed meanwhile."""
    for place in (path / "last", path):
        try:
            return place.stat().st_mtime
        except OSError:  # no checkpoint yet, or removed meanwhile
            continue
    return 0.0
