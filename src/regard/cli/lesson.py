"""regard lesson."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import click

from regard.cli.console import Console, Stages
from regard.cli.options import json_option, polite, print_json
from regard.errors import ConfigError

TWO = "evolution-of-attention"
"""The lesson that looks into two models."""


@click.command(short_help="Worked examples, number by number.")
@click.argument("name", required=False)
@click.argument("inputs", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--step", type=int, help="Only this step, from 1 on.")
@click.option("--models", nargs=2, metavar="RUN RUN", help="Two runs to look into, in evolution-of-attention.")
@json_option
@polite()
def lesson(
    name: str | None, inputs: tuple[str, ...], step: int | None, models: tuple[str, str] | None, as_json: bool
) -> None:
    """Show how something works, with every number on the way; without a name, list the lessons.

    Any input can be changed, and what follows is computed anew: a number, a list (1,0 or [1,0]), a matrix
    ([[1,0],[0,1]]) or a text. Most shells want brackets and spaces in quotes.

    \b
    Examples:
      regard lesson rnn
      regard lesson attention "y=[1,0,0]" --step 7
    """
    from regard.lessons.catalogue import CONTENTS, find, plan, teach
    from regard.lessons.engine.inputs import parse

    if name is None:
        print_json([{"name": key, **vars(entry)} for key, entry in CONTENTS.items()]) if as_json else _list()
        return
    changes: dict[str, Any] = dict(parse(inputs))
    if models is not None:
        if name != TWO:
            raise ConfigError(f'--models is for the lesson "{TWO}", not for "{name}"')
        changes["models"] = list(models)
    if find(name).needs and not {"model", "models"} & set(changes):
        plan(name).resolve(changes)  # what is wrong with the inputs is said before anything is trained
        _train(find(name).needs)
    taught = teach(name, changes)
    if step is not None and not 1 <= step <= len(taught.steps):
        raise ConfigError(f'--step: the lesson "{name}" has the steps 1 to {len(taught.steps)}, got {step}')
    if as_json:
        table = taught.to_dict()
        print_json(table if step is None else table | {"steps": [table["steps"][step - 1]]})
        return
    from regard.lessons.engine.terminal import text
    from regard.look.terminal import colours

    # what a change did is seen beside the lecture's numbers
    usual = teach(name) if taught.changed and not {"model", "models"} & set(taught.changed) else None
    colour = colours(os.environ, sys.stdout.isatty())
    click.echo(text(taught, shutil.get_terminal_size().columns, colour, usual, step), nl=False, color=True)


def _list() -> None:
    """The table of contents; nothing heavy is imported for it."""
    from regard.lessons.catalogue import listing

    bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for line in listing(shutil.get_terminal_size().columns):
        title = bold and line[:1].isupper()
        click.echo(click.style(line, bold=True) if title else line, color=True)


def _train(kinds: tuple[str, ...]) -> None:
    """What the lesson looks into, unless it is there already."""
    from regard.lessons.engine.cached_models import missing, trained

    if wanted := missing(kinds):
        console = Console.of_verb()
        console.say(f" {' and '.join(wanted)}: trained now on built-in sentences, once; less than a minute each")
        with Stages(console) as stages:
            trained(kinds, stages)
