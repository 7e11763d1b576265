"""regard demo."""

from __future__ import annotations

from pathlib import Path

import click

from regard.cli.console import Console, StageProgress
from regard.cli.options import PATH, global_options


@click.command(short_help="Train, evaluate and inspect a small translation model.")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--out", type=PATH, default=Path("runs/demo"), show_default=True, help="Run directory.")
def demo(settings: tuple[str, ...], out: Path) -> None:
    """Train a small translation model, evaluate it, translate, draw its attention, and print what to try next.

    French to English, with sentences from Tatoeba, or with generated ones if there is no network; it takes a few
    minutes.

    \b
    Examples:
      regard demo
      regard demo train.minutes=1 --out runs/first
    """
    from regard.demo import run_demo

    console = Console.of_verb()

    def report(text: str) -> None:
        console.close()  # what follows may have its own progress bar
        console.print(text)

    with StageProgress(console) as stages:
        run_demo(out, report, stages.download, (*settings, *global_options().training_settings()))
