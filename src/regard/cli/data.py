"""regard data: statistics and preparation of a recipe's data."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.compare import family_paths
from regard.cli.console import Console, StageProgress
from regard.cli.loading import load_recipe, strict_option, with_strict
from regard.cli.options import OrderedGroup, json_option, print_json, recipe_arguments, run_option
from regard.config import read
from regard.packs import is_pack

if TYPE_CHECKING:
    from regard.tasks import Recipe


@click.group(cls=OrderedGroup)
def data() -> None:
    """Prepare the data of a recipe and print its statistics.

    \b
    Examples:
      regard data stats mine.toml
      regard data prepare mine.toml
    """


def load_data_recipe(source: Path, settings: tuple[str, ...], out: Path | None) -> tuple[Recipe, Path, bool]:
    """The recipe, the directory of its data, and whether it is a comparison: its models share their prepared data."""
    path, folder = family_paths(source, out)
    if path.is_file() and not is_pack(path) and "family" in read(path):
        from regard.compare.recipe import PREPARED, Comparison

        return Comparison.read(path, settings).members[0].recipe, folder / PREPARED, True
    return *load_recipe(source, settings, out), False


@data.command()
@recipe_arguments
@run_option
@strict_option
def prepare(recipe: Path, settings: tuple[str, ...], out: Path | None, strict: bool) -> None:
    """Download, clean and split the data, train the tokenizer, and write the shards that training reads.

    `regard train` does this by itself if it was not done before. RECIPE may also be that of a comparison, whose models
    share their data.

    \b
    Examples:
      regard data prepare mine.toml
      regard data prepare mine.toml text.vocab_size=4000 --out runs/small
    """
    chosen, path, is_family = load_data_recipe(recipe, with_strict(settings, strict), out)
    from regard.run import Run

    run = Run(path)
    with StageProgress(Console.of_verb()) as stages:
        chosen.fetch(stages.download)
        with run.lock_new():
            if not is_family:
                run.begin(chosen)
            run.prepare(chosen, stages)
    Console.of_verb().print("\n".join(chosen.format_statistics(chosen.statistics(path))))
    click.echo(str(path))


@data.command()
@recipe_arguments
@strict_option
@json_option
def stats(recipe: Path, settings: tuple[str, ...], strict: bool, as_json: bool) -> None:
    """Print how much data there is, what was dropped and why, lengths, token counts, and the share of padding.

    \b
    Examples:
      regard data stats mine.toml
      regard data stats mine.toml filter.max_length_ratio=2 --json
    """
    chosen, path, _ = load_data_recipe(recipe, with_strict(settings, strict), None)
    from regard.run import Run

    with tempfile.TemporaryDirectory() as folder, StageProgress(Console.of_verb()) as stages:
        chosen.fetch(stages.download)
        run = Run(path)
        if not run.is_prepared(chosen):
            run = Run(Path(folder))
            run.prepare(chosen, stages)
        stages.console.close()
        found = chosen.statistics(run.path)
    print_json(found) if as_json else click.echo("\n".join(chosen.format_statistics(found)))
