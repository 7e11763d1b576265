"""Ranks that are killed, stopped or left alone by their launcher: named, ended, and nothing goes on in secret."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch.distributed as dist

from helpers import PATIENCE, TINY_TRANSLATOR, child_environment, join_all, refusal, says, wait_until
from regard import rank_watch
from regard.errors import RankLost
from regard.interrupts import LAUNCHER
from regard.rank_watch import RankWatch
from regard.train import checkpoint, parallel
from regard.train.parallel import launch

RECIPE = f"""{TINY_TRANSLATOR}[train]
steps = 1000000
validate_every = 500000
batch_tokens = 512
[task]
bleu_sentences = 0
"""


def rank_command(script: str) -> list[str]:
    """Command of a rank that runs a script, without torch."""
    start = "import os, pathlib, signal, sys, time\nrank = int(os.environ['RANK'])"
    return [sys.executable, "-c", f"{start}\n{script}"]


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (9, r"rank 1 \(process \d+\) was killed by signal 9 \(SIGKILL\), perhaps because memory ran out; run the same "
            "command again to resume from the last checkpoint, with fewer train.batch_tokens if memory is short"),
        (11, r"rank 1 \(process \d+\) was killed by signal 11 \(SIGSEGV\); run the same command again to resume from "
             "the last checkpoint"),
    ],
)  # fmt: skip
def test_a_rank_that_was_killed_is_named_with_the_signal(number, message):
    command = rank_command(f"if rank: os.kill(os.getpid(), {number})\ntime.sleep(60)")
    assert re.fullmatch(message, refusal(RankLost, lambda: launch(2, command)))
    assert RankLost("").exit_code == 71


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("sys.exit(0)", 0),
        ("if rank: sys.exit(75)\nsignal.signal(15, lambda *_: sys.exit(71))\ntime.sleep(60)", 75),  # 71 follows from 75
        ("if not rank: sys.exit(2)\ntime.sleep(60)", 2),  # the other one is terminated
        ("if rank: os.kill(os.getpid(), signal.SIGSTOP)\nsys.exit(71)", 71),  # the other one is killed
    ],
)
def test_the_exit_code_is_that_of_the_rank_that_failed_by_itself(script, code, monkeypatch):
    monkeypatch.setattr(parallel, "LOST_GRACE", 0.5)
    assert launch(2, rank_command(script)) == code


def test_a_killed_rank_is_named_although_the_others_ignore_sigterm_and_are_killed_for_it(monkeypatch):
    monkeypatch.setattr(parallel, "LOST_GRACE", 0.5)
    script = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nif rank == 0: os.kill(os.getpid(), 9)\ntime.sleep(60)"
    assert re.match(
        r"rank 0 \(process \d+\) was killed by signal 9", refusal(RankLost, lambda: launch(2, rank_command(script)))
    )


STOPPED = """
def end(*_):
    pathlib.Path(f"{rank}.asked").touch()
    sys.exit(143)
signal.signal(signal.SIGTERM, end)
if rank:
    pathlib.Path("pid.part").write_text(str(os.getpid()))
    os.rename("pid.part", "pid")
    os.kill(os.getpid(), signal.SIGSTOP)
else:
    while not os.path.exists("pid"): time.sleep(0.01)
    stat = pathlib.Path("/proc", pathlib.Path("pid").read_text(), "stat")
    while stat.read_text().rpartition(")")[2].split()[0] != "T": time.sleep(0.01)
    os.kill(os.getppid(), signal.SIGTERM)
time.sleep(600)
"""


def test_sigterm_ends_a_rank_that_is_stopped_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert launch(2, rank_command(STOPPED)) == 143
    assert sorted(path.name for path in tmp_path.glob("*.asked")) == ["0.asked", "1.asked"]  # none had to be killed


DEAF = """
heard = []
signal.signal(signal.SIGTERM, lambda *_: heard.append(True))
pathlib.Path(f"{rank}.deaf").touch()
while not os.path.exists("1.deaf"): time.sleep(0.01)
if not rank:
    for count in (1, 2):
        os.kill(os.getppid(), signal.SIGTERM)
        while len(heard) < count: time.sleep(0.01)  # until it is forwarded: two signals at once may become one
