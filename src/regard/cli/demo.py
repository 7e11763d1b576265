"""regard demo."""

from __future__ import annotations

from pathlib import Path

import click

from regard.cli.console import Console, Stages
from regard.cli.options import polite


@click.command(short_help="Train, score and look into a small translator.")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/demo"), show_default=True, help="Its run.")
@polite()
def demo(settings: tuple[str, ...], out: Path) -> None:
    """Train a small translator, score it, translate, draw its attention, say what to try next.

    French to English, with sentences of Tatoeba, or with made-up ones where there is no network; some minutes.

    \b
    Examples:
      regard demo
      regard demo train.minutes=1 --out runs/first
    """
    from regard.demo import run_demo

    console = Console.of_verb()
    with Stages(console) as stages:
        run_demo(out, Announcer(console), stages.bytes, settings)


class Announcer:
    """A console whose bar goes away as soon as something is said: what follows may have a bar of its own.

    >>> Announcer(Console(quiet=True)).say("unheard")
    """

    def __init__(self, console: Console) -> None:
        self.console = console

    def say(self, text: str) -> None:
        """One line."""
        self.console.close()
        self.console.say(text)
