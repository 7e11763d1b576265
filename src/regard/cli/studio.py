"""regard studio."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from regard.cli.console import Console
from regard.cli.loading import chosen_device, set_threads
from regard.cli.options import PATH
from regard.errors import ConfigError, InputError
from regard.packs import pack_folder


@click.command(short_help="Open a web page that shows what a model computed.")
@click.argument("path", type=PATH, required=False)
@click.option("--port", type=click.IntRange(0, 65535), default=8642, show_default=True, help="0: any free port.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser.")
def studio(path: Path | None, port: int, no_browser: bool) -> None:
    """Open a web page that shows what a model computed: attention, states, beam search, every number.

    PATH is a run, a pack, or a folder of runs (default: runs). Only this machine can open the page, and no data leaves
    this machine. If there is no model, it opens with a small translator that is built in.

    \b
    Examples:
      regard studio
      regard studio runs/demo --port 9000 --no-browser
    """
    path = None if path is None else pack_folder(path)
    if path is not None and not path.is_dir():
        raise InputError(f"{path}: there is no such folder; expected a run, a pack, or a folder of runs")
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        message = 'the studio needs starlette and uvicorn; install them with: pip install "starlette>=1,<2" uvicorn'
        raise ConfigError(message) from None
    from regard.data.download.datasets import cache_folder
    from regard.studio.server import serve

    # "studio-3": what is cached there has the format trace/3
    with suppress(KeyboardInterrupt):  # Ctrl-C ends the studio
        set_threads()
        report = Console.of_verb().print
        serve(path or Path("runs"), cache_folder() / "studio-3", port, not no_browser, report, chosen_device())
