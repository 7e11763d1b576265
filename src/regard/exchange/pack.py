"""Packing: the best checkpoint of a run and the files that its model needs, as one file; and unpacking."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import regard
from regard.errors import InputError, ModelError, OutputError
from regard.files import cannot_write, digest_bytes, fsync_folder, read_bounded, temporary_name
from regard.manifest import MAX_KEPT, RECIPE, RunManifest, read_kept, require_manifest
from regard.manifest import NAME as MANIFEST
from regard.model_card import CARD_FILE, render_model_card
from regard.packs import PackMember, extract_pack, is_pack, write_pack
from regard.progress import Progress, no_progress
from regard.run import Run, choose_checkpoint
from regard.tasks.init_weights import INIT_FILE
from regard.train.checkpoint import STATE, Checkpoint
from regard.train.checkpoint_store import FOLDER, run_folder
from regard.train.manifest import Manifest
from regard.train.state import TrainReport

WEIGHTS = "model.safetensors"
OPTIONAL = ("environment.json", INIT_FILE)
"""files of a run that a pack takes along if they are there"""
FROM_STATE = ("step", "steps", "best", "device", "threads", "processes")
"""what a pack keeps of the training state: figures, and nothing to resume from"""


def pack_run(path: Path, out: Path, progress: Progress = no_progress) -> None:
    """Write the model of a run, or one of its checkpoints, as a pack; `out` appears when it is complete."""
    if is_pack(path):
        raise InputError(f"{path} is a pack already; copy the file")
    members = pack_members(path)
    with write_beside(out) as temporary:
        try:
            write_pack(temporary, members, regard.__version__, progress)
        except OSError as error:
            raise cannot_write(out, sum(member.digest.size for member in members.values()), error) from error


def unpack_run(path: Path, out: Path, progress: Progress = no_progress) -> None:
    """Extract a pack into a new run directory, which appears when all of it is checked and written."""
    if not is_pack(path):
        what = "it is not a pack" if path.exists() else "there is no such file"
        raise InputError(f"{path}: {what}; expected a file that regard pack wrote")
    with write_beside(out) as temporary:
        temporary.mkdir()
        extract_pack(path, temporary, progress, durable=True)


@contextmanager
def write_beside(out: Path) -> Iterator[Path]:
    """Context with a temporary name beside `out`, renamed to it at the end; after an error nothing is left."""
    if out.exists() or out.is_symlink():
        raise OutputError(f"{out} exists already; name another with -o")
    temporary = out.with_name(temporary_name(out.name))
    try:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            if out.exists():  # another process made it meanwhile
                raise OutputError(f"{out} exists already; name another with -o")
            temporary.rename(out)
            fsync_folder(out.parent)
        except OSError as error:
            raise cannot_write(out, 0, error) from error
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def pack_members(path: Path) -> dict[str, PackMember]:
    """The files of a pack by name, small ones first: those of the run, and its checkpoint without training state."""
    run = run_folder(path)
    recipe = Run(run).recipe()
    saved, _ = choose_checkpoint(path)
    listed = require_manifest(run)
    try:
        kept = {name: read_kept(run / name) for name in (RECIPE, *listed.artifacts)}
        others = {name: read_bounded(run / name, MAX_KEPT) for name in OPTIONAL if (run / name).is_file()}
        card = read_bounded(run / CARD_FILE, MAX_KEPT) if (run / CARD_FILE).is_file() else None
    except OSError as error:
        raise ModelError(f"{error.filename or run}: cannot be read ({error.strerror or error})") from error
    if card is None:  # of a run that is still in training, or was averaged
        card = render_model_card(run, recipe, TrainReport(saved.step, "done", saved.state.get("best", {}))).encode()
    own = RunManifest({name: digest_bytes(data) for name, data in kept.items()})
    small = {**kept, MANIFEST: own.render(), **others, CARD_FILE: card}
    return {name: PackMember.of_bytes(data) for name, data in small.items()} | checkpoint_members(saved)


def checkpoint_members(saved: Checkpoint) -> dict[str, PackMember]:
    """The weights of a checkpoint and what is known of their training, under the one name that a pack has for them."""
    if WEIGHTS not in saved.manifest.files:
        raise ModelError(f"{saved.path}: there is no {WEIGHTS}; it holds {', '.join(saved.groups) or 'no tensors'}")
    state = {name: saved.state[name] for name in FROM_STATE if name in saved.state}
    text = json.dumps({"regard": saved.regard, "state": state}, indent=1, sort_keys=True).encode() + b"\n"
    weights = saved.manifest.files[WEIGHTS]
    tied = {group: table for group, table in saved.manifest.tied.items() if group == "model"}
    listed = Manifest(saved.step, {WEIGHTS: weights, STATE: digest_bytes(text)}, tied)
    folder = f"{FOLDER}/{saved.step:08}"
    return {
        **{link: PackMember.of_bytes(folder.encode()) for link in ("best", "last")},  # read as links by every reader
        f"{folder}/{MANIFEST}": PackMember.of_bytes(listed.render()),
        f"{folder}/{STATE}": PackMember.of_bytes(text),
        f"{folder}/{WEIGHTS}": PackMember.of_file(saved.path / WEIGHTS, weights),
    }
