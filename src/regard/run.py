"""A run: the directory of one training, with its recipe, prepared data and checkpoints. `load` opens its model."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

import regard
from regard import config
from regard.device import resolve_device
from regard.distributed import ProcessGroup
from regard.engines.open import use_engine
from regard.errors import ConfigError, ModelError, RegardError
from regard.files import digest_bytes, write_text_atomically
from regard.manifest import NAME as MANIFEST
from regard.manifest import (
    RECIPE,
    OtherVersion,
    list_files,
    read_recipe_table,
    read_run_manifest,
    require_manifest,
    write_recipe,
)
from regard.model_card import write_model_card
from regard.packs import pack_folder
from regard.progress import Progress, no_progress
from regard.renamed import RENAMED_VALUES, renamed_key
from regard.run_data import discard_unprepared, find_artifacts, is_prepared, prepare_data, share_data
from regard.run_lock import RunLock, clear_run, hold_lock, is_empty
from regard.tasks import Model, Recipe
from regard.tasks.init_weights import INIT_FILE, InitReport, InitSource, check_shape, init_weights
from regard.train import checkpoint, checkpoint_store
from regard.train.checkpoint_store import run_folder
from regard.train.config import refused_changes, resumable_settings
from regard.train.divergence import check_loadable, check_resumable
from regard.train.events import Listener
from regard.train.manifest import read_manifest
from regard.train.parameter_limit import parameter_limit, resume_limit
from regard.train.state import TrainReport
from regard.train.trainer import train

if TYPE_CHECKING:
    from regard.look import Recording


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
        table = read_recipe_table(self.path)
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
            section = table.get(key.partition(".")[0])
            if present := renamed_key(key, section.get("kind") if isinstance(section, dict) else None):
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
        with self.lock_new() if group.is_main else nullcontext():
            if group.is_main:
                self.begin(recipe, fresh)
                self.prepare(recipe, progress)
            group.wait_for_main()  # it has prepared the data
            with resume_limit(self.path):
                objective, loader, validation = recipe.training_parts(self.path, group)
            init = self.init_model(objective.model, recipe)
            if init is not None and group.is_main:
                init.save(self.path)
            report = train(objective, loader, recipe.train, self.path, group, listeners, validation, recipe.seed)
            if group.is_main:
                write_model_card(self.path, recipe, report)
        return report

    @contextmanager
    def lock_new(self) -> Iterator[None]:
        """Context of the only writer of this run; a new run that fails before its data is prepared leaves nothing."""
        with discard_unprepared(self.path), RunLock(self.path):
            yield

    @hold_lock
    def begin(self, recipe: Recipe, fresh: bool = False) -> None:
        """Create the directory, or check that it belongs to this recipe; `fresh` removes an existing run first."""
        if fresh and not is_empty(self.path):
            self._check_is_run()  # nothing else is ever removed
            clear_run(self.path)
        text = config.dump(recipe)
        if (self.path / RECIPE).exists() and checkpoint_store.checkpoints(self.path):
            check_resumable(self.path)
            listed = read_run_manifest(self.path)
            if listed is None or not listed.accepts(RECIPE, digest_bytes(text.encode())):
                self.check_same_recipe(recipe)  # without a checkpoint nothing can be lost
            if listed is None:  # saved before runs had manifests
                list_files(self.path, find_artifacts(self.path, recipe))
        write_recipe(self.path, text)
        if recipe.init is None and not checkpoint_store.checkpoints(self.path):
            (self.path / INIT_FILE).unlink(missing_ok=True)  # of a start with --from that made no checkpoint
        if not (self.path / "environment.json").exists():
            write_text_atomically(self.path / "environment.json", json.dumps(environment(), indent=1) + "\n")

    def _check_is_run(self) -> None:
        """Refuse a folder that is not a run; a run of another version, or a damaged one with a manifest, is one."""
        try:
            self.recipe()
        except OtherVersion:
            return
        except (ModelError, ConfigError):
            if not (self.path / RECIPE).is_file() or not (self.path / MANIFEST).is_file():
                raise

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
        if wrong := refused_changes(self.path, differing):
            may = ", ".join(sorted(resumable_settings(self.path)))
            raise ConfigError(
                f"{self.path} was started with another recipe: {'; '.join(wrong)}. Use --out for a new run or "
                f"--fresh to start this one again (a resumed run may change {may} and decode)"
            )

    @hold_lock
    def prepare(self, recipe: Recipe, progress: Progress = no_progress) -> None:
        """Prepare the training data unless that is done; artifacts that the model needs move to the run's folder."""
        prepare_data(self.path, recipe, progress)

    def is_prepared(self, recipe: Recipe) -> bool:
        """Whether the data is prepared by the settings of this recipe, and whole."""
        return is_prepared(self.path, recipe)

    def share_prepared(self, other: Run, recipe: Recipe) -> None:
        """Give the prepared data to another run of the same data: hard links where possible, else copies."""
        with RunLock(self.path), RunLock(other.path):
            share_data(self.path, other.path, recipe)


