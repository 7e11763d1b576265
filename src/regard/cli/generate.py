"""regard generate."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from regard.cli.line_io import InterruptScope, json_line, open_lines
from regard.cli.loading import load_model_as, open_run
from regard.cli.options import PATH, engine_options, json_option, print_json
from regard.config import override
from regard.errors import ConfigError, Interrupted, LineError, OutputError

if TYPE_CHECKING:
    from regard.tasks.generate.predict import Generator, Sample

SEPARATOR = "-----"
"""the line between samples that have several lines"""


CHUNK = 64
"""Prompts of --lines that are continued together."""
SETTING = re.compile(r"decode\.\w+=")
"""Beginning of an argument that is a setting, not a prompt."""


@click.command(short_help="Generate text with a language model.")
@click.argument("run", type=PATH)
@click.argument("arguments", nargs=-1, metavar="[PROMPT] [decode.KEY=VALUE]...")
@click.option("-i", "--input", "source", type=PATH, help="File with the prompt.")
@click.option("--lines", is_flag=True, help="The input is one prompt per line; all are continued, in a batch.")
@click.option("-n", "--samples", type=click.IntRange(1), default=1, help="Number of samples.")
@click.option("--length", type=click.IntRange(1), help="Maximum number of tokens.  [default: the recipe's]")
@click.option("--temperature", type=float, help="Sampling temperature; 0 always takes the most probable token.")
@click.option("--top-k", type=int, help="Sample from the k most probable tokens; 0 means all.")
@click.option("--top-p", type=float, help="Sample from the smallest set of tokens with this probability (nucleus).")
@click.option("--min-p", type=float, help="Sample from tokens with this fraction of the highest probability.")
@click.option("--repetition-penalty", type=float, help="Make tokens that occurred less probable; 1 is no penalty.")
@click.option("--stop", multiple=True, metavar="STRING", help="End the text before this string; may be repeated.")
@click.option("--condition", metavar="VALUE", help="Of a conditional model: the class, or numbers with commas.")
@click.option("--chat", is_flag=True, help="The prompt is a message to answer: for models trained on conversations.")
@click.option("--sliding-window", is_flag=True, help="Read the end of a prompt that is longer than the context.")
@engine_options
@click.option("--seed", type=int, help="Random seed: the same seed gives the same text.  [default: the recipe's]")
@json_option
def generate(
    run: Path,
    arguments: tuple[str, ...],
    source: Path | None,
    lines: bool,
    samples: int,
    length: int | None,
    as_json: bool,
    engine: str,
    precision: str,
    **options: Any,
) -> None:
    """Generate a continuation of a prompt with a language model, printed token by token.

    RUN is a run directory or one of its checkpoints. Without PROMPT and -i the prompt is read from stdin. A model of
    lines or documents and a model of numbers accept an empty prompt; a prompt of numbers has one position per line. A
    prompt that is longer than the context is refused unless --sliding-window is given.

    Further settings of the recipe's [decode] section are given as decode.KEY=VALUE: decode.beam=4 searches for the
    most probable text instead of sampling, decode.no_repeat_ngram=3 never repeats three tokens.

    A model that was trained with conditions needs --condition: the name of a class, or numbers such as 2,4,3. Its
    prompt may be empty.

    --engine ctranslate2 continues texts by the package ctranslate2, for gpt and llama: the same text, faster, printed
    when it has ended. It takes the most probable token: --temperature 0. The converted model is made once and kept in
    the run.

    Train a model with a recipe of the task generate; without a [data] section it learns from Shakespeare's plays,
    which are downloaded once.

    \b
    Examples:
      regard generate runs/shakespeare "ROMEO:" --length 500 --stop "JULIET:"
      regard generate runs/names -i starts.txt --lines --json
      regard generate runs/sentence-kinds "" --condition question -n 5
    """
    prompt, settings = split_arguments(arguments)
    request = Request(samples, length, as_json, settings | options, (engine, precision))
    if lines:
        generate_lines(run, prompt, source, request)
        return
    open_run(run)
    continue_prompt(run, read_prompt(prompt, source), request)


def continue_prompt(run: Path, prompt: str, request: Request) -> None:
    """Print one continuation token by token, or several."""
    generator, length = request.generator(run)
    try:
        if request.as_json:
            rows = [asdict(found) for found in generator.generate(prompt, length, request.samples)]  # type: ignore[call-overload]
            print_json({"run": str(run), "prompt": prompt, "samples": rows})
        elif request.samples > 1:
            write(sys.stdout, sample_texts(generator, prompt, generator.generate(prompt, length, request.samples)))
        else:
            write(sys.stdout, stream_text(generator, prompt, length))
    except KeyboardInterrupt:
        raise Interrupted("interrupted; only whole characters were written") from None


@dataclass(frozen=True)
class Request:
    """What a command line asks for."""

    samples: int
    length: int | None
    as_json: bool
    settings: dict[str, Any]
    engine: tuple[str, str]
    """the library that searches, and its precision"""

    def generator(self, run: Path) -> tuple[Generator, int]:
        """The generator of a run with these settings, and the length of its texts."""
        from regard.tasks.generate.recipe import GenerationModel

        model = load_model_as(run, GenerationModel, *self.engine)
        return model.generator(**self.settings), self.length or model.recipe.task.length


def split_arguments(arguments: tuple[str, ...]) -> tuple[str | None, dict[str, Any]]:
    """The prompt, if there is one, and the settings of [decode].

    >>> split_arguments(("Once", "decode.beam=4"))
    ('Once', {'beam': 4})
    """
    prompts = [argument for argument in arguments if not SETTING.match(argument)]
    if len(prompts) > 1:
        raise ConfigError(f'expected one prompt, got {len(prompts)}; put it in quotes: "{" ".join(prompts)}"')
    table = override({}, [argument for argument in arguments if SETTING.match(argument)])
    return (prompts[0] if prompts else None), dict(table.get("decode", {}))


def generate_lines(run: Path, prompt: str | None, source: Path | None, request: Request) -> None:
    """Continue each line of a file or of stdin, in order; a line that cannot be continued is reported."""
    if prompt is not None:
        raise ConfigError("--lines reads prompts from -i or stdin; leave the prompt out")
    with open_lines("generating", CHUNK, (), source, None) as job:
        open_run(run)
        generator, length = request.generator(run)
        if not generator.continues_lines:
            raise ConfigError("--lines: a prompt of numbers has one position per line, so it is no line; leave it out")
        first = True

        def predict(lines: list[str], first_line: int) -> Sequence[Sequence[Sample]]:
            return generator.generate_batch(lines, length, request.samples, first_line - 1)

        def answer(lines: list[str], first_line: int) -> Iterator[tuple[int, list[str]]]:
            nonlocal first
            for start, part, found in job.predict(predict, lines, first_line):
                samples = [[]] if isinstance(found, LineError) else found
                for number, (text, several) in enumerate(zip(part, samples, strict=True), start):
                    if request.as_json:
                        rows = {"samples": [asdict(one) for one in several]}  # type: ignore[call-overload]
                        row = {"error": str(found)} if isinstance(found, LineError) else rows
                        yield 1, [json_line({"line": number, "prompt": text, **row})]
                        continue
                    texts = "".join(sample_texts(generator, text, several)) or "\n"
                    separator = "" if first or generator.samples_are_lines else f"{SEPARATOR}\n"
                    first = False
                    yield 1, [printable_lines(separator + texts).removesuffix("\n")]

        job.run(answer)


def read_prompt(prompt: str | None, source: Path | None) -> str:
    """The prompt: the argument, the text of a file, or stdin without its last line end."""
    from regard.data.lines import decode_lines, read_lines

    if prompt is not None and source is not None:
        raise ConfigError("give either a prompt or -i, not both")
    if prompt is not None:
        return prompt
    if source is not None:
        return "\n".join(read_lines(source))
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    block = sys.stdin.buffer.read().removeprefix(b"\xef\xbb\xbf")
    return "\n".join(decode_lines(block.removesuffix(b"\n"), "stdin"))


def stream_text(generator: Generator, prompt: str, length: int) -> Iterator[str]:
    """The prompt and its continuation, piece by piece."""
    following = generator.stream(prompt, length)
    last = next(following, "")  # raises for a bad prompt before anything is written
    yield generator.display_prompt(prompt) + last
    for last in following:
        yield last
    if not last.endswith("\n"):
        yield "\n"


def sample_texts(generator: Generator, prompt: str, samples: Sequence[Sample]) -> Iterator[str]:
    """Several samples with their prompts: one per line for a model of lines, else with a separator between them."""
    for number, found in enumerate(samples):
        if number and not generator.samples_are_lines:
            yield f"{SEPARATOR}\n"
        text = generator.display_prompt(prompt) + found.text
        yield text if text.endswith("\n") else text + "\n"


def printable_lines(text: str) -> str:
    """A text whose control characters, line ends aside, are spaces: they would control a terminal."""
    from regard.data.lines import printable

    return "\n".join(printable(line) for line in text.split("\n"))


def write(out: TextIO, texts: Iterator[str]) -> None:
    """Write pieces as they come; control characters become spaces, since they would control a terminal.

    >>> write(sys.stdout, iter(["a\\x1b[2Jb\\n"]))
    a [2Jb
    """
    try:
        with InterruptScope("characters") as scope:
            for text in texts:
                out.write(printable_lines(text))
                out.flush()
                scope.check()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write: {error.strerror or error}") from None
