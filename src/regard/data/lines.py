"""The one line reader: every text file of the package is read here, so every part counts the same lines."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from regard.errors import DataError, InputError

BLOCK = 1 << 20
"""Bytes read at once."""
LONGEST = 1 << 28
"""Bytes of the longest line that is taken for text: memory stays bounded whatever is read."""


def read_lines(path: str | Path) -> Iterator[str]:
    r"""The lines of a UTF-8 text file (`.gz`: unpacked on the way), without their ends, one after the other.

    Only "\n" ends a line; one "\r" before it belongs to the end. A byte order mark at the start is skipped.
    A file may end without "\n", and a "\n" at the very end begins no further line. Nothing else is changed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "two.txt")
    ...     _ = file.write_bytes("un café\r\nto\u2028gether".encode())
    ...     list(read_lines(file))
    ['un café', 'to\u2028gether']
    """
    number = 1
    for block in _whole_lines(Path(path)):
        for line in lines_of(block, path, number):
            yield line
            number += 1


def lines_of(block: bytes, name: str | Path, number: int = 1) -> Iterator[str]:
    r"""The lines of a block of bytes that begins and ends with a line; `name` and `number` of the first, for messages.

    >>> list(lines_of(b"un\r\ndeux", "stdin"))
    ['un', 'deux']
    """
    text = None if b"\0" in block else _text(block)
    if text is None:
        return _until_the_fault(name, number, block)
    return iter(_ends_removed(text).split("\n"))


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Blocks that begin and end with a line; the last "\\n" of each is cut off."""
    with _opened(path) as file:
        parts: list[bytes] = []  # of a line longer than a block: joined once, so that a long line is not quadratic
        for block in _blocks(path, file):
            cut = block.rfind(b"\n")
            if cut < 0:
                parts.append(block)
                if sum(map(len, parts)) > LONGEST:
                    raise DataError(
                        f"{path}: a line is longer than {LONGEST >> 20} MB; expected a text file with one text a line"
                    )
                continue
            yield b"".join([*parts, block[:cut]])
            parts = [block[cut + 1 :]]
        rest = b"".join(parts)
        if rest:
            yield rest


def _opened(path: Path) -> BinaryIO:
    try:
        if path.suffix == ".gz":
            return cast(BinaryIO, gzip.open(path, "rb"))
        return path.open("rb")
    except FileNotFoundError:
        unset = re.search(r"\$\{?\w+\}?", str(path))
        raise InputError(f"{path}: there is no such file" + (f"; {unset[0]} is not set" if unset else "")) from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; expected a text file") from None
    except PermissionError:
        raise InputError(f"{path} cannot be read: permission denied") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


def _blocks(path: Path, file: BinaryIO) -> Iterator[bytes]:
    try:
        mark = file.read(3)
        block = mark.removeprefix(b"\xef\xbb\xbf") + file.read(BLOCK)
        while block:
            yield block
            block = file.read(BLOCK)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DataError(f"{path} is not a whole gzip file; fetch it again, or name it without .gz") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


def _text(block: bytes) -> str | None:
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _ends_removed(text: str) -> str:
    # "\r" is rare: one search spares the copy
    return text.replace("\r\n", "\n").removesuffix("\r") if "\r" in text else text


def _until_the_fault(path: str | Path, number: int, block: bytes) -> Iterator[str]:
    """The lines before the bad one, then the error that names it."""
    for i, line in enumerate(block.split(b"\n"), number):
        if b"\0" in line:
            raise DataError(
                f"{path}, line {i}: there is a NUL byte; it looks like a binary or UTF-16 file, expected UTF-8 text"
            )
        try:
            yield line.decode("utf-8").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}, line {i}: byte {error.start + 1} (0x{line[error.start]:02x}) is not UTF-8; "
                f"convert the file, for example with: iconv -f LATIN1 -t UTF-8"
            ) from None
