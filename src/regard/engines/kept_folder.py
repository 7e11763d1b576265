"""Folders that an engine reads, made once from a checkpoint and kept in the run, else in the user's cache.

A folder lists size and SHA-256 of its files and the weights that it was made from. One that does not agree, such as
after more training or on a damaged disk, is made again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from regard.data.download.datasets import cache_folder
from regard.errors import OutputError, RunLocked
from regard.files import FileDigest, cannot_write, file_sha256, fsync_folder, read_bounded, temporary_name, write_file
from regard.manifest import MAX_MANIFEST, files_to_dict, parse_files, parse_manifest, render_manifest
from regard.packs import is_pack
from regard.run_lock import RunLock
from regard.train.checkpoint import Checkpoint
from regard.train.checkpoint_store import run_folder

ENGINES, LISTING = "engines", "engine.json"
WEIGHTS = "model.safetensors"


def kept_folder(path: Path, saved: Checkpoint, name: str, write: Callable[[Path], None]) -> Path:
    """The folder of an engine for a checkpoint: in the run; of a pack, or a run that cannot be written, in the cache.

    `name` says which engine, in which precision and version; `write` fills an empty folder.
    """
    digest = saved.manifest.files[WEIGHTS].sha256
    run = run_folder(path)
    in_run, in_cache = run / ENGINES, cache_folder() / ENGINES / digest[:32]
    for home in (in_run, in_cache):
        if is_whole(home / name, digest):
            return home / name
    if not is_pack(path):
        try:
            with RunLock(run):
                if not is_whole(in_run / name, digest):  # another process may have made it meanwhile
                    make_folder(in_run / name, digest, write)
            return in_run / name
        except (RunLocked, OutputError):  # in training, on a read-only disk, or without room
            pass
    make_folder(in_cache / name, digest, write)
    return in_cache / name


def make_folder(folder: Path, digest: str, write: Callable[[Path], None]) -> None:
    """Fill a folder under a temporary name beside it, list its files, and rename it."""
    temporary = folder.with_name(temporary_name(folder.name))
    try:
        temporary.mkdir(parents=True)
        write(temporary)
        files = {file.name: FileDigest(file.stat().st_size, file_sha256(file)) for file in sorted(temporary.iterdir())}
        write_file(temporary / LISTING, [render_manifest({"files": files_to_dict(files), "weights": digest})])
        if folder.exists():
            folder.rename(temporary / "replaced")
        temporary.rename(folder)
        shutil.rmtree(folder / "replaced", ignore_errors=True)
        fsync_folder(folder.parent)
    except OSError as error:
        raise cannot_write(folder, 0, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def is_whole(folder: Path, digest: str) -> bool:
    """Whether a folder was made from these weights and has all of its files, to the byte."""
    try:
        content = parse_manifest(read_bounded(folder / LISTING, MAX_MANIFEST))
        files = parse_files(content["files"])
        return content["weights"] == digest and all(
            (folder / name).stat().st_size == file.size and file_sha256(folder / name) == file.sha256
            for name, file in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
