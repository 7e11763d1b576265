"""The manifest of a checkpoint: size and SHA-256 of every file, and which names stand for one weight.

It protects itself too: it holds the digest of its own content and has exactly one way to be written, so
a changed byte anywhere in a checkpoint is noticed, a blank in the manifest included.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import ModelError
from regard.files import Written

FORMAT = 1
"""The version of the checkpoint directory that this regard writes and reads."""

NAME = "manifest.json"
LARGEST = 16 << 20
FILE_NAME = re.compile(r"[a-z][a-z0-9_]*\.(safetensors|json)")
"""What a file may be called: never a path, so that a manifest cannot point out of its directory."""


@dataclass(frozen=True)
class Manifest:
    """What a checkpoint directory must hold, to the last bit.

    >>> Manifest(800, files={"state.json": Written(2, "44136fa355b3678a")}, tied={}).step
    800
    """

    step: int
    """The number of updates the weights have seen."""
    files: Mapping[str, Written]
    """File name -> its size and SHA-256."""
    tied: Mapping[str, Mapping[str, str]]
    """Group of tensors -> alias -> the name under which the tensor is stored."""

    def body(self) -> dict[str, Any]:
        """The content as plain data, without the digest.

        >>> Manifest(800, {}, {}).body()
        {'files': {}, 'format': 1, 'step': 800, 'tied': {}}
        """
        files = {name: {"sha256": held.sha256, "size": held.size} for name, held in sorted(self.files.items())}
        tied = {group: dict(table) for group, table in self.tied.items()}
        return {"files": files, "format": FORMAT, "step": self.step, "tied": tied}

    def digest(self) -> str:
        """One hash for the whole checkpoint: equal where every tensor and every number of the state are.

        >>> Manifest(800, {}, {}).digest()[:16]
        '11252c72592405d2'
        """
        return hashlib.sha256(_canonical(self.body())).hexdigest()

    def render(self) -> bytes:
        """The bytes of manifest.json.

        >>> parse(Manifest(800, {}, {}).render(), Path("manifest.json"))
        Manifest(step=800, files={}, tied={})
        """
        return _canonical({"digest": self.digest(), **self.body()})


def _canonical(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def parse(data: bytes, path: Path) -> Manifest:
    """Read the bytes of a manifest that lies at a path, or say why they are none.

    >>> parse(b"{", Path("run/last/manifest.json"))
    Traceback (most recent call last):
    regard.errors.ModelError: run/last/manifest.json: is not JSON any more; this checkpoint is damaged, use another
    """
    try:
        content = json.loads(data.decode())
    except (ValueError, RecursionError):
        raise _damaged(path, "is not JSON any more") from None
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise _damaged(path, "names no checkpoint format")
    if content["format"] != FORMAT:
        raise ModelError(
            f"{path.parent} was written by checkpoint format {content['format']}; this regard reads format {FORMAT}; "
            f"use the version of regard that wrote it"
        )
    try:
        files = {name: Written(int(held["size"]), str(held["sha256"])) for name, held in content["files"].items()}
        tied = {group: {str(k): str(v) for k, v in table.items()} for group, table in content["tied"].items()}
        manifest = Manifest(int(content["step"]), files, tied)
        unchanged = manifest.render() == data
    except (KeyError, TypeError, ValueError, AttributeError):
        unchanged = False
    if not unchanged:
        raise _damaged(path, "its content and its digest do not agree")
    for name in files:
        if not FILE_NAME.fullmatch(name):
            raise ModelError(
                f"{path}: {name!r} is not the name of a file of a checkpoint; do not trust where it came from"
            )
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a checkpoint directory.

    >>> read_manifest(Path("nowhere"))
    Traceback (most recent call last):
    regard.errors.ModelError: nowhere: there is no checkpoint; expected a directory with a manifest.json
    """
    path = folder / NAME
    try:
        if not folder.is_dir():
            raise ModelError(f"{folder}: there is no checkpoint; expected a directory with a {NAME}")
        if not path.is_file():
            raise ModelError(f"{folder} is not a checkpoint: {NAME} is missing")
        if path.stat().st_size > LARGEST:
            raise _damaged(path, f"expected at most {LARGEST:,} bytes, found {path.stat().st_size:,}")
        data = path.read_bytes()
    except OSError as error:
        raise cannot_read(path, error) from error
    return parse(data, path)


def verify(folder: Path, manifest: Manifest) -> None:
    """Raise a ModelError that names the file unless every file is what the manifest says.

    >>> verify(Path("nowhere"), Manifest(800, {"state.json": Written(2, "44")}, {}))
    Traceback (most recent call last):
    regard.errors.ModelError: nowhere: state.json is missing; this checkpoint is damaged, use another
    """
    verify_sizes(folder, manifest)
    for name, expected in manifest.files.items():
        verify_file(folder / name, expected)


def verify_sizes(folder: Path, manifest: Manifest) -> None:
    """The quick half of verify: every file is there and has its size.

    >>> verify_sizes(Path("nowhere"), Manifest(800, {}, {}))
    """
    for name, expected in manifest.files.items():
        path = folder / name
        try:
            if not path.is_file():
                raise _damaged(folder, f"{name} is missing")
            found = path.stat().st_size
        except OSError as error:
            raise cannot_read(path, error) from error
        if found != expected.size:
            raise _damaged(path, f"expected {expected.size:,} bytes, found {found:,}")


def verify_file(path: Path, expected: Written) -> None:
    """The slow half of verify: the bytes of one file are those that were written.

    >>> import tempfile
    >>> from regard.files import write_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "state.json"
    ...     verify_file(path, write_file(path, [b"{}"]))
    """
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise cannot_read(path, error) from error
    if found != expected.sha256:
        raise _damaged(path, f"its bytes have changed (SHA-256 {expected.sha256[:8]} expected, {found[:8]} found)")


def _damaged(path: Path, what: str) -> ModelError:
    return ModelError(f"{path}: {what}; this checkpoint is damaged, use another")


def cannot_read(path: Path, error: OSError) -> ModelError:
    """The error for a part of a checkpoint that the system does not let us read.

    >>> print(cannot_read(Path("run/last/state.json"), PermissionError(13, "Permission denied")))
    run/last/state.json: cannot be read (Permission denied)
    """
    return ModelError(f"{path}: cannot be read ({error.strerror or error})")
