"""Packs: a trained model in one file (model.regard), a zip archive that is checked as a whole before anything is used.

A pack holds the files of a run that its model needs: recipe, tokenizers and other artifacts, model card, and one
checkpoint without training state. pack.json, its first member, lists size and SHA-256 of all others. Members are
stored, never compressed, under the names of a run's files, so nothing in a pack can be larger than the pack itself, lie
outside of its folder, or be a link. No code of a pack is ever run.

A pack is opened by extracting it into a temporary read-only folder, which every reader of runs then reads.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import struct
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from regard.errors import ModelError
from regard.files import FileDigest, cannot_write, digest_bytes, fsync_folder, open_regular, write_file
from regard.manifest import MAX_KEPT, files_to_dict, other_format, parse_files, parse_manifest, render_manifest
from regard.progress import Progress, no_progress

SUFFIX = ".regard"
LISTING = "pack.json"
FORMAT = 1
"""Format of packs that this version writes and reads"""
MAX_MEMBERS, MAX_DIRECTORY, MAX_LISTING = 64, 1 << 16, 1 << 16
"""members of a pack, and bytes of its central directory and of pack.json"""
MAX_PACK = (1 << 32) - (1 << 20)
"""bytes of the largest pack: a larger zip archive needs other headers"""
TOP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
CHECKPOINT_FILE = re.compile(r"checkpoints/\d{8,12}(-\d{1,6})?/[a-z][a-z0-9_]{0,40}\.(safetensors|json)")
END = struct.Struct("<4s4H2LH")
"""end of central directory record: signature, disks, entries, size and offset of the directory, length of a comment"""
CHUNK = 1 << 20


@dataclass(frozen=True)
class PackMember:
    """A file of a pack: its size and SHA-256, and its bytes in chunks."""

    digest: FileDigest
    chunks: Callable[[], Iterator[bytes]]

    @classmethod
    def of_bytes(cls, data: bytes) -> PackMember:
        return cls(digest_bytes(data), lambda: iter([data]))

    @classmethod
    def of_file(cls, path: Path, digest: FileDigest) -> PackMember:
        return cls(digest, lambda: _file_chunks(path))


def is_pack(path: str | Path) -> bool:
    """Whether a path names a pack, whole or damaged: a file that is called .regard or begins as a zip archive.

    >>> is_pack("src")
    False
    """
    at = Path(path)
    try:
        if not at.is_file():
            return False
        if at.suffix == SUFFIX:
            return True
        with open_regular(at) as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def pack_folder(path: str | Path) -> Path:
    """The temporary folder that a pack was extracted into and checked in; any other path as it is."""
    return _extracted.folder(Path(path)) if is_pack(path) else Path(path)


class _Extracted:
    """Folders of the packs that this process has opened; they are removed when it ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folders: dict[tuple[Path, int, int, int], Path] = {}

    def folder(self, path: Path) -> Path:
        """The folder of a pack; extracted again if the file has changed."""
        try:
            found = path.stat()
        except OSError as error:
            raise _read_error(path, error) from error
        key = (path.absolute(), found.st_ino, found.st_size, found.st_mtime_ns)
        with self._lock:
            if key not in self._folders:
                self._folders[key] = self._extract(path)
            return self._folders[key]

    def _extract(self, path: Path) -> Path:
        place = Path(tempfile.mkdtemp(prefix="regard-pack-"))
        try:
            folder = place / path.name
            folder.mkdir()
            extract_pack(path, folder)
            make_read_only(folder)
        except BaseException:
            _remove(place)
            raise
        atexit.register(_remove, place)
        return folder


_extracted = _Extracted()


def write_pack(path: Path, members: Mapping[str, PackMember], made_by: str, progress: Progress = no_progress) -> None:
    """Write a new pack: equal files give equal bytes. What is written belongs at a temporary name."""
    files = files_to_dict({name: member.digest for name, member in members.items()})
    listing = render_manifest({"files": files, "format": FORMAT, "regard": made_by})
    total, done = sum(member.digest.size for member in members.values()), 0
    if total + MAX_DIRECTORY > MAX_PACK:
        raise ModelError(f"{path}: the model has {total:,} bytes, and a pack holds at most {MAX_PACK:,}")
    with zipfile.ZipFile(path, "x", zipfile.ZIP_STORED) as archive:
        for name, member in {LISTING: PackMember.of_bytes(listing), **members}.items():
            info = zipfile.ZipInfo(name)  # of a fixed date
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            info.file_size = member.digest.size
            with archive.open(info, "w") as file:
                for chunk in member.chunks():
                    file.write(chunk)
                    done += len(chunk)
                    progress("packing", done, total)
    with path.open("rb") as file:
        os.fsync(file.fileno())


