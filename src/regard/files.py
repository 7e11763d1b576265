"""Files that survive a crash: written beside, flushed to the disk, then renamed; or appended line by line."""

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
"""How the name of anything half written begins; readers never look at such a name."""


@dataclass(frozen=True)
class Written:
    """What a file holds: its size and the SHA-256 of its bytes.

    >>> Written(0, "e3b0c442").size
    0
    """

    size: int
    sha256: str


def write_file(path: Path, chunks: Iterable[bytes | memoryview]) -> Written:
    """Write a new file to the disk, all of it, and return what it holds; the bytes are hashed on their way.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(Path(folder) / "a", [b"ab", b"c"])
    Written(size=3, sha256='ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
    """
    digest, size = hashlib.sha256(), 0
    with path.open("xb", buffering=0) as file:
        for chunk in chunks:
            rest = memoryview(chunk).cast("B")
            digest.update(rest)
            size += len(rest)
            while rest:
                rest = rest[file.write(rest) :]
        os.fsync(file.fileno())
    return Written(size, digest.hexdigest())


def fsync_folder(path: Path) -> None:
    """Flush a folder's list of names to the disk: without it a power cut may undo a rename.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fsync_folder(Path(folder))
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # some network file systems flush names by themselves
            raise
    finally:
        os.close(descriptor)


def temporary_name(of: str) -> str:
    """A name for something half written that nobody else uses.

    >>> temporary_name("last").startswith(".tmp-last-")
    True
    """
    return f"{TEMPORARY}{of}-{os.getpid()}-{secrets.token_hex(4)}"


def write_text_atomically(path: Path, text: str) -> None:
    """Put a text at a path so that a reader sees the old text or the new one, never a part, whatever happens.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     recipe = Path(folder) / "recipe.toml"
    ...     write_text_atomically(recipe, "steps = 1\\n")
    ...     write_text_atomically(recipe, "steps = 2\\n")
    ...     recipe.read_text("utf-8")
    'steps = 2\\n'
    """
    data = text.encode()
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
    """Add one line to a file with one write; a line torn by an earlier crash is cut off first.

    It is not flushed to the disk (a line of metrics is not worth the wait): a killed process loses nothing,
    a power cut may lose the newest lines.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     metrics = Path(folder) / "metrics.jsonl"
    ...     append_line(metrics, '{"step": 1}')
    ...     append_line(metrics, '{"step": 2}')
    ...     list(read_lines(metrics))
    ['{"step": 1}', '{"step": 2}']
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
        if os.write(descriptor, data) < len(data):  # a disk with room for a part: no half line may stay
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


def read_lines(path: Path) -> Iterator[str]:
    """The whole lines of a file that append_line writes; a last line without its end was torn and is left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     metrics = Path(folder) / "metrics.jsonl"
    ...     _ = metrics.write_bytes(b'{"step": 1}\\n{"st')
    ...     list(read_lines(metrics))
    ['{"step": 1}']
    """
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
    """The error for a path that the system refused to write: why, how much was needed, how much there is.

    >>> print(cannot_write(Path("/nowhere/x"), 10, PermissionError(13, "Permission denied")))
    /nowhere/x: cannot be written (Permission denied); write to a folder that is yours and not read-only
    """
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
