"""Manifests: size and SHA-256 of files in canonical JSON that holds its own digest; and the manifest of a run.

RUN/manifest.json lists recipe.toml and the artifacts that the model needs to answer (tokenizers, labels, scales,
vocabularies). Whatever is read of a run goes through `read_kept`, which checks the bytes that it returns. Weights and
training state have manifests of their own, in each checkpoint (train/manifest.py).

A listed file is replaced in three steps: the manifest first lists the new digest as pending beside the old one, then
the file is replaced, then the manifest lists the new one only. So a crash at any moment leaves a whole older or newer
file under a manifest that accepts it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard import config
from regard.errors import ModelError
from regard.files import FileDigest, digest_bytes, move_file, parse_json, read_bounded, write_bytes_atomically
from regard.program import quote_path

NAME = "manifest.json"
RECIPE = "recipe.toml"
FORMAT = 1
"""Format of a run's folder that this version writes and reads"""
MAX_MANIFEST = 16 << 20
"""bytes of the largest manifest"""
MAX_KEPT = 128 << 20
"""bytes of the largest file that a run keeps beside its checkpoints; a larger one is not installed"""


class OtherVersion(ModelError):
    """A run that another version of regard saved in a format that this one does not read."""


def canonical_json(data: Mapping[str, Any]) -> bytes:
    """The one serialization of a manifest: any changed byte, even a space, gives other bytes."""
    return (json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def render_manifest(body: Mapping[str, Any]) -> bytes:
    """The bytes of a manifest: its content, and the SHA-256 of it."""
    return canonical_json({"digest": hashlib.sha256(canonical_json(body)).hexdigest(), **body})


def parse_manifest(data: bytes) -> dict[str, Any]:
    """The content of a manifest without its digest; ValueError unless they agree to the last byte."""
    content = parse_json(data)
    if not isinstance(content, dict) or not isinstance(content.pop("digest", None), str):
        raise ValueError("expected an object with a digest")
    if render_manifest(content) != data:
        raise ValueError("content and digest do not agree")
    return content


def files_to_dict(files: Mapping[str, FileDigest]) -> dict[str, Any]:
    """Digests of files as plain JSON."""
    return {name: {"sha256": file.sha256, "size": file.size} for name, file in sorted(files.items())}


def parse_files(table: Mapping[str, Any]) -> dict[str, FileDigest]:
    """The digests that `files_to_dict` gave."""
    return {name: FileDigest(int(file["size"]), str(file["sha256"])) for name, file in table.items()}


def other_format(run: Path, what: str, found: int, known: int) -> OtherVersion:
    """The error about a run in another format: `what` is run or checkpoint."""
    age, remedy = ("an earlier", "train it again") if found < known else ("a later", "upgrade regard")
    formats = f"{what} format {found}; this one reads {known}"
    return OtherVersion(f"{run} was saved by {age} version of regard ({formats}); {remedy}")


@dataclass(frozen=True)
class RunManifest:
    """Expected content of the files of a run.

    >>> RunManifest({"recipe.toml": digest_bytes(b"seed = 1")}).accepts("recipe.toml", digest_bytes(b"seed = 2"))
    False
    """

    files: Mapping[str, FileDigest]
    pending: Mapping[str, FileDigest] = field(default_factory=dict)
    """files that are being replaced: accepted too"""

    @property
    def artifacts(self) -> list[str]:
        """Names of the listed files, without the recipe."""
        return sorted(name for name in self.files if name != RECIPE)

    def accepts(self, name: str, found: FileDigest) -> bool:
        """Whether a file of this name may have this content."""
        return found in (self.files.get(name), self.pending.get(name))

    def render(self) -> bytes:
        """The bytes of manifest.json."""
        pending = {"pending": files_to_dict(self.pending)} if self.pending else {}
        return render_manifest({"files": files_to_dict(self.files), "format": FORMAT, **pending})


def read_run_manifest(run: Path) -> RunManifest | None:
    """The manifest of a run; None if it has none, a ModelError if it cannot be used."""
    path = run / NAME
    try:
        data = read_bounded(path, MAX_MANIFEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror or error})") from error
    try:
        content = parse_json(data)
        if isinstance(content, dict) and type(content.get("format")) is int and content["format"] != FORMAT:
            raise other_format(run, "run", content["format"], FORMAT)
        content = parse_manifest(data)
        return RunManifest(parse_files(content["files"]), parse_files(content.get("pending", {})))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ModelError(
            f"{path} is damaged: its content and its digest do not agree, so the files of the run cannot be checked; "
            "restore it from a copy, or remove it and resume the training, which lists the files as they are"
        ) from None


def require_manifest(run: Path) -> RunManifest:
    """The manifest of a run whose model is to be used; one without it is refused."""
    found = read_run_manifest(run)
    if found is None or RECIPE not in found.files:
        what = f"{NAME} is missing" if found is None else f"{NAME} does not list {RECIPE}"
        raise ModelError(
            f"{run}: {what}, so its files cannot be checked; an earlier version of regard saved it, or it was copied "
            f"in part. Copy it again, or write the manifest by resuming the training: regard train {quote_path(run)}"
        )
    return found


