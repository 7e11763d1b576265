"""regard vectors: word vectors of a run, the embeddings of any model, or a file of vectors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from regard.cli.console import Console, StageProgress
from regard.cli.line_io import LineWriter, open_output, truncate, write_errors
from regard.cli.loading import load_model
from regard.cli.look import VIEW_FORMATS, show_view
from regard.cli.options import PATH, OrderedGroup, json_option, print_json
from regard.cli.vectors_context import context
from regard.cli.vectors_sentence import search, sentence
from regard.errors import ConfigError, DataError
from regard.packs import is_pack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from regard.tasks.vectors.word_table import Neighbor, WordTable

    F = TypeVar("F", bound=Callable[..., Any])


WORD_WIDTH = 80
"""columns of the screen for a word"""


@click.group(cls=OrderedGroup)
def vectors() -> None:
    """Word vectors: nearest neighbors, analogies, maps; a word in two sentences; sentence vectors and search.

    SOURCE is a run, or a file of vectors in the text format of GloVe and word2vec (.gz too): a word and its numbers
    per line. Of a run of another task, such as translation, the token embeddings are used; if tokens are subwords, a
    word stands for the token that is the whole word, shown as ␣word, and ##word for a token inside of words.

    \b
    Train your own vectors:
      regard new words --task vectors           a commented recipe
      regard train recipes/vectors/reviews.toml from movie reviews, which are downloaded once

    \b
    Examples:
      regard vectors neighbors runs/reviews good terrible
      regard vectors analogy glove.6B.50d.txt "king - man + woman"
      regard vectors map runs/reviews good bad great awful actor actress -o map.svg
      regard vectors context runs/elmo "the bank of the river" "money in the bank" --word bank
      regard vectors search runs/sst2 "a waste of time" --corpus reviews.txt
    """


for command in (context, sentence, search):
    vectors.add_command(command)


def source_arguments(function: F) -> F:
    """Add SOURCE, --side and --words to a command: where the vectors are."""
    words = click.option("--words", type=click.IntRange(1), help="Use only the first words of the table.")
    help_text = "Which vocabulary of a model that has two.  [default: source]"
    side = click.option("--side", type=click.Choice(["source", "target"]), help=help_text)
    return click.argument("source", type=PATH)(side(words(function)))


@vectors.command()
@source_arguments
@click.argument("word", nargs=-1, required=True)
@click.option("-n", "--count", type=click.IntRange(1), default=10, show_default=True, help="Neighbors per word.")
@json_option
def neighbors(source: Path, word: tuple[str, ...], count: int, as_json: bool, **part: Any) -> None:
    """The nearest words by cosine similarity.

    \b
    Examples:
      regard vectors neighbors glove.6B.50d.txt frog
      regard vectors neighbors runs/demo étudiant --side source -n 5
    """
    table = load_table(source, **part)
    found = {query: table.neighbors(query, count) for query in word}
    if as_json:
        print_json({query: [near._asdict() for near in nearest] for query, nearest in found.items()})
        return
    for query, nearest in found.items():
        print_neighbors(query, nearest, only=len(found) == 1)


@vectors.command(context_settings={"ignore_unknown_options": True})
@source_arguments
@click.argument("sum_of_words", nargs=-1, metavar='"A - B + C"')
@click.option("--questions", type=PATH, help="File of questions: four words per line.")
@click.option("-n", "--count", type=click.IntRange(1), help="Number of answers.  [default: 5]")
@json_option
def analogy(
    source: Path, sum_of_words: tuple[str, ...], questions: Path | None, count: int | None, as_json: bool, **part: Any
) -> None:
    """The words nearest to a sum of words, or the accuracy on a file of analogy questions.

    Vectors are normalized first, and the words of the sum are excluded from the answers. A question "boy girl king
    queen" asks for girl - boy + king; a line such as ": family" starts a section.

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
        raise ConfigError("-n: the answer to a question is the one nearest word; leave -n out")
    table = load_table(source, **part)
    if questions is not None:
        _answer_questions(table, questions, as_json)
        return
    query = " ".join(sum_of_words)
    found = table.analogy(query, count or 5)
    print_json({query: [near._asdict() for near in found]}) if as_json else print_neighbors(query, found, only=True)


@vectors.command("map")
@source_arguments
@click.argument("word", nargs=-1)
@click.option("--near", type=click.IntRange(1), help="Also draw this many neighbors of each word.")
@click.option("-o", "--output", type=PATH, help="File to write: .svg, .png or .json.")
@json_option
def draw_map(
    source: Path, word: tuple[str, ...], near: int | None, output: Path | None, as_json: bool, **part: Any
) -> None:
    """Draw words in two dimensions: the first two principal components (PCA) of their vectors.

    Without words, the first forty of the table are drawn. Unknown words are left out, with a warning.

    \b
    Examples:
      regard vectors map runs/reviews good great bad awful actor actress man woman
      regard vectors map glove.6B.50d.txt france physics swimming --near 8 -o map.svg
    """
    if output is not None and output.suffix not in VIEW_FORMATS:
        raise ConfigError(f"-o {output}: expected a name that ends in {', '.join(VIEW_FORMATS)}")
    if near and not word:
        raise ConfigError("--near: name the words whose neighbors are to be drawn")
    from regard.look.wordmap import WordMapView

    table = load_table(source, **part)
    if word:
        word = known_words(table, word)
    nearest = [found.word for query in word for found in table.neighbors(query, near)] if near else []
    found = table.pca_map([*word, *nearest])
    title = f"{len(found.words)} words of {source.name}"
    show_view(WordMapView(title, found.words, found.points, found.explained_variance), output, as_json)


