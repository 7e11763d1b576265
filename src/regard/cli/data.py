"""regard data: what a recipe's data is, and getting it ready."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from regard.cli.console import Console, Stages
from regard.cli.loading import chosen_recipe, fetch, strict_option, with_strict
from regard.cli.options import Verbs, json_option, polite, print_json


@click.group(cls=Verbs)
def data() -> None:
    """Read, clean, split and count the data of a recipe.

    \b
    Examples:
      regard data stats mine.toml
      regard data prepare mine.toml
    """


@data.command()
@click.argument("recipe", type=click.Path(path_type=Path))
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--out", type=click.Path(path_type=Path), help="The run directory.  [default: runs/NAME-OF-RECIPE]")
@strict_option
@polite()
def prepare(recipe: Path, settings: tuple[str, ...], out: Path | None, strict: bool) -> None:
    """Fetch, clean and split the data, train the tokenizer, write what training reads.

    `regard train` does this by itself; done before, training starts at once.

    \b
    Examples:
      regard data prepare mine.toml
      regard data prepare mine.toml text.size=4000 --out runs/small
    """
    from regard.run import Run

    chosen, path = chosen_recipe(recipe, with_strict(settings, strict), out)
    run = Run(path)
    with Stages(Console.of_verb()) as stages:
        fetch(chosen, stages)
        run.begin(chosen)
        run.prepare(chosen, stages)
    Console.of_verb().say("\n".join(chosen.told(chosen.statistics(path))))
    click.echo(str(path))


@data.command()
@click.argument("recipe", type=click.Path(path_type=Path))
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@strict_option
@json_option
@polite()
def stats(recipe: Path, settings: tuple[str, ...], strict: bool, as_json: bool) -> None:
    """How much data there is, what was dropped why, lengths, tokens, and how much of a batch is padding.

    \b
    Examples:
      regard data stats mine.toml
      regard data stats mine.toml filter.ratio=2 --json
    """
    from regard.run import Run

    chosen, path = chosen_recipe(recipe, with_strict(settings, strict), None)
    with tempfile.TemporaryDirectory() as folder, Stages(Console.of_verb()) as stages:
        fetch(chosen, stages)
        run = Run(path)
        if not run.prepared(chosen):
            run = Run(Path(folder))
            run.prepare(chosen, stages)
        stages.console.close()
        found = chosen.statistics(run.path)
    print_json(found) if as_json else click.echo("\n".join(chosen.told(found)))
