"""A run: a recipe, a directory, and what training leaves in it. Running the same command again goes on."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import regard
from regard import config
from regard.distributed import World
from regard.errors import ConfigError, ModelError
from regard.files import cannot_write, write_text_atomically
from regard.look import Recording
from regard.objective import Feed, Objective, Tell, silent
from regard.tasks import Model, Recipe
from regard.train import checkpoint, checkpoint_store
from regard.train.config import MAY_CHANGE
from regard.train.events import Listener
from regard.train.trainer import Report, Validate, train


@dataclass(frozen=True)
class Run:
    """A run directory.

    >>> Run(Path("runs/none")).recipe()
    Traceback (most recent call last):
    regard.errors.ModelError: runs/none is not a run: there is no such directory
    """

    path: Path

    def recipe(self) -> Recipe:
        """The recipe that this run was started with."""
        if not (self.path / "recipe.toml").is_file():
            why = "it has no recipe.toml" if self.path.is_dir() else "there is no such directory"
            raise ModelError(f"{self.path} is not a run: {why}")
        return Recipe.parse(config.read(self.path / "recipe.toml"))

    def train(
        self,
        recipe: Recipe,
        *,
        world: World = World(),  # noqa: B008
        listeners: Sequence[Listener] = (),
        tell: Tell = silent,
        fresh: bool = False,
    ) -> Report:
        """Train by the recipe, or go on where this run stopped."""
        if world.leads:
            self.begin(recipe, fresh)
            self.prepare(recipe, tell)
        world.any(0)  # the others wait until the leader has prepared
        objective, feed, validation = self.parts(recipe, world)
        return train(objective, feed, recipe.train, self.path, world, listeners, validation, recipe.seed)

    def parts(
        self,
        recipe: Recipe,
        world: World = World(),  # noqa: B008
    ) -> tuple[Objective, Feed, Validate]:
        """What learns, what from, and how it is tried, from data that is prepared."""
        return recipe.parts(self.path, world)

    def begin(self, recipe: Recipe, fresh: bool = False) -> None:
        """Make the directory, or make sure that it is this recipe's."""
        if fresh and self.path.exists():
            self.recipe()  # never remove what is not a run
            shutil.rmtree(self.path)
        if (self.path / "recipe.toml").exists() and checkpoint_store.checkpoints(self.path):
            self.check_same(recipe)  # before the first checkpoint there is nothing that could be spoilt
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(self.path, 0, error) from error
        write_text_atomically(self.path / "recipe.toml", config.dump(recipe))
        if not (self.path / "environment.json").exists():
            write_text_atomically(self.path / "environment.json", json.dumps(environment(), indent=1) + "\n")

    def check_same(self, recipe: Recipe) -> None:
        """Resuming with a changed recipe is an error that lists what differs."""
        differing = config.differences(self.recipe(), recipe)
        wrong = [line for line in differing if line.split(" ", 1)[0] not in MAY_CHANGE]
        wrong = [line for line in wrong if not line.startswith("decode.")]
        if wrong:
            may = ", ".join(sorted(MAY_CHANGE))
            raise ConfigError(
                f"{self.path} was started with another recipe: {'; '.join(wrong)}. Use --out for a new run or "
                f"--fresh to start this one anew (a run that goes on may change {may} and decode)"
            )

    def prepare(self, recipe: Recipe, tell: Tell = silent) -> None:
        """What training reads, unless it is there already; what a model needs for ever moves to the run's root."""
        if self.prepared(recipe):
            return
        folder, preparation = self.path / "data", recipe.preparation()
        (folder / "identity.json").unlink(missing_ok=True)  # from here on, until the end, it is not prepared
        for old in _fitting(folder, recipe):
            old.unlink()
        counts = preparation.run(folder, tell)
        write_text_atomically(folder / "counts.json", json.dumps(counts, indent=1) + "\n")
        self._keep(_fitting(folder, recipe), recipe)
        write_text_atomically(folder / "identity.json", json.dumps(preparation.identity(), indent=1) + "\n")

    def _keep(self, made: Sequence[Path], recipe: Recipe) -> None:
        """Move what a model needs for ever to the run's root; what checkpoints were trained with is never lost."""
        before = {file.name: file for file in _fitting(self.path, recipe)}
        if before and checkpoint_store.checkpoints(self.path):
            for file in made:
                if file.name not in before or before[file.name].read_bytes() != file.read_bytes():
                    raise ModelError(
                        f"{self.path}: its data, prepared anew, gives another {file.name} than its checkpoints were "
                        "trained with; use --out for a new run, or --fresh to start this one anew"
                    )
        for name in before.keys() - {file.name for file in made}:
            before[name].unlink()
        for file in made:
            file.replace(self.path / file.name)

    def prepared(self, recipe: Recipe) -> bool:
        """Whether data is prepared, by the settings of this recipe; its identity is written last."""
        folder = self.path / "data"
        if not (folder / "identity.json").exists() or _fitting(folder, recipe):  # one that lies there was on its way
            return False
        if not all(any(self.path.glob(pattern)) for pattern in recipe.kept):
            return False
        made = json.loads((folder / "identity.json").read_text(encoding="utf-8"))
        return bool(made == json.loads(json.dumps(recipe.preparation().identity())))

    def kept(self, recipe: Recipe) -> list[Path]:
        """The files of preparation that the model needs, wherever they are on their way to the run's root."""
        return [*_fitting(self.path, recipe), *_fitting(self.path / "data", recipe)]

    def lend(self, other: Run, recipe: Recipe) -> None:
        """Give what is prepared here to another run of the same data: links where the disk has them, else copies."""
        if other.prepared(recipe):
            return
        last = self.path / "data" / "identity.json"  # what has it is whole
        (other.path / "data" / last.name).unlink(missing_ok=True)
        files = [file for file in sorted((self.path / "data").rglob("*")) if file.is_file() and file != last]
        for file in [*files, *_fitting(self.path, recipe), last]:
            place = other.path / file.relative_to(self.path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            try:
                os.link(file, place)
            except OSError:  # another disk, or one that knows no links
                shutil.copy2(file, place)


def _fitting(folder: Path, recipe: Recipe) -> list[Path]:
    return [file for pattern in recipe.kept for file in sorted(folder.glob(pattern))]


def load(path: str | Path) -> Model:
    """The model of a run: its best checkpoint, else its newest good one; or of one checkpoint inside a run.

    >>> load("runs/none")
    Traceback (most recent call last):
    regard.errors.ModelError: runs/none is not a run: there is no such directory
    """
    run, at = run_of(path), Path(path)
    recipe = Run(run).recipe()
    found = _best_or_newest(run) if run == at else checkpoint.Found(checkpoint.read(at), ())
    assert found.checkpoint is not None  # else a ModelError was raised
    return recipe.open(run, found.checkpoint, found.refused)


def run_of(path: str | Path) -> Path:
    """The run that a path names, itself or by one of its checkpoints.

    >>> run_of("runs/a/checkpoints/00000100").as_posix(), run_of("runs/a/best").as_posix()
    ('runs/a', 'runs/a')
    """
    at = Path(path)
    if (at / "recipe.toml").exists():  # a run may itself be called "best", or lie in "checkpoints"
        return at
    return at.parents[1] if at.parent.name == "checkpoints" else at.parent if at.name in ("best", "last") else at


def _best_or_newest(run: Path) -> checkpoint.Found:
    """The best checkpoint of a run if it is whole, else the newest that is, and why others were refused."""
    refused: tuple[str, ...] = ()
    try:
        found = checkpoint.Found(checkpoint.best(run), ())
    except ModelError as error:
        found, refused = checkpoint.Found(None, ()), (str(error),)
    if found.checkpoint is None:
        newest = checkpoint.newest(run)
        found = checkpoint.Found(newest.checkpoint, tuple(dict.fromkeys((*refused, *newest.refused))))
    if found.checkpoint is None:
        why = f": {found.refused[0]}" if found.refused else "; train it first"
        raise ModelError(f"{run} has no finished checkpoint{why}")
    return found


@contextmanager
def record(
    model: Model, replace: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] | None = None
) -> Iterator[Recording]:
    """Keep every attention weight, query, key, value, score, state and logit of what `model` does inside.

    `replace` maps patterns of names to functions: what if this head saw nothing?

    >>> with record(load("runs/none")) as trace:
    ...     pass
    Traceback (most recent call last):
    regard.errors.ModelError: runs/none is not a run: there is no such directory
    """
    with model.record(replace) as recording:
        yield recording


def environment() -> dict[str, Any]:
    """What a run was made with: versions, processor, threads.

    >>> environment()["regard"] == regard.__version__
    True
    """
    return {
        "regard": regard.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "processor": platform.machine(),
        "threads": torch.get_num_threads(),
    }
