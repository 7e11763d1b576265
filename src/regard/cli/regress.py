"""regard regress."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.console import Console
from regard.cli.line_io import Answer, LineJob, json_line, line_arguments, open_lines
from regard.cli.loading import load_model_as, open_run
from regard.cli.options import json_option
from regard.errors import LineError

if TYPE_CHECKING:
    from regard.tasks.regress.predict import Regressor

CHUNK = 512
"""images or clips that are read together"""


@click.command(short_help="Predict numbers for images or clips.")
@line_arguments
@json_option
def regress(run: Path, text: tuple[str, ...], source: Path | None, target: Path | None, as_json: bool) -> None:
    """Predict numbers for image files or clips, such as where a moving shape will be in the next frame.

    RUN is a run directory or one of its checkpoints; TEXT is the path of an image, or of a clip: an animated GIF, WebP
    or PNG file, or a folder with an image file per frame. With -i, or on stdin, there is one path per line.

    There is one line of output per input, in the same order: the name of a number, a tab, the number, and so on. An
    empty line stays empty. A file that cannot be read is reported, its output is empty, and the exit code at the end
    is 4.

    \b
    Examples:
      regard regress runs/clips-position clips#test/7 moving.gif folder-of-frames
      regard regress runs/clips-position -i clips.txt -o positions.tsv
    """
    with open_lines("predicting", CHUNK, text, source, target) as job:
        open_run(run)
        from regard.tasks.regress.recipe import RegressionModel

        job.run(regress_lines(job, load_model_as(run, RegressionModel).regressor(), as_json))


def regress_lines(job: LineJob, regressor: Regressor, as_json: bool) -> Answer:
    """Predicts the numbers of chunks of paths."""

    def answer(lines: list[str], first: int) -> Iterator[tuple[int, list[str]]]:
        for start, part, found in job.predict(regressor.predict, lines, first):
            if isinstance(found, LineError):
                yield 1, [json_line({"line": start, "error": str(found)}) if as_json else ""]
                continue
            for text, one in zip(part, found, strict=True):
                if one.warning:
                    Console.of_verb().print(f" warning: {text}: {one.warning}")
            rows = enumerate(zip(part, found, strict=True), start)
            named = [(number, text, one.by_name(regressor.targets.names)) for number, (text, one) in rows]
            yield len(part), [format_line(number, text, numbers, as_json) for number, text, numbers in named]

    return answer


def format_line(line: int, text: str, numbers: Mapping[str, float], as_json: bool) -> str:
    """The output line of one input.

    >>> format_line(1, "a.gif", {"x": 12.25, "y": 7.0}, as_json=False)
    'x\\t12.25\\ty\\t7'
    """
    if as_json:
        return json_line({"line": line, "text": text, "numbers": dict(numbers)})
    return "\t".join(f"{name}\t{number:.6g}" for name, number in numbers.items())
