"""Crash-safe checkpoint writing: written under a temporary name, flushed to disk, renamed, linked; old ones pruned.

RUN/checkpoints/00000800    never changed once it has this name
RUN/checkpoints/00000800-2  the same step saved again with other content, after a resume; the higher number counts
RUN/checkpoints/.tmp-...    unfinished or half removed; deleted by the next writer
RUN/last, RUN/best          relative links, replaced atomically; copied folders or text files in their place work too

At every moment, and after kill -9 or a power cut at any moment, the links name complete checkpoints or nothing.
A run has one writer at a time and any number of readers.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from regard.errors import ModelError
from regard.files import TEMPORARY, create_folder, fsync_folder, open_regular, read_bounded, temporary_name, write_file
from regard.manifest import MAX_MANIFEST
from regard.packs import pack_folder
from regard.train.manifest import NAME, read_manifest, verify, verify_sizes

Link = Literal["last", "best"]
FOLDER = "checkpoints"
CHECKPOINT_NAME = re.compile(r"(\d{8,})(?:-(\d{1,6}))?")
NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP)


def run_folder(path: str | Path) -> Path:
    """The run of a path: the path itself, the run that a checkpoint belongs to, or the folder of an opened pack.

    >>> run_folder("runs/a/checkpoints/00000100").as_posix(), run_folder("runs/a/best").as_posix()
    ('runs/a', 'runs/a')
    """
    at = pack_folder(path)
    if (at / "recipe.toml").exists():  # a run may itself be called "best", or lie in "checkpoints"
        return at
    return at.parents[1] if at.parent.name == "checkpoints" else at.parent if at.name in ("best", "last") else at


def parse_name(folder: Path) -> tuple[int, int] | None:
    """Step and revision of a checkpoint by its folder's name, or None for any other name."""
    match = CHECKPOINT_NAME.fullmatch(folder.name)
    return (int(match[1]), int(match[2] or 1)) if match else None


def checkpoints(run: Path) -> list[Path]:
    """All checkpoint folders of a run, good or damaged, oldest first."""
    try:
        found = [path for path in (run / FOLDER).iterdir() if parse_name(path) and path.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(found, key=_step_and_revision)


def _step_and_revision(folder: Path) -> tuple[int, int]:
    found = parse_name(folder)
    assert found is not None, folder
    return found


def resolve_link(run: Path, link: Link) -> Path | None:
    """Folder that `last` or `best` names: through a link, a directory that was copied there, or a text file."""
    path = run / link
    if path.is_symlink():
        target = path.readlink()
        path = run / target
        if path.is_dir() and not any(path.resolve().is_relative_to((run / own).resolve()) for own in ("", FOLDER)):
            raise ModelError(f"{run / link} leads out of the run, to {target}; remove the link, or copy what it names")
    elif path.is_file():  # some tools store a link as a file that holds its target
        with open_regular(path) as file:
            parent, _, name = file.read(100).decode(errors="replace").strip().partition("/")
        if parent != FOLDER or not CHECKPOINT_NAME.fullmatch(name):
            return None
        path = run / FOLDER / name
    return path if path.is_dir() else None


def search_order(run: Path) -> list[Path]:
    """Folders to try for the newest good checkpoint, in order: `last`, those before it, then those after it.

    One after `last` was committed when the writer died before it moved the link, or is left over from before the run
    was rolled back; `last` is right in both cases.
    """
    newest_first = checkpoints(run)[::-1]
    last = resolve_link(run, "last")
    if last is None:
        return newest_first
    found = parse_name(last)
    if found is None or last.parent.name != FOLDER:
        return [last, *newest_first]
    before = [path for path in newest_first if _step_and_revision(path) < found]
    after = [path for path in newest_first if _step_and_revision(path) > found]
    return [last, *before, *after]


def commit(run: Path, step: int, write: Callable[[Path], None]) -> Path:
    """Let `write` fill a temporary directory, then rename it to a checkpoint of the run: all or nothing."""
    parent = run / FOLDER
    create_folder(parent)
    remove_stale(run)
    with _temporary_folder(parent, f"{step:08}") as temporary:
        write(temporary)
        fsync_folder(temporary)
        earlier = [path for path in checkpoints(run) if _step_and_revision(path)[0] == step]
        if earlier and _is_identical(earlier[-1], temporary):
            return earlier[-1]
        final = _free_name(run, step)
        temporary.rename(final)
        fsync_folder(parent)
    return final


def _free_name(run: Path, step: int) -> Path:
    revisions = [_step_and_revision(path)[1] for path in checkpoints(run) if _step_and_revision(path)[0] == step]
    revision = 1 + max(revisions, default=0)
    return run / FOLDER / (f"{step:08}" if revision == 1 else f"{step:08}-{revision}")


@contextmanager
def _temporary_folder(parent: Path, name: str) -> Iterator[Path]:
    temporary = parent / temporary_name(name)
    temporary.mkdir()
    # remove_stale takes this lock first: it ends with the process, where a process id may live on as another's.
    lock = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # without locks in the file system, remove_stale cannot take one and removes nothing
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # does nothing once it was renamed
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_UN)  # a forked child may hold the descriptor for longer than this process
        os.close(lock)


