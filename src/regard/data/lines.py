"""Line reader of all text files, so that every part of the package counts the same lines."""

from __future__ import annotations

import gzip
import json
import re
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from regard.errors import DataError, InputError

BLOCK = 1 << 20
"""Bytes read at once."""
LONGEST = 1 << 28
"""Most bytes of a line, so that memory stays bounded whatever file is read."""


def text_list(text: str | Iterable[str]) -> list[str]:
    """One text or several, from a Python program, as a list.

    >>> text_list("je suis"), text_list(("un", "deux"))
    (['je suis'], ['un', 'deux'])
    >>> text_list(["a", 3])
    Traceback (most recent call last):
    regard.errors.DataError: text 2: expected a str, got 3 (int)
    """
    if isinstance(text, str):
        return [text]
    if not isinstance(text, Iterable) or isinstance(text, (bytes, Mapping)):
        raise DataError(f"expected a text or a list of texts, got {text!r:.40} ({type(text).__name__})")
    texts = list(text)
    for number, one in enumerate(texts, 1):
        if not isinstance(one, str):
            raise DataError(f"text {number}: expected a str, got {one!r:.40} ({type(one).__name__})")
    return texts


def read_lines(path: str | Path) -> Iterator[str]:
    r"""The lines of a UTF-8 text file (`.gz` is decompressed), without line ends.

    Only "\n" ends a line; one "\r" before it belongs to the end. A byte order mark at the start is skipped.
    A file may end without "\n"; a "\n" at the end begins no further line. Nothing else is changed.
    """
    number = 1
    for block in _line_blocks(Path(path)):
        for line in decode_lines(block, path, number):
            yield line
            number += 1


def decode_lines(block: bytes, name: str | Path, number: int = 1) -> Iterator[str]:
    r"""The lines of a block of complete lines; `name`, and `number` of the first line, are for messages."""
    text = None if b"\0" in block else _decode(block)
    if text is None:
        return _lines_until_error(name, number, block)
    # "\r" is rare: one search spares the copy
    text = text.replace("\r\n", "\n").removesuffix("\r") if "\r" in text else text
    return iter(text.split("\n"))


def _line_blocks(path: Path) -> Iterator[bytes]:
    """Blocks of complete lines, without the last "\\n"."""
    with _open(path) as file:
        parts: list[bytes] = []  # of a line longer than a block: joined once, so that a long line is not quadratic
        for block in _blocks(path, file):
            cut = block.rfind(b"\n")
            if cut < 0:
                parts.append(block)
                if sum(map(len, parts)) > LONGEST:
                    raise DataError(
                        f"{path}: a line is longer than {LONGEST >> 20} MB; expected a text file with one text per line"
                    )
                continue
            yield b"".join([*parts, block[:cut]])
            parts = [block[cut + 1 :]]
        rest = b"".join(parts)
        if rest:
            yield rest


def _open(path: Path) -> BinaryIO:
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
        raise DataError(f"{path} is not a complete gzip file; download it again, or name it without .gz") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


def _decode(block: bytes) -> str | None:
    try:
        return block.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _lines_until_error(path: str | Path, number: int, block: bytes) -> Iterator[str]:
    """The lines before the invalid one, then the error that names it."""
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


def read_json_lines(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The JSON object on each line of a file, with its location for messages."""
    where = ""
    for number, line in enumerate(read_lines(path), 1):
        where = f"{path}, line {number}"
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        if not isinstance(entry, dict):
            raise DataError(f'{where}: expected a JSON object, found "{_shorten(line)}"')
        yield where, entry
    if not where:
        raise DataError(f"{path} is empty; expected one JSON object per line")


def json_text(entry: Mapping[str, Any], key: str, where: str, or_number: bool = False) -> str:
    """The text under a key of a JSON object; with `or_number`, an integer or a boolean is a text too."""
    if key not in entry:
        keys = ", ".join(f'"{found}"' for found in entry) or "none"
        raise DataError(f'{where}: there is no key "{key}" (keys: {_shorten(keys)})')
    text = json.dumps(entry[key]) if or_number and isinstance(entry[key], int) else entry[key]
    if not isinstance(text, str):
        expected = "a text or a whole number" if or_number else "a text"
        raise DataError(f'{where}: expected {expected} under "{key}", found {_shorten(json.dumps(text))}')
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:  # half of a surrogate pair in \u escapes: no tokenizer accepts it
        half = f"\\u{ord(text[error.start]):04x}"
        raise DataError(f'{where}: the text under "{key}" has half a character, {half}') from None
    return text


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Bidirectional overrides and isolates, which change how following text is displayed."""


def printable(text: str) -> str:
    """A text as one printable line: control characters become spaces, bidirectional overrides are removed."""
    characters = (" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text if c not in _BIDI_CONTROLS)
    return "".join(characters)
