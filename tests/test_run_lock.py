"""The lock of a run: one writer at a time, released with its process, taken over from dead ones."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helpers import PATIENCE, check_refused, join_all, refusal
from regard import run_lock
from regard.errors import OutputError, RunLocked
from regard.run_lock import FILE, RunLock, clear_run, remove_lock, remove_run

HOLD = """
import sys, time
from pathlib import Path
from regard.run_lock import RunLock
with RunLock(Path(sys.argv[1])):
    if sys.argv[2:] == ["exec"]:
        import subprocess
        print("exec", subprocess.Popen(["sleep", "600"]).pid, flush=True)
    elif sys.argv[2:] == ["fork"]:
        import os
        if os.fork() == 0:
            print("fork", os.getpid(), flush=True)  # by the child, which has then dropped the lock
    else:
        print("held", flush=True)
    time.sleep(600)
"""
OTHER_HOST = {"host": "elsewhere", "process": 1, "command": "regard train", "since": "2026-11-18 03:50"}


class Holder:
    """A process that holds the lock of a run."""

    def __init__(self, run: Path, *how: str) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", HOLD, str(run), *how], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], PATIENCE)[0], "the holder did not start"
        word, *child = self.process.stdout.readline().split()
        assert word == (how[0] if how else "held")
        self.child = int(child[0]) if child else 0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def hold() -> Iterator[Callable[..., Holder]]:
    held: list[Holder] = []

    def start(run: Path, *how: str) -> Holder:
        held.append(Holder(run, *how))
        return held[-1]

    yield start
    for one in held:
        one.kill()
        if one.child:
            os.kill(one.child, signal.SIGKILL)


def take(run: Path) -> None:
    with RunLock(run):
        pass


def test_the_refused_one_is_told_who_writes_the_run_where_and_since_when(tmp_path, hold):
    holder = hold(tmp_path / "run")
    message = refusal(RunLocked, lambda: take(tmp_path / "run"))
    since, host = r"20\d\d-\d\d-\d\d \d\d:\d\d", re.escape(socket.gethostname())
    who = rf"python \(process {holder.process.pid} on host {host} since {since}\)"
    assert re.fullmatch(
        rf"{re.escape(str(tmp_path / 'run'))} is being written by {who}; wait for it or stop it", message
    )
    assert RunLocked("").exit_code == 75


def test_the_lock_ends_with_its_process_and_what_is_left_is_taken_over(tmp_path, hold):
    holder = hold(tmp_path)
    holder.kill()
    assert json.loads((tmp_path / FILE).read_bytes())["process"] == holder.process.pid  # left behind
    with RunLock(tmp_path):
        assert json.loads((tmp_path / FILE).read_bytes())["process"] == os.getpid()
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("how", ["exec", "fork"])
def test_a_child_does_not_keep_the_lock_of_its_dead_parent(tmp_path, hold, how):
    hold(tmp_path, how).kill()  # the child lives on
    take(tmp_path)


def test_a_thread_may_enter_again_and_another_thread_is_refused(tmp_path):
    refused: list[str] = []
    with RunLock(tmp_path):
        with RunLock(tmp_path / "." / "x" / ".."):
            pass
        assert (tmp_path / FILE).exists()
        thread = threading.Thread(target=lambda: refused.append(refusal(RunLocked, lambda: take(tmp_path))))
        thread.start()
        join_all(thread)
    assert f"process {os.getpid()} on host" in refused[0]
    take(tmp_path)


def test_the_lock_stays_while_a_run_is_cleared_and_leaves_with_a_removed_one(tmp_path, hold):
    run = tmp_path / "run"
    (run / "checkpoints" / "00000001").mkdir(parents=True)
    (run / "recipe.toml").write_text("")
    (run / "last").symlink_to("checkpoints/00000001")
    with RunLock(run):
        clear_run(run)
        assert [path.name for path in run.iterdir()] == [FILE]
    (run / "recipe.toml").write_text("")
    holder = hold(run)
    with pytest.raises(RunLocked):
        remove_run(run)
    assert (run / "recipe.toml").exists()
    holder.kill()
    remove_run(run)
    assert not run.exists()


@pytest.mark.parametrize("number", [errno.EBUSY, errno.ENOTEMPTY, errno.ENOENT])
def test_a_removal_that_was_interrupted_leaves_a_run_that_can_be_removed(tmp_path, monkeypatch, number):
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    for name in ("recipe.toml", "tokenizer.json"):
        (run / name).write_text("")
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda path: (_ for _ in ()).throw(OSError(number, "busy")))
        check_refused(OutputError, f"{run}: cannot be removed (busy)", lambda: remove_run(run))
    assert (run / "recipe.toml").exists()
    (tmp_path / "link").symlink_to("run")
    message = f"{tmp_path / 'link'}: is a link to run; remove that run, or the link"
    check_refused(OutputError, message, lambda: remove_run(tmp_path / "link"))
    remove_run(run)
    assert not run.exists()


def test_a_lock_file_that_was_removed_by_its_holder_is_made_anew(tmp_path, monkeypatch):
    """The holder ends between the opening of its file and the lock: the file that was opened is no longer the lock."""
    real, opened = fcntl.flock, []

    def flock(descriptor: int, flags: int) -> None:
        if not opened:
            (tmp_path / FILE).unlink()
        opened.append(descriptor)
        real(descriptor, flags)

    monkeypatch.setattr("fcntl.flock", flock)
    with RunLock(tmp_path):
        assert len(opened) == 2
        assert json.loads((tmp_path / FILE).read_bytes())["process"] == os.getpid()


def test_records_that_cannot_be_understood_do_not_matter(tmp_path, hold):
    for content in (
        b"",
        b"\xff",
        b"[" * 100_000,
        b'{"host": 1}',
        json.dumps(OTHER_HOST | {"host": "a\x1b[2J"}).encode(),
    ):
        (tmp_path / FILE).write_bytes(content)
        take(tmp_path)
    hold(tmp_path)
    (tmp_path / FILE).write_bytes(b"")
    message = f"{tmp_path} is being written by another process; wait for it or stop it"
    check_refused(RunLocked, message, lambda: take(tmp_path))


def test_what_is_no_lock_file_is_neither_followed_nor_waited_for(tmp_path):
    os.mkfifo(tmp_path / FILE)
    message = f"{tmp_path / FILE}: expected the lock file of a run, found something else; remove it"
    check_refused(OutputError, message, lambda: take(tmp_path))
    (tmp_path / FILE).unlink()
    (tmp_path / "other").write_text("kept")
    (tmp_path / FILE).symlink_to("other")
    assert refusal(OutputError, lambda: take(tmp_path)).startswith(f"{tmp_path}: cannot be written (")
    assert (tmp_path / "other").read_text() == "kept"


def test_the_lock_of_a_live_process_is_not_removed_and_one_of_a_dead_process_is(tmp_path, hold):
    assert not remove_lock(tmp_path)
    holder = hold(tmp_path)
    assert f"(process {holder.process.pid} on host" in refusal(RunLocked, lambda: remove_lock(tmp_path))
    holder.kill()
    assert remove_lock(tmp_path)
    assert not (tmp_path / FILE).exists()


def test_the_lock_of_a_writer_that_starts_meanwhile_is_not_removed(tmp_path, monkeypatch, hold):
    """Between the opening of a dead process's lock and its removal, another process takes the lock."""
    (tmp_path / FILE).write_text(json.dumps(OTHER_HOST))
    real, holders = fcntl.flock, []

    def flock(descriptor: int, flags: int) -> None:
        if not holders:
            (tmp_path / FILE).unlink()
            holders.append(hold(tmp_path))
        real(descriptor, flags)

    monkeypatch.setattr("fcntl.flock", flock)
    message = refusal(RunLocked, lambda: remove_lock(tmp_path))
    assert f"(process {holders[0].process.pid} on host" in message
    assert (tmp_path / FILE).exists()