def _is_identical(old: Path, new: Path) -> bool:
    try:
        if read_bounded(old / NAME, MAX_MANIFEST) != read_bounded(new / NAME, MAX_MANIFEST):
            return False
        verify(old, read_manifest(old))
    except (OSError, ModelError):
        return False
    return True


def set_link(run: Path, link: Link, folder: Path) -> None:
    """Point `last` or `best` to a checkpoint; a reader sees the old one or the new one."""
    path = run / link
    target = f"{FOLDER}/{folder.name}"
    if path.is_symlink() and str(path.readlink()) == target:
        return
    if path.is_dir() and not path.is_symlink():
        _move_copy(run, path)
    temporary = run / temporary_name(link)
    try:
        try:
            temporary.symlink_to(target, target_is_directory=True)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            write_file(temporary, [target.encode()])
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    fsync_folder(run)


def remove_link(run: Path, link: Link) -> None:
    """Remove `last` or `best`; a copied directory in its place is moved to the other checkpoints."""
    path = run / link
    if path.is_dir() and not path.is_symlink():
        _move_copy(run, path)
    path.unlink(missing_ok=True)
    fsync_folder(run)


def _move_copy(run: Path, copied: Path) -> None:
    """Move a directory that a copying tool left in place of a link to the other checkpoints."""
    try:
        step = read_manifest(copied).step
    except ModelError:
        remove(copied)
        return
    if any(_is_identical(path, copied) for path in checkpoints(run)):
        remove(copied)
    else:
        copied.rename(_free_name(run, step))
        fsync_folder(run / FOLDER)


def prune(run: Path, keep: int, keep_steps: Collection[int] = ()) -> None:
    """Remove old checkpoints; the newest `keep` up to `last` stay, and `best`, and those of `keep_steps`.

    Checkpoints after `last` stay as well; discard_after removes them.
    """
    last, best = resolve_link(run, "last"), resolve_link(run, "best")
    if last is None or (limit := parse_name(last)) is None:
        return
    seen: set[int] = set()
    for path in checkpoints(run)[::-1]:
        step, revision = _step_and_revision(path)
        if (step, revision) > limit:
            continue
        stays = step not in seen and (len(seen) < keep or step in keep_steps)
        if step not in seen and _is_complete(path):
            seen.add(step)
        if not stays and (best is None or path.resolve() != best.resolve()):
            remove(path)


def _is_complete(folder: Path) -> bool:
    try:
        verify_sizes(folder, read_manifest(folder))
    except ModelError:
        return False
    return True


def discard_after(run: Path, step: int) -> None:
    """Remove the checkpoints after a step, for a run that resumes there; `best` stays."""
    found = checkpoints(run)
    before = [path for path in found if _step_and_revision(path)[0] <= step]
    last, best = resolve_link(run, "last"), resolve_link(run, "best")
    if before and last is not None and (parse_name(last) or (0, 0))[0] > step:
        set_link(run, "last", before[-1])
    for path in found[len(before) :]:
        if best is None or path.resolve() != best.resolve():
            remove(path)


def remove(folder: Path) -> None:
    """Remove a checkpoint; it is renamed first, so that no reader finds half of one under its name."""
    temporary = folder.with_name(temporary_name(folder.name))
    folder.rename(temporary)
    shutil.rmtree(temporary)


def remove_stale(run: Path) -> None:
    """Remove unfinished files of dead writers; those of a living writer stay."""
    links = [*run.glob(f"{TEMPORARY}last-*"), *run.glob(f"{TEMPORARY}best-*")]
    for path in [*links, *(run / FOLDER).glob(f"{TEMPORARY}*")]:
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
        else:
            _remove_stale_folder(path)


def _remove_stale_folder(path: Path) -> None:
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except OSError:  # a living writer has the lock
        return
    finally:
        os.close(lock)
