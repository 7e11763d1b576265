"""Crash replay: the changes that a training makes on the disk are recorded, and every crash in between is replayed.

    python benchmarks/replay.py [--tasks translate classify ...]

After every call that changes the directory or flushes something (mkdir, rename, link, symlink, unlink, rmdir, fsync)
the tree is recorded twice: as processes see it, and as it is on the disk by what was flushed. Four states are then
laid out in an empty directory for each moment:

    killed      everything that was written: the process died
    lost        only flushed directory entries and flushed bytes: a power cut with nothing else on the disk
    names only  every directory entry, but only flushed bytes: what delayed allocation leaves
    torn        every directory entry, and half of the bytes that were not flushed

In each of them the run must be a whole older or newer state: its model loads and answers as it did at that step, and
the newest checkpoint is the one that had been saved by then, or a later one; before the first one, the run may be
refused.
"""

from __future__ import annotations

import argparse
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

import regard
from integrity import TASKS, question, train_run, write_data
from regard.errors import RegardError
from regard.train import checkpoint

CALLS = ("mkdir", "rename", "replace", "link", "symlink", "unlink", "rmdir", "remove", "fsync")
Entries = dict[str, int]
"""names of a directory -> inode"""


@dataclass
class Inode:
    """A file, directory or link."""

    kind: str
    data: bytes | str = b""
    """bytes of a file, or the target of a link"""
    flushed: bytes | str | None = None
    """bytes at its last fsync; None: never"""
    entries: Entries = field(default_factory=dict)
    flushed_entries: Entries = field(default_factory=dict)


@dataclass(frozen=True)
class Moment:
    """The state after one call."""

    call: str
    inodes: dict[int, Inode]
    root: int
    saved: int | None
    """step of the newest checkpoint that `checkpoint.save` has returned for"""


class Recorder:
    """Records the tree under a directory after each call."""

    def __init__(self, root: Path) -> None:
        self.root, self.inodes, self.moments = root, dict[int, Inode](), list[Moment]()
        self.keys: dict[int, int] = {}
        """number of an inode -> key in `inodes`"""
        self.saved: int | None = None
        self.unflushed_renames: list[str] = []
        self.stamps: dict[int, tuple[int, int]] = {}
        """size and time of change of each file at its last fsync"""

    def observe(self, call: str, descriptor: int | None = None) -> None:
        """Read the tree; `descriptor` is what was flushed."""
        kept = set[int]()
        root = self._scan(self.root, kept)
        self.keys = {number: key for number, key in self.keys.items() if number in kept}
        if descriptor is not None:
            found = os.fstat(descriptor)
            if found.st_ino in self.keys:
                inode = self.inodes[self.keys[found.st_ino]]
                inode.flushed, inode.flushed_entries = inode.data, dict(inode.entries)
                self.stamps[found.st_ino] = (found.st_size, found.st_mtime_ns)
        copies = {key: replace(inode, entries=dict(inode.entries)) for key, inode in self.inodes.items()}
        self.moments.append(Moment(call, copies, root, self.saved))

    def check_flushed(self, path: Any, target: Any) -> None:
        """Note a rename of a file, or of a directory with files, whose bytes were not flushed before."""
        place = Path(os.fsdecode(path))
        if not place.is_relative_to(self.root) or place.is_symlink() or not place.exists():
            return
        for file in [place] if place.is_file() else [f for f in place.rglob("*") if f.is_file() and not f.is_symlink()]:
            found = file.stat()
            if self.stamps.get(found.st_ino) != (found.st_size, found.st_mtime_ns):
                self.unflushed_renames.append(f"{file.relative_to(self.root)} -> {Path(os.fsdecode(target)).name}")

    def _scan(self, path: Path, kept: set[int]) -> int:
        """Read a file or a directory; `kept` collects the numbers that are in use, since systems use them again."""
        found = path.lstat()
        kept.add(found.st_ino)
        key = self.keys.setdefault(found.st_ino, len(self.inodes) + 1)
        inode = self.inodes.setdefault(key, Inode("file"))
        if stat.S_ISLNK(found.st_mode):
            inode.kind, inode.data = "link", str(path.readlink())
        elif stat.S_ISREG(found.st_mode):
            inode.data = path.read_bytes()
        else:
            inode.kind = "folder"
            inode.entries = {child.name: self._scan(child, kept) for child in sorted(path.iterdir())}
        return key


