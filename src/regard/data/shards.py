"""Rows of ids on the disk, mapped into memory: the pages belong to the files, however large they are.

A folder holds, for every column, `NAME.ids` (all ids one after the other) and `NAME.offsets` (where each row begins,
and at the end where the last one ends), and `manifest.json` with the sizes and SHA-256 of them all. It is written
beside its place and renamed when complete, so a folder with this name is always a whole one.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from regard.errors import DataError, InputError, OutputError

FORMAT = 1
MANIFEST = "manifest.json"
Row = tuple[Sequence[int], ...]
"""One sequence of ids a column."""


class ShardWriter:
    """Writes rows of ids into a folder, which appears when it is complete.

    `columns` names them, each with the size of its vocabulary: ids take 2 bytes if they fit, else 4.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with ShardWriter(Path(home, "train"), {"source": 100, "target": 100}) as writer:
    ...         writer.append([([5, 6], [7]), ([8], [])])
    ...     shards = Shards.open(Path(home, "train"))
    ...     len(shards), shards.row(0)
    (2, (array([5, 6], dtype=uint16), array([7], dtype=uint16)))
    """

    def __init__(self, folder: str | Path, columns: Mapping[str, int], about: Mapping[str, Any] | None = None) -> None:
        self.folder = Path(folder)
        self._about = json.loads(json.dumps(dict(about or {})))
        self._rows = 0
        with _writing(self.folder):
            self._part, self._lock = _claim(self.folder)
            self._columns = [_ColumnWriter(self._part, name, size) for name, size in columns.items()]

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows; each has one sequence of ids a column."""
        with _writing(self.folder):
            for column, sequences in zip(self._columns, zip(*rows, strict=True), strict=bool(rows)):
                column.append(sequences)
        self._rows += len(rows)

    def close(self) -> None:
        """Complete the folder and put it in its place; what was there before is gone then."""
        with _writing(self.folder):
            columns = {column.name: column.close() for column in self._columns}
            manifest = {"format": FORMAT, "rows": self._rows, "columns": columns, "about": self._about}
            _write_synced(self._part / MANIFEST, json.dumps({**manifest, "sha256": _seal(manifest)}, indent=2))
            _replace(self._part, self.folder)
        os.close(self._lock)

    def discard(self) -> None:
        """Leave nothing behind."""
        for column in self._columns:
            column.discard()
        shutil.rmtree(self._part, ignore_errors=True)
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            self.discard()
            return
        try:
            self.close()
        except BaseException:
            self.discard()
            raise


class _ColumnWriter:
    """The two files of a column, as they grow."""

    def __init__(self, folder: Path, name: str, vocabulary: int) -> None:
        self.name = name
        self._vocabulary = vocabulary
        self._dtype = np.dtype("<u2" if vocabulary <= 1 << 16 else "<u4")
        self._end = 0
        self._files = {part: (folder / f"{name}.{part}").open("wb") for part in ("ids", "offsets")}
        self._hashes = {part: sha256() for part in self._files}
        self._write("offsets", np.zeros(1, "<i8"))

    def append(self, sequences: Sequence[Sequence[int]]) -> None:
        lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
        ids = np.fromiter(chain.from_iterable(sequences), np.int64, int(lengths.sum()))
        if len(ids) and not (ids.min() >= 0 and ids.max() < self._vocabulary):
            wrong = int(ids.max() if ids.min() >= 0 else ids.min())
            raise DataError(
                f'column "{self.name}": the id {wrong} is outside its vocabulary of {self._vocabulary}; '
                f"was the text encoded with another tokenizer?"
            )
        self._write("ids", ids.astype(self._dtype))
        self._write("offsets", (self._end + lengths.cumsum()).astype("<i8"))
        self._end += len(ids)

    def close(self) -> dict[str, Any]:
        """What the manifest says about the column."""
        sizes = {}
        for part, file in self._files.items():
            file.flush()
            os.fsync(file.fileno())
            sizes[part] = {"bytes": file.tell(), "sha256": self._hashes[part].hexdigest()}
            file.close()
        return {"vocabulary": self._vocabulary, "dtype": self._dtype.name, **sizes}

    def discard(self) -> None:
        for file in self._files.values():
            with suppress(OSError):  # what is still in its buffer may not fit on the disk
                file.close()

    def _write(self, part: str, values: np.ndarray) -> None:
        self._files[part].write(values.data)
        self._hashes[part].update(values.data)


