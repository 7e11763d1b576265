"""regard fill."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.console import Console
from regard.cli.line_io import LineJob, json_line, line_arguments, open_lines
from regard.cli.loading import load_model_as, open_run
from regard.cli.options import json_option
from regard.errors import LineError
from regard.plurals import count_noun

if TYPE_CHECKING:
    from regard.tasks.fill.predict import FilledText, MaskFiller

CHUNK = 256
"""Lines filled together: larger chunks pad less, but the first answer comes later."""


@click.command(short_help="Fill the masks of texts, a file, or stdin to stdout.")
@line_arguments
@click.option("-k", "--top", type=click.IntRange(1), default=5, show_default=True, help="Number of words per mask.")
@json_option
def fill(run: Path, text: tuple[str, ...], source: Path | None, target: Path | None, top: int, as_json: bool) -> None:
    """Fill the masks of texts, a file, or stdin to stdout: the most probable words for each [MASK].

    RUN is a run directory or one of its checkpoints. There is one line of output per line of input, in the same order:
    the text with the best word at each mask, then for each mask a tab and its candidates with their probabilities. A
    mask stands for one token; "##" marks one that continues the word before it. [SEP] stands between the two texts of a
    pair. All masks of a text are filled at once, each by itself, as in training.

    An empty line stays empty. A line without a [MASK], or one that is too long, is reported, its output is empty, and
    the exit code at the end is 4.

    \b
    Examples:
      regard fill runs/imdb "this film is a [MASK] of time"
      regard fill runs/imdb "Let's make [MASK] chicken! [SEP] It [MASK] great with orange sauce" -k 10
    """
    with open_lines("filling", CHUNK, text, source, target) as job:
        open_run(run)
        from regard.tasks.fill.model import FillModel

        filler = LineFiller(load_model_as(run, FillModel).filler(), top, as_json, job)
        job.run(filler)
    report_unknown(filler.unknown)


def report_unknown(count: int) -> None:
    """Report on stderr how many tokens of the input the model does not know."""
    if count:
        tokens = f"{count_noun(count, 'token')} of the input {'is' if count == 1 else 'are'}"
        Console.of_verb().print(f" {tokens} not in the model's vocabulary, and read as unknown")


@dataclass
class LineFiller:
    """Fills chunks of lines."""

    filler: MaskFiller
    top: int
    as_json: bool
    job: LineJob
    unknown: int = 0
    """tokens that the model does not know"""

    def __call__(self, lines: list[str], first: int) -> Iterator[tuple[int, list[str]]]:
        for start, part, found in self.job.predict(partial(self.filler.fill, k=self.top), lines, first):
            if isinstance(found, LineError):
                yield 1, [json_line({"line": start, "error": str(found)}) if self.as_json else ""]
                continue
            rows = enumerate(zip(part, found, strict=True), start)
            self.unknown += sum(filled.unknown for filled in found)
            yield len(part), [self.format(number, text, filled) for number, (text, filled) in rows]

    def format(self, number: int, text: str, filled: FilledText) -> str:
        """The output line of one text."""
        if self.as_json:
            unknown = {"unknown": filled.unknown}
            masks = [[asdict(candidate) for candidate in row] for row in filled.masks]
            return json_line({"line": number, "text": text, "filled": filled.text, "masks": masks} | unknown)
        columns = (", ".join(f"{one.token} {one.probability:.4f}" for one in row) for row in filled.masks)
        return "\t".join([filled.text, *columns])
