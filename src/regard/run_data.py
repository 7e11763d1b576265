"""Prepared data of a run, in RUN/data: prepared once, with its artifacts installed in the run; shared by links."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.data import shards
from regard.errors import Interrupted, ModelError, RegardError, Terminated
from regard.files import (
    cannot_write,
    create_folder,
    digest_bytes,
    link_or_copy,
    parse_json,
    read_bounded,
    write_text_atomically,
)
from regard.manifest import digest_artifact, install_artifacts, read_kept, read_run_manifest
from regard.progress import Progress
from regard.run_lock import remove_run
from regard.tasks import Recipe
from regard.tasks.init_recipe import tokenizer_digests, tokenizer_files
from regard.train import checkpoint_store

FOLDER = "data"
IDENTITY, COUNTS = "identity.json", "counts.json"
"""the settings that the data was prepared by, written last; and what was counted"""
MAX_SIZE = 16 << 20


def prepare_data(run: Path, recipe: Recipe, progress: Progress) -> None:
    """Prepare the training data unless that is done; artifacts that the model needs move to the run's folder."""
    if is_prepared(run, recipe):
        return
    folder, preparation = run / FOLDER, recipe.preparation()
    if (home := _tokenizer_home(recipe, run)) is not None:
        text = replace(recipe.text, tokenizer=home)  # type: ignore[attr-defined]
        preparation = replace(recipe, text=text).preparation()  # type: ignore[call-arg]
    create_folder(folder)
    (folder / IDENTITY).unlink(missing_ok=True)  # marks the data as incomplete until the end
    for old in find_artifacts(folder, recipe):
        old.unlink()
    counts = json.dumps(preparation.run(folder, progress), indent=1) + "\n"
    write_text_atomically(folder / COUNTS, counts)
    install(run, find_artifacts(folder, recipe))
    identity = {**_identity(recipe, run), COUNTS: digest_bytes(counts.encode()).sha256}
    write_text_atomically(folder / IDENTITY, json.dumps(identity, indent=1) + "\n")


@contextmanager
def discard_unprepared(run: Path) -> Iterator[None]:
    """Context that removes the folders that it made for a new run if an error ends it before the data is prepared.

    After an interruption they stay: the same command goes on there.
    """
    missing = [folder for folder in (run, *run.parents) if not folder.exists()]
    try:
        yield
    except RegardError as error:
        resumable = isinstance(error, (Interrupted, Terminated)) or (run / FOLDER / IDENTITY).exists()
        if run in missing and run.is_dir() and not resumable and not checkpoint_store.checkpoints(run):
            with suppress(RegardError, OSError):  # another process has begun a run there
                remove_run(run)
                for folder in missing[1:]:
                    folder.rmdir()
        raise


def install(run: Path, artifacts: Sequence[Path]) -> None:
    """Move artifacts to the run's folder; those that its checkpoints were trained with are never replaced."""
    listed = read_run_manifest(run) if checkpoint_store.checkpoints(run) else None
    if listed is not None and listed.artifacts:
        for file in artifacts:
            if not listed.accepts(file.name, digest_artifact(file)):
                raise ModelError(
                    f"{run}: preparing its data again gave another {file.name} than its checkpoints were trained "
                    "with; use --out for a new run, or --fresh to start this one again"
                )
    try:
        install_artifacts(run, artifacts)
    except OSError as error:
        raise cannot_write(run, 0, error) from error


def is_prepared(run: Path, recipe: Recipe) -> bool:
    """Whether the data is prepared by the settings of this recipe, and whole."""
    folder = run / FOLDER
    if find_artifacts(folder, recipe):  # one there was not installed yet
        return False
    try:
        made, counts = (read_bounded(folder / name, MAX_SIZE) for name in (IDENTITY, COUNTS))
        expected = {**_identity(recipe, run), COUNTS: digest_bytes(counts).sha256}
        if parse_json(made) != json.loads(json.dumps(expected)):
            return False
        listed = read_run_manifest(run)
        for name in listed.artifacts if listed else ():
            read_kept(run / name)
    except (OSError, ValueError, ModelError):  # prepared again, and refused if that gives other artifacts
        return False
    names = listed.artifacts if listed else ()
    return all(fnmatch.filter(names, pattern) for pattern in recipe.artifacts)


def share_data(run: Path, other: Path, recipe: Recipe) -> None:
    """Give the prepared data to another run of the same data: hard links where possible, else copies."""
    if is_prepared(other, recipe):
        return
    data, last = run / FOLDER, run / FOLDER / IDENTITY
    (other / FOLDER / IDENTITY).unlink(missing_ok=True)
    for file in [file for file in sorted(data.rglob("*")) if file.is_file() and file != last]:
        link_or_copy(file, other / file.relative_to(run))
    listed = read_run_manifest(run)
    names = listed.artifacts if listed else []
    for name in names:
        link_or_copy(run / name, other / FOLDER / name)
    install(other, [other / FOLDER / name for name in names])
    link_or_copy(last, other / FOLDER / IDENTITY)


def find_artifacts(folder: Path, recipe: Recipe) -> list[Path]:
    """The files in a folder that a model of the recipe needs."""
    return [file for pattern in recipe.artifacts for file in sorted(folder.glob(pattern))]


def _identity(recipe: Recipe, run: Path) -> dict[str, Any]:
    """What prepared data depends on: the settings, the format of the files, and a tokenizer that was not trained."""
    found = {**recipe.preparation().identity(), "shards": shards.FORMAT}
    home = _tokenizer_home(recipe, run)
    if home is None or "text" not in found:
        return found
    text = {name: value for name, value in found["text"].items() if name != "tokenizer"}
    return {**found, "text": text, "tokenizer": tokenizer_digests(home)}


def _tokenizer_home(recipe: Recipe, run: Path) -> Path | None:
    """Where text.tokenizer is: at the place that it names; or in `run`, once that is trained, or the place is gone."""
    taken: Path | None = getattr(getattr(recipe, "text", None), "tokenizer", None)
    if taken is None or not tokenizer_files(run):
        return taken
    return run if checkpoint_store.checkpoints(run) or not tokenizer_files(taken) else taken
