"""Shards: rows of ids, numbers, pixels and texts in memory-mapped files, so that data may be larger than memory.

A folder holds, for each column, its values one row after the other (such as `NAME.ids`), the
offsets of its rows (`NAME.offsets`, one more than there are rows), and `manifest.json` with the sizes and SHA-256 of
all files. It is written beside its place and renamed when complete, so a folder with this name is always complete.
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
from typing import Any, Literal, Self

import numpy as np

from regard.errors import DataError, InputError, OutputError
from regard.files import fsync_folder, open_regular, parse_json, read_bounded, write_file
from regard.manifest import MAX_MANIFEST

FORMAT = 2
"""Format of the files; data of another format is prepared again. 2: columns have kinds."""
MANIFEST = "manifest.json"
ColumnKind = int | Literal["float32", "text", "uint8"]
"""Kind of a column: a vocabulary size for ids, "float32" for numbers, "uint8" for pixels, "text" for strings."""
Arrays = Mapping[str, np.ndarray]
Row = Sequence[Sequence[int] | Sequence[float] | np.ndarray | str]
"""One value per column: a sequence of ids or numbers, or a text."""


class ShardWriter:
    """Writes rows into a folder, which appears when it is complete.

    `columns` maps names to kinds. Ids take 2 bytes if the vocabulary fits, else 4.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with ShardWriter(Path(home, "train"), {"ids": 100, "values": "float32", "text": "text"}) as writer:
    ...         writer.append([([5, 6], [0.5], "été"), ([8], [], "")])
    ...     shards = Shards.open(Path(home, "train"))
    ...     len(shards), shards.row(0)
    (2, (array([5, 6], dtype=uint16), array([0.5], dtype=float32), 'été'))
    """

    def __init__(
        self, folder: str | Path, columns: Mapping[str, ColumnKind], metadata: Mapping[str, Any] | None = None
    ) -> None:
        self.folder = Path(folder)
        self._metadata = json.loads(json.dumps(dict(metadata or {})))
        self._rows = 0
        with _write_errors(self.folder):
            self._part, self._lock = _create_part(self.folder)
            self._columns = [_ColumnWriter(self._part, name, column) for name, column in columns.items()]

    def append(self, rows: Sequence[Row]) -> None:
        """Add rows; each has one value per column."""
        with _write_errors(self.folder):
            for column, values in zip(self._columns, zip(*rows, strict=True), strict=bool(rows)):
                column.append(values)
        self._rows += len(rows)

    def close(self) -> None:
        """Complete the folder and put it in its place, instead of an older one."""
        with _write_errors(self.folder):
            columns = {column.name: column.close() for column in self._columns}
            manifest = {"format": FORMAT, "rows": self._rows, "columns": columns, "metadata": self._metadata}
            text = json.dumps({**manifest, "sha256": _manifest_sha256(manifest)}, indent=2)
            write_file(self._part / MANIFEST, [text.encode()])
            fsync_folder(self._part)
            _replace_folder(self._part, self.folder)
        os.close(self._lock)

    def discard(self) -> None:
        """Remove what was written so far."""
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
    """Writes the two files of a column."""

    def __init__(self, folder: Path, name: str, column: ColumnKind) -> None:
        self.name = name
        self._vocabulary = column if isinstance(column, int) else None
        self._kind = "ids" if isinstance(column, int) else column
        small = self._vocabulary is not None and self._vocabulary <= 1 << 16
        dtypes = {"ids": "<u2" if small else "<u4", "float32": "<f4", "text": "u1", "uint8": "u1"}
        self._dtype = np.dtype(dtypes[self._kind])
        self._end = 0
        self._files = {part: (folder / f"{name}.{part}").open("wb") for part in (self._kind, "offsets")}
        self._hashes = {part: sha256() for part in self._files}
        self._write("offsets", np.zeros(1, "<i8"))

    def append(self, rows: Sequence[Any]) -> None:
        encoded = [text.encode() for text in rows] if self._kind == "text" else rows
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        self._write(self._kind, self._flat(encoded, int(lengths.sum())))
        self._write("offsets", (self._end + lengths.cumsum()).astype("<i8"))
        self._end += int(lengths.sum())

    def _flat(self, rows: Sequence[Any], total: int) -> np.ndarray:
        if self._kind == "text":
            return np.frombuffer(b"".join(rows), np.uint8)
        if self._kind in ("float32", "uint8"):
            return np.concatenate([np.zeros(0, self._dtype), *(np.asarray(row, self._dtype) for row in rows)])
        ids = np.fromiter(chain.from_iterable(rows), np.int64, total)
        if len(ids) and not (ids.min() >= 0 and ids.max() < self._vocabulary):
            wrong = int(ids.max() if ids.min() >= 0 else ids.min())
            raise DataError(
                f'column "{self.name}": the id {wrong} is outside its vocabulary of {self._vocabulary}; '
                f"was the text encoded with another tokenizer?"
            )
        return ids.astype(self._dtype)

    def close(self) -> dict[str, Any]:
        """Flush the files to disk; the column's entry of the manifest."""
        sizes = {}
        for part, file in self._files.items():
            file.flush()
            os.fsync(file.fileno())
            sizes[part] = {"bytes": file.tell(), "sha256": self._hashes[part].hexdigest()}
            file.close()
        return {"kind": self._kind, "vocabulary": self._vocabulary, "dtype": self._dtype.name, **sizes}

    def discard(self) -> None:
        for file in self._files.values():
            with suppress(OSError):  # its buffer may not fit on the disk
                file.close()

    def _write(self, part: str, values: np.ndarray) -> None:
        self._files[part].write(values.data)
        self._hashes[part].update(values.data)


