"""regard label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.line_io import Answer, LineJob, json_line, line_arguments, open_lines
from regard.cli.loading import load_model_as, open_run
from regard.cli.options import json_option
from regard.errors import ConfigError, DataError, LineError

if TYPE_CHECKING:
    from regard.tasks.label.predict import LabeledText, LabelPredictor
    from regard.tasks.label.recipe import LabelModel

CHUNK = 512
"""Lines labeled together: larger chunks pad less, but the first answer comes later."""


@click.command()
@line_arguments
@click.option("--conll", is_flag=True, help="Read and write one word per line: the tag is added as the last column.")
@json_option
def label(
    run: Path, text: tuple[str, ...], source: Path | None, target: Path | None, conll: bool, as_json: bool
) -> None:
    """Label each word of texts, of a file, or of stdin to stdout.

    RUN is a run directory or one of its checkpoints. There is one line of output per line of input, in the same order:
    word/TAG word/TAG; a model that restores case, accents and punctuation writes the text itself. --json gives the
    start and end (in characters) and the probability of each word, and the same of the spans (names, phrases), whose
    probability is that of their least certain word. Empty lines stay empty. A line that cannot be read is reported,
    its output is empty, and the exit code at the end is 4.

    \b
    Examples:
      regard label runs/ewt-upos "Ada lives in London."
      regard label runs/restore-french -i notes.txt -o restored.txt
    """
    if conll and as_json:
        raise ConfigError("give either --conll or --json, not both")
    with open_lines("labeling", CHUNK, text, source, target) as job:
        open_run(run)
        from regard.tasks.label.recipe import LabelModel

        model = load_model_as(run, LabelModel)
        if conll:
            job.run(label_conll(model.predictor(), *_conll_format(model)), sentence_chunks(job.chunks))
        else:
            job.run(label_texts(job, model.predictor(), as_json))


def label_texts(job: LineJob, predictor: LabelPredictor, as_json: bool) -> Answer:
    """Labels plain text: one output line per line."""
    from regard.data.lines import printable

    def output(number: int, found: LabeledText) -> str:
        return json_line({"line": number, **asdict(found)}) if as_json else printable(found.output)

    def answer(lines: list[str], first: int) -> Iterator[tuple[int, list[str]]]:
        for start, part, found in job.predict(predictor.label, lines, first):
            if isinstance(found, LineError):
                yield 1, [json_line({"line": start, "error": str(found)}) if as_json else ""]
                continue
            yield len(part), [output(number, one) for number, one in enumerate(found, start)]

    return answer


def sentence_chunks(chunks: Iterator[list[str]]) -> Iterator[list[str]]:
    """The same lines, in chunks that end at the end of a sentence.

    >>> list(sentence_chunks(iter([["a", "b"], ["", "c"]])))
    [['a', 'b', ''], ['c']]
    """
    waiting: list[str] = []
    for lines in chunks:
        waiting += lines
        end = max((i + 1 for i, line in enumerate(waiting) if not line.strip()), default=0)
        if end:
            yield waiting[:end]
            waiting = waiting[end:]
    if waiting:
        yield waiting


def _conll_format(model: LabelModel) -> tuple[int, str]:
    """The column of the words and the separator between columns."""
    from regard.tasks.label.sources import ConllFiles

    data = model.recipe.data
    return (data.word - 1, data.separator) if isinstance(data, ConllFiles) else (0, "")


def label_conll(predictor: LabelPredictor, column: int, separator: str) -> Answer:
    """Labels CoNLL columns: each line is written with its tag as the last column; empty lines stay.

    `column` holds the words; an empty separator means a tab, or spaces.
    """
    from regard.data.lines import printable

    def answer(lines: list[str], first: int) -> Iterator[tuple[int, list[str]]]:
        words, error = read_words(lines, first, column, separator)
        sentences = [list(group) for is_word, group in groupby(words, bool) if is_word]
        tags = (token.label for row in predictor.predict_tokens(sentences) for token in row)
        out = [add_column(line, next(tags), separator) if line.strip() else "" for line in lines[: len(words)]]
        if words:
            yield len(words), ["\t".join(map(printable, line.split("\t"))) for line in out]
        if error is not None:
            raise error

    return answer


def read_words(lines: Sequence[str], first: int, column: int, separator: str) -> tuple[list[str], DataError | None]:
    """The word of each line, and the error of the first line without one; its sentence is left out."""
    found: list[str] = []
    for number, line in enumerate(lines, first):
        if not line.strip():
            found.append("")
            continue
        row = line.split(separator or ("\t" if "\t" in line else None))
        if len(row) <= column or not row[column].strip():
            end = len(found) - found[::-1].index("") if "" in found else 0
            why = f"expected {column + 1} columns or more, found {len(row)}"
            return found[:end], DataError(f"line {number}: {why}")
        found.append(row[column])
    return found, None


def add_column(line: str, tag: str, separator: str) -> str:
    """A line with one more column."""
    between = separator or ("\t" if "\t" in line else " ")
    return f"{line}{between}{tag}"
