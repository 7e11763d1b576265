"""Crash-safe file writing, the only atomic writer here: atomic replacement, appends of whole lines, fsync, SHA-256."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import secrets
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from regard.errors import DataError, OutputError

TEMPORARY = ".tmp-"
"""Prefix of the names of unfinished files; readers ignore such names."""


@dataclass(frozen=True)
class FileDigest:
    """Size of a file and SHA-256 of its bytes."""

    size: int
    sha256: str


def write_file(path: Path, chunks: Iterable[bytes | memoryview]) -> FileDigest:
    """Write a new file and fsync it; return its size and SHA-256, computed while writing."""
    digest, size = hashlib.sha256(), 0
    with path.open("xb", buffering=0) as file:
        for chunk in chunks:
            rest = memoryview(chunk).cast("B")
            digest.update(rest)
            size += len(rest)
            while rest:
                rest = rest[file.write(rest) :]
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


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
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


def read_complete_lines(path: Path) -> Iterator[str]:
    """Read the lines that `append_line` wrote; an incomplete last line, left by a crash, is skipped."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield line[:-1].decode()
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{path}, line {number}: expected UTF-8, found the byte {line[error.start]:#04x}"
                ) from None


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