def read_recipe(path: str | Path) -> Recipe:
    """The recipe of a TOML file, of a run directory or of a pack."""
    at = pack_folder(path)
    return Run(at).recipe() if at.is_dir() else Recipe.read(at)


def load(
    path: str | Path,
    device: str | torch.device = "auto",
    *,
    trainable: bool = False,
    engine: str = "regard",
    precision: str = "float32",
    progress: Progress = no_progress,
) -> Model:
    """Load the model of a run or of a pack: its best checkpoint, else its newest good one; or a given checkpoint.

    `device`: auto (an accelerator if there is one), cpu, cuda, cuda:N or mps. Its parameters are frozen (eval mode, no
    gradients), unless it is `trainable`: for a training loop of your own. `engine` "ctranslate2": a Transformer, a
    GPT or a Llama searches by that library, in the `precision` float32 or int8; the converted model is kept in the run,
    and `progress` is called while it is made.
    """
    place, run = resolve_device(str(device)), run_folder(path)
    recipe = Run(run).recipe()
    saved, refused = choose_checkpoint(path)
    try:
        with parameter_limit(saved.path):
            model = recipe.load_model(run, saved, refused)
    except (RegardError, OSError):
        raise
    except Exception as error:  # files that were verified, but do not belong together
        why = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise ModelError(f"{saved.path}: the model cannot be built ({why}); -v shows where") from error
    model = model.to(place)
    use_engine(model, Path(path), saved, engine, precision, progress)
    if trainable:
        model.make_trainable()
    return model


def open_source(path: Path) -> InitSource:
    """The model that model.init names: a run or one of its checkpoints."""
    run = run_folder(path)
    try:
        recipe = Run(run).recipe()
        saved, refused = choose_checkpoint(path)
    except OtherVersion:
        raise
    except ModelError as error:
        raise ModelError(f"model.init: {error}") from None
    except ConfigError as error:
        raise ModelError(f"model.init: the recipe of {run} cannot be read: {error}") from None
    return InitSource(path, run, recipe, saved, refused)


def choose_checkpoint(path: str | Path) -> tuple[checkpoint.Checkpoint, tuple[str, ...]]:
    """The checkpoint at a path, or of a run or a pack its best or newest good one; and why others were refused."""
    run, at = run_folder(path), pack_folder(path)
    found = _best_or_newest(run) if run == at else checkpoint.FoundCheckpoint(checkpoint.read(at), ())
    assert found.checkpoint is not None  # else a ModelError was raised
    require_manifest(run)
    return found.checkpoint, found.refused


def _best_or_newest(run: Path) -> checkpoint.FoundCheckpoint:
    """The best checkpoint of a run if it is intact, else the newest good one, and why others were refused."""
    check_loadable(run)
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
