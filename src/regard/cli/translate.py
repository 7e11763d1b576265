"""regard translate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.line_io import Answer, LineJob, json_line, line_arguments, open_lines
from regard.cli.loading import load_model_as, open_run
from regard.cli.options import engine_options, json_option
from regard.errors import ConfigError, LineError

if TYPE_CHECKING:
    from regard.tasks.decoded_text import DecodedText
    from regard.tasks.translate.predict import Translation, Translator

CHUNK = 256
"""Lines translated together: larger chunks pad less, but the first translation comes later."""


@dataclass(frozen=True)
class HypothesisFormat:
    """Output format of translations and captions."""

    n_best: int
    scores: bool
    as_json: bool
    names: tuple[str, str] = ("source", "translations")
    """keys of the input and of its outputs in JSON"""

    def lines(self, number: int, source: str, found: Sequence[DecodedText]) -> list[str]:
        """The output for one source: one line, or with --n-best several, each starting with the source's number."""
        if self.as_json:
            return [json_line({"line": number, self.names[0]: source, self.names[1]: [asdict(t) for t in found]})]
        front = f"{number}\t" if self.n_best > 1 else ""
        scores = [f"{t.value:.4f}\t{t.score:.4f}\t" if self.scores else "" for t in found]
        return [front + score + t.text for score, t in zip(scores, found, strict=True)]

    def failed_line(self, number: int, error: LineError) -> str:
        """The output for a source without a translation, so that the following lines stay in their place."""
        if self.as_json:
            return json_line({"line": number, "error": str(error)})
        return f"{number}\t" if self.n_best > 1 else ""


@click.command()
@line_arguments
@click.option("--beam", type=int, help="Beam size; 1 is greedy search.  [default: the recipe's]")
@click.option(
    "--n-best", type=int, default=1, help="Different translations per text, at most; lines start with its number."
)
@click.option("--scores", is_flag=True, help="Print the score that ranks and the log-probability first.")
@click.option("--tag", help='Tag before every text, such as "<2de>", for a model of mixed data.')
@click.option("--prefix", default="", help="Every translation starts with this text.")
@click.option("--require", multiple=True, metavar="WORDS", help="Every translation contains this; may be repeated.")
@engine_options
@json_option
def translate(
    run: Path,
    text: tuple[str, ...],
    source: Path | None,
    target: Path | None,
    beam: int | None,
    n_best: int,
    scores: bool,
    tag: str | None,
    prefix: str,
    require: tuple[str, ...],
    engine: str,
    precision: str,
    as_json: bool,
) -> None:
    """Translate texts, a file, or stdin to stdout.

    RUN is a run directory or one of its checkpoints. There is one line of output per line of input, in the same order;
    empty lines stay empty. A line that is too long for the model is reported, its output is empty, and the exit code
    at the end is 4. A model that was trained with tags needs one before each text, typed there or given by --tag.

    --engine ctranslate2 searches by the package ctranslate2, for a transformer: the same translations, faster. The
    converted model is made once and kept in the run. What that engine does not have is refused: --prefix, --require,
    and of the recipe's [decode] sampling, coverage and repetition penalties, no_repeat_ngram, min_length and exact.

    \b
    Examples:
      regard translate runs/demo "je suis étudiant"
      regard translate runs/demo -i book.fr -o book.en --beam 4
      regard translate runs/demo -i book.fr -o book.en --engine ctranslate2 --precision int8
    """
    if not all(words.strip() for words in require):
        raise ConfigError('--require "": expected words that every translation must contain')
    with open_lines("translating", CHUNK, text, source, target) as job:
        open_run(run)
        from regard.tasks.translate.recipe import TranslationModel

        translator = load_model_as(run, TranslationModel, engine, precision).translator(beam, n_best, tag)
        translator.check_engine(prefix, bool(require))
        translator.check_required(require)
        job.run(translate_lines(job, translator, (prefix, require), HypothesisFormat(n_best, scores, as_json)))


def translate_lines(
    job: LineJob, translator: Translator, conditions: tuple[str, Sequence[str]], style: HypothesisFormat
) -> Answer:
    """Translates chunks of lines; `conditions`: the prefix of each translation, and what it must contain."""
    prefix, require = conditions

    def predict(lines: list[str], first_line: int) -> list[list[Translation]]:
        constraints = [list(require)] * len(lines) if require else None
        return translator.translate(lines, prefix, constraints, first_line)

    def answer(lines: list[str], first: int) -> Iterator[tuple[int, list[str]]]:
        for start, part, found in job.predict(predict, lines, first):
            if isinstance(found, LineError):
                yield 1, [style.failed_line(start, found)]
                continue
            rows = enumerate(zip(part, found, strict=True), start)
            yield len(part), [line for number, (text, best) in rows for line in style.lines(number, text, best)]

    return answer
