"""regard generate."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from regard.cli.lines import Heeding
from regard.cli.loading import load_for
from regard.cli.options import json_option, polite, print_json
from regard.errors import ConfigError, Interrupted, OutputError

if TYPE_CHECKING:
    from regard.tasks.generate.predict import Writer

BETWEEN = "-----"
"""the line between samples that have lines themselves"""


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("prompt", required=False)
@click.option("-i", "--input", "source", type=click.Path(path_type=Path), help="A file whose text is the prompt.")
@click.option("-n", "--samples", type=click.IntRange(1), default=1, help="Texts to write, each another.")
@click.option("--length", type=click.IntRange(1), help="Tokens to write, at most.  [default: the recipe's]")
@click.option("--temperature", type=float, help="Below 1 the likely becomes likelier; 0 takes the likeliest.")
@click.option("--top-k", type=int, help="Draw from this many likeliest tokens; 0 is all.")
@click.option("--top-p", type=float, help="Draw from the fewest tokens that have this share together.")
@click.option("--seed", type=int, help="The same seed writes the same text.  [default: the recipe's]")
@json_option
@polite()
def generate(
    run: Path,
    prompt: str | None,
    source: Path | None,
    samples: int,
    length: int | None,
    temperature: float | None,
    top_k: int | None,
    top_p: float | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Write what follows a prompt, as it is thought of.

    RUN is a run directory or one of its checkpoints. Without PROMPT and -i the prompt is read from stdin; a model that
    was trained on lines (data.unit = "line") may begin with nothing, and so may one of numbers, whose prompt is numbers
    too, one place a line; --top-k and --top-p choose among tokens and are not for numbers. Of a prompt of more than
    4,096 tokens the last are read.

    Such a model is trained by a recipe of the task generate; one without a [data] section learns from Shakespeare's
    plays, which are fetched once.

    \b
    Examples:
      regard generate runs/shakespeare "ROMEO:" --length 500
      regard generate runs/names "" -n 10 --temperature 0.7 --seed 3
    """
    from regard.tasks.generate.recipe import GenerationModel

    given = asked(prompt, source)
    model = load_for(run, GenerationModel)
    writer = model.writer(temperature, top_k, top_p, seed)
    length = length or model.recipe.task.length
    try:
        if as_json:
            rows = [asdict(found) for found in writer.generate(given, length, samples)]  # type: ignore[call-overload]
            print_json({"run": str(run), "prompt": given, "samples": rows})
        elif samples > 1:
            write(sys.stdout, together(writer, given, length, samples))
        else:
            write(sys.stdout, spoken(writer, given, length))
    except KeyboardInterrupt:
        raise Interrupted("interrupted; what was written is whole characters") from None


def asked(prompt: str | None, source: Path | None) -> str:
    """The prompt: an argument, a file's text, or what comes in; a line end at its very end is no part of it.

    >>> asked("the", None)
    'the'
    """
    from regard.data.lines import lines_of, read_lines

    if prompt is not None and source is not None:
        raise ConfigError("give either a prompt or -i, not both")
    if prompt is not None:
        return prompt
    if source is not None:
        return "\n".join(read_lines(source))
    if sys.stdin.isatty():
        return ""
    block = sys.stdin.buffer.read().removeprefix(b"\xef\xbb\xbf")
    return "\n".join(lines_of(block.removesuffix(b"\n"), "stdin"))


def spoken(writer: Writer, prompt: str, length: int) -> Iterator[str]:
    """The prompt and what follows it, piece by piece."""
    following = writer.stream(prompt, length)
    last = next(following, "")  # a bad prompt is told before anything is written
    yield writer.shown(prompt) + last
    for last in following:
        yield last
    if not last.endswith("\n"):
        yield "\n"


def together(writer: Writer, prompt: str, length: int, samples: int) -> Iterator[str]:
    """Many samples, each with its prompt: one a line where texts are lines, else with a line between them."""
    for number, found in enumerate(writer.generate(prompt, length, samples)):
        if number and not writer.lines:
            yield f"{BETWEEN}\n"
        text = writer.shown(prompt) + found.text
        yield text if text.endswith("\n") else text + "\n"


def write(out: TextIO, texts: Iterator[str]) -> None:
    """Write pieces as they come; control characters would steer a terminal, so they become spaces.

    >>> write(sys.stdout, iter(["a\\x1b[2Jb\\n"]))
    a [2Jb
    """
    from regard.tasks.translate.predict import printable

    try:
        with Heeding("characters") as heeding:
            for text in texts:
                out.write("\n".join(printable(line) for line in text.split("\n")))
                out.flush()
                heeding.heed()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write: {error.strerror or error}") from None
