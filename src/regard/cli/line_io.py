"""Line by line input and output: translate, classify and label answer each line in order, as soon as it is there."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, TextIO, TypeVar

import click

from regard.cli.console import Console, ProgressReporter, SilentProgress
from regard.cli.options import PATH
from regard.cli.streams import stdin_bytes, stdin_is_terminal
from regard.errors import ConfigError, DataError, Interrupted, LineError, OutputError, Terminated
from regard.interrupts import SignalScope
from regard.plurals import count_noun

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

BLOCK = 1 << 16
MAX_REPORTS = 20
"""lines without an answer that are reported one by one"""
UNSAFE = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that JSON allows and no terminal should get: controls, line ends, bidirectional overrides."""
Answer = Callable[[list[str], int], Iterator[tuple[int, list[str]]]]
"""Lines and the number of the first -> pairs of how many were answered and the output lines."""


def line_arguments(function: F) -> F:
    """Add RUN, TEXT, -i and -o to a verb that answers line by line."""
    output = click.option("-o", "--output", "target", type=PATH, help="File to write.  [default: stdout]")
    source = click.option("-i", "--input", "source", type=PATH, help="File to read, one text per line.")
    return click.argument("run", type=PATH)(click.argument("text", nargs=-1)(source(output(function))))


@dataclass
class FailedLines:
    """Lines that have no answer: each is reported on stderr, and all of them are an error at the end."""

    console: Console
    only: bool = False
    """whether the input is a single text: its error ends the command, and nothing is written"""
    count: int = 0

    def report(self, error: LineError) -> None:
        """Count a line and report it; of very many the first ones."""
        if self.only:
            raise error
        self.count += 1
        if self.count <= MAX_REPORTS:
            self.console.warn(str(error))

    def check(self) -> None:
        """Raise if any line had no answer."""
        if self.count:
            lines = f"{count_noun(self.count, 'line')} of the input {'has' if self.count == 1 else 'have'} no answer"
            raise DataError(f"{lines}; the output has an empty line (with --json, an error) in each such place")


@dataclass(frozen=True)
class LineJob:
    """Chunks of input lines, the file for the output, the progress between them, and lines without an answer."""

    chunks: Iterator[list[str]]
    output: TextIO
    name: str
    progress: ProgressReporter
    failed: FailedLines

    def run(self, answer: Answer, chunks: Iterator[list[str]] | None = None) -> None:
        """Answer chunk by chunk, in place of what the output file held; `chunks`: other ones than the input's."""
        with LineWriter(self.output if self.name == "stdout" else truncate(self.output), self.name) as out:
            run_lines(answer, self.chunks if chunks is None else chunks, out, self.progress)

    def predict(
        self, predict: Callable[[list[str], int], T], lines: list[str], first_line: int
    ) -> Iterator[tuple[int, list[str], T | LineError]]:
        """Lines with their predictions and the number of the first; a bad line stands alone, with its error."""
        start = 0
        while start < len(lines):
            try:
                found = predict(lines[start:], first_line + start)
            except LineError as error:
                bad = error.line - first_line
                if bad > start:  # one of those before it may be bad in another way
                    yield from self.predict(predict, lines[start:bad], first_line + start)
                self.failed.report(error)
                yield error.line, [lines[bad]], error
                start = bad + 1
            else:
                yield first_line + start, lines[start:], found
                return


@contextmanager
def open_lines(
    what: str, size: int, text: tuple[str, ...], source: Path | None, target: Path | None
) -> Iterator[LineJob]:
    """Open input and output before a model is loaded; chunks have at most `size` lines.

    Progress is shown for a file only: nothing else has a known end.
    """
    if text and source:
        raise ConfigError("give either texts or -i, not both")
    if len(text) == 1 and not text[0].strip():
        raise DataError("the text is empty; give a text, or lines on stdin, where an empty line stays empty")
    console = Console.of_verb()
    with ExitStack() as open_files:
        open_files.callback(console.close)
        chunks, progress = _input_chunks(what, size, text, (source, target), console)
        output = sys.stdout if target is None else open_files.enter_context(open_output(target, source))
        failed = FailedLines(console, only=len(text) == 1)
        yield LineJob(chunks, output, "stdout" if target is None else str(target), progress, failed)
    failed.check()


def _input_chunks(
    what: str, size: int, text: tuple[str, ...], files: tuple[Path | None, Path | None], console: Console
) -> tuple[Iterator[list[str]], ProgressReporter]:
    source, target = files
    if text:
        return chunk_lines(iter(text), size), SilentProgress()
    if source is None:
        lines = stdin_bytes("a text, or a file with -i")
        if stdin_is_terminal():
            console.print("one text per line; Ctrl-D ends")
        return read_stdin(lines, size), SilentProgress()
    from regard.data import read_lines

    # a pipe can be read only once
    total = sum(1 for _ in read_lines(source)) if source.is_file() or not source.exists() else None
    if target is None and sys.stdout.isatty():  # a bar would appear between the lines
        return chunk_lines(read_lines(source), size), SilentProgress()
    return chunk_lines(read_lines(source), size), console.progress(what, total)