def extract_pack(path: Path, folder: Path, progress: Progress = no_progress, durable: bool = False) -> None:
    """Extract a pack into an empty folder, checking every byte; `durable`: flushed to the disk."""
    with _open_archive(path) as (archive, files):
        total, done = sum(file.size for file in files.values()), 0
        for name, expected in files.items():
            target = folder / name
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                found = write_file(target, _member_chunks(path, archive, name), durable)
            except OSError as error:
                raise cannot_write(target, total, error) from error
            if found != expected:
                raise _damage_error(path, f"the bytes of {name} are not those that {LISTING} lists")
            done += expected.size
            progress("unpacking", done, total)
        if durable:
            for place in (folder, *folder.rglob("*")):
                if place.is_dir():
                    fsync_folder(place)


def make_read_only(folder: Path) -> None:
    """Take the permission to write from a folder and all that is in it."""
    for path in (*folder.rglob("*"), folder):
        path.chmod(0o555 if path.is_dir() else 0o444)


def _remove(place: Path) -> None:
    """Remove a folder, read-only or not."""
    for folder, _, _ in os.walk(place):
        Path(folder).chmod(0o700)
    shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _open_archive(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, FileDigest]]]:
    """The archive of a pack and the files that it lists, after checking that it has these and no others."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - END.size))
            _check_end(path, file.read(END.size), size)
            try:
                with zipfile.ZipFile(file) as archive:
                    yield archive, _check_members(path, archive, size)
            except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
                raise _damage_error(path, f"it cannot be read as a zip archive ({error})") from error
    except OSError as error:
        raise _read_error(path, error) from error


def _check_end(path: Path, end: bytes, size: int) -> None:
    """Bound the central directory before it is read: a pack ends with its record, which has no comment."""
    if len(end) < END.size or end[:4] != b"PK\x05\x06":
        raise _damage_error(path, "it does not end as a zip archive does: it was cut off, or is no pack of regard")
    _, disk, first_disk, here, members, length, offset, comment = END.unpack(end)
    if (disk, first_disk, comment) != (0, 0, 0) or here != members or offset + length + END.size != size:
        raise _damage_error(path, "the end of the archive does not belong to its content")
    if members > MAX_MEMBERS or length > MAX_DIRECTORY:
        limits = f"expected at most {MAX_MEMBERS} members in {MAX_DIRECTORY:,} bytes"
        raise _damage_error(path, f"{limits} of directory, found {members:,} in {length:,}")


def _check_members(path: Path, archive: zipfile.ZipFile, size: int) -> dict[str, FileDigest]:
    """The files that pack.json lists; an archive with other members, names, sizes or kinds is refused."""
    members = archive.infolist()
    _check_kinds(path, members)
    sizes = {member.filename: member.file_size for member in members}
    if len(sizes) < len(members):
        raise _trust_error(path, "a name stands twice in it")
    if sum(sizes.values()) > size:
        raise _trust_error(path, "its members claim more bytes than the file has")
    if sizes.get(LISTING, MAX_LISTING + 1) > MAX_LISTING:
        raise _damage_error(path, f"expected a {LISTING} of at most {MAX_LISTING:,} bytes; it is no pack of regard")
    files = _parse_listing(path, archive.read(LISTING))
    if {name: file.size for name, file in files.items()} != {n: size for n, size in sizes.items() if n != LISTING}:
        raise _damage_error(path, f"its members are not those that {LISTING} lists")
    return files


def _check_kinds(path: Path, members: Sequence[zipfile.ZipInfo]) -> None:
    """Refuse members that no run has: names that lead elsewhere, links, compressed and overlong ones."""
    for member in members:
        if not (TOP_NAME.fullmatch(member.filename) or CHECKPOINT_FILE.fullmatch(member.filename)):
            raise _trust_error(path, f"{member.filename!r} is not the name of a file of a run")
        if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
            raise _trust_error(path, f"{member.filename} is not a regular file")
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise _trust_error(path, f"{member.filename} is compressed, and members of a pack are stored")
        if member.file_size > MAX_KEPT and not CHECKPOINT_FILE.fullmatch(member.filename):
            size = f"has {member.file_size:,} bytes, expected at most {MAX_KEPT:,}"
            raise _trust_error(path, f"{member.filename} {size}")


def _parse_listing(path: Path, data: bytes) -> dict[str, FileDigest]:
    try:
        content = parse_manifest(data)
        found = content["format"]
        if type(found) is int and found != FORMAT:
            raise other_format(path, "pack", found, FORMAT)
        return parse_files(content["files"])
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _damage_error(path, f"the content of {LISTING} and its digest do not agree") from None


def _member_chunks(path: Path, archive: zipfile.ZipFile, name: str) -> Iterator[bytes]:
    with archive.open(name) as file:
        while chunk := file.read(CHUNK):
            yield chunk


def _file_chunks(path: Path) -> Iterator[bytes]:
    with open_regular(path) as file:
        while chunk := file.read(CHUNK):
            yield chunk


def _damage_error(path: Path, what: str) -> ModelError:
    return ModelError(f"{path}: {what}; this pack is damaged, copy it again")


def _trust_error(path: Path, what: str) -> ModelError:
    return ModelError(f"{path}: {what}; regard writes no such pack, do not trust where it came from")


def _read_error(path: Path, error: OSError) -> ModelError:
    return ModelError(f"{path}: cannot be read ({error.strerror or error})")
