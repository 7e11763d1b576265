"""What a command line names: a recipe, the run directory that goes with it, and its data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.console import Console, Stages

if TYPE_CHECKING:
    from regard.run import Model, Recipe


def chosen_recipe(source: Path, settings: tuple[str, ...], out: Path | None) -> tuple[Recipe, Path]:
    """The recipe and the run directory that a command line names.

    >>> chosen_recipe(Path("none.toml"), (), None)
    Traceback (most recent call last):
    regard.errors.InputError: cannot open the recipe none.toml: No such file or directory
    """
    from regard.run import Recipe, Run

    if not source.is_dir():
        return Recipe.read(source, settings), out or Path("runs") / source.stem
    Run(source).recipe()  # says what is wrong with a directory that is not a run
    return Recipe.read(source / "recipe.toml", settings), out or source


def fetch(recipe: Recipe, stages: Stages) -> None:
    """Bring data that lives in a registry, with a bar.

    >>> from regard.cli.console import Console
    >>> from regard.run import Recipe
    >>> fetch(Recipe.read(None, ["data.kind=phrases", "model.preset=transformer-tiny"]), Stages(Console(quiet=True)))
    """
    from regard.data.tatoeba import Tatoeba

    if isinstance(recipe.data, Tatoeba):
        recipe.data.fetch(stages.bytes)


def load(run: Path) -> Model:
    """The model of a run; a checkpoint that had to be passed over is told on stderr.

    >>> load(Path("none"))
    Traceback (most recent call last):
    regard.errors.ModelError: none is not a run: there is no such directory
    """
    import regard

    model = regard.load(run)
    for reason in model.refused:
        Console.of_verb().say(f" warning: {reason}; using step {model.step}")
    return model
