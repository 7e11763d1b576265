"""Model store: the models under a folder, by id; a model is loaded when it is first used."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import regard
from regard.decode import DecodeConfig
from regard.errors import RegardError
from regard.run_summary import (
    RunSummary,
    display_path,
    has_recipe,
    json_safe,
    modified_at,
    read_state,
    summarize_run,
)
from regard.studio.errors import ApiError
from regard.tasks.classify.clip_sources import ClipData
from regard.tasks.classify.image_sources import ImageData
from regard.tasks.init_weights import INIT_FILE
from regard.text import Tokenizer
from regard.text.tokenizer import Encoded

MAX_OPEN, MAX_LISTED = 2, 500
"""models in memory, and in the list"""
EXAMPLE = "built-in example"
IMAGE_DATA = frozenset(source.__dataclass_fields__["kind"].default for source in get_args(ImageData | ClipData))
"""data.kind of classifiers that read images or clips"""
DECODING = {"translate": DecodeConfig(), "caption": DecodeConfig(), "generate": DecodeConfig(sample=True, beam=1)}
"""default decoding settings of the tasks that decode"""
VOCABULARIES = ("tokenizer.json", "tokenizer.source.json", "vocab.json")
"""vocabulary files of a run"""


@dataclass(frozen=True)
class ModelEntry:
    """A run in the list of models, from the files of its folder."""

    id: str
    name: str
    summary: RunSummary

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.summary.path

    @property
    def recipe(self) -> dict[str, Any]:
        """The tables of its recipe."""
        return self.summary.recipe

    @property
    def usable(self) -> bool:
        """Whether it can be read and has a checkpoint."""
        return not self.summary.unreadable and any((self.path / link).exists() for link in ("best", "last"))

    @property
    def is_untrained(self) -> bool:
        """Whether its weights are random: no step was made, and they were taken from no other model."""
        if self.summary.step != 0 or (self.path / INIT_FILE).exists():
            return False
        return not read_state(self.path).get("imported")

    @property
    def task(self) -> str | None:
        """The kind of its task."""
        task = self.recipe.get("task")
        return (self.summary.kind("task") or "translate") if isinstance(task, dict) else None

    @property
    def reads_images(self) -> bool:
        """Whether its model reads an image, or a clip."""
        if self.task == "classify":
            return self.summary.kind("data") in IMAGE_DATA
        return self.task in ("caption", "regress")

    @property
    def reads_clips(self) -> bool:
        """Whether its model reads a clip."""
        data = self.recipe.get("data")
        return self.reads_images and isinstance(data, dict) and bool(data.get("frames"))

    @property
    def search(self) -> str | None:
        """How its recipe decodes, such as "beam 4", "greedy" or "sampled"; None for a task without decoding."""
        if self.task not in DECODING:
            return None
        own, usual = self.recipe.get("decode"), DECODING[self.task]
        table = own if isinstance(own, dict) else {}
        beam, sample = table.get("beam", usual.beam), table.get("sample", usual.sample)
        return "sampled" if sample is True else "greedy" if beam == 1 else f"beam {json_safe(beam)}"

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {
            "id": self.id,
            "name": self.name,
            **{name: self.summary.kind(name) for name in ("model", "task", "data")},
            "usable": self.usable,
            "search": self.search,
            "image": self.reads_images,
            "clip": self.reads_clips,
            "words": any((self.path / name).is_file() for name in VOCABULARIES),
            "step": self.summary.step,
            "best": dict(self.summary.best),
            "changed": self.summary.changed or None,
            "unreadable": self.summary.unreadable,
        }


class ModelStore:
    """The runs under `root`, and the built-in example if it is ready."""

    def __init__(self, root: Path, example: Callable[[], Path | None] = lambda: None, device: str = "auto") -> None:
        self.root, self.example, self.device = root, example, device
        self._lock = threading.Lock()
        self._open: OrderedDict[tuple[Path, str], regard.Model] = OrderedDict()

    def entries(self) -> list[ModelEntry]:
        """The current models, the most recently modified first, and the example last."""
        return [self._entry(path, name) for path, name in self._named_runs()]

    def entry(self, model_id: str) -> ModelEntry:
        """The model with an id."""
        example = self.example()
        if example is not None and _id(example) == model_id:
            return self._entry(example, EXAMPLE)
        for path in self._folders_of_runs():  # not the sorted list, which reads every run
            if _id(path) == model_id and has_recipe(path):
                return self._entry(path, self._name(path))
        raise ApiError(404, "unknown-model", "no such model", "go to the start page and choose one of the list")

    def _named_runs(self) -> list[tuple[Path, str]]:
        """Folders of the models with their names, in the order of the list."""
        paths = sorted(filter(has_recipe, self._runs()), key=modified_at, reverse=True)[:MAX_LISTED]
        found, example = [(path, self._name(path)) for path in paths], self.example()
        return found if example is None else [*found, (example, EXAMPLE)]

    def open(self, entry: ModelEntry) -> regard.Model:
        """The loaded model; the most recently used ones stay in memory until there is a newer checkpoint."""
        key = (entry.path, _version(entry.path))
        with self._lock:
            if key in self._open:
                self._open.move_to_end(key)
                return self._open[key]
        try:
            model = regard.load(entry.path, self.device)
        except RegardError as error:
            raise ApiError(
                422, "unusable-model", str(error), "continue its training, or choose another model"
            ) from None
        with self._lock:
            self._open[key] = model
            while len(self._open) > MAX_OPEN:
                self._open.popitem(last=False)
        return model

    def is_open(self, entry: ModelEntry) -> bool:
        """Whether the newest checkpoint of a model is in memory."""
        with self._lock:
            return (entry.path, _version(entry.path)) in self._open

    def encode(self, entry: ModelEntry, text: str) -> Encoded:
        """Tokens of a text under a model's tokenizer."""
        path = self.tokenizer_path(entry)
        if path is None:
            raise ApiError(422, "no-tokenizer", "this model has no tokenizer", "choose another model")
        return Tokenizer.load(path).encode(text)

    def tokenizer_path(self, entry: ModelEntry) -> Path | None:
        """The tokenizer file of a model; None if it has none."""
        names = ("tokenizer.json", "tokenizer.source.json")
        return next((entry.path / name for name in names if (entry.path / name).is_file()), None)

    def _runs(self) -> list[Path]:
        """Folders that may be runs; a link to this folder, or to one of its runs, lists no run twice."""
        found = {os.path.realpath(path): path for path in reversed(list(self._folders_of_runs()))}
        return list(found.values())[::-1]

    def _folders_of_runs(self) -> Iterator[Path]:
        if has_recipe(self.root):
            yield self.root
        elif self.root.is_dir():
            top = [path for path in _folders(self.root) if not path.name.startswith(".")]
            yield from top
            for path in top:
                if not has_recipe(path):
                    yield from _folders(path)

    def _name(self, path: Path) -> str:
        return path.name if path == self.root else path.relative_to(self.root).as_posix()

    def _entry(self, path: Path, name: str) -> ModelEntry:
        return ModelEntry(_id(path), display_path(name), summarize_run(path))


def _id(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:12]


def _folders(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as found:
            return sorted(Path(one.path) for one in found if _is_folder(one))
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # such as a link to itself
        return False


def _version(path: Path) -> str:
    """Path of the checkpoint that is loaded; it changes when there is a better one."""
    for link in ("best", "last"):
        if (path / link).exists():
            return str((path / link).resolve())
    return ""
