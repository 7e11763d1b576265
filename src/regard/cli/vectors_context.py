"""regard vectors context: a word in two sentences, compared layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.loading import load_model
from regard.cli.options import PATH, json_option, print_json

if TYPE_CHECKING:
    from regard.tasks.contextual import WordComparison

BAR = 20
"""characters of a cosine of 1"""


@click.command()
@click.argument("run", type=PATH)
@click.argument("first")
@click.argument("second", required=False)
@click.option("--word", required=True, help="The word to compare; it must be in both sentences.")
@json_option
def context(run: Path, first: str, second: str | None, word: str, as_json: bool) -> None:
    """Compare a word in two sentences: the cosine of its vectors in each layer of a model.

    The embedding of a word is the same in every sentence (cosine 1); the layers above it depend on the other words, so
    that two senses of a word move apart. RUN is a language model such as ELMo, or any run that reads texts. With one
    sentence, the first two occurrences of the word in it are compared. A word of several tokens has the mean of their
    vectors; upper and lower case are alike in --word.

    \b
    Examples:
      regard vectors context runs/elmo "He sat on the bank of the river." "The bank lent us money." --word bank
      regard vectors context runs/elmo "The bank near the river bank is closed." --word bank --json
    """
    from regard.config import plain
    from regard.tasks.contextual import compare_word

    found = compare_word(load_model(run), word, first, second)
    if as_json:
        print_json(plain(found))
        return
    click.echo("\n".join(comparison_lines(found)))


def comparison_lines(found: WordComparison) -> list[str]:
    """A line per layer: its name, the cosine, and a bar."""
    rows = [*found.cosines.items(), *([] if found.mean is None else [("mean of layers", found.mean)])]
    width = max(len(name) for name, _ in rows)
    return [f"{name:<{width}}  {value:7.4f}  {'█' * round(BAR * max(0.0, value))}".rstrip() for name, value in rows]
