"""regard demo."""

from __future__ import annotations

from pathlib import Path

import click

from regard.cli.console import Console
from regard.cli.manners import polite


@click.command(short_help="Train, score and look into a small translator.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/demo"), show_default=True, help="Its run.")
@polite()
def demo(out: Path) -> None:
    """Train a small translator, score it, translate, draw its attention, say what to try next.

    French to English, with sentences of Tatoeba, or with made-up ones where there is no network; some minutes.

    \b
    Examples:
      regard demo
      regard demo --out runs/first
    """
    from regard.demo import run_demo

    run_demo(out, Console.of_verb())