def run_lines(answer: Answer, chunks: Iterator[list[str]], out: LineWriter, progress: ProgressReporter) -> None:
    """Answer chunk after chunk; an error leaves what was written before it."""
    done = 0
    try:
        for lines in chunks:
            for count, answers in answer(lines, done + 1):
                out.write(answers)
                done += count
                progress.update(done)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted after {done:,} lines; only whole lines were written") from None
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"{out.name}: cannot be written ({error.strerror or error}); {done:,} lines were") from None


def json_line(row: Mapping[str, Any]) -> str:
    """A result as one line of JSON; characters that would control a terminal are escaped.

    >>> json_line({"text": "été\\x9b"})
    '{"text": "été\\\\u009b"}'
    """
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(row, ensure_ascii=False))


def read_stdin(file: BinaryIO, size: int) -> Iterator[list[str]]:
    """Chunks of at most `size` lines as they arrive: a line that is typed is answered before the next is read."""
    from regard.data.lines import LONGEST, decode_lines

    rest, held, number, first = [b""], 0, 1, True
    while True:
        block = file.read1(BLOCK)  # type: ignore[attr-defined]
        if first:
            block, first = block.removeprefix(b"\xef\xbb\xbf"), False
        whole, newline, last = block.rpartition(b"\n")
        if block and not newline:
            rest.append(block)
            held += len(block)
            if held > LONGEST:
                where, limit = f"stdin, line {number}", f"{LONGEST >> 20} MB"
                raise DataError(f"{where}: it is longer than {limit}; expected text with one text per line")
            continue
        text = b"".join([*rest, whole])
        rest, held = [last], len(last)
        if newline or text:
            for lines in chunk_lines(decode_lines(text, "stdin", number), size):
                yield lines
                number += len(lines)
        if not block:
            return


def chunk_lines(lines: Iterator[str], size: int) -> Iterator[list[str]]:
    """Lists of `size` lines; the lines before one that cannot be read come first, then its error."""
    part: list[str] = []
    try:
        for line in lines:
            part.append(line)
            if len(part) == size:
                yield part
                part = []
    except DataError:
        if part:
            yield part
        raise
    if part:
        yield part


class InterruptScope(SignalScope):
    """Raises on Ctrl-C and SIGTERM; if the exception is swallowed (raised inside `__del__`), again at the next check().

    >>> import os
    >>> with InterruptScope("characters") as scope:
    ...     try:
    ...         os.kill(os.getpid(), signal.SIGTERM)
    ...     except Terminated:
    ...         pass  # swallowed
    ...     scope.check()
    Traceback (most recent call last):
    regard.errors.Terminated: terminated; only whole characters were written
    """

    def __init__(self, written: str) -> None:
        self.written = written
        self._signal = 0

    def handle(self, number: int, frame: FrameType | None) -> None:
        self._signal = number
        self.check()

    def check(self) -> None:
        """Raise if a signal has arrived."""
        if self._signal == signal.SIGTERM:
            raise Terminated(f"terminated; only whole {self.written} were written")
        if self._signal:
            raise KeyboardInterrupt


class LineWriter(InterruptScope):
    """Writes whole lines: Ctrl-C and SIGTERM wait until a write is finished."""

    def __init__(self, file: TextIO, name: str = "stdout") -> None:
        super().__init__("lines")
        self.file, self.name = file, name
        self._busy = False

    def write(self, lines: list[str]) -> None:
        """Write lines and flush."""
        self._busy = True
        try:
            self.file.write("".join(f"{line}\n" for line in lines))
            self.file.flush()
        finally:
            self._busy = False
        self.check()

    def check(self) -> None:
        if not self._busy:
            super().check()


@contextmanager
def write_errors(name: Path | str) -> Iterator[None]:
    """Turn an OSError into an OutputError that names the file; a closed pipe is no error."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"{name}: cannot be written ({error.strerror})") from None


@contextmanager
def open_output(path: Path, source: Path | None) -> Iterator[TextIO]:
    """Open a file to write, before any work is done; never the one that is read (None: stdin).

    Its content stays until `truncate`, so that a wrong command does not destroy an earlier output.
    """
    if path.is_file() and _same_file(path, source):
        raise ConfigError(f"-o {path} is the file that is read; write to another")
    new = not path.exists()
    with write_errors(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
        file = open(descriptor, "w", encoding="utf-8", newline="\n")  # noqa: PTH123, SIM115
    try:
        yield file
    except BaseException:
        with suppress(OSError):  # the first error is the one to report
            file.close()
            if new and path.is_file() and not path.stat().st_size:
                path.unlink()
        raise
    with write_errors(path):
        file.close()


def truncate(file: TextIO) -> TextIO:
    """Remove the old content of an open file; a pipe or a device has none."""
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.truncate(0)
    return file


def _same_file(path: Path, source: Path | None) -> bool:
    try:
        read = source.stat() if source is not None else os.fstat(sys.stdin.fileno())
    except (OSError, ValueError, AttributeError):  # there is no such file, or stdin has no descriptor or is closed
        return False
    return os.path.samestat(read, path.stat())