@pytest.mark.parametrize("act", [take, remove_lock])
def test_an_error_of_the_file_system_is_reported_with_the_lock_file(tmp_path, monkeypatch, act):
    def flock(descriptor: int, flags: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    (tmp_path / FILE).write_text("")
    monkeypatch.setattr("fcntl.flock", flock)
    message = f"{tmp_path / FILE}: cannot be locked (Input/output error)"
    check_refused(OutputError, message, lambda: act(tmp_path))


@pytest.fixture
def without_locks(monkeypatch):
    """A file system without locks: flock fails as it does on an NFS mount whose lock manager is not running."""

    def flock(descriptor: int, flags: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", flock)
    monkeypatch.setattr(run_lock, "SETTLE", 0.01)


def test_without_locks_the_record_decides(tmp_path, without_locks):
    with RunLock(tmp_path):
        held = (tmp_path / FILE).read_bytes()
    dead = subprocess.Popen(["true"])
    dead.wait(PATIENCE)
    (tmp_path / FILE).write_text(json.dumps(json.loads(held) | {"process": dead.pid}))
    take(tmp_path)  # of this host, and gone
    (tmp_path / FILE).write_bytes(held)  # of this host, and alive
    advice = f"wait for it or stop it; if it is gone, remove its lock with: regard runs unlock {tmp_path}"
    assert refusal(RunLocked, lambda: take(tmp_path)).endswith(advice)
    with pytest.raises(RunLocked):
        remove_lock(tmp_path)
    (tmp_path / FILE).write_text(json.dumps(OTHER_HOST))
    who = "regard train (process 1 on host elsewhere since 2026-11-18 03:50)"
    check_refused(RunLocked, f"{tmp_path} is being written by {who}; {advice}", lambda: take(tmp_path))
    assert remove_lock(tmp_path)
    take(tmp_path)


def test_without_locks_the_last_of_two_that_start_at_once_has_it(tmp_path, without_locks, monkeypatch):
    rival = json.dumps(OTHER_HOST).encode()
    monkeypatch.setattr("time.sleep", lambda seconds: (tmp_path / FILE).write_bytes(rival))
    assert "on host elsewhere" in refusal(RunLocked, lambda: take(tmp_path))
    assert (tmp_path / FILE).read_bytes() == rival  # it is the other's


def test_a_lock_of_another_host_that_the_server_still_keeps_can_be_removed(tmp_path, hold):
    hold(tmp_path)
    (tmp_path / FILE).write_text(json.dumps(OTHER_HOST))  # what NFSv3 shows of a host that crashed
    assert refusal(RunLocked, lambda: take(tmp_path)).endswith(f"regard runs unlock {tmp_path}")
    assert remove_lock(tmp_path)
    take(tmp_path)


def test_a_full_disk_does_not_keep_a_run_from_being_removed(tmp_path, monkeypatch):
    run = tmp_path / "run"
    run.mkdir()
    (run / "recipe.toml").write_text("")

    def full(*args: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.pwrite", full)
    take(run)  # the lock holds without its record
    monkeypatch.setattr("os.open", full)
    remove_run(run)
    assert not run.exists()
