"""Lock of a run directory: one writer at a time, for as long as its process lives.

The lock is an flock(2) on the file `.lock` of the run, which also names its holder: host, process, command and start.
The kernel releases it when the process ends, also by kill -9; a file that a dead process left is taken over. Readers
need no lock, so a run on a read-only disk can be used.

Over NFS, Linux (since 2.6.12) sends an flock to the server as a byte-range lock: it holds between hosts on NFSv4, and
on NFSv3 with its lock manager. A host that crashes loses it when its lease ends (NFSv4) or when it starts again
(NFSv3). With the mount options `nolock` or `local_lock=flock` it holds between the processes of one host only.
On a file system without locks the record alone decides: a process of this host that is gone is replaced, one of another
host is refused, and `regard runs unlock` removes its lock. Of two that start within SETTLE seconds one is refused.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from regard.errors import OutputError, RunLocked
from regard.files import cannot_write, create_folder
from regard.program import quote_path

FILE = ".lock"
NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)
SETTLE = 0.5
"""seconds between writing the record and reading it again, on a file system without locks"""
LARGEST = 4096
"""bytes of a record that are read"""

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class LockRecord:
    """Holder of a lock, as its file records it."""

    host: str
    process: int
    command: str
    since: str
    """local time of the start, as YYYY-MM-DD HH:MM"""

    @classmethod
    def of_this_process(cls) -> LockRecord:
        now = datetime.now().astimezone()
        return cls(socket.gethostname(), os.getpid(), _command(sys.argv), f"{now:%Y-%m-%d %H:%M}")

    @classmethod
    def read(cls, descriptor: int) -> LockRecord | None:
        """The record of an open lock file; None if there is none, or if it cannot be understood."""
        try:
            found = json.loads(os.pread(descriptor, LARGEST, 0))
            record = cls(str(found["host"]), int(found["process"]), str(found["command"]), str(found["since"]))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return record if all(map(str.isprintable, (record.host, record.command, record.since))) else None

    def write(self, descriptor: int) -> None:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(self)).encode() + b"\n", 0)

    @property
    def is_here(self) -> bool:
        """Whether the holder is a process of this host."""
        return self.host == socket.gethostname()

    @property
    def is_gone(self) -> bool:
        """Whether the holder is a process of this host that has ended."""
        if not self.is_here or self.process <= 0:
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except OSError:  # a process of another user
            return False
        return False


def _command(arguments: list[str]) -> str:
    """The command that a process runs, without its arguments.

    >>> _command(["/usr/bin/regard", "-q", "train", "a.toml"]), _command(["/home/me/mine.py", "x"]), _command(["-c"])
    ('regard train', 'mine.py', 'python')
    """
    program = Path(arguments[0] if arguments else "")
    if program.name != "regard" and (program.parent.name, program.name) != ("regard", "__main__.py"):
        return "python" if program.name in ("", "-", "-c") else program.name
    words = [word for word in arguments[1:] if not word.startswith("-")]
    return " ".join(["regard", *words[: 2 if words[:1] in (["data"], ["runs"]) else 1]])


@dataclass
class _Held:
    """A lock that a thread of this process holds; it may enter its block several times."""

    descriptor: int
    entered: int = 1


_held: dict[tuple[Path, int], _Held] = {}
"""locks of this process, by run and thread"""


class RunLock:
    """Context manager that makes this thread the only writer of a run directory, which is created if need be.

    Blocks may be nested. Another thread, process or host is refused with RunLocked.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, RunLock(Path(folder)) as outer, RunLock(Path(folder)):
    ...     (outer.run / FILE).exists()
    True
    """

    def __init__(self, run: Path) -> None:
        self.run = run

    def __enter__(self) -> Self:
        self._key = (self.run.resolve(), threading.get_ident())
        if held := _held.get(self._key):
            held.entered += 1
        else:
            _held[self._key] = _Held(_acquire(self.run))
        return self

    def __exit__(self, *_: object) -> None:
        held = _held.get(self._key)
        if held is None:  # a forked child leaves the block of its parent
            return
        held.entered -= 1
        if not held.entered:
            del _held[self._key]
            with suppress(OSError):
                if _is_file_of(held.descriptor, self.run):
                    (self.run / FILE).unlink()
            os.close(held.descriptor)


def hold_lock(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Decorator of methods of a run: the run at `self.path` is locked while they work."""

    @wraps(method)
    def wrapper(self: Any, *args: P.args, **options: P.kwargs) -> R:
        with RunLock(self.path):
            return method(self, *args, **options)

    return wrapper


def is_empty(run: Path) -> bool:
    """Whether a locked directory holds nothing but its lock, as one that the lock has just created."""
    return all(path.name == FILE for path in run.iterdir())