def read_kept(path: Path, limit: int = MAX_KEPT) -> bytes:
    """The bytes of a file of a run, checked against the run's manifest; elsewhere only kind and size are checked.

    Raises OSError if it cannot be read, and ModelError if it is not what the manifest lists.
    """
    listed = _manifest_beside(path)
    if listed is None:
        return read_bounded(path, limit)
    expected = listed.files.get(path.name) or listed.pending.get(path.name)
    if expected is None:
        raise ModelError(f"{path} is not listed in {NAME}; it does not belong to this run")
    if not os.path.lexists(path):
        raise _changed(path, "it is missing")
    size, sizes = path.stat().st_size, {expected.size, listed.pending.get(path.name, expected).size}
    if size not in sizes and path.is_file():
        raise _changed(path, f"expected {expected.size:,} bytes, found {size:,}")
    data = read_bounded(path, limit)
    if not listed.accepts(path.name, found := digest_bytes(data)):
        raise _changed(
            path, f"its bytes have changed (SHA-256 {expected.sha256[:8]} expected, {found.sha256[:8]} found)"
        )
    return data


def _manifest_beside(path: Path) -> RunManifest | None:
    """The manifest of the run that a file lies in; a manifest.json of another program is none."""
    try:
        return read_run_manifest(path.parent)
    except ModelError:
        if (path.parent / RECIPE).exists():
            raise
        return None


def _changed(path: Path, what: str) -> ModelError:
    edit = "; settings are changed with regard train RUN KEY=VALUE, not in this file" if path.name == RECIPE else ""
    return ModelError(f"{path}: {what}; this run is damaged, restore the file from a copy{edit}")


def check_is_run(run: Path, where: str = "") -> None:
    """Refuse a path that is not a run directory; `where` names the setting that gave it, such as "model.init: "."""
    if not os.path.lexists(run / RECIPE):
        missing = "it is a file, expected a directory" if run.is_file() else "there is no such directory"
        why = f"it has no {RECIPE}" if run.is_dir() else missing
        raise ModelError(f"{where}{run} is not a run: {why}")


def read_recipe_table(run: Path) -> config.Table:
    """The tables of a run's recipe.toml, checked against its manifest."""
    check_is_run(run)
    try:
        return config.parse_toml(read_kept(run / RECIPE, config.MAX_SIZE), run / RECIPE)
    except OSError as error:
        raise ModelError(f"{run / RECIPE}: cannot be read ({error.strerror or error})") from error


def write_recipe(run: Path, text: str) -> None:
    """Replace recipe.toml and list it in the manifest; nothing is written if nothing changes."""
    data = text.encode()
    old, found = _manifest_or_new(run), digest_bytes(data)
    if old.files.get(RECIPE) == found and not old.pending and _holds(run / RECIPE, data):
        return
    _write(run, RunManifest(old.files, {**old.pending, RECIPE: found}))
    write_bytes_atomically(run / RECIPE, data)
    _write(run, RunManifest({**old.files, RECIPE: found}))


def install_artifacts(run: Path, artifacts: Iterable[Path]) -> None:
    """Move artifacts into a run's folder, list them in its manifest, and remove those that were there before."""
    moved = {file.name: file for file in artifacts}
    digests = {name: digest_artifact(file) for name, file in moved.items()}
    old = _manifest_or_new(run)
    recipe = {RECIPE: old.files[RECIPE]} if RECIPE in old.files else {}
    _write(run, RunManifest(old.files, digests))
    for name, file in moved.items():
        move_file(file, run / name)
    for name in old.artifacts:
        if name not in moved:
            (run / name).unlink(missing_ok=True)
    _write(run, RunManifest({**recipe, **digests}))


def list_files(run: Path, artifacts: Iterable[Path]) -> None:
    """Write the manifest of a run whose files are all in place: recipe.toml, if there is one, and its artifacts."""
    found = [file for file in (run / RECIPE, *artifacts) if file.is_file()]
    _write(run, RunManifest({file.name: digest_artifact(file) for file in found}))


def digest_artifact(path: Path) -> FileDigest:
    """Size and SHA-256 of a file that a run is to keep; one that would be too large to read is refused."""
    try:
        return digest_bytes(read_bounded(path, MAX_KEPT))
    except OSError as error:
        raise ModelError(f"{path}: cannot be kept in a run ({error.strerror or error})") from error


def _manifest_or_new(run: Path) -> RunManifest:
    try:
        return read_run_manifest(run) or RunManifest({})
    except OtherVersion:
        raise
    except ModelError:  # callers refuse a damaged one where checkpoints could be lost
        return RunManifest({})


def _holds(path: Path, data: bytes) -> bool:
    try:
        return read_bounded(path, len(data)) == data
    except OSError:
        return False


def _write(run: Path, manifest: RunManifest) -> None:
    write_bytes_atomically(run / NAME, manifest.render())
