"""A run: the directory of one training, with its recipe, prepared data and checkpoints. `load` opens its model."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

import regard
from regard import config
from regard.data import shards
from regard.device import resolve_device
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, ModelError
from regard.files import cannot_write, write_text_atomically
from regard.look import Recording
from regard.model_card import write_model_card
from regard.progress import Progress, no_progress
from regard.renamed import RENAMED_VALUES, renamed_key
from regard.run_lock import RunLock, clear_run, hold_lock, is_empty
from regard.tasks import Model, Recipe
from regard.tasks.init_recipe import tokenizer_digests, tokenizer_files
from regard.tasks.init_weights import InitReport, InitSource, check_shape, init_weights
from regard.train import checkpoint, checkpoint_store
from regard.train.checkpoint_store import run_folder
from regard.train.config import AFTER_DIVERGENCE, MAY_CHANGE
from regard.train.divergence import clear_diverged, has_diverged
from regard.train.events import Listener
from regard.train.manifest import OtherVersion, read_manifest
from regard.train.state import TrainReport
from regard.train.trainer import train


@dataclass(frozen=True, init=False)
class Run:
    """A run directory.

    >>> Run("runs/a") == Run(Path("runs/a"))
    True
    """

    path: Path

    def __init__(self, path: str | Path) -> None:
        object.__setattr__(self, "path", Path(path))

    def recipe(self) -> Recipe:
        """The recipe that this run was started with; a run of an earlier version of regard is refused."""
        if not (self.path / "recipe.toml").is_file():
            why = "it has no recipe.toml" if self.path.is_dir() else "there is no such directory"
            raise ModelError(f"{self.path} is not a run: {why}")
        table = config.read(self.path / "recipe.toml")
        try:
            return Recipe.parse(table)
        except ConfigError:
            self._check_version(table)
            raise

    def _check_version(self, table: config.Table) -> None:
        """Refuse a run whose recipe cannot be parsed because an earlier version of regard wrote it."""
        for folder in checkpoint_store.search_order(self.path)[:1]:
            try:
                read_manifest(folder)
            except OtherVersion:
                raise
            except ModelError:  # a damaged checkpoint says nothing about the recipe
                pass
        for key, value in config.flat(table).items():
            if present := renamed_key(key):
                change = f"{key} is now {present}"
            elif present := RENAMED_VALUES.get((key, str(value))):
                change = f'{key} = "{value}" is now "{present}"'
            else:
                continue
            raise OtherVersion(f"{self.path} was saved by an earlier version of regard ({change}); train it again")

    def train(
        self,
        recipe: Recipe | str | Path,
        *,
        group: ProcessGroup = ProcessGroup(),  # noqa: B008
        listeners: Sequence[Listener] = (),
        progress: Progress = no_progress,
        fresh: bool = False,
    ) -> TrainReport:
        """Train by the recipe, or resume where this run stopped; at the end MODEL_CARD.md is written.

        A path is that of a TOML file, or of another run, by whose recipe this one is then trained.
        """
        recipe = recipe if isinstance(recipe, Recipe) else read_recipe(recipe)
        resolve_device(recipe.train.device, group.size)  # a missing one is reported before data is prepared
        if group.is_main:
            self.check_init(recipe, fresh)  # before anything is written or removed
        with RunLock(self.path) if group.is_main else nullcontext():
            if group.is_main:
                self.begin(recipe, fresh)
                self.prepare(recipe, progress)
            group.wait_for_main()  # it has prepared the data
            objective, loader, validation = recipe.training_parts(self.path, group)
            init = self.init_model(objective.model, recipe)
            if init is not None and group.is_main:
                init.save(self.path)
            report = train(objective, loader, recipe.train, self.path, group, listeners, validation, recipe.seed)
            if group.is_main:
                write_model_card(self.path, recipe, report)
        return report

    @hold_lock
    def begin(self, recipe: Recipe, fresh: bool = False) -> None:
        """Create the directory, or check that it belongs to this recipe; `fresh` removes an existing run first."""
        if fresh and not is_empty(self.path):
            with suppress(OtherVersion):
                self.recipe()  # raises unless it is a run: nothing else is ever removed
            clear_run(self.path)
        if (self.path / "recipe.toml").exists() and checkpoint_store.checkpoints(self.path):
            self.check_same_recipe(recipe)  # without a checkpoint nothing can be lost
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(self.path, 0, error) from error
        write_text_atomically(self.path / "recipe.toml", config.dump(recipe))
        clear_diverged(self.path)
        if not (self.path / "environment.json").exists():
            write_text_atomically(self.path / "environment.json", json.dumps(environment(), indent=1) + "\n")

    def init_model(self, model: nn.Module, recipe: Recipe) -> InitReport | None:
        """Give a model that has not been trained yet the weights that model.init names; returns what was taken."""
        if recipe.init is None or checkpoint_store.checkpoints(self.path):
            return None
        return init_weights(model, recipe, self.path, open_source(recipe.init))

    def check_init(self, recipe: Recipe, fresh: bool = False) -> None:
        """Refuse a model to start from that cannot be read, has another shape, or is this run itself.

        A run with checkpoints needs it no more, unless it is to start over (`fresh`).
        """
        if recipe.init is None or (checkpoint_store.checkpoints(self.path) and not fresh):
            return
        if run_folder(recipe.init).resolve() == self.path.resolve():
            raise ConfigError(f"model.init = {recipe.init} is the run that is to be trained; use --out for a new run")
        check_shape(recipe, open_source(recipe.init))

    def check_same_recipe(self, recipe: Recipe) -> None:
        """Refuse to resume with a changed recipe; the error lists the differences."""
        differing = config.differences(self.recipe(), recipe)
        may_change = MAY_CHANGE | (AFTER_DIVERGENCE if has_diverged(self.path) else set())
        allowed = (*(f"{name}{end}" for name in may_change for end in (" ", ".")), "decode.")
        wrong = [line for line in differing if not line.startswith(allowed)]
        if wrong:
            may = ", ".join(sorted(may_change))
            raise ConfigError(
                f"{self.path} was started with another recipe: {'; '.join(wrong)}. Use --out for a new run or "
                f"--fresh to start this one again (a resumed run may change {may} and decode)"
            )

    @hold_lock
    def prepare(self, recipe: Recipe, progress: Progress = no_progress) -> None:
        """Prepare the training data unless that is done; artifacts that the model needs move to the run's folder."""
        if self.is_prepared(recipe):
            return
        folder, preparation = self.path / "data", recipe.preparation()
        if (home := _tokenizer_home(recipe, self.path)) is not None:
            text = replace(recipe.text, tokenizer=home)  # type: ignore[attr-defined]
            preparation = replace(recipe, text=text).preparation()  # type: ignore[call-arg]
        (folder / "identity.json").unlink(missing_ok=True)  # marks the data as incomplete until the end
        for old in _artifacts(folder, recipe):
            old.unlink()
        counts = preparation.run(folder, progress)
        write_text_atomically(folder / "counts.json", json.dumps(counts, indent=1) + "\n")
        self._install(_artifacts(folder, recipe), recipe)
        write_text_atomically(folder / "identity.json", json.dumps(_identity(recipe, self.path), indent=1) + "\n")

    def _install(self, artifacts: Sequence[Path], recipe: Recipe) -> None:
        """Move artifacts to the run's folder; those that its checkpoints were trained with are never replaced."""
        before = {file.name: file for file in _artifacts(self.path, recipe)}
        if before and checkpoint_store.checkpoints(self.path):
            for file in artifacts:
                if file.name not in before or before[file.name].read_bytes() != file.read_bytes():
                    raise ModelError(
                        f"{self.path}: preparing its data again gave another {file.name} than its checkpoints were "
                        "trained with; use --out for a new run, or --fresh to start this one again"
                    )
        for name in before.keys() - {file.name for file in artifacts}:
            before[name].unlink()
        for file in artifacts:
            file.replace(self.path / file.name)

    def is_prepared(self, recipe: Recipe) -> bool:
        """Whether the data is prepared by the settings of this recipe; identity.json is written last."""
        folder = self.path / "data"
        if not (folder / "identity.json").exists() or _artifacts(folder, recipe):  # one there was not installed yet
            return False
        if not all(any(self.path.glob(pattern)) for pattern in recipe.artifacts):
            return False
        made = json.loads((folder / "identity.json").read_text(encoding="utf-8"))
        return bool(made == json.loads(json.dumps(_identity(recipe, self.path))))

    def share_prepared(self, other: Run, recipe: Recipe) -> None:
        """Give the prepared data to another run of the same data: hard links where possible, else copies."""
        with RunLock(self.path), RunLock(other.path):
            self._share_prepared(other, recipe)

    def _share_prepared(self, other: Run, recipe: Recipe) -> None:
        if other.is_prepared(recipe):
            return
        last = self.path / "data" / "identity.json"  # written last: it marks the data as complete
        (other.path / "data" / last.name).unlink(missing_ok=True)
        files = [file for file in sorted((self.path / "data").rglob("*")) if file.is_file() and file != last]
        for file in [*files, *_artifacts(self.path, recipe), last]:
            place = other.path / file.relative_to(self.path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            try:
                os.link(file, place)
            except OSError:  # another disk, or a file system without hard links
                shutil.copy2(file, place)


def read_recipe(path: str | Path) -> Recipe:
    """The recipe of a TOML file or of a run directory."""
    return Run(path).recipe() if Path(path).is_dir() else Recipe.read(Path(path))


def _identity(recipe: Recipe, run: Path) -> dict[str, Any]:
    """What prepared data depends on: the settings, the format of the files, and a tokenizer that was not trained."""
    found = {**recipe.preparation().identity(), "shards": shards.FORMAT}
    home = _tokenizer_home(recipe, run)
    if home is None or "text" not in found:
        return found
    text = {name: value for name, value in found["text"].items() if name != "tokenizer"}
    return {**found, "text": text, "tokenizer": tokenizer_digests(home)}


def _tokenizer_home(recipe: Recipe, run: Path) -> Path | None:
    """Where text.tokenizer is: at the place that it names; or in `run`, once that is trained, or the place is gone."""
    taken: Path | None = getattr(getattr(recipe, "text", None), "tokenizer", None)
    if taken is None or not tokenizer_files(run):
        return taken
    return run if checkpoint_store.checkpoints(run) or not tokenizer_files(taken) else taken


def _artifacts(folder: Path, recipe: Recipe) -> list[Path]:
    return [file for pattern in recipe.artifacts for file in sorted(folder.glob(pattern))]


def load(path: str | Path, device: str = "auto", *, trainable: bool = False) -> Model:
    """Load the model of a run: its best checkpoint, else its newest good one; or a given checkpoint of a run.

    `device`: auto (an accelerator if there is one), cpu, cuda, cuda:N or mps. Its parameters are frozen (eval mode, no
    gradients), unless it is `trainable`: for a training loop of your own.
    """
    place, run = resolve_device(device), run_folder(path)
    recipe = Run(run).recipe()
    saved, refused = _choose_checkpoint(run, Path(path))
    model = recipe.load_model(run, saved, refused).to(place)
    if trainable:
        model.make_trainable()
    return model


def open_source(path: Path) -> InitSource:
    """The model that model.init names: a run or one of its checkpoints."""
    run = run_folder(path)
    try:
        recipe = Run(run).recipe()
        saved, refused = _choose_checkpoint(run, path)
    except OtherVersion:
        raise
    except ModelError as error:
        raise ModelError(f"model.init: {error}") from None
    except ConfigError as error:
        raise ModelError(f"model.init: the recipe of {run} cannot be read: {error}") from None
    return InitSource(path, run, recipe, saved, refused)


def _choose_checkpoint(run: Path, path: Path) -> tuple[checkpoint.Checkpoint, tuple[str, ...]]:
    """The checkpoint at a path, or of a run its best or newest good one; and why others were refused."""
    if run != path:
        return checkpoint.read(path), ()
    found = _best_or_newest(run)
    assert found.checkpoint is not None  # else a ModelError was raised
    return found.checkpoint, found.refused


def _best_or_newest(run: Path) -> checkpoint.FoundCheckpoint:
    """The best checkpoint of a run if it is intact, else the newest good one, and why others were refused."""
    refused: tuple[str, ...] = ()
    try:
        found = checkpoint.FoundCheckpoint(checkpoint.best(run), ())
    except ModelError as error:
        found, refused = checkpoint.FoundCheckpoint(None, ()), (str(error),)
    if found.checkpoint is None:
        newest = checkpoint.newest(run)
        found = checkpoint.FoundCheckpoint(newest.checkpoint, tuple(dict.fromkeys((*refused, *newest.refused))))
    if found.checkpoint is None:
        why = f": {found.refused[0]}" if found.refused else "; train it first"
        raise ModelError(f"{run} has no finished checkpoint{why}")
    return found


@contextmanager
def record(
    model: Model, replace: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] | None = None
) -> Iterator[Recording]:
    """Record attention weights, queries, keys, values, scores, states and logits of forward passes inside the block.

    `replace` maps name patterns to functions that replace the matching tensors: a head can be ablated.
    """
    with model.record(replace) as recording:
        yield recording


def environment() -> dict[str, Any]:
    """Versions and platform that a run was started with; its checkpoints have the device and the threads."""
    versions = {"regard": regard.__version__, "python": platform.python_version(), "torch": torch.__version__}
    machine = {"platform": platform.platform(), "processor": platform.machine()}
    return {**versions, **machine}