@contextmanager
def recording(root: Path) -> Iterator[Recorder]:
    """Record what the block does under `root`."""
    recorder, originals, save = Recorder(root), {name: getattr(os, name) for name in CALLS}, checkpoint.save

    def wrap(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **options: Any) -> Any:
            if name in ("rename", "replace"):
                recorder.check_flushed(*args[:2])
            result = call(*args, **options)
            if root.exists():
                recorder.observe(f"{name} {args[0]}", args[0] if name == "fsync" else None)
            return result

        return wrapper

    def record_save(*args: Any, **options: Any) -> Path:
        path = save(*args, **options)
        recorder.saved = args[1]
        return path

    for name, call in originals.items():
        setattr(os, name, wrap(name, call))
    checkpoint.save = record_save
    try:
        yield recorder
    finally:
        checkpoint.save = save
        for name, call in originals.items():
            setattr(os, name, call)


def lay_out(moment: Moment, way: str, folder: Path) -> None:
    """Write the state that a crash at this moment leaves into an empty directory."""

    def entries(inode: Inode) -> Entries:
        return inode.flushed_entries if way == "lost" else inode.entries

    def content(inode: Inode) -> bytes:
        assert isinstance(inode.data, bytes)
        if way == "killed":
            return inode.data
        flushed = inode.flushed if isinstance(inode.flushed, bytes) else b""
        return inode.data[: len(inode.data) // 2] if way == "torn" and flushed != inode.data else flushed

    def write(number: int, path: Path) -> None:
        inode = moment.inodes[number]
        if inode.kind == "link":
            path.symlink_to(str(inode.data))
        elif inode.kind == "file":
            path.write_bytes(content(inode))
        else:
            path.mkdir()
            for name, child in entries(inode).items():
                write(child, path / name)

    write(moment.root, folder)


WAYS = ("killed", "lost", "names only", "torn")


def check_state(run: Path, saved: int | None, text: str, answers: dict[int, str]) -> str:
    """What is wrong about a run after a crash, or nothing."""
    try:
        model, newest = regard.load(run), checkpoint.newest(run).checkpoint
        answer = model.predict_text(text)
    except RegardError as error:
        return f"refused after step {saved} was saved: {error}" if saved is not None else ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if saved is not None and (newest is None or newest.step < saved):
        return f"step {newest and newest.step} is the newest after step {saved} was saved"
    return "" if answer == answers.get(model.step, answer) else f"another answer at step {model.step}"


def replay(recorder: Recorder, name: str, text: str, answers: dict[int, str], every: int = 1) -> tuple[int, list[str]]:
    """Lay out every crash state and check it; returns their number, and what is wrong."""
    faults, count = list[str](), 0
    with tempfile.TemporaryDirectory(prefix="regard-replay-") as home:
        for number, moment in enumerate(recorder.moments):
            if number % every:
                continue
            for way in WAYS:
                disk = Path(home, "disk")
                lay_out(moment, way, disk)
                fault = check_state(disk / name, moment.saved, text, answers)
                faults += [f"{way}, {number} ({moment.call}): {fault}"] if fault else []
                count += 1
                shutil.rmtree(disk)
    return count, faults


def record_training(task: str, data: Path, disk: Path) -> tuple[Recorder, dict[int, str]]:
    """Record the training of a tiny run, then its resumption with a changed recipe; and its answers by step."""
    disk.mkdir()
    with recording(disk) as recorder:
        train_run(task, data, disk / "run")
        train_run(task, data, disk / "run", ["train.steps=6"])
    text, folders = question(task, data), sorted((disk / "run" / "checkpoints").iterdir())
    return recorder, {int(folder.name): regard.load(folder).predict_text(text) for folder in folders}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    bad = 0
    with tempfile.TemporaryDirectory(prefix="regard-replay-") as name:
        home = Path(name)
        write_data(home)
        for task in options.tasks:
            recorder, answers = record_training(task, home, home / f"disk-{task}")
            count, faults = replay(recorder, "run", question(task, home), answers)
            bad += len(faults) + len(recorder.unflushed_renames)
            print(f"{task}: {len(recorder.moments)} calls, {count} crash states, {len(faults)} not whole; "
                  f"{len(recorder.unflushed_renames)} renames of bytes that were not flushed", flush=True)  # fmt: skip
            print("\n".join([*faults[:5], *recorder.unflushed_renames[:5]]), end="\n" if faults else "", flush=True)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