class ColumnLengths:
    """Lengths of a column's rows, computed for the rows that are indexed."""

    def __init__(self, offsets: np.ndarray) -> None:
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return self._offsets[rows + 1] - self._offsets[rows]


class Shards:
    """Rows of a folder that ShardWriter wrote, read from memory-mapped files."""

    def __init__(self, values: Arrays, offsets: Arrays, kinds: Mapping[str, str], metadata: Mapping[str, Any]) -> None:
        self.columns, self.metadata = tuple(values), metadata
        self._values, self._offsets, self._kinds = values, offsets, kinds

    @classmethod
    def open(cls, folder: str | Path) -> Shards:
        """Map the files of a folder into memory, after verifying their SHA-256."""
        folder = Path(folder)
        manifest = _read_manifest(folder)
        values, offsets, kinds = {}, {}, {}
        for name, column in manifest["columns"].items():
            kind = kinds[name] = column["kind"]
            dtype = np.dtype(column["dtype"]).newbyteorder("<")
            values[name] = _map_file(folder / f"{name}.{kind}", dtype, column[kind])
            offsets[name] = _map_file(folder / f"{name}.offsets", np.dtype("<i8"), column["offsets"])
        return cls(values, offsets, kinds, manifest["metadata"])

    def __len__(self) -> int:
        return len(self._offsets[self.columns[0]]) - 1

    def row(self, i: int) -> tuple[Any, ...]:
        """The values of row `i`, one per column."""
        return tuple(self.take(np.array([i]), column)[0] for column in self.columns)

    def lengths(self, column: str) -> ColumnLengths:
        """Lengths of the rows: ids, numbers, or bytes of a text."""
        return ColumnLengths(self._offsets[column])

    def length_statistics(self, column: str) -> dict[str, float]:
        """Tokens of a column: their total, and the mean, 99th percentile and maximum per row."""
        found = self.lengths(column)[np.arange(len(self))]
        mean, late, most = float(found.mean()), int(np.quantile(found, 0.99)), int(found.max())
        return {"tokens": int(found.sum()), "mean": round(mean, 2), "p99": late, "most": most}

    def flat(self, column: str) -> np.ndarray:
        """All values of a column, one row after the other, as a read-only view of the file."""
        return self._values[column]

    def take(self, rows: np.ndarray, column: str) -> list[Any]:
        """The values of many rows: read-only views of the file, or str where the column holds texts."""
        values, offsets = self._values[column], self._offsets[column]
        if len(rows) and rows.min() < 0:
            raise IndexError(f"row {rows.min()}: rows count from 0")
        found = [values[start:end] for start, end in zip(offsets[rows].tolist(), offsets[rows + 1].tolist())]
        return [row.tobytes().decode() for row in found] if self._kinds[column] == "text" else found


def _create_part(folder: Path) -> tuple[Path, int]:
    """An empty folder beside `folder`, and its lock; what a killed process left there is removed."""
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


def _replace_folder(part: Path, folder: Path) -> None:
    old = folder.parent / f".{folder.name}.old"
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    part.rename(folder)
    fsync_folder(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _write_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"{folder} cannot be written: {error.strerror or error}") from None


def _manifest_sha256(manifest: Mapping[str, Any]) -> str:
    return sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        manifest = parse_json(read_bounded(path, MAX_MANIFEST))
        if manifest.pop("sha256") != _manifest_sha256(manifest):
            raise ValueError
    except FileNotFoundError:
        raise InputError(f"{folder} holds no prepared data: there is no {MANIFEST}; prepare the data first") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{path} is damaged; prepare the data again") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    if manifest["format"] != FORMAT:
        raise DataError(f"{path}: expected format {FORMAT}, found {manifest['format']}; prepare the data again")
    return manifest


def _map_file(path: Path, dtype: np.dtype, expected: Mapping[str, Any]) -> np.ndarray:
    try:
        with open_regular(path) as file:
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
