"""Loads what a command line names: a recipe with its run directory, or a trained model."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from regard.cli.console import Console, StageProgress
from regard.cli.options import global_options
from regard.errors import ConfigError, ModelError
from regard.manifest import read_recipe_table
from regard.packs import pack_folder
from regard.settings_table import check_recipe
from regard.train.checkpoint_store import run_folder

if TYPE_CHECKING:
    from regard.tasks import Model, Recipe

M = TypeVar("M", bound="Model")
F = TypeVar("F", bound=Callable[..., Any])


def strict_option(function: F) -> F:
    """Add --strict to a verb that takes settings: a short form of task.strict=true."""
    help_text = "Fail on data that would be repaired or dropped: task.strict=true."
    return click.option("--strict", is_flag=True, help=help_text)(function)


def with_strict(settings: tuple[str, ...], strict: bool) -> tuple[str, ...]:
    """The settings of a command line, including the one that --strict stands for."""
    return (*settings, "task.strict=true") if strict else settings


def load_recipe(source: Path, settings: tuple[str, ...], out: Path | None) -> tuple[Recipe, Path]:
    """The recipe and the run directory that a command line names; `source` is a TOML file, a run or a pack."""
    path = out or (source if source.is_dir() else Path("runs") / source.stem)
    source = pack_folder(source)
    check_sources(source, settings, path)
    import_torch()
    from regard.run import Run
    from regard.tasks import Recipe

    if not source.is_dir():
        return Recipe.read(source, settings, started=path), path
    Run(source).recipe()  # raises if the directory is not a run
    return Recipe.read(source / "recipe.toml", settings, started=path), path


def check_sources(source: Path, settings: tuple[str, ...], started: Path | None = None) -> None:
    """Report a recipe that cannot be read, and settings that do not exist, before torch is imported."""
    if "torch" in sys.modules:  # then the classes themselves are at hand
        return
    if not source.is_dir():
        if source.is_file() or not source.exists():  # a pipe can be read only once
            check_recipe(source, settings, started)
        return
    read_recipe_table(source)
    recipe = source / "recipe.toml"
    try:
        check_recipe(recipe, ())
    except ConfigError:  # an earlier version of regard wrote it, as the run itself says
        return
    check_recipe(recipe, settings)


def import_torch() -> None:
    """Import torch and the tasks with garbage collection paused: what they make stays.

    Looking through it again and again would cost a tenth of the time.
    """
    gc.disable()
    try:
        import regard.run  # noqa: F401
    finally:
        gc.freeze()
        gc.enable()


def open_run(run: Path) -> None:
    """Check that a path is a run, before torch is imported for it."""
    read_recipe_table(run_folder(run))
    import_torch()


def load_model(run: Path, engine: str = "regard", precision: str = "float32") -> Model:
    """The model of a run of any task; checkpoints that had to be skipped are reported on stderr."""
    open_run(run)
    import regard
    from regard.models.base import parameters

    with StageProgress(Console.of_verb()) as stages:  # an engine may convert the model first
        model = regard.load(run, chosen_device(), engine=engine, precision=precision, progress=stages)
    set_threads(parameters(model.module))
    for reason in model.refused:
        Console.of_verb().warn(f"{reason}; using step {model.step}")
    return model


def chosen_device() -> str:
    """The device that --device names, else auto."""
    return global_options().device or "auto"


def set_threads(parameters: int = 0) -> None:
    """Use as many threads as --threads says, else as suit a model of this size."""
    import torch

    from regard.device import default_threads

    torch.set_num_threads(global_options().threads or default_threads(parameters, training=False))


def load_model_as(run: Path, kind: type[M], engine: str = "regard", precision: str = "float32") -> M:
    """The model of a run for a verb that needs this kind; the error for another kind names the verb to use."""
    model = load_model(run, engine, precision)
    if not isinstance(model, kind):
        verb = click.get_current_context().info_name
        recipe = model.recipe
        raise ModelError(f"{run} was trained to {recipe.kind()}, so it cannot {verb}; use: {recipe.usage(run)}")
    return model
