"""regard vectors: words as points, of a run, of any model here, or of a file that others made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from regard.cli.choosing import load
from regard.cli.console import Console, Stages
from regard.cli.looking import PICTURES, show
from regard.cli.manners import Verbs, json_option, polite, print_json
from regard.errors import ConfigError, OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from regard.text.wordtable import Near, WordTable

    F = TypeVar("F", bound=Callable[..., Any])


@click.group(cls=Verbs)
def vectors() -> None:
    """Words as points: neighbours, sums of words, maps.

    SOURCE is a run, or a file of vectors as GloVe and word2vec write them in text (.gz too): a word and its numbers a
    line. Of a run that learnt something else, such as a translator, its words' embeddings are taken.

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
    words = click.option("--words", type=click.IntRange(1), help="Only the first, and so commonest, words of a file.")
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
@click.option("-n", "--count", type=click.IntRange(1), default=5, show_default=True, help="Words that are shown.")
@json_option
@polite()
def analogy(
    source: Path,
    side: str | None,
    words: int | None,
    sum_of_words: tuple[str, ...],
    questions: Path | None,
    count: int,
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
    if bool(sum_of_words) == (questions is not None):
        raise ConfigError('give either a sum such as "king - man + woman", or --questions')
    table = opened(source, side, words)
    if questions is not None:
        _examine(table, questions, as_json)
        return
    asked = " ".join(sum_of_words)
    found = table.calculate(asked, count)
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
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="The file to write.")
@polite()
def write(source: Path, side: str | None, words: int | None, output: Path) -> None:
    """Write vectors as word2vec does, for other programs and for vectors.path of a recipe.

    \b
    Examples:
      regard vectors write runs/reviews -o reviews.vec
      regard vectors write runs/demo --side target -o english.vec
    """
    table = opened(source, side, words)
    part = output.with_name(output.name + ".part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file, Stages(Console.of_verb()) as stages:
            for number, line in enumerate(table.lines()):
                file.write(line + "\n")
                stages("writing", number, len(table))
        part.replace(output)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise OutputError(f"{output}: cannot be written ({error.strerror})") from None
    click.echo(str(output))


def opened(source: Path, side: str | None, words: int | None) -> WordTable:
    """The table of a run, or of a file of vectors."""
    from regard.text.wordtable import WordTable, read_table

    if not source.is_dir():
        from regard.data.lines import read_lines

        if side is not None:
            raise ConfigError(f"--side: {source} is a file, and has one table")
        with _counted(Stages(Console.of_verb())) as told:
            return read_table((told(line) for line in read_lines(source)), source, words)
    from regard.jobs.embeddings import embeddings

    table = embeddings(load(source), side)
    return table if words is None else WordTable(table.words[:words], table.numbers[:words])


@contextmanager
def _counted(stages: Stages) -> Iterator[Callable[[str], str]]:
    """Tell how many lines were read."""
    read = 0

    def told(line: str) -> str:
        nonlocal read
        read += 1
        if read % 1000 == 0:
            stages("reading", read, 0)
        return line

    with stages:
        yield told


def listed(asked: str, found: Sequence[Near], alone: bool) -> None:
    """Neighbours for people: one a line, or of each of several words in one line."""
    from regard.tasks.translator import printable

    if not alone:
        click.echo(f"{printable(asked)}: {', '.join(printable(near.word) for near in found)}")
        return
    for near in found:
        click.echo(f"{near.cosine:7.4f}  {printable(near.word)}")


def _examine(table: WordTable, questions: Path, as_json: bool) -> None:
    from regard.data.lines import read_lines
    from regard.score.analogies import ask, read_questions

    asked = read_questions(read_lines(questions), questions)
    with Stages(Console.of_verb()) as stages:
        stages("answering", 0, 0)
        found = ask(asked, table.places, table.answers)
    score = found.score()
    if as_json:
        sections = {name: {"right": right, "asked": count} for name, (right, count) in found.sections().items()}
        plain = {"value": score.value, "low": score.low, "high": score.high, "n": score.n, "signature": score.signature}
        print_json({"analogies": plain, "sections": sections, "unknown": found.asked - score.n})
        return
    click.echo("\n".join(found.told()))
    click.echo(f"{score.value:.1f} % of {score.n:,} questions right (95 %: {score.low:.1f} to {score.high:.1f})")
