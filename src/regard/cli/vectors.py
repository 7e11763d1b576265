"""regard vectors: words as points, of a run, of any model here, or of a file that others made."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

import click

from regard.cli.console import Console, Stages
from regard.cli.lines import WholeLines, emptied, opened_output
from regard.cli.loading import load
from regard.cli.look import PICTURES, show
from regard.cli.options import Verbs, json_option, polite, print_json
from regard.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from regard.text.word_table import Near, WordTable

    F = TypeVar("F", bound=Callable[..., Any])


LONGEST = 80
"""columns of a word that are shown"""


@click.group(cls=Verbs)
def vectors() -> None:
    """Words as points: neighbours, sums of words, maps.

    SOURCE is a run, or a file of vectors as GloVe and word2vec write them in text (.gz too): a word and its numbers a
    line. Of a run that learnt something else, such as a translator, its words' embeddings are taken; if these are
    pieces of words, a word means the piece that is all of it, shown as ␣word, and ##word the piece inside of others.

    \b
    Learn vectors of your own:
      regard new words --task vectors           a commented recipe
      regard train recipes/vectors/reviews.toml from film reviews, which are fetched once

    \b
    Examples:
      regard vectors neighbours runs/reviews good terrible
      regard vectors analogy glove.6B.50d.txt "king - man + woman"
      regard vectors map runs/reviews good bad great awful actor actress -o map.svg
    """


def sourced(function: F) -> F:
    """Give a command SOURCE, --side and --words: where the vectors are.

    >>> sorted(param.name for param in sourced(click.command()(lambda source, side, words: None)).params)
    ['side', 'source', 'words']
    """
    words = click.option("--words", type=click.IntRange(1), help="Only so many words, from the top of the table.")
    told = "Of a model with two vocabularies: which.  [default: source]"
    side = click.option("--side", type=click.Choice(["source", "target"]), help=told)
    return click.argument("source", type=click.Path(path_type=Path))(side(words(function)))


@vectors.command()
@sourced
@click.argument("word", nargs=-1, required=True)
@click.option("-n", "--count", type=click.IntRange(1), default=10, show_default=True, help="Neighbours of each word.")
@json_option
@polite()
def neighbours(
    source: Path, side: str | None, words: int | None, word: tuple[str, ...], count: int, as_json: bool
) -> None:
    """The words that point most nearly the same way, with the cosine of the angle.

    \b
    Examples:
      regard vectors neighbours glove.6B.50d.txt frog
      regard vectors neighbours runs/demo étudiant --side source -n 5
    """
    table = opened(source, side, words)
    found = {asked: table.neighbours(asked, count) for asked in word}
    if as_json:
        print_json({asked: [near._asdict() for near in some] for asked, some in found.items()})
        return
    for asked, some in found.items():
        listed(asked, some, alone=len(found) == 1)


@vectors.command(context_settings={"ignore_unknown_options": True})
@sourced
@click.argument("sum_of_words", nargs=-1, metavar='"A - B + C"')
@click.option("--questions", type=click.Path(path_type=Path), help="A file of questions: four words a line.")
@click.option("-n", "--count", type=click.IntRange(1), help="Words nearest to the sum.  [default: 5]")
@json_option
@polite()
def analogy(
    source: Path,
    side: str | None,
    words: int | None,
    sum_of_words: tuple[str, ...],
    questions: Path | None,
    count: int | None,
    as_json: bool,
) -> None:
    """The words nearest to a sum of words; or the share of a file's questions that is answered right.

    Vectors are brought to length 1 first, and the words of the sum are no answers to it. A question "boy girl king
    queen" asks for girl - boy + king; a line such as ": family" begins a section.

    \b
    Examples:
      regard vectors analogy glove.6B.50d.txt "king - man + woman"
      regard vectors analogy glove.6B.50d.txt --questions questions-words.txt
    """
    if unknown := next((word for word in sum_of_words if word.startswith("--")), None):
        raise ConfigError(f"there is no option {unknown}; see regard vectors analogy --help")
    if bool(sum_of_words) == (questions is not None):
        raise ConfigError('give either a sum such as "king - man + woman", or --questions')
    if questions is not None and count is not None:
        raise ConfigError("-n: of questions, the one nearest word is the answer; leave it out")
    table = opened(source, side, words)
    if questions is not None:
        _examine(table, questions, as_json)
        return
    asked = " ".join(sum_of_words)
    found = table.calculate(asked, count or 5)
    print_json({asked: [near._asdict() for near in found]}) if as_json else listed(asked, found, alone=True)


@vectors.command("map")
@sourced
@click.argument("word", nargs=-1)
@click.option("--near", type=click.IntRange(1), help="Put so many neighbours of each word on the map too.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file: .svg, .png or .json.")
@json_option
@polite()
def drawn(
    source: Path,
    side: str | None,
    words: int | None,
    word: tuple[str, ...],
    near: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Words on a plane, seen from where they differ most: the two principal components of their vectors.

    Without words, the first forty that the table has.

    \b
    Examples:
      regard vectors map runs/reviews good great bad awful actor actress man woman
      regard vectors map glove.6B.50d.txt france physics swimming --near 8 -o map.svg
    """
    if output is not None and output.suffix not in PICTURES:
        raise ConfigError(f"-o {output}: expected a name that ends in {', '.join(PICTURES)}")
    if near and not word:
        raise ConfigError("--near: name the words whose neighbours are to be drawn")
    table = opened(source, side, words)
    around = [found.word for asked in word for found in table.neighbours(asked, near)] if near else []
    found = table.map([*word, *around])
    from regard.look.wordmap import WordMapView

    show(
        WordMapView(f"{len(found.words)} words of {source.name}", found.words, found.points, found.shares),
        output,
        as_json,
    )


