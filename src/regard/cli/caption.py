"""regard caption."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.console import Console
from regard.cli.line_io import Answer, LineJob, line_arguments, open_lines
from regard.cli.loading import load_model_as, open_run
from regard.cli.options import json_option
from regard.cli.translate import HypothesisFormat
from regard.errors import LineError

if TYPE_CHECKING:
    from regard.tasks.caption.predict import Captioner

CHUNK = 256
"""images captioned together"""


@click.command(short_help="Write captions of images to stdout.")
@line_arguments
@click.option("--beam", type=int, help="Beam size; 1 is greedy search.  [default: the recipe's]")
@click.option(
    "--n-best", type=int, default=1, help="Different captions per image, at most; lines start with its number."
)
@click.option("--scores", is_flag=True, help="Print the score that ranks and the log-probability first.")
@json_option
def caption(
    run: Path,
    text: tuple[str, ...],
    source: Path | None,
    target: Path | None,
    beam: int | None,
    n_best: int,
    scores: bool,
    as_json: bool,
) -> None:
    """Write captions of image files (PNG, JPEG, WebP; any size) to stdout.

    RUN is a run directory or one of its checkpoints; TEXT is the path of an image. With -i, or on stdin, there is one
    path per line. There is one line of output per image, in the same order; empty lines stay empty. An image that
    cannot be read is reported, its output is empty, and the exit code at the end is 4.

    \b
    Examples:
      regard caption runs/shapes-attention photo.png scan.jpg --n-best 3 --scores
      regard caption runs/shapes-attention -i photos.txt -o captions.txt
      regard look runs/shapes-attention photo.png -o where-each-word-looked.svg
    """
    with open_lines("captioning", CHUNK, text, source, target) as job:
        open_run(run)
        from regard.tasks.caption.recipe import CaptionModel

        captioner = load_model_as(run, CaptionModel).captioner(beam, n_best)
        style = HypothesisFormat(n_best, scores, as_json, ("image", "captions"))
        job.run(caption_lines(job, captioner, style))


def caption_lines(job: LineJob, captioner: Captioner, style: HypothesisFormat) -> Answer:
    """Captions chunks of image paths."""

    def answer(lines: list[str], first: int) -> Iterator[tuple[int, list[str]]]:
        for start, part, found in job.predict(captioner.caption, lines, first):
            if isinstance(found, LineError):
                yield 1, [style.failed_line(start, found)]
                continue
            captions, warnings = found
            for image, warning in zip(part, warnings, strict=True):
                if warning:
                    Console.of_verb().print(f" warning: {image}: {warning}")
            rows = enumerate(zip(part, captions, strict=True), start)
            yield len(part), [line for number, (image, best) in rows for line in style.lines(number, image, best)]

    return answer
