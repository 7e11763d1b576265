"""Manifest of a checkpoint: size and SHA-256 of every file, and which names share one weight.

It holds the digest of its own content and has exactly one serialization, so a changed byte anywhere in a checkpoint is
detected, even a space in the manifest.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import ModelError
from regard.files import FileDigest, file_sha256, parse_json, read_bounded
from regard.manifest import (
    MAX_MANIFEST,
    NAME,
    canonical_json,
    files_to_dict,
    other_format,
    parse_files,
    render_manifest,
)

FORMAT = 2
"""Checkpoint format that this version writes and reads; 2 since the weights have the field's names."""

FILE_NAME = re.compile(r"[a-z][a-z0-9_]*\.(safetensors|json)")
"""Allowed file names: never a path, so that a manifest cannot point out of its directory."""


@dataclass(frozen=True)
class Manifest:
    """Expected content of a checkpoint directory."""

    step: int
    """Updates of the weights so far."""
    files: Mapping[str, FileDigest]
    """File name -> size and SHA-256."""
    tied: Mapping[str, Mapping[str, str]]
    """Tensor group -> alias -> name under which the tensor is stored."""

    def body(self) -> dict[str, Any]:
        """The content as plain data, without the digest."""
        tied = {group: dict(table) for group, table in self.tied.items()}
        return {"files": files_to_dict(self.files), "format": FORMAT, "step": self.step, "tied": tied}

    def digest(self) -> str:
        """SHA-256 of the whole checkpoint: equal if and only if every tensor and the state are."""
        return hashlib.sha256(canonical_json(self.body())).hexdigest()

    def render(self) -> bytes:
        """The bytes of manifest.json."""
        return render_manifest(self.body())


def parse(data: bytes, path: Path) -> Manifest:
    """Parse the bytes of the manifest at a path, or raise a ModelError."""
    try:
        content = parse_json(data.decode())
    except ValueError:
        raise _damaged(path, "is not valid JSON") from None
    if not isinstance(content, dict) or not isinstance(content.get("format"), int):
        raise _damaged(path, "names no checkpoint format")
    if content["format"] != FORMAT:
        raise other_format(_run_of(path.parent), "checkpoint", content["format"], FORMAT)
    try:
        files = parse_files(content["files"])
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
    """Read the manifest of a checkpoint directory."""
    path = folder / NAME
    try:
        if not folder.is_dir():
            raise ModelError(f"{folder}: there is no checkpoint; expected a directory with a {NAME}")
        if not path.is_file():
            raise ModelError(f"{folder} is not a checkpoint: {NAME} is missing")
        data = read_bounded(path, MAX_MANIFEST)
    except OSError as error:
        raise read_error(path, error) from error
    return parse(data, path)


def verify(folder: Path, manifest: Manifest) -> None:
    """Check size and SHA-256 of every file; a ModelError names the first that differs."""
    verify_sizes(folder, manifest)
    for name, expected in manifest.files.items():
        verify_file(folder / name, expected)


def verify_sizes(folder: Path, manifest: Manifest) -> None:
    """Check that every file is there and has its size: the quick half of `verify`."""
    for name, expected in manifest.files.items():
        path = folder / name
        try:
            if not path.is_file():
                raise _damaged(folder, f"{name} is missing")
            found = path.stat().st_size
        except OSError as error:
            raise read_error(path, error) from error
        if found != expected.size:
            raise _damaged(path, f"expected {expected.size:,} bytes, found {found:,}")


def verify_file(path: Path, expected: FileDigest) -> None:
    """Check the SHA-256 of one file: the slow half of `verify`."""
    try:
        found = file_sha256(path)
    except OSError as error:
        raise read_error(path, error) from error
    if found != expected.sha256:
        raise _damaged(path, f"its bytes have changed (SHA-256 {expected.sha256[:8]} expected, {found[:8]} found)")


def _run_of(folder: Path) -> Path:
    return folder.parents[1] if folder.parent.name == "checkpoints" else folder.parent


def _damaged(path: Path, what: str) -> ModelError:
    return ModelError(f"{path}: {what}; this checkpoint is damaged, use another")


def read_error(path: Path, error: OSError) -> ModelError:
    """The ModelError for a file that cannot be opened or read."""
    return ModelError(f"{path}: cannot be read ({error.strerror or error})")
