"""Texts in, lines out: what the verbs that answer line by line have in common."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.console import Console, Silent
from regard.cli.lines import WholeLines, arriving, chunks
from regard.errors import Interrupted, OutputError

if TYPE_CHECKING:
    from regard.cli.console import Progress

HIDDEN = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""What JSON lets through and no terminal should: controls, line ends, marks that turn the direction of the screen."""


def reading(
    what: str,
    chunk: int,
    text: tuple[str, ...],
    files: tuple[Path | None, Path | None],
    open_files: contextlib.ExitStack,
) -> tuple[Iterator[list[str]], Progress]:
    """Lists of lines, and how to show how far it is: only a file has an end that is known. `files`: from, to.

    >>> with contextlib.ExitStack() as open_files:
    ...     list(reading("labelling", 2, ("a", "b", "c"), (None, None), open_files)[0])
    [['a', 'b'], ['c']]
    """
    source, target = files
    if text:
        return chunks(iter(text), chunk), Silent()
    if source is None:
        if sys.stdin.isatty():
            Console.of_verb().say("one text a line; Ctrl-D ends")
        return arriving(sys.stdin.buffer, chunk), Silent()
    from regard.data import read_lines

    # a pipe can be read once only
    total = sum(1 for _ in read_lines(source)) if source.is_file() or not source.exists() else None
    if target is None and sys.stdout.isatty():  # a bar would stand between the lines
        return chunks(read_lines(source), chunk), Silent()
    console = Console.of_verb()
    open_files.callback(console.close)
    return chunks(read_lines(source), chunk), console.progress(what, total)


def carry_over(
    answered: Callable[[list[str], int], Iterator[tuple[int, list[str]]]],
    read: Iterator[list[str]],
    out: WholeLines,
    progress: Progress,
) -> None:
    """Answer list after list; what is out is out, whatever happens to the rest.

    `answered` takes lines and the number of the first, and gives how many of them are answered, with the lines out.

    >>> def numbered(lines: list[str], first: int) -> Iterator[tuple[int, list[str]]]:
    ...     yield len(lines), [f"{number} {line}" for number, line in enumerate(lines, first)]
    >>> with WholeLines(sys.stdout) as out:
    ...     carry_over(numbered, iter([["a"], ["b"]]), out, Silent())
    1 a
    2 b
    """
    done = 0
    try:
        for lines in read:
            for count, written in answered(lines, done + 1):
                out.write(written)
                done += count
                progress.update(done)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted after {done:,} lines; what was written is whole lines") from None
    except BrokenPipeError:
        raise
    except OSError as error:
        why = error.strerror or error
        raise OutputError(f"{out.name}: cannot be written ({why}); {done:,} lines are") from None