@vectors.command()
@sourced
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file.  [default: stdout]")
@polite()
def write(source: Path, side: str | None, words: int | None, output: Path | None) -> None:
    """Write vectors as word2vec does, for other programs and for vectors.path of a recipe.

    How many words there are and how wide they are, then a word and its numbers a line. A blank inside of a word, or in
    front of a piece that begins one, is written as ␣.

    \b
    Examples:
      regard vectors write runs/reviews -o reviews.vec
      regard vectors write runs/demo --side target > english.vec
    """
    if output is not None and output.suffix == ".gz":
        raise ConfigError(f"-o {output}: what is written is plain text; leave .gz off, and pack it afterwards")
    table = opened(source, side, words)
    if output is None:
        _pour(table, sys.stdout, "stdout")
        return
    with opened_output(output, source) as file:
        _pour(table, emptied(file), str(output))
    click.echo(str(output))


def _pour(table: WordTable, file: TextIO, name: str) -> None:
    try:
        with WholeLines(file, name) as out, Stages(Console.of_verb()) as stages:
            lines, written = table.lines(), 0
            while some := list(islice(lines, 1000)):
                out.write(some)
                written += len(some)
                stages("writing", written, len(table) + 1)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"{name}: cannot be written ({error.strerror})") from None


def opened(source: Path, side: str | None, words: int | None) -> WordTable:
    """The table of a run, or of a file of vectors."""
    from regard.text.word_table import WordTable, read_table

    if not source.is_dir():
        from regard.data.lines import read_lines

        if side is not None:
            raise ConfigError(f"--side: {source} is a file, and has one table")
        total = 0 if source.suffix == ".gz" or not source.is_file() else source.stat().st_size
        with Stages(Console.of_verb()) as stages:
            return read_table(_counted(read_lines(source), total, stages), source, words)
    from regard.tasks.vectors.embeddings import embeddings

    table = embeddings(load(source), side)
    return table if words is None else WordTable(table.words[:words], table.numbers[:words])


def _counted(lines: Iterator[str], total: int, stages: Stages) -> Iterator[str]:
    """The lines, and how many characters of a file of `total` bytes were read; 0: nobody knows how long it is."""
    done = 0
    for number, line in enumerate(lines):
        done += len(line) + 1
        if number % 1000 == 0:
            stages("reading", min(done, total) if total else number, total)
        yield line


def listed(asked: str, found: Sequence[Near], alone: bool) -> None:
    """Neighbours for people: one a line, or of each of several words in one line."""
    from regard.look.tokens import cut, visible

    names = [cut(visible(near.word), LONGEST) for near in found]
    if not alone:
        click.echo(f"{cut(visible(asked), LONGEST)}: {', '.join(names)}")
        return
    for near, name in zip(found, names, strict=True):
        click.echo(f"{near.cosine:7.4f}  {name}")


def _examine(table: WordTable, questions: Path, as_json: bool) -> None:
    from regard.data.lines import read_lines
    from regard.metrics.analogies import ask, read_questions

    asked = read_questions(read_lines(questions), questions)
    with Stages(Console.of_verb()) as stages:
        found = ask(asked, table.find, lambda q: table.answers(q, lambda done: stages("answering", done, len(q))))
    score = found.score()
    if as_json:
        sections = {name: {"right": right, "asked": count} for name, (right, count) in found.sections().items()}
        plain = {"value": score.value, "low": score.low, "high": score.high, "n": score.n, "signature": score.signature}
        print_json({"analogies": plain, "sections": sections, "unknown": found.asked - score.n})
        return
    click.echo("\n".join(found.told()))
    click.echo(f"{score.value:.1f} % of {score.n:,} questions right (95 %: {score.low:.1f} to {score.high:.1f})")
