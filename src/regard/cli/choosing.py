"""What a command line names: a recipe, the run directory that goes with it, and its data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.console import Stages

if TYPE_CHECKING:
    from regard.run import Recipe


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