class Lengths:
    """The lengths of a column's rows, worked out for the rows that are asked for.

    >>> Lengths(np.array([0, 2, 2, 7]))[np.array([0, 2])]
    array([2, 5])
    """

    def __init__(self, offsets: np.ndarray) -> None:
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self._offsets[rows + 1] - self._offsets[rows]


class Shards:
    """Rows of ids read from the disk as they are asked for.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with ShardWriter(Path(home, "train"), {"text": 100}) as writer:
    ...         writer.append([([5, 6],), ([7],), ([8, 9, 9],)])
    ...     shards = Shards.open(Path(home, "train"))
    ...     shards.lengths("text")[np.array([0, 1, 2])], shards.take(np.array([1]), "text")
    (array([2, 1, 3]), [array([7], dtype=uint16)])
    """

    def __init__(
        self, ids: Mapping[str, np.ndarray], offsets: Mapping[str, np.ndarray], about: Mapping[str, Any]
    ) -> None:
        self.columns = tuple(ids)
        self.about = about
        self._ids = ids
        self._offsets = offsets

    @classmethod
    def open(cls, folder: str | Path) -> Shards:
        """Map the files of a folder, after comparing them with the manifest byte for byte."""
        folder = Path(folder)
        manifest = _manifest(folder)
        ids, offsets = {}, {}
        for name, column in manifest["columns"].items():
            ids[name] = _mapped(folder / f"{name}.ids", np.dtype(column["dtype"]).newbyteorder("<"), column["ids"])
            offsets[name] = _mapped(folder / f"{name}.offsets", np.dtype("<i8"), column["offsets"])
        return cls(ids, offsets, manifest["about"])

    def __len__(self) -> int:
        return len(self._offsets[self.columns[0]]) - 1

    def row(self, i: int) -> tuple[np.ndarray, ...]:
        """The ids of row `i`, one read-only array a column."""
        return tuple(self.take(np.array([i]), column)[0] for column in self.columns)

    def lengths(self, column: str) -> Lengths:
        """How many ids the rows have."""
        return Lengths(self._offsets[column])

    def flat(self, column: str) -> np.ndarray:
        """All ids of a column, one row after the other, as a read-only view of the file."""
        return self._ids[column]

    def take(self, rows: np.ndarray, column: str) -> list[np.ndarray]:
        """The ids of many rows, as read-only views of the file."""
        ids, offsets = self._ids[column], self._offsets[column]
        if len(rows) and rows.min() < 0:
            raise IndexError(f"row {rows.min()}: rows count from 0")
        return [ids[start:end] for start, end in zip(offsets[rows].tolist(), offsets[rows + 1].tolist())]


def _claim(folder: Path) -> tuple[Path, int]:
    """An empty folder beside `folder`, locked; what a dead process left there is swept."""
    part = folder.parent / f".{folder.name}.part"
    part.parent.mkdir(parents=True, exist_ok=True)
    while True:
        part.mkdir(exist_ok=True)
        lock = os.open(part, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise OutputError(f"{folder}: another process is writing it; wait for it, or stop it") from None
        # the owner before us may have renamed the folder between our opening it and locking it
        if part.exists() and os.path.samestat(os.fstat(lock), part.stat()):
            break
        os.close(lock)
    for left in part.iterdir():
        left.unlink()
    return part, lock


def _replace(part: Path, folder: Path) -> None:
    old = folder.parent / f".{folder.name}.old"
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    part.rename(folder)
    _sync(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def _write_synced(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    _sync(path.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"{folder} cannot be written: {error.strerror or error}") from None


def _seal(manifest: Mapping[str, Any]) -> str:
    return sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest.pop("sha256") != _seal(manifest):
            raise ValueError
    except FileNotFoundError:
        raise InputError(f"{folder} holds no prepared data: there is no {MANIFEST}; prepare the data first") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{path} is damaged; prepare the data again") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if manifest["format"] != FORMAT:
        raise DataError(f"{path}: expected format {FORMAT}, found {manifest['format']}; prepare the data again")
    return manifest


def _mapped(path: Path, dtype: np.dtype, expected: Mapping[str, Any]) -> np.ndarray:
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != expected["bytes"]:
                raise DataError(f"{path} has {size} bytes, expected {expected['bytes']}; prepare the data again")
            if file_digest(file, "sha256").hexdigest() != expected["sha256"]:
                raise DataError(f"{path} is damaged: its SHA-256 is not the one in {MANIFEST}; prepare the data again")
            if not size:
                return np.zeros(0, dtype)
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype)
    except FileNotFoundError:
        raise DataError(f"{path} is missing; prepare the data again") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