time.sleep(600)
"""


def test_ranks_that_do_not_react_are_killed_after_a_second_signal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(parallel, "LOST_GRACE", 0.5)
    assert launch(2, rank_command(DEAF)) == 137


def test_a_rank_that_ignores_the_end_of_its_launcher_is_ended_all_the_same(tmp_path):
    rank = tmp_path / "rank.py"
    rank.write_text(
        "import os, signal, threading, time, types\nfrom regard.train import parallel\nasked = threading.Event()\n"
        "def ask(number, frame): os.write(1, b'asked\\n'); asked.set()\n"
        "def sleep(seconds): asked.wait(); time.sleep(0.3)  # not before it was asked, however slow it is\n"
        "parallel.time = types.SimpleNamespace(sleep=sleep)\nparallel.follow_launcher()\n"
        "signal.signal(signal.SIGTERM, ask)\nos.write(1, b'ready\\n')\n"
        "while True: time.sleep(0.1)\n"
    )
    launcher = "import sys\nfrom regard.train.parallel import launch\nlaunch(2, [sys.executable, sys.argv[1]])"
    command = [sys.executable, "-c", launcher, str(rank)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=child_environment()) as process:
        assert process.stdout is not None
        assert [process.stdout.readline(), process.stdout.readline()] == ["ready\n"] * 2
        process.kill()
        assert process.stdout.read() == "asked\n" * 2  # both were asked once, and the pipe is closed: both have ended


class Ranks:
    """Training in several processes, started by `regard train --nproc` in a process of its own."""

    def __init__(self, folder: Path, *settings: str) -> None:
        (folder / "tiny.toml").write_text(RECIPE, encoding="utf-8")
        self.run = folder / "run"
        command = [sys.executable, "-m", "regard", "train", "tiny.toml", "--out", "run", "--nproc", "2", *settings]
        environment = child_environment(PYTHONUNBUFFERED="1")
        self.process = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True)
        wait_until(says(self.run / "log.txt", " device "), "training begins", self.process)
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.ranks = sorted(map(int, children), key=lambda pid: "\0RANK=1\0" in self.environment(pid))

    @staticmethod
    def environment(process: int) -> str:
        return f"\0{Path(f'/proc/{process}/environ').read_text()}"

    def finish(self) -> str:
        """Wait for the end; returns what was written to stderr."""
        try:
            return self.process.communicate(timeout=PATIENCE)[1]
        finally:
            self.kill()

    def kill(self) -> None:
        for process in self.ranks:
            if is_alive(process):
                os.kill(process, signal.SIGKILL)
        self.process.kill()


@pytest.fixture
def train_by_two(tmp_path) -> Iterator[Callable[..., Ranks]]:
    started: list[Ranks] = []

    def start(*settings: str) -> Ranks:
        started.append(Ranks(tmp_path, *settings))
        return started[-1]

    yield start
    for ranks in started:
        ranks.kill()
        ranks.process.communicate()


@pytest.mark.slow
def test_ranks_whose_launcher_is_killed_save_and_stop(train_by_two):
    ranks = train_by_two()
    ranks.process.kill()
    wait_until(lambda: not any(map(is_alive, ranks.ranks)), "both ranks end")
    saved = checkpoint.read(ranks.run / "last")
    assert saved.step > 0 and saved.state["processes"] == 2
    assert not (ranks.run / ".lock").exists()


@pytest.mark.slow
def test_training_that_loses_a_rank_by_kill_says_so_and_calls_it_no_bug(train_by_two):
    ranks = train_by_two()
    os.kill(ranks.ranks[1], signal.SIGKILL)
    err = ranks.finish()
    assert ranks.process.returncode == 71, err
    last = err.splitlines()[-1]
    assert last.startswith(f"error: rank 1 (process {ranks.ranks[1]}) was killed by signal 9 (SIGKILL), perhaps"), err
    assert "bug" not in err and err.count("error:") == 1
    assert not any(map(is_alive, ranks.ranks))


@pytest.mark.slow
@pytest.mark.parametrize("stopped", [0, 1])
def test_a_rank_that_is_stopped_is_named_and_ended_after_the_timeout(train_by_two, stopped):
    ranks = train_by_two("train.timeout=0.1")
    os.kill(ranks.ranks[stopped], signal.SIGSTOP)
    err = ranks.finish()
    assert ranks.process.returncode == 71, err
    assert re.search(
        rf"error: rank {stopped} \(process {ranks.ranks[stopped]} on host \S+\) has not answered for 0\.1 minutes "
        r"\(train\.timeout\): stopped or hanging; training ends here, run the same command again to resume\n$",
        err,
    ), err
    assert err.count("error:") == 1
    assert not any(map(is_alive, ranks.ranks))


def watches(timeout: float, size: int = 3) -> list[RankWatch]:
    """Ranks that share a store and have started; heartbeats are sent by hand."""
    store = dist.HashStore()
    found = [RankWatch(store, rank, size, timeout) for rank in range(size)]
    for watch in found:
        store.set(f"started/{watch.rank}", f"process 1{watch.rank} on host x")
    return found


def in_threads(acts: list[Callable[[], None]]) -> list[RankLost | None]:
    """The error that each function raises in a thread of its own."""
    found: dict[int, RankLost] = {}

    def call(index: int) -> None:
        try:
            acts[index]()
        except RankLost as error:
            found[index] = error

    threads = [threading.Thread(target=call, args=(index,)) for index in range(len(acts))]
    for thread in threads:
        thread.start()
    join_all(*threads)
    return [found.get(index) for index in range(len(acts))]


class SharedClock:
    """In place of `time`: it passes only while all ranks of a test sleep, so none is too late for the others.

    `meanwhile` is called whenever all sleep.
    """

    def __init__(self, ranks: int, meanwhile: Callable[[], None] | None = None) -> None:
        self.barrier, self.of_thread = threading.Barrier(ranks, meanwhile, PATIENCE), threading.local()

    def monotonic(self) -> float:
        return getattr(self.of_thread, "now", 0.0)

    def sleep(self, seconds: float) -> None:
        self.barrier.wait()
        self.of_thread.now = self.monotonic() + seconds


@pytest.mark.parametrize("rank", [1, 2])
def test_the_others_wait_for_the_main_rank_longer_than_the_timeout_while_its_heart_beats(monkeypatch, rank):
    watch, sleeps = watches(timeout=60), itertools.count(1)

    def work() -> None:
        count = next(sleeps)
        if count % 100 == 0:  # every 25 seconds
            watch[0].store.set("heartbeat", str(count))
        if count == 1000:
            watch[0].wait_for_main()

    with monkeypatch.context() as patch:
        clock = SharedClock(1, work)
        patch.setattr(rank_watch, "time", clock)
        watch[rank].wait_for_main()
        assert clock.monotonic() > 3 * watch[rank].timeout
    watch[3 - rank].wait_for_main()
    assert in_threads([one.wait_for_main for one in watch]) == [None] * 3


def test_a_main_rank_without_a_heartbeat_is_named_by_one_of_the_others(monkeypatch):
    monkeypatch.setattr(rank_watch, "time", SharedClock(2))
    _, second, third = watches(timeout=0.3)
    errors = in_threads([second.wait_for_main, third.wait_for_main])
    message = "rank 0 (process 10 on host x) has not answered for 0.005 minutes (train.timeout): stopped or hanging; "
    assert [str(error) for error in errors] == [
        f"{message}training ends here, run the same command again to resume"
    ] * 2
    assert [error and error.is_reported for error in errors] == [False, True]


STORE = """
import time
import torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
print(store.port, flush=True)
time.sleep(600)
"""


def test_the_end_of_the_process_that_hosts_the_store_is_a_lost_rank():
    command = [sys.executable, "-c", STORE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=child_environment()) as host:
        try:
            assert host.stdout is not None
            store = dist.TCPStore("127.0.0.1", int(host.stdout.readline()), is_master=False)
            store.set("heartbeat", "1")
        finally:
            host.kill()
    message = "another rank ended during training; see its output, then run the same command again to resume"
    watch = RankWatch(store, 1, 2, 60)
    for _ in range(2):  # the connection is found to be closed, and is closed
        assert refusal(RankLost, watch.wait_for_main) == message


def fail(watch: RankWatch, text: str) -> Callable[[], None]:
    def collective() -> None:
        with watch.explain_failures():
            raise RuntimeError(f"[gloo/transport/tcp/pair.cc:1] {text}")

    return collective


TIMED_OUT = "Timed out waiting 400ms for recv operation to complete"
CLOSED = "Connection closed by peer [127.0.0.1]:1"


def test_the_rank_without_a_note_is_the_one_that_hangs(monkeypatch):
    monkeypatch.setattr(rank_watch, "time", SharedClock(2))
    first, _, third = watches(timeout=60)
    errors = in_threads([fail(first, CLOSED), fail(third, TIMED_OUT)])  # the first lost the third, which gave up
    assert all(
        str(error).startswith("rank 1 (process 11 on host x) has not answered for 1 minutes") for error in errors
    )
    assert [error and error.is_reported for error in errors] == [False, True]


@pytest.mark.parametrize("launched", [True, False])
def test_a_rank_that_ended_is_reported_by_the_launcher_or_by_the_main_rank(monkeypatch, launched):
    monkeypatch.setattr(rank_watch, "time", SharedClock(2))
    monkeypatch.setenv(LAUNCHER, "1 2") if launched else monkeypatch.delenv(LAUNCHER, raising=False)
    first, second, _ = watches(timeout=60)
    errors = in_threads([fail(first, CLOSED), fail(second, CLOSED)])
    message = "rank 2 (process 12 on host x) ended during training; see its output, then run the same command again to "
    assert [str(error) for error in errors] == [f"{message}resume"] * 2
    assert [error and error.is_reported for error in errors] == [launched, True]


def test_an_error_of_another_kind_is_not_blamed_on_a_rank():
    with pytest.raises(RuntimeError, match="shapes"):
        fail(watches(timeout=60)[0], "shapes differ")()


def test_ranks_that_do_not_start_are_named(monkeypatch):
    monkeypatch.setattr(rank_watch, "time", SharedClock(2))
    store = dist.HashStore()
    errors = in_threads([RankWatch(store, rank, 4, 60).wait_for_start for rank in (1, 3)])
    assert [str(error) for error in errors] == ["rank 0 and rank 2 did not start within 10 minutes"] * 2
    assert [error and error.is_reported for error in errors] == [False, True]
