"""regard studio."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from regard.cli.console import Console
from regard.cli.options import polite
from regard.errors import ConfigError, InputError


@click.command()
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option("--port", type=click.IntRange(0, 65535), default=8642, show_default=True, help="0: any that is free.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
@polite()
def studio(path: Path | None, port: int, no_browser: bool) -> None:
    """A page that shows what a model really did: attention, states, choices, every number.

    PATH is a run or a folder of runs ("runs" unless given). Only this machine can open the page, and nothing it does
    leaves this machine. Without any model it trains a tiny one, in seconds, to have something to show.

    \b
    Examples:
      regard studio
      regard studio runs/demo --port 9000 --no-browser
    """
    if path is not None and not path.is_dir():
        raise InputError(f"{path}: there is no such folder; expected a run or a folder of runs")
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        told = 'the studio needs starlette and uvicorn; install them with: pip install "regard[studio]"'
        raise ConfigError(told) from None
    from regard.data.download.datasets import cache_folder
    from regard.studio.server import serve

    with suppress(KeyboardInterrupt):  # that is how it ends
        serve(path or Path("runs"), cache_folder() / "studio", port, not no_browser, Console.of_verb().say)