def clear_run(run: Path) -> None:
    """Remove everything from a locked run but its lock; the recipe last, so that a removal can be repeated."""
    for path in sorted(run.iterdir(), key=lambda path: path.name == "recipe.toml"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != FILE:
            path.unlink()


def remove_run(run: Path) -> None:
    """Remove a run with all its files; RunLocked if it is being written."""
    if run.is_symlink():
        raise OutputError(f"{run}: is a link to {run.readlink()}; remove that run, or the link")
    try:
        try:
            with RunLock(run):
                clear_run(run)
        except OutputError as error:
            if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            clear_run(run)  # no room for a lock file: then no process has one, and removing makes room
    except OSError as error:
        raise OutputError(f"{run}: cannot be removed ({error.strerror})") from None
    try:
        run.rmdir()
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):  # another process begins a new run here
            raise OutputError(f"{run}: cannot be removed ({error.strerror})") from None


def remove_lock(run: Path) -> bool:
    """Remove the lock of a dead process, or of another host; False if there is none, RunLocked if its process lives."""
    try:
        descriptor = _open(run, os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise cannot_write(run, 0, error) from error
    try:
        record = LockRecord.read(descriptor)
        is_free = _try_flock(descriptor, run)
        if is_free is False and (record is None or record.is_here):
            raise locked_error(run, record)
        if is_free is None and record is not None and record.is_here and not record.is_gone:
            raise locked_error(run, record)
        if is_current := _is_file_of(descriptor, run):
            (run / FILE).unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(run / FILE, 0, error) from error
    finally:
        os.close(descriptor)
    return is_current or remove_lock(run)  # a new writer may have replaced the file after it was opened


def locked_error(run: Path, record: LockRecord | None, has_locks: bool = True) -> RunLocked:
    """The error for a run that another process writes: who, where, since when, and what to do."""
    if record is None:
        return RunLocked(f"{run} is being written by another process; wait for it or stop it")
    who = f"{record.command} (process {record.process} on host {record.host} since {record.since})"
    advice = "wait for it or stop it"
    if not record.is_here or not has_locks:
        advice += f"; if it is gone, remove its lock with: regard runs unlock {quote_path(run)}"
    return RunLocked(f"{run} is being written by {who}; {advice}")


def _acquire(run: Path) -> int:
    """Descriptor of the lock file, locked; RunLocked if another writer has it."""
    while True:
        try:
            create_folder(run)
            descriptor = _open(run, os.O_RDWR | os.O_CREAT)
        except FileNotFoundError:  # `runs rm` removed the directory in between
            continue
        except OSError as error:
            raise cannot_write(run, 0, error) from error
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OutputError(f"{run / FILE}: expected the lock file of a run, found something else; remove it")
            if _lock(descriptor, run):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _open(run: Path, flags: int) -> int:
    return os.open(run / FILE, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)


def _lock(descriptor: int, run: Path) -> bool:
    """Take the lock and record it; False if the file was removed meanwhile, RunLocked if another writer has it."""
    own, is_free = LockRecord.of_this_process(), _try_flock(descriptor, run)
    if is_free is None:
        _take_by_record(descriptor, own, run)
        return True
    if not is_free:
        if not (record := LockRecord.read(descriptor)):
            time.sleep(0.1)  # it is about to be written
            record = LockRecord.read(descriptor)
        raise locked_error(run, record)
    if not _is_file_of(descriptor, run):
        return False
    with suppress(OSError):  # the lock holds without its record too, such as on a full disk
        own.write(descriptor)
    return True


def _try_flock(descriptor: int, run: Path) -> bool | None:
    """Whether the lock of a run was taken; None if the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in NO_LOCKS:
            return None
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise OutputError(f"{run / FILE}: cannot be locked ({error.strerror})") from error
        return False
    return True


def _take_by_record(descriptor: int, own: LockRecord, run: Path) -> None:
    """Take the lock on a file system without locks: the last of several records written at once counts."""
    found = LockRecord.read(descriptor)
    if found and not found.is_gone:
        raise locked_error(run, found, has_locks=False)
    try:
        own.write(descriptor)
    except OSError as error:
        raise cannot_write(run / FILE, LARGEST, error) from error
    time.sleep(SETTLE)
    if (now := LockRecord.read(descriptor)) != own or not _is_file_of(descriptor, run):
        raise locked_error(run, now, has_locks=False)


def _is_file_of(descriptor: int, run: Path) -> bool:
    """Whether the open lock file is still the one of the run; a holder removes it when it is done."""
    try:
        return os.path.samestat(os.fstat(descriptor), (run / FILE).lstat())
    except FileNotFoundError:
        return False


def _drop_in_child() -> None:
    """Close the locks of the parent in a forked child, which would otherwise hold them after the parent has died."""
    for held in _held.values():
        with suppress(OSError):
            os.close(held.descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_drop_in_child)
