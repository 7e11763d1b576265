"""How a directory becomes a checkpoint of a run: written beside, flushed, renamed, linked, and old ones pruned.

RUN/checkpoints/00000800    never changed once it has this name
RUN/checkpoints/00000800-2  the same step saved again with another content, after a resume; the higher number counts
RUN/checkpoints/.tmp-...    half written or half removed; swept by the next writer
RUN/last, RUN/best          relative links, swapped at once; copied directories and text files in their place are read

At every moment, and after kill -9 or a power cut at any moment, the links name whole checkpoints or nothing.
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
from regard.files import TEMPORARY, fsync_folder, temporary_name, write_file
from regard.train.manifest import NAME, read_manifest, verify, verify_sizes

Link = Literal["last", "best"]
FOLDER = "checkpoints"
STEP = re.compile(r"(\d{8,})(?:-(\d{1,6}))?")
NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP)


def order(folder: Path) -> tuple[int, int] | None:
    """The step and the revision that a checkpoint's name tells, or None for any other name.

    >>> order(Path("run/checkpoints/00000800")), order(Path("00000800-2")), order(Path("notes"))
    ((800, 1), (800, 2), None)
    """
    match = STEP.fullmatch(folder.name)
    return (int(match[1]), int(match[2] or 1)) if match else None


def checkpoints(run: Path) -> list[Path]:
    """The checkpoints of a run by name, good or bad, the oldest first.

    >>> checkpoints(Path("nowhere"))
    []
    """
    try:
        found = [path for path in (run / FOLDER).iterdir() if order(path) and path.is_dir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(found, key=_place)


def _place(folder: Path) -> tuple[int, int]:
    place = order(folder)
    assert place is not None, folder
    return place


def target(run: Path, link: Link) -> Path | None:
    """What `last` or `best` names, whether it is a link, a directory that was copied there, or a text file.

    >>> target(Path("nowhere"), "last") is None
    True
    """
    path = run / link
    if path.is_symlink():
        path = run / path.readlink()
    elif path.is_file():  # some tools store a link as a file that holds its target
        parent, _, name = path.read_bytes()[:100].decode(errors="replace").strip().partition("/")
        if parent != FOLDER or not STEP.fullmatch(name):
            return None
        path = run / FOLDER / name
    return path if path.is_dir() else None


def candidates(run: Path) -> list[Path]:
    """Where to look for the newest good checkpoint, best bet first: `last`, those before it, then those after it.

    One after `last` was committed when the writer died before it moved the link, or belongs to a past that the
    run was rolled back from; `last` is right in both cases.

    >>> candidates(Path("nowhere"))
    []
    """
    newest_first = checkpoints(run)[::-1]
    last = target(run, "last")
    if last is None:
        return newest_first
    place = order(last)
    if place is None or last.parent.name != FOLDER:
        return [last, *newest_first]
    before = [path for path in newest_first if _place(path) < place]
    after = [path for path in newest_first if _place(path) > place]
    return [last, *before, *after]


def commit(run: Path, step: int, write: Callable[[Path], None]) -> Path:
    """Let `write` fill a directory, then give it its name among the checkpoints of a run, all or nothing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as run:
    ...     commit(Path(run), 800, lambda folder: None).name
    '00000800'
    """
    parent = run / FOLDER
    if not parent.is_dir():
        parent.mkdir(parents=True)
        fsync_folder(run)
        fsync_folder(run.parent)
    sweep(run)
    with _writing(parent, f"{step:08}") as temporary:
        write(temporary)
        fsync_folder(temporary)
        earlier = [path for path in checkpoints(run) if _place(path)[0] == step]
        if earlier and _same(earlier[-1], temporary):
            return earlier[-1]
        final = _free_name(run, step)
        temporary.rename(final)
        fsync_folder(parent)
    return final


def _free_name(run: Path, step: int) -> Path:
    revision = 1 + max((_place(path)[1] for path in checkpoints(run) if _place(path)[0] == step), default=0)
    return run / FOLDER / (f"{step:08}" if revision == 1 else f"{step:08}-{revision}")


@contextmanager
def _writing(parent: Path, name: str) -> Iterator[Path]:
    temporary = parent / temporary_name(name)
    temporary.mkdir()
    # Whoever sweeps asks for this lock: it ends with the process, where a process id may live on as another's.
    lock = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # a file system without locks: nobody gets the lock, so nobody sweeps
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # gone already when it got its name
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_UN)  # a forked child may hold the descriptor for longer than we do
        os.close(lock)


def _same(old: Path, new: Path) -> bool:
    try:
        if (old / NAME).read_bytes() != (new / NAME).read_bytes():
            return False
        verify(old, read_manifest(old))
    except (OSError, ModelError):
        return False
    return True


def point(run: Path, link: Link, folder: Path) -> None:
    """Make `last` or `best` name a checkpoint; a reader sees the old one or the new one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     run = Path(name)
    ...     point(run, "last", commit(run, 800, lambda folder: None))
    ...     str((run / "last").readlink())
    'checkpoints/00000800'
    """
    path = run / link
    named = f"{FOLDER}/{folder.name}"
    if path.is_symlink() and str(path.readlink()) == named:
        return
    if path.is_dir() and not path.is_symlink():
        _adopt(run, path)
    temporary = run / temporary_name(link)
    try:
        try:
            temporary.symlink_to(named, target_is_directory=True)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            write_file(temporary, [named.encode()])
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    fsync_folder(run)


def _adopt(run: Path, copied: Path) -> None:
    """Move a directory that a copying tool put in the place of a link to where checkpoints are."""
    try:
        step = read_manifest(copied).step
    except ModelError:
        remove(copied)
        return
    if any(_same(path, copied) for path in checkpoints(run)):
        remove(copied)
    else:
        copied.rename(_free_name(run, step))
        fsync_folder(run / FOLDER)


def prune(run: Path, keep: int, spare: Collection[int] = ()) -> None:
    """Remove old checkpoints: the newest `keep` up to `last` stay, and `best`, and the steps to spare.

    Those after `last` stay as well: they are nobody's to judge here (see discard_after).

    >>> prune(Path("nowhere"), keep=2)
    """
    last, best = target(run, "last"), target(run, "best")
    if last is None or (limit := order(last)) is None:
        return
    seen: set[int] = set()
    for path in checkpoints(run)[::-1]:
        step, revision = _place(path)
        if (step, revision) > limit:
            continue
        wanted = step not in seen and (len(seen) < keep or step in spare)
        if step not in seen and _whole(path):
            seen.add(step)
        if not wanted and (best is None or path.resolve() != best.resolve()):
            remove(path)


def _whole(folder: Path) -> bool:
    try:
        verify_sizes(folder, read_manifest(folder))
    except ModelError:
        return False
    return True


def discard_after(run: Path, step: int) -> None:
    """Forget the checkpoints after a step, for a run that goes on from there; `best` stays.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as name:
    ...     run = Path(name)
    ...     for step in (800, 1600):
    ...         point(run, "last", commit(run, step, lambda folder: None))
    ...     discard_after(run, 800)
    ...     [path.name for path in checkpoints(run)], str((run / "last").readlink())
    (['00000800'], 'checkpoints/00000800')
    """
    found = checkpoints(run)
    kept = [path for path in found if _place(path)[0] <= step]
    last, best = target(run, "last"), target(run, "best")
    if kept and last is not None and (order(last) or (0, 0))[0] > step:
        point(run, "last", kept[-1])
    for path in found[len(kept) :]:
        if best is None or path.resolve() != best.resolve():
            remove(path)


def remove(folder: Path) -> None:
    """Remove a checkpoint; it loses its name first, so that half of one is never met under that name.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as run:
    ...     remove(commit(Path(run), 800, lambda folder: None))
    ...     checkpoints(Path(run))
    []
    """
    temporary = folder.with_name(temporary_name(folder.name))
    folder.rename(temporary)
    shutil.rmtree(temporary)


def sweep(run: Path) -> None:
    """Remove what dead writers left half written or half removed; what a living one is writing stays.

    >>> sweep(Path("nowhere"))
    """
    links = [*run.glob(f"{TEMPORARY}last-*"), *run.glob(f"{TEMPORARY}best-*")]
    for path in [*links, *(run / FOLDER).glob(f"{TEMPORARY}*")]:
        if path.is_symlink() or not path.is_dir():
            path.unlink(missing_ok=True)
        else:
            _sweep_folder(path)


def _sweep_folder(path: Path) -> None:
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except OSError:  # a living writer has it
        return
    finally:
        os.close(lock)
