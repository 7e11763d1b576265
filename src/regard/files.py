"""Crash-safe writing and bounded reading of files: atomic replacement, whole lines, fsync, SHA-256, kinds and sizes."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import resource
import secrets
import shutil
import stat
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from regard.errors import OutputError

TEMPORARY = ".tmp-"
"""Prefix of the names of unfinished files; readers ignore such names."""
MAX_NESTING = 64
"""Levels of nested tables and lists in JSON and TOML; recursive functions fail on hostile files with more."""
LONG_KEY = re.compile(rf"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){{{MAX_NESTING},}}""", re.ASCII)
"""dotted keys of many parts, on which tomllib takes quadratic time"""
MAX_LINE = 4 << 20
"""bytes of the longest line of metrics.jsonl and samples.jsonl"""
KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}


@dataclass(frozen=True)
class FileDigest:
    """Size of a file and SHA-256 of its bytes."""

    size: int
    sha256: str


def write_file(path: Path, chunks: Iterable[bytes | memoryview], durable: bool = True) -> FileDigest:
    """Write a new file; return its size and SHA-256, computed while writing. `durable`: with fsync."""
    digest, size = hashlib.sha256(), 0
    with path.open("xb", buffering=0) as file:
        for chunk in chunks:
            rest = memoryview(chunk).cast("B")
            digest.update(rest)
            size += len(rest)
            while rest:
                rest = rest[file.write(rest) :]
        if durable:
            os.fsync(file.fileno())
    return FileDigest(size, digest.hexdigest())


def fsync_folder(path: Path) -> None:
    """Flush a folder's directory entries to disk: without it a power cut may undo a rename."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # some network file systems flush names by themselves
            raise
    finally:
        os.close(descriptor)


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; a folder, a FIFO or a device is an OSError at once, without waiting."""
    _check_regular(path, path.stat())  # before opening: to open a device may already do something
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        _check_regular(path, os.fstat(descriptor))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _check_regular(path: Path, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        kind = KINDS.get(stat.S_IFMT(found.st_mode), "a device")
        raise OSError(errno.EINVAL, f"it is {kind}, expected a file", str(path))


def read_bounded(path: Path, limit: int) -> bytes:
    """The bytes of a regular file of at most `limit` bytes; anything else is an OSError that says why."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(limit + 1) if size <= limit else b""  # one more: it may be growing
    if max(size, len(data)) > limit:
        raise OSError(errno.EFBIG, f"it has {max(size, len(data)):,} bytes, expected at most {limit:,}", str(path))
    return data


def parse_json(data: bytes | str) -> Any:
    """Parse JSON; nesting beyond MAX_NESTING is a ValueError, as is everything that is not JSON."""
    try:
        value = json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    check_nesting(value)
    return value


def load_toml(data: bytes) -> dict[str, Any]:
    """Parse TOML; everything that is not TOML, or is nested beyond MAX_NESTING, is a ValueError."""
    text = data.decode("utf-8-sig")
    if LONG_KEY.search(text):
        raise ValueError(f"a key has more than {MAX_NESTING} parts")
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"nested more than {MAX_NESTING} deep") from None
    check_nesting(table)
    return table


def check_nesting(value: Any) -> None:
    """Raise ValueError for tables and lists that are nested more than MAX_NESTING deep; does not recurse itself.

    >>> check_nesting([{"a": [1]}])
    """
    level = [value]
    for _ in range(MAX_NESTING + 1):
        level = [
            item
            for parent in level
            for item in (parent.values() if isinstance(parent, dict) else parent if isinstance(parent, list) else ())
            if isinstance(item, (dict, list))
        ]
        if not level:
            return
    raise ValueError(f"nested more than {MAX_NESTING} deep")


def digest_bytes(data: bytes) -> FileDigest:
    """Size and SHA-256 of the bytes of a file."""
    return FileDigest(len(data), hashlib.sha256(data).hexdigest())


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def temporary_name(of: str) -> str:
    """A unique name for an unfinished file."""
    return f"{TEMPORARY}{of}-{os.getpid()}-{secrets.token_hex(4)}"


def write_text_atomically(path: Path, text: str) -> None:
    """Replace a text file atomically: readers see the old text or the new one, never a part of it."""
    write_bytes_atomically(path, text.encode())


def write_bytes_atomically(path: Path, data: bytes) -> None:
    """Replace a file atomically: written beside it, flushed to disk, then renamed."""
    temporary = path.with_name(temporary_name(path.name))
    try:
        try:
            write_file(temporary, [data])
            temporary.replace(path)
            fsync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(path, len(data), error) from error


def move_file(source: Path, target: Path) -> None:
    """Move a file within a disk, in place of an older one, so that it is whole after a power cut: flushed first."""
    with open_regular(source) as file:
        os.fsync(file.fileno())
    source.replace(target)
    source.unlink(missing_ok=True)  # rename(2) does nothing if both are hard links to one file
    for folder in dict.fromkeys((target.parent, source.parent)):
        fsync_folder(folder)


def link_or_copy(source: Path, target: Path) -> None:
    """Make a hard link, or a copy on another disk or a file system without links, flushed to the disk."""
    create_folder(target.parent)
    temporary = target.with_name(temporary_name(target.name))
    try:
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copy2(source, temporary)
        move_file(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def create_folder(path: Path) -> None:
    """Create a folder and its parents, and flush their names to the disk."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        fsync_folder(folder.parent)


def append_line(path: Path, text: str) -> None:
    """Append one line with a single write; an incomplete last line, left by a crash, is removed first.

    There is no fsync, too slow for each line of metrics: only a power cut may lose the newest lines.
    """
    if "\n" in text:
        raise ValueError(f"one line expected, got {text.count(chr(10)) + 1}: {text[:40]!r}")
    data = text.encode() + b"\n"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            end = _end_of_last_line(descriptor)
            if end < os.lseek(descriptor, 0, os.SEEK_END):
                os.ftruncate(descriptor, end)
            _append(descriptor, data, end)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise cannot_write(path, len(data), error) from error


def _append(descriptor: int, data: bytes, end: int) -> None:
    try:
        if os.write(descriptor, data) < len(data):  # disk full: do not keep half a line
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        os.ftruncate(descriptor, end)
        raise


def _end_of_last_line(descriptor: int) -> int:
    end = os.lseek(descriptor, 0, os.SEEK_END)
    while end:
        start = max(0, end - 65536)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def read_json_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines; none if it cannot be read, and damaged lines are left out."""
    try:
        with open_regular(path) as file:
            while line := file.readline(MAX_LINE):
                with suppress(ValueError):
                    row = parse_json(line) if line.endswith(b"\n") else None
                    if isinstance(row, dict):
                        yield row
    except OSError:
        return


def cannot_write(path: Path, needed: int, error: OSError) -> OutputError:
    """The OutputError for a failed write: the reason, the bytes needed and the bytes free."""
    reason = error.strerror or str(error)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return OutputError(f"{path}: cannot be written ({reason}); write to a folder that is yours and not read-only")
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return OutputError(f"{path}: cannot be written ({reason})")
    room = f"needs {needed:,} bytes and {_free(path):,} are free ({reason})"
    if error.errno == errno.EFBIG:
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
        return OutputError(f"{path}: {room}, but no file may be larger than {limit:,} bytes; raise `ulimit -f`")
    return OutputError(f"{path}: {room}; what was saved before is intact: make room, then go on from there")


def _free(path: Path) -> int:
    while not path.exists() and path != path.parent:
        path = path.parent
    return shutil.disk_usage(path).free
