"""regard label."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.line_io import HIDDEN, carry_over, reading
from regard.cli.lines import WholeLines, emptied, opened_output
from regard.cli.loading import load_for
from regard.cli.options import json_option, polite
from regard.cli.translate import until_the_fault
from regard.errors import ConfigError, DataError

if TYPE_CHECKING:
    from regard.tasks.label.predict import Labelled, Labeller
    from regard.tasks.label.recipe import LabelModel

CHUNK = 512
"""Lines labelled together: more of them pad less and come later."""
Answered = Callable[[list[str], int], Iterator[tuple[int, list[str]]]]
"""Lines and the number of the first -> how many are answered, and the lines out; as often as it takes."""


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("text", nargs=-1)
@click.option("-i", "--input", "source", type=click.Path(path_type=Path), help="A file to read, one text a line.")
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), help="A file to write.  [default: stdout]")
@click.option("--conll", is_flag=True, help="Read and write a word a line: its columns come back with the tag behind.")
@json_option
@polite()
def label(
    run: Path, text: tuple[str, ...], source: Path | None, target: Path | None, conll: bool, as_json: bool
) -> None:
    """Label each word of texts, of a file, or of stdin to stdout.

    RUN is a run directory or one of its checkpoints. A line out for each line in, in order, empty lines too: word/TAG
    word/TAG; a model that restores case, accents and punctuation writes the text itself. --json tells of each word and
    of each span (a name, a phrase) where it begins and ends in the text, in characters, and how likely it is.

    \b
    Examples:
      regard label runs/ewt-upos "Ada lives in London."
      regard label runs/restore-french -i notes.txt -o restored.txt
    """
    if text and source:
        raise ConfigError("give either texts or -i, not both")
    if conll and as_json:
        raise ConfigError("give either --conll or --json, not both")
    with contextlib.ExitStack() as open_files:
        read, progress = reading("labelling", CHUNK, text, (source, target), open_files)
        file = sys.stdout if target is None else open_files.enter_context(opened_output(target, source))

        from regard.tasks.label.recipe import LabelModel

        model = load_for(run, LabelModel)
        whole = WholeLines(file) if target is None else WholeLines(emptied(file), str(target))
        out = open_files.enter_context(whole)
        if conll:
            carry_over(_in_columns(model), whole_sentences(read), out, progress)
        else:
            carry_over(by_line(model.labeller(), as_json), read, out, progress)


def by_line(labeller: Labeller, as_json: bool) -> Answered:
    """Plain text: a line for each line.

    >>> from regard.tasks.label.targets import Tags
    >>> from regard.models.base import Tagger
    >>> from regard.models.mlp import MLPConfig
    >>> from regard.spaces import Words
    >>> from regard.tasks.label.predict import Labeller
    >>> from regard.text.word_vocab import Spelling
    >>> tags = Tags(("A",))
    >>> model = Tagger(MLPConfig(width=4).build_encoder(Words(3)), tags.space(), 4)
    >>> list(by_line(Labeller(model, Spelling(("oui",), ()), tags), as_json=False)(["oui !", ""], 1))
    [(2, ['oui/A !/A', ''])]
    """

    def answered(lines: list[str], first: int) -> Iterator[tuple[int, list[str]]]:
        at = first
        for part, found in until_the_fault(labeller.label, lines, first):
            yield len(part), [written(number, one, as_json) for number, one in enumerate(found, at)]
            at += len(part)

    return answered


def written(number: int, found: Labelled, as_json: bool) -> str:
    """One text with its labels, in a line.

    >>> from regard.tasks.label.predict import Labelled, Token
    >>> written(1, Labelled("Rome", (Token("Rome", 0, 4, "B-LOC", 0.5),), "Rome/B-LOC"), as_json=False)
    'Rome/B-LOC'
    """
    from regard.tasks.translate.predict import printable

    if not as_json:
        return printable(found.output)
    row = json.dumps({"line": number, **asdict(found)}, ensure_ascii=False)
    return HIDDEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", row)


def whole_sentences(read: Iterator[list[str]]) -> Iterator[list[str]]:
    """The same lines, in lists that end where a sentence does.

    >>> list(whole_sentences(iter([["a", "b"], ["", "c"]])))
    [['a', 'b', ''], ['c']]
    """
    waiting: list[str] = []
    for lines in read:
        waiting += lines
        cut = max((i + 1 for i, line in enumerate(waiting) if not line.strip()), default=0)
        if cut:
            yield waiting[:cut]
            waiting = waiting[cut:]
    if waiting:
        yield waiting


def _in_columns(model: LabelModel) -> Answered:
    """A word a line: each line comes back with its tag behind; empty lines stay."""
    from regard.tasks.label.sources import Columns

    data = model.recipe.data
    column, sign = (data.word, data.separator) if isinstance(data, Columns) else (0, "")
    return by_columns(model.labeller(), column, sign)


def by_columns(labeller: Labeller, column: int, sign: str) -> Answered:
    """The same, with words in this column and this sign between columns (none: a tab, or spaces).

    >>> from regard.tasks.label.targets import Tags
    >>> from regard.models.base import Tagger
    >>> from regard.models.mlp import MLPConfig
    >>> from regard.spaces import Words
    >>> from regard.tasks.label.predict import Labeller
    >>> from regard.text.word_vocab import Spelling
    >>> tags = Tags(("A",))
    >>> model = Tagger(MLPConfig(width=4).build_encoder(Words(3)), tags.space(), 4)
    >>> list(by_columns(Labeller(model, Spelling(("oui",), ()), tags), 0, "")(["oui UH", ""], 1))
    [(2, ['oui UH A', ''])]
    """
    from regard.tasks.translate.predict import printable

    def answered(lines: list[str], first: int) -> Iterator[tuple[int, list[str]]]:
        good, fault = cells(lines, first, column, sign)
        said = (answer.label for row in labeller.say(sentences_of(good)) for answer in row)
        out = [with_tag(line, next(said), sign) if line.strip() else "" for line in lines[: len(good)]]
        if good:
            yield len(good), ["\t".join(map(printable, line.split("\t"))) for line in out]
        if fault is not None:
            raise fault

    return answered


def cells(lines: Sequence[str], first: int, column: int, sign: str) -> tuple[list[str], DataError | None]:
    """The word of each line, up to the sentence of the first line that has none; and what is wrong with that.

    >>> cells(["a X", "", "b"], 1, 1, " ")
    (['X', ''], DataError('line 3: expected 2 columns or more, found 1'))
    """
    found: list[str] = []
    for number, line in enumerate(lines, first):
        if not line.strip():
            found.append("")
            continue
        row = line.split(sign or ("\t" if "\t" in line else None))
        if len(row) <= column or not row[column].strip():
            whole = len(found) - found[::-1].index("") if "" in found else 0
            why = f"expected {column + 1} columns or more, found {len(row)}"
            return found[:whole], DataError(f"line {number}: {why}")
        found.append(row[column])
    return found, None


def sentences_of(words: Sequence[str]) -> list[list[str]]:
    """Words in sentences; an empty one ends a sentence.

    >>> sentences_of(["a", "b", "", "", "c"])
    [['a', 'b'], ['c']]
    """
    found: list[list[str]] = [[]]
    for word in words:
        if word:
            found[-1].append(word)
        else:
            found.append([])
    return [sentence for sentence in found if sentence]


def with_tag(line: str, tag: str, sign: str) -> str:
    """A line with one column more.

    >>> with_tag("Rome NNP", "B-LOC", "")
    'Rome NNP B-LOC'
    """
    between = sign or ("\t" if "\t" in line else " ")
    return f"{line}{between}{tag}"
