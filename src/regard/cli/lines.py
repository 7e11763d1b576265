"""Lines that come in and lines that go out: in order, whole, and as soon as they are there."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import BinaryIO, TextIO

from regard.errors import ConfigError, DataError, OutputError, Terminated
from regard.interrupts import Answering

BLOCK = 1 << 16


def arriving(file: BinaryIO, chunk: int) -> Iterator[list[str]]:
    """Lists of lines as they arrive, each at most `chunk` long: a line typed is answered before the next is waited for.

    >>> import io
    >>> list(arriving(io.BytesIO(b"un\\n\\ntrois"), 2))
    [['un', ''], ['trois']]
    """
    from regard.data.lines import LONGEST, lines_of

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
                raise DataError(
                    f"stdin, line {number}: it is longer than {LONGEST >> 20} MB; expected text with one text a line"
                )
            continue
        text = b"".join([*rest, whole])
        rest, held = [last], len(last)
        if newline or text:
            for lines in chunks(lines_of(text, "stdin", number), chunk):
                yield lines
                number += len(lines)
        if not block:
            return


def chunks(lines: Iterator[str], chunk: int) -> Iterator[list[str]]:
    """Lists of `chunk` lines; those before a line that cannot be read come first, then its error.

    >>> list(chunks(iter("abc"), 2))
    [['a', 'b'], ['c']]
    """
    part: list[str] = []
    try:
        for line in lines:
            part.append(line)
            if len(part) == chunk:
                yield part
                part = []
    except DataError:
        if part:
            yield part
        raise
    if part:
        yield part


class Heeding(Answering):
    """Ctrl-C and SIGTERM stop the work at once; if that is lost, as Python loses what is raised while it deletes
    something, then at the next `heed`.

    >>> import os
    >>> with Heeding("characters") as heeding:
    ...     try:
    ...         os.kill(os.getpid(), signal.SIGTERM)
    ...     except Terminated:
    ...         pass  # lost
    ...     heeding.heed()
    Traceback (most recent call last):
    regard.errors.Terminated: terminated; what was written is whole characters
    """

    def __init__(self, written: str) -> None:
        self.written = written
        self._caught = 0

    def catch(self, number: int, frame: FrameType | None) -> None:
        self._caught = number
        self.heed()

    def heed(self) -> None:
        """Stop if that was asked for."""
        if self._caught == signal.SIGTERM:
            raise Terminated(f"terminated; what was written is whole {self.written}")
        if self._caught:
            raise KeyboardInterrupt


class WholeLines(Heeding):
    """An output that holds whole lines whenever it is looked at: Ctrl-C waits until a write is through.

    >>> import sys
    >>> with WholeLines(sys.stdout) as out:
    ...     out.write(["one", "two"])
    one
    two
    """

    def __init__(self, file: TextIO, name: str = "stdout") -> None:
        super().__init__("lines")
        self.file, self.name = file, name
        self._busy = False

    def write(self, lines: Sequence[str]) -> None:
        """Write lines, all of them, at once."""
        self._busy = True
        try:
            self.file.write("".join(f"{line}\n" for line in lines))
            self.file.flush()
        finally:
            self._busy = False
        self.heed()

    def heed(self) -> None:
        if not self._busy:
            super().heed()


@contextmanager
def opened_output(path: Path, source: Path | None) -> Iterator[TextIO]:
    """A file to write to, opened before any work is done; never the one that is read (None: stdin).

    What it holds stays until `emptied`: a run that turns out not to be one costs nobody the outputs of another.

    >>> with opened_output(Path("/nowhere/out.txt"), None):
    ...     pass
    Traceback (most recent call last):
    regard.errors.OutputError: /nowhere/out.txt: cannot be written (No such file or directory)
    """
    if path.is_file() and _is_read(path, source):
        raise ConfigError(f"-o {path} is the file that is read; write to another")
    new = not path.exists()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
        file = open(descriptor, "w", encoding="utf-8", newline="\n")  # noqa: PTH123, SIM115
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror})") from None
    try:
        yield file
    except BaseException:
        with suppress(OSError):  # what went wrong first is what is told
            file.close()
            if new and path.is_file() and not path.stat().st_size:
                path.unlink()
        raise
    try:
        file.close()
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror})") from None


def emptied(file: TextIO) -> TextIO:
    """A file without what it held; a pipe or a device holds nothing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "out.txt")
    ...     _ = path.write_text("old")
    ...     with opened_output(path, None) as file:
    ...         print(path.read_text(), end=" ")
    ...         _ = emptied(file).write("new")
    ...     print(path.read_text())
    old new
    """
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.truncate(0)
    return file


def _is_read(path: Path, source: Path | None) -> bool:
    try:
        read = source.stat() if source is not None else os.fstat(sys.stdin.fileno())
    except (OSError, ValueError):  # there is no such file, or stdin is none
        return False
    return os.path.samestat(read, path.stat())
