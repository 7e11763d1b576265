"""What a command line names: a recipe, the run directory that goes with it, its data, its model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from regard.cli.console import Console, Stages
from regard.errors import ModelError

if TYPE_CHECKING:
    from regard.tasks import Model, Recipe

M = TypeVar("M", bound="Model")
F = TypeVar("F", bound=Callable[..., Any])


def strict_option(function: F) -> F:
    """Give a verb that takes settings --strict, which is one more of them.

    >>> strict_option(click.command()(lambda strict: None)).params[0].opts
    ['--strict']
    """
    told = "Refuse data that would be repaired or left out: task.strict=true."
    return click.option("--strict", is_flag=True, help=told)(function)


def with_strict(settings: tuple[str, ...], strict: bool) -> tuple[str, ...]:
    """The settings of a command line, with what --strict stands for.

    >>> with_strict(("task.scheme=bio",), strict=True)
    ('task.scheme=bio', 'task.strict=true')
    """
    return (*settings, "task.strict=true") if strict else settings


def chosen_recipe(source: Path, settings: tuple[str, ...], out: Path | None) -> tuple[Recipe, Path]:
    """The recipe and the run directory that a command line names.

    >>> chosen_recipe(Path("none.toml"), (), None)
    Traceback (most recent call last):
    regard.errors.InputError: cannot open the recipe none.toml: No such file or directory
    """
    from regard.run import Run
    from regard.tasks import Recipe

    if not source.is_dir():
        return Recipe.read(source, settings), out or Path("runs") / source.stem
    Run(source).recipe()  # says what is wrong with a directory that is not a run
    return Recipe.read(source / "recipe.toml", settings), out or source


def fetch(recipe: Recipe, stages: Stages) -> None:
    """Bring data that lives in a registry, with a bar.

    >>> from regard.cli.console import Console
    >>> from regard.tasks import Recipe
    >>> fetch(Recipe.read(None, ["data.kind=phrases", "model.preset=transformer-tiny"]), Stages(Console(quiet=True)))
    """
    recipe.fetch(stages.bytes)


def load(run: Path) -> Model:
    """The model of a run, whatever its job; a checkpoint that had to be passed over is told on stderr.

    >>> load(Path("none"))
    Traceback (most recent call last):
    regard.errors.ModelError: none is not a run: there is no such directory
    """
    import regard

    model = regard.load(run)
    for reason in model.refused:
        Console.of_verb().say(f" warning: {reason}; using step {model.step}")
    return model


def load_for(run: Path, kind: type[M]) -> M:
    """The model of a run for a verb that needs one of this kind; else the error says what it is, and its verb.

    >>> from regard.tasks import Model
    >>> load_for(Path("none"), Model)
    Traceback (most recent call last):
    regard.errors.ModelError: none is not a run: there is no such directory
    """
    model = load(run)
    if not isinstance(model, kind):
        verb = click.get_current_context().info_name
        recipe = model.recipe
        raise ModelError(f"{run} was trained to {recipe.kind()}, so it cannot {verb}; use: {recipe.usage(run)}")
    return model
