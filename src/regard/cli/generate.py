"""regard generate."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from regard.cli.line_io import InterruptScope
from regard.cli.loading import load_model_as, open_run
from regard.cli.options import PATH, json_option, print_json
from regard.errors import ConfigError, Interrupted, OutputError

if TYPE_CHECKING:
    from regard.tasks.generate.predict import Generator

SEPARATOR = "-----"
"""the line between samples that have several lines"""


@click.command(short_help="Generate text with a language model.")
@click.argument("run", type=PATH)
@click.argument("prompt", required=False)
@click.option("-i", "--input", "source", type=PATH, help="File with the prompt.")
@click.option("-n", "--samples", type=click.IntRange(1), default=1, help="Number of samples.")
@click.option("--length", type=click.IntRange(1), help="Maximum number of tokens.  [default: the recipe's]")
@click.option("--temperature", type=float, help="Sampling temperature; 0 always takes the most probable token.")
@click.option("--top-k", type=int, help="Sample from the k most probable tokens; 0 means all.")
@click.option("--top-p", type=float, help="Sample from the smallest set of tokens with this probability (nucleus).")
@click.option("--seed", type=int, help="Random seed: the same seed gives the same text.  [default: the recipe's]")
@json_option
def generate(
    run: Path, prompt: str | None, source: Path | None, samples: int, length: int | None, as_json: bool, **sampling: Any
) -> None:
    """Generate a continuation of a prompt with a language model, printed token by token.

    RUN is a run directory or one of its checkpoints. Without PROMPT and -i the prompt is read from stdin. A model of
    lines (data.unit = "line") and a model of numbers accept an empty prompt; a prompt of numbers has one position per
    line, and --top-k and --top-p do not apply to numbers. Only the last 4,096 tokens of a prompt are read.

    Train a model with a recipe of the task generate; without a [data] section it learns from Shakespeare's plays,
    which are downloaded once.

    \b
    Examples:
      regard generate runs/shakespeare "ROMEO:" --length 500
      regard generate runs/names "" -n 10 --temperature 0.7 --seed 3
    """
    open_run(run)
    from regard.tasks.generate.recipe import GenerationModel

    prompt = read_prompt(prompt, source)
    model = load_model_as(run, GenerationModel)
    generator = model.generator(**sampling)
    length = length or model.recipe.task.length
    try:
        if as_json:
            rows = [asdict(found) for found in generator.generate(prompt, length, samples)]  # type: ignore[call-overload]
            print_json({"run": str(run), "prompt": prompt, "samples": rows})
        elif samples > 1:
            write(sys.stdout, sample_texts(generator, prompt, length, samples))
        else:
            write(sys.stdout, stream_text(generator, prompt, length))
    except KeyboardInterrupt:
        raise Interrupted("interrupted; only whole characters were written") from None


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


def sample_texts(generator: Generator, prompt: str, length: int, samples: int) -> Iterator[str]:
    """Several samples with their prompts: one per line for a model of lines, else with a separator between them."""
    for number, found in enumerate(generator.generate(prompt, length, samples)):
        if number and not generator.samples_are_lines:
            yield f"{SEPARATOR}\n"
        text = generator.display_prompt(prompt) + found.text
        yield text if text.endswith("\n") else text + "\n"


def write(out: TextIO, texts: Iterator[str]) -> None:
    """Write pieces as they come; control characters become spaces, since they would control a terminal.

    >>> write(sys.stdout, iter(["a\\x1b[2Jb\\n"]))
    a [2Jb
    """
    from regard.data.lines import printable

    try:
        with InterruptScope("characters") as scope:
            for text in texts:
                out.write("\n".join(printable(line) for line in text.split("\n")))
                out.flush()
                scope.check()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write: {error.strerror or error}") from None