@vectors.command()
@source_arguments
@click.option("-o", "--output", type=PATH, help="File to write.  [default: stdout]")
def write(source: Path, side: str | None, words: int | None, output: Path | None) -> None:
    """Write vectors in the text format of word2vec, for other programs and for vectors.path of a recipe.

    The first line has the number of words and their dimension, then a word and its numbers per line. A space inside of
    a word, or in front of a subword that starts one, is written as ␣.

    \b
    Examples:
      regard vectors write runs/reviews -o reviews.vec
      regard vectors write runs/demo --side target > english.vec
    """
    if output is not None and output.suffix == ".gz":
        raise ConfigError(f"-o {output}: the output is plain text; leave .gz off and compress it afterwards")
    table = load_table(source, side, words)
    if output is None:
        _write_table(table, sys.stdout, "stdout")
        return
    with open_output(output, source) as file:
        _write_table(table, truncate(file), str(output))
    click.echo(str(output))


def _write_table(table: WordTable, file: TextIO, name: str) -> None:
    with write_errors(name), LineWriter(file, name) as out, StageProgress(Console.of_verb()) as stages:
        lines, written = table.word2vec_lines(), 0
        while chunk := list(islice(lines, 1000)):
            out.write(chunk)
            written += len(chunk)
            stages("writing", written, len(table) + 1)


def load_table(source: Path, side: str | None, words: int | None) -> WordTable:
    """The word vectors of a run or of a file."""
    from regard.tasks.vectors.word_table import WordTable, read_word_table

    if not source.is_dir() and not is_pack(source):
        from regard.data.lines import read_lines

        if side is not None:
            raise ConfigError(f"--side: {source} is a file, and has one table")
        total = 0 if source.suffix == ".gz" or not source.is_file() else source.stat().st_size
        with StageProgress(Console.of_verb()) as stages:
            return read_word_table(_with_progress(read_lines(source), total, stages), source, words)
    from regard.tasks.vectors.predict import embedding_table

    table = embedding_table(load_model(source), side)
    return table if words is None else WordTable(table.words[:words], table.vectors[:words])


def _with_progress(lines: Iterator[str], total: int, stages: StageProgress) -> Iterator[str]:
    """The lines of a file of `total` bytes (0: unknown), with progress."""
    done = 0
    for number, line in enumerate(lines):
        done += len(line) + 1
        if number % 1000 == 0:
            stages("reading", min(done, total) if total else number, total)
        yield line


def print_neighbors(query: str, found: Sequence[Neighbor], only: bool) -> None:
    """Print neighbors with their cosines: one per line, or all on one line if there are several queries."""
    from regard.look.tokens import make_visible, truncate

    names = [truncate(make_visible(near.word), WORD_WIDTH) for near in found]
    if not only:
        row = ", ".join(f"{name} {near.cosine:.4f}" for near, name in zip(found, names, strict=True))
        click.echo(f"{truncate(make_visible(query), WORD_WIDTH)}: {row}")
        return
    for near, name in zip(found, names, strict=True):
        click.echo(f"{near.cosine:7.4f}  {name}")


def known_words(table: WordTable, words: Sequence[str]) -> tuple[str, ...]:
    """The words that the table has; each of the others is reported on stderr, and an error if there is no other."""
    known, problems = [], []
    for word in words:
        try:
            table.index(word)
            known.append(word)
        except DataError as error:
            problems.append(str(error))
    if not known:
        raise DataError("; ".join(problems))
    for problem in problems:
        Console.of_verb().warn(f"{problem}; left out of the map")
    return tuple(known)


def _answer_questions(table: WordTable, questions: Path, as_json: bool) -> None:
    from regard.data.lines import read_lines
    from regard.metrics.analogies import answer_questions, read_questions

    tasks = read_questions(read_lines(questions), questions)
    with StageProgress(Console.of_verb()) as stages:
        found = answer_questions(
            tasks, table.find, lambda q: table.solve_analogies(q, lambda done: stages("answering", done, len(q)))
        )
    score = found.score()
    if as_json:
        sections = {name: {"right": right, "asked": count} for name, (right, count) in found.sections().items()}
        plain = {"value": score.value, "low": score.low, "high": score.high, "n": score.n, "signature": score.signature}
        print_json({"analogies": plain, "sections": sections, "unknown": found.total - score.n})
        return
    click.echo("\n".join(found.summary_lines()))
    click.echo(f"{score.value:.1f} % of {score.n:,} questions right (95 %: {score.low:.1f} to {score.high:.1f})")
