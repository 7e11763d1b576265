"""regard forecast."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from regard.cli.console import Console
from regard.cli.line_io import open_output, truncate, write_errors
from regard.cli.loading import load_model_as, open_run
from regard.cli.options import PATH, json_option, print_json
from regard.cli.streams import stdin_bytes
from regard.errors import ConfigError

if TYPE_CHECKING:
    from regard.tasks.forecast.recipe import ForecastModel
    from regard.tasks.forecast.time_series import TimeSeries

STDIN = Path("-")


@click.command()
@click.argument("run", type=PATH)
@click.argument("series", required=False, metavar="[CSV]", type=PATH)
@click.option("--horizon", type=int, help="Number of rows to forecast.  [default: the horizon it was trained for]")
@click.option("--level", type=float, default=0.8, show_default=True, help="Coverage of the prediction intervals.")
@click.option("-o", "--output", "target", type=PATH, help="File to write.  [default: stdout]")
@click.option("--plot", type=PATH, help="SVG plot of the history and the forecast.")
@json_option
def forecast(
    run: Path,
    series: Path | None,
    horizon: int | None,
    level: float,
    target: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Forecast the values that follow the end of a time series.

    RUN is a run directory or one of its checkpoints. CSV is a file with the columns that the model was trained on;
    - reads stdin; without it the forecast starts at the end of the recipe's own data. The output is a CSV file with
    the following timestamps, the point forecast of each column and the bounds of its prediction interval; a plot is
    drawn on stderr. Beyond the horizon it was trained for, the model reads its own forecasts, and intervals widen.

    \b
    Examples:
      regard forecast runs/seattle-temps
      regard forecast runs/load load.csv --horizon 48 --level 0.9 -o next.csv --plot next.svg
    """
    if plot is not None and plot.suffix != ".svg":
        raise ConfigError(f"--plot {plot}: expected a name that ends in .svg")
    with contextlib.ExitStack() as files:
        read = None if series == STDIN else series
        opened = [open_output(path, read) if path is not None else None for path in (target, plot)]
        out, picture = (files.enter_context(one) if one is not None else None for one in opened)

        open_run(run)
        from regard.tasks.forecast.recipe import ForecastModel

        model = load_model_as(run, ForecastModel)
        history = read_history(model, series)
        found = model.predictor().forecast(history, horizon, level)
        view = model.view(history, found)
        write(picture, view.svg())
        write(out, found.csv())
    if as_json:
        print_json({"run": str(run), **found.to_dict()})
        return
    Console.of_verb().print(view.text())
    for path in (target, plot):
        if path is not None:
            click.echo(str(path))
    if target is None:
        sys.stdout.write(found.csv())


def read_history(model: ForecastModel, series: Path | None) -> TimeSeries:
    """The series before the forecast: a file, stdin, or the recipe's own data."""
    from regard.data.lines import decode_lines

    if series != STDIN:
        return model.read(series)
    block = stdin_bytes("a file").read().removeprefix(b"\xef\xbb\xbf")
    return model.parse_lines(decode_lines(block.removesuffix(b"\n"), "stdin"), "stdin")


def write(file: TextIO | None, text: str) -> None:
    """Replace the content of an open file; None: do nothing."""
    if file is not None:
        with write_errors(file.name):
            truncate(file).write(text)
            file.flush()
