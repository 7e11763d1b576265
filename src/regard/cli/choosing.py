"""What a command line names: a recipe, the run directory that goes with it, and its data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.console import Stages

if TYPE_CHECKING:
    from regard.run import Recipe


def chosen_recipe(source: Path, settings: tuple[str, ...], out: Path | None) -> tuple[Recipe, Path]:
    """The recipe and the run directory that a command line names."""
    from regard.run import Recipe, Run

    if not source.is_dir():
        return Recipe.read(source, settings), out or Path("runs") / source.stem
    Run(source).recipe()  # says what is wrong with a directory that is not a run
    return Recipe.read(source / "recipe.toml", settings), out or source


def fetch(recipe: Recipe, stages: Stages) -> None:
    """Bring data that lives in a registry, with a bar."""
    from regard.data.tatoeba import Tatoeba

    if isinstance(recipe.data, Tatoeba):
        recipe.data.fetch(stages.bytes)
