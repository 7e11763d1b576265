"""regard classify."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from regard.cli.console import Console, Progress, Silent
from regard.cli.lines import WholeLines, arriving, chunks, emptied, opened_output
from regard.cli.loading import load_for
from regard.cli.options import json_option, polite
from regard.cli.translate import HIDDEN, until_the_fault
from regard.errors import ConfigError, Interrupted, OutputError

if TYPE_CHECKING:
    from regard.tasks.classify.predict import Judge, Verdict

CHUNK = 2048
"""Lines classified together: more of them pad less and come later."""
HEADING = "label\tprobability"
"""What answers a line of names on top of a table."""


@dataclass(frozen=True)
class Style:
    """How an answer is written down.

    >>> from regard.tasks.classify.predict import Verdict
    >>> Style(as_json=False).line(1, "so great", [Verdict("positive", 0.98), Verdict("negative", 0.02)], 0)
    'positive\\t0.9800\\tnegative\\t0.0200'
    """

    as_json: bool

    def line(self, number: int, text: str, verdicts: Sequence[Verdict], left_out: int) -> str:
        """One line for one text: labels with their probabilities, tabs between."""
        if not self.as_json:
            return "\t".join(f"{verdict.label}\t{verdict.probability:.4f}" for verdict in verdicts)
        row = {"line": number, "text": text, "labels": [asdict(verdict) for verdict in verdicts], "left_out": left_out}
        return HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(row, ensure_ascii=False))


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("text", nargs=-1)
@click.option("-i", "--input", "source", type=click.Path(path_type=Path), help="A file to read, one text a line.")
@click.option("-o", "--output", "target", type=click.Path(path_type=Path), help="A file to write.  [default: stdout]")
@click.option("--top", type=click.IntRange(1), default=1, show_default=True, help="Labels told of each text.")
@json_option
@polite()
def classify(
    run: Path, text: tuple[str, ...], source: Path | None, target: Path | None, top: int, as_json: bool
) -> None:
    """Say which label each text has, and how likely: texts, a file, or stdin to stdout.

    RUN is a run directory or one of its checkpoints. A line out for each line in, in order: the label, a tab, its
    probability; with --top the next labels follow. A text without words has no label: an empty line stays one.

    A model of a table reads a row of numbers a line, in the order of its columns, or under a line with their names.

    \b
    Examples:
      regard classify runs/movie-reviews "this movie is so great"
      regard classify runs/movie-reviews -i reviews.txt -o labels.tsv --top 2
    """
    if text and source:
        raise ConfigError("give either texts or -i, not both")
    with contextlib.ExitStack() as open_files:
        read, progress = reading(text, source, target, open_files)
        file = sys.stdout if target is None else open_files.enter_context(opened_output(target, source))

        from regard.tasks.classify.recipe import ClassificationModel

        judge = load_for(run, ClassificationModel).judge()
        whole = WholeLines(file) if target is None else WholeLines(emptied(file), str(target))
        out = open_files.enter_context(whole)
        carry_over(judge, read, out, Style(as_json), progress, top)


def reading(
    text: tuple[str, ...], source: Path | None, target: Path | None, open_files: contextlib.ExitStack
) -> tuple[Iterator[list[str]], Progress]:
    """Lists of lines to classify, and how to show how far it is: only a file has an end that is known."""
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
    return chunks(read_lines(source), CHUNK), console.progress("classifying", total)


def carry_over(
    judge: Judge, read: Iterator[list[str]], out: WholeLines, style: Style, progress: Progress, top: int
) -> None:
    """Classify list after list; what is out is out, whatever happens to the rest."""
    done = cut = 0
    try:
        for lines in read:
            if not done and (under := headed(judge, lines[0])) is not None:
                judge, lines, done = under, lines[1:], 1
                out.write([] if style.as_json else [HEADING])
            for part, found in until_the_fault(judge.rule, lines, done + 1) if lines else ():
                rows = enumerate(zip(part, found, strict=True), done + 1)
                out.write([style.line(n, text, r.top(top, judge.labels), r.left_out) for n, (text, r) in rows])
                done += len(part)
                cut += sum(ruling.left_out > 0 for ruling in found)
                progress.update(done)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted after {done:,} lines; what was written is whole lines") from None
    except BrokenPipeError:
        raise
    except OSError as error:
        why = error.strerror or error
        raise OutputError(f"{out.name}: cannot be written ({why}); {done:,} lines are") from None
    if cut:
        from regard.tasks.classify.inputs import Prose

        assert isinstance(judge.matter, Prose)
        limit, side = judge.matter.limit, "first" if judge.matter.keep == "beginning" else "last"
        texts = "1 text was" if cut == 1 else f"{cut:,} texts were"
        Console.of_verb().say(f" {texts} longer than {limit} tokens; the {side} {limit} of each were read")


def headed(judge: Judge, line: str) -> Judge | None:
    """The judge of what follows a line of names, if this is one.

    >>> from regard.tasks.classify.labels import Labels
    >>> from regard.tasks.classify.predict import Judge
    >>> from regard.tasks.classify.inputs import Measures
    >>> from regard.tasks.generate.numbers import Scale
    >>> judge = Judge(None, Measures(Scale(("width",), (0.0,), (1.0,))), Labels(("lily", "rose"), (1, 1)))
    >>> headed(judge, "3.5") is None, headed(judge, "name,width").matter.at
    (True, (1,))
    """
    from dataclasses import replace

    under = judge.matter.heading(line)
    return None if under is None else replace(judge, matter=under)
