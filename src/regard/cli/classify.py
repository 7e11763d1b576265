"""regard classify."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
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
    from regard.tasks.classify.predict import ClassifierPredictor, Prediction

CHUNK = 2048
"""Lines classified together: larger chunks pad less, but the first answer comes later."""
HEADER = "label\tprobability"
"""The output line for a header line with column names."""


@click.command(short_help="Classify texts, a file, or stdin to stdout.")
@line_arguments
@click.option("--top", type=click.IntRange(1), default=1, show_default=True, help="Number of labels per text.")
@json_option
def classify(
    run: Path, text: tuple[str, ...], source: Path | None, target: Path | None, top: int, as_json: bool
) -> None:
    """Classify texts, a file, or stdin to stdout: the most probable label of each text.

    RUN is a run directory or one of its checkpoints. There is one line of output per line of input, in the same order:
    the label, a tab, its probability; with --top the next labels follow. An empty line stays empty. A line that cannot
    be read is reported, its output is empty, and the exit code at the end is 4.

    A model of images reads the path of an image file per line (PNG, JPEG, WebP; any size).

    A model of tables reads one row of numbers per line, in the order of its columns or below a header line. A model of
    pairs reads two texts per line, with a tab or [SEP] between them.

    \b
    Examples:
      regard classify runs/movie-reviews "this movie is so great"
      regard classify runs/mnist photo.png scan.jpg
    """
    with open_lines("classifying", CHUNK, text, source, target) as job:
        open_run(run)
        from regard.tasks.classify.recipe import ClassificationModel

        classifier = LineClassifier(load_model_as(run, ClassificationModel).predictor(), top, as_json, job)
        job.run(classifier)
        classifier.report_truncated()


@dataclass
class LineClassifier:
    """Classifies chunks of lines; a header line of a table sets the order of the columns."""

    predictor: ClassifierPredictor
    top: int
    as_json: bool
    job: LineJob
    truncated: int = 0
    """texts that were longer than the model reads"""

    def __call__(self, lines: list[str], first: int) -> Iterator[tuple[int, list[str]]]:
        if first == 1 and (encoder := self.predictor.input_encoder.with_header(lines[0])) is not None:
            self.predictor = replace(self.predictor, input_encoder=encoder)
            yield 1, [] if self.as_json else [HEADER]
            lines, first = lines[1:], 2
        for start, part, found in self.job.predict(self.predictor.predict, lines, first):
            if isinstance(found, LineError):
                yield 1, [json_line({"line": start, "error": str(found)}) if self.as_json else ""]
                continue
            labels = [probs.top(self.top, self.predictor.labels) for probs in found]
            rows = enumerate(zip(part, labels, found, strict=True), start)
            self.truncated += sum(probs.truncated > 0 for probs in found)
            for text, probs in zip(part, found, strict=True):
                if probs.warning:
                    Console.of_verb().print(f" warning: {text}: {probs.warning}")
            yield len(part), [self.format(n, text, best, probs.truncated) for n, (text, best, probs) in rows]

    def format(self, number: int, text: str, predictions: Sequence[Prediction], left_out: int) -> str:
        """The output line of one text: labels with their probabilities, separated by tabs."""
        if not self.as_json:
            return "\t".join(f"{found.label}\t{found.probability:.4f}" for found in predictions)
        labels = [asdict(found) for found in predictions]
        return json_line({"line": number, "text": text, "labels": labels, "left_out": left_out})

    def report_truncated(self) -> None:
        """Report on stderr how many texts were cut."""
        from regard.tasks.classify.inputs import PairInput, TextInput

        encoder = self.predictor.input_encoder
        if self.truncated and isinstance(encoder, TextInput):
            limit, side = encoder.max_tokens, "first" if encoder.keep == "beginning" else "last"
            texts = f"{count_noun(self.truncated, encoder.unit[:-1])} {'was' if self.truncated == 1 else 'were'}"
            what = f"the {side} {limit} of each were read"
            if isinstance(encoder, PairInput):
                what = "the longer text of each was cut first"
            Console.of_verb().print(f" {texts} longer than {limit} tokens; {what}")
