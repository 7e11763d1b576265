"""regard translate."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from regard.cli.console import Console, Progress, Silent
from regard.cli.lines import WholeLines, arriving, chunks, emptied, opened_output
from regard.cli.loading import load_for
from regard.cli.options import json_option, polite
from regard.errors import ConfigError, DataError, Interrupted, OutputError

if TYPE_CHECKING:
    from regard.tasks.translate.predict import Translation, Translator

T = TypeVar("T")
CHUNK = 256
"""Lines translated together: more of them pad less and come later."""
HIDDEN = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""What JSON lets through and no terminal should: controls, line ends, marks that turn the direction of the screen."""


@dataclass(frozen=True)
class Style:
    """How a translation is written down.

    >>> Style(nbest=1, scores=False, as_json=False).nbest
    1
    """

    nbest: int
    scores: bool
    as_json: bool

    def lines(self, number: int, source: str, found: Sequence[Translation]) -> list[str]:
        """The lines for one source: one, unless the n best are asked for; then each begins with its source's number."""
        if self.as_json:
            row = {"line": number, "source": source, "translations": [asdict(t) for t in found]}
            text = json.dumps(row, ensure_ascii=False)
            return [HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)]
        front = f"{number}\t" if self.nbest > 1 else ""
        scores = [f"{t.score:.4f}\t" if self.scores else "" for t in found]
        return [front + score + t.text for score, t in zip(scores, found, strict=True)]


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("text", nargs=-1)
@click.option("-i", "--input", "source", type=click.Path(path_type=Path), help="A file to read, one text a line.")
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), help="A file to write.  [default: stdout]")
@click.option("--beam", type=int, help="Hypotheses kept; 1 is greedy.  [default: the recipe's]")
@click.option("--nbest", type=int, default=1, help="Translations of each text; lines begin with the text's number.")
@click.option("--scores", is_flag=True, help="The log-probability before each translation.")
@click.option("--prefix", default="", help="Every translation begins with this.")
@click.option("--must", multiple=True, metavar="WORDS", help="Every translation holds this; may be given again.")
@json_option
@polite()
def translate(
    run: Path,
    text: tuple[str, ...],
    source: Path | None,
    target: Path | None,
    beam: int | None,
    nbest: int,
    scores: bool,
    prefix: str,
    must: tuple[str, ...],
    as_json: bool,
) -> None:
    """Translate texts, a file, or stdin to stdout.

    RUN is a run directory or one of its checkpoints. Order and number of lines are kept, empty lines too.

    \b
    Examples:
      regard translate runs/demo "je suis étudiant"
      regard translate runs/demo -i book.fr -o book.en --beam 4
    """
    if text and source:
        raise ConfigError("give either texts or -i, not both")
    if not all(word.strip() for word in must):
        raise ConfigError('--must "": expected words that every translation shall hold')
    style = Style(nbest, scores, as_json)
    with contextlib.ExitStack() as open_files:
        read, progress = reading(text, source, target, open_files)
        file = sys.stdout if target is None else open_files.enter_context(opened_output(target, source))

        from regard.tasks.translate.recipe import TranslationModel

        translator = load_for(run, TranslationModel).translator(beam, nbest)
        whole = WholeLines(file) if target is None else WholeLines(emptied(file), str(target))
        out = open_files.enter_context(whole)
        carry_over(translator, read, out, style, progress, prefix, must)


def reading(
    text: tuple[str, ...], source: Path | None, target: Path | None, open_files: contextlib.ExitStack
) -> tuple[Iterator[list[str]], Progress]:
    """Lists of lines to translate, and how to show how far it is: only a file has an end that is known."""
    if text:
        return chunks(iter(text), CHUNK), Silent()
    if source is None:
        if sys.stdin.isatty():
            Console.of_verb().say("one text a line; Ctrl-D ends")
        return arriving(sys.stdin.buffer, CHUNK), Silent()
    from regard.data import read_lines

    # a pipe can be read once only
    total = sum(1 for _ in read_lines(source)) if source.is_file() or not source.exists() else None
    if target is None and sys.stdout.isatty():  # a bar would stand between the lines
        return chunks(read_lines(source), CHUNK), Silent()
    console = Console.of_verb()
    open_files.callback(console.close)
    return chunks(read_lines(source), CHUNK), console.progress("translating", total)


def carry_over(
    translator: Translator,
    read: Iterator[list[str]],
    out: WholeLines,
    style: Style,
    progress: Progress,
    prefix: str,
    must: Sequence[str],
) -> None:
    """Translate list after list; what is out is out, whatever happens to the rest."""
    done = 0

    def translated(lines: list[str], first_line: int) -> list[list[Translation]]:
        asked = [list(must)] * len(lines) if must else None
        return translator.translate(lines, prefix, asked, first_line)

    try:
        for lines in read:
            for part, found in until_the_fault(translated, lines, done + 1):
                rows = enumerate(zip(part, found, strict=True), done + 1)
                out.write([line for number, (text, best) in rows for line in style.lines(number, text, best)])
                done += len(part)
                progress.update(done)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted after {done:,} lines; what was written is whole lines") from None
    except BrokenPipeError:
        raise
    except OSError as error:
        why = error.strerror or error
        raise OutputError(f"{out.name}: cannot be written ({why}); {done:,} lines are") from None


def until_the_fault(
    translate: Callable[[list[str], int], T], lines: list[str], first_line: int
) -> Iterator[tuple[list[str], T]]:
    """Lists of lines with their translations: all at once, or, if one of them is at fault, all before it in parts.

    >>> def shout(lines: list[str], first_line: int) -> list[str]:
    ...     if "" in lines:
    ...         raise DataError(f"line {first_line + lines.index('')}: there is nothing to shout")
    ...     return [line.upper() for line in lines]
    >>> for part in until_the_fault(shout, ["a", "b", "c", "", "d"], 1):
    ...     print(part)
    Traceback (most recent call last):
    regard.errors.DataError: line 4: there is nothing to shout
    >>> next(until_the_fault(shout, ["a", "b", "c", "", "d"], 1))
    (['a', 'b'], ['A', 'B'])
    """
    try:
        found = translate(lines, first_line)
    except DataError:
        if len(lines) == 1:
            raise
        half = len(lines) // 2
        yield from until_the_fault(translate, lines[:half], first_line)
        yield from until_the_fault(translate, lines[half:], first_line + half)
    else:
        yield lines, found
