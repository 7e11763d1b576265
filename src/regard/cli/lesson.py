"""regard lesson."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import click

from regard.cli.console import Console, StageProgress
from regard.cli.options import json_option, print_json
from regard.errors import ConfigError

TWO_MODELS = "evolution-of-attention"
"""The lesson that takes two models."""


@click.command(short_help="Worked examples with every number.")
@click.argument("name", required=False)
@click.argument("inputs", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--step", type=int, help="Only this step, from 1.")
@click.option("--exercises", is_flag=True, help="Two questions; answers are read from stdin and checked.")
@click.option("--models", nargs=2, metavar="RUN RUN", help="Two runs, for evolution-of-attention.")
@json_option
def lesson(
    name: str | None,
    inputs: tuple[str, ...],
    step: int | None,
    exercises: bool,
    models: tuple[str, str] | None,
    as_json: bool,
) -> None:
    """Show a worked example with every intermediate number; without a name, list the lessons.

    Every input can be changed, and the results are recomputed: a number, a list (1,0 or [1,0]), a matrix
    ([[1,0],[0,1]]) or a text. Most shells need quotes around brackets and spaces.

    \b
    Examples:
      regard lesson rnn
      regard lesson attention "y=[1,0,0]" --step 7
      regard lesson rnn --exercises
    """
    from regard.lessons.catalogue import LESSONS, find_lesson, lesson_plan, teach

    if name is None:
        print_json([{"name": key, **vars(entry)} for key, entry in LESSONS.items()]) if as_json else _list()
        return
    changes = _changes(name, inputs, models)
    if find_lesson(name).needs and not {"model", "models"} & set(changes):
        lesson_plan(name).resolve(changes)  # raises for bad inputs before anything is trained
        _train(find_lesson(name).needs)
    if exercises:
        from regard.cli.lesson_exercises import ask

        if step is not None:
            raise ConfigError("--step and --exercises exclude each other; leave one of them out")
        ask(name, changes, as_json)
        return
    taught = teach(name, changes)
    if step is not None and not 1 <= step <= len(taught.steps):
        raise ConfigError(f'--step: the lesson "{name}" has the steps 1 to {len(taught.steps)}, got {step}')
    if as_json:
        table = taught.to_dict()
        print_json(table if step is None else table | {"steps": [table["steps"][step - 1]]})
        return
    from regard.lessons.engine.terminal import lesson_text
    from regard.look.terminal import color_depth

    # changed numbers are shown beside the original ones
    usual = teach(name) if taught.changed_inputs and not {"model", "models"} & set(taught.changed_inputs) else None
    color = color_depth(os.environ, sys.stdout.isatty())
    click.echo(lesson_text(taught, shutil.get_terminal_size().columns, color, usual, step), nl=False, color=True)


def _changes(name: str, inputs: tuple[str, ...], models: tuple[str, str] | None) -> dict[str, Any]:
    """Changed inputs of the command line."""
    from regard.lessons.engine.inputs import parse_inputs

    changes: dict[str, Any] = dict(parse_inputs(inputs))
    if models is not None:
        if name != TWO_MODELS:
            raise ConfigError(f'--models is for the lesson "{TWO_MODELS}", not for "{name}"')
        changes["models"] = list(models)
    return changes


def _list() -> None:
    """Print the table of contents without importing torch."""
    from regard.lessons.catalogue import list_lines

    bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for line in list_lines(shutil.get_terminal_size().columns):
        title = bold and line[:1].isupper()
        click.echo(click.style(line, bold=True) if title else line, color=True)


def _train(kinds: tuple[str, ...]) -> None:
    """Train the models that the lesson needs and that are not in the cache."""
    from regard.lessons.engine.cached_models import missing_models, train_missing

    if wanted := missing_models(kinds):
        console = Console.of_verb()
        console.print(f" {' and '.join(wanted)}: training once on built-in sentences; less than a minute each")
        with StageProgress(console) as stages:
            train_missing(kinds, stages)
