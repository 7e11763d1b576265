"""regard forecast."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from regard.cli.console import Console
from regard.cli.lines import emptied, opened_output
from regard.cli.loading import load_for
from regard.cli.options import json_option, polite, print_json
from regard.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from regard.data.time_series import Timeline
    from regard.tasks.forecast.recipe import ForecastModel

STDIN = Path("-")


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("series", required=False, metavar="[CSV]", type=click.Path(path_type=Path))
@click.option("--horizon", type=int, help="Rows to foretell.  [default: as many as it was trained on]")
@click.option("--level", type=float, default=0.8, show_default=True, help="Share of intervals that should hold.")
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), help="A file to write.  [default: stdout]")
@click.option("--plot", type=click.Path(path_type=Path), help="A picture of past and forecast, as SVG.")
@json_option
@polite()
def forecast(
    run: Path,
    series: Path | None,
    horizon: int | None,
    level: float,
    target: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Foretell what comes after the end of a series.

    RUN is a run directory or one of its checkpoints. CSV has the columns that it was trained on; - reads stdin; without
    it, the forecast goes on from the end of the recipe's own data. Out comes a CSV file whose times go on, with what is
    expected of each column and the ends of its interval; a picture is drawn on stderr. Beyond the horizon that was
    learnt, the model goes on from what it said itself, and intervals widen.

    \b
    Examples:
      regard forecast runs/seattle-temps
      regard forecast runs/load load.csv --horizon 48 --level 0.9 -o next.csv --plot next.svg
    """
    if plot is not None and plot.suffix != ".svg":
        raise ConfigError(f"--plot {plot}: expected a name that ends in .svg")
    with contextlib.ExitStack() as files:
        read = None if series == STDIN else series
        opened = [opened_output(path, read) if path is not None else None for path in (target, plot)]
        out, picture = (files.enter_context(one) if one is not None else None for one in opened)

        from regard.tasks.forecast.recipe import ForecastModel

        model = load_for(run, ForecastModel)
        rows = reading(model, series)
        found = model.foreteller().forecast(rows, horizon, level)
        view = model.view(rows, found)
        write(picture, view.svg())
        write(out, found.csv())
    if as_json:
        print_json({"run": str(run), **found.to_dict()})
        return
    Console.of_verb().say(view.text())
    for path in (target, plot):
        if path is not None:
            click.echo(str(path))
    if target is None:
        sys.stdout.write(found.csv())


def reading(model: ForecastModel, series: Path | None) -> Timeline:
    """The series that is gone on from: a file, stdin, or the recipe's own data."""
    from regard.data.lines import lines_of
    from regard.data.time_series import parse_timeline

    if series != STDIN:
        return model.read(series)
    block = sys.stdin.buffer.read().removeprefix(b"\xef\xbb\xbf")
    return parse_timeline(lines_of(block.removesuffix(b"\n"), "stdin"), "stdin", model.wanted)


def write(file: TextIO | None, text: str) -> None:
    """Write a whole text into a file that is open, in place of what it held; None: nowhere.

    >>> write(None, "nothing happens")
    """
    if file is None:
        return
    try:
        emptied(file).write(text)
        file.flush()
    except OSError as error:
        raise OutputError(f"{file.name}: cannot be written ({error.strerror})") from None
