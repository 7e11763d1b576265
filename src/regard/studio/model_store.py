"""The models under a folder, by number. A model is opened when somebody asks it something, and not before."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regard
from regard import config
from regard.errors import RegardError
from regard.studio.errors import Refusal
from regard.text import Tokenizer
from regard.text.tokenizer import Encoded

OPEN = 2
"""models in memory"""
LISTED = 500
"""models of a list"""
EXAMPLE = "built-in example"
SPELLINGS = ("tokenizer.json", "tokenizer.source.json", "spelling.json")
"""files that say which words a model knows"""


@dataclass(frozen=True)
class Entry:
    """A model of the list, known from its folder alone.

    >>> Entry("ab12", "runs/none", Path("runs/none"), {}).usable
    False
    """

    id: str
    name: str
    path: Path
    recipe: dict[str, Any]

    @property
    def usable(self) -> bool:
        """Whether it has a checkpoint."""
        return any((self.path / link).exists() for link in ("best", "last"))

    @property
    def job(self) -> str | None:
        """What it was trained to do."""
        task = self.recipe.get("task")
        return task.get("kind", "translate") if isinstance(task, dict) else None

    def table(self) -> dict[str, Any]:
        """A line of the list."""
        kinds = {name: self.recipe.get(name, {}) for name in ("model", "task", "data")}
        state = self._state()
        return {
            "id": self.id,
            "name": self.name,
            **{name: table.get("kind") if isinstance(table, dict) else None for name, table in kinds.items()},
            "usable": self.usable,
            "words": any((self.path / name).is_file() for name in SPELLINGS),
            "step": state.get("step"),
            "best": state.get("best", {}),
            "changed": _changed(self.path) or None,
        }

    def _state(self) -> dict[str, Any]:
        """What the newest checkpoint says of itself; nothing if it cannot be read."""
        try:
            state = json.loads((self.path / "last" / "state.json").read_bytes())["state"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return state if isinstance(state, dict) else {}


class Library:
    """Runs under `root`, and the built-in example when there is one.

    >>> Library(Path("nowhere")).entries()
    []
    """

    def __init__(self, root: Path, example: Callable[[], Path | None] = lambda: None) -> None:
        self.root, self.example = root, example
        self._lock = threading.Lock()
        self._open: OrderedDict[tuple[Path, str], regard.Model] = OrderedDict()

    def entries(self) -> list[Entry]:
        """The models there are now, the ones that changed last first; the example comes last."""
        paths = [path for path in self._runs() if (path / "recipe.toml").is_file()][:LISTED]
        paths.sort(key=_changed, reverse=True)
        found = [self._entry(path, self._name(path)) for path in paths]
        example = self.example()
        return found if example is None else [*found, self._entry(example, EXAMPLE)]

    def entry(self, number: str) -> Entry:
        """The model of a number."""
        for entry in self.entries():
            if entry.id == number:
                return entry
        raise Refusal(
            404, "unknown-model", "there is no such model any more", "go to the start page and choose from the list"
        )

    def open(self, entry: Entry) -> regard.Model:
        """The model itself; the last few stay open until a newer checkpoint is there."""
        key = (entry.path, _version(entry.path))
        with self._lock:
            if key in self._open:
                self._open.move_to_end(key)
                return self._open[key]
        try:
            model = regard.load(entry.path)
        except RegardError as error:
            raise Refusal(422, "unusable-model", str(error), "train it on, or choose another model") from None
        with self._lock:
            self._open[key] = model
            while len(self._open) > OPEN:
                self._open.popitem(last=False)
        return model

    def tokens(self, entry: Entry, text: str) -> Encoded:
        """How a model cuts a text."""
        path = self.tokenizer(entry)
        if path is None:
            raise Refusal(422, "no-tokenizer", "this model has no tokenizer: it reads no text", "choose another model")
        return Tokenizer.load(path).encode(text)

    def tokenizer(self, entry: Entry) -> Path | None:
        """The file that says how a model cuts a text; None: it does not cut any."""
        names = ("tokenizer.json", "tokenizer.source.json")
        return next((entry.path / name for name in names if (entry.path / name).is_file()), None)

    def _runs(self) -> list[Path]:
        if (self.root / "recipe.toml").is_file():
            return [self.root]
        if not self.root.is_dir():
            return []
        near = [path for path in sorted(self.root.iterdir()) if path.is_dir() and not path.name.startswith(".")]
        return [*near, *(deep for path in near if not (path / "recipe.toml").exists() for deep in _folders(path))]

    def _name(self, path: Path) -> str:
        return path.name if path == self.root else path.relative_to(self.root).as_posix()

    def _entry(self, path: Path, name: str) -> Entry:
        number = hashlib.sha256(str(path.absolute()).encode(errors="surrogateescape")).hexdigest()[:12]
        try:
            recipe = config.read(path / "recipe.toml")
        except RegardError:
            recipe = {}
        return Entry(number, name.encode(errors="replace").decode(), path, recipe)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # removed meanwhile
        return 0.0


def _folders(path: Path) -> list[Path]:
    try:
        return [deep for deep in sorted(path.iterdir()) if deep.is_dir()]
    except OSError:
        return []


def _version(path: Path) -> str:
    """Changes when a better checkpoint is there."""
    for link in ("best", "last"):
        if (path / link).exists():
            return str((path / link).resolve())
    return ""
