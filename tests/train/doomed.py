"""Processes that are killed while saving: run as a script by the tests, it prints one JSON line per kill.

`doomed.py each SCENARIO FOLDER` kills a save before its first, second, ... call that changes the disk, until one
save gets through; what was written but not flushed is cut in half, as after a power cut.
`doomed.py random COUNT FOLDER` kills a process that saves in a loop, at random moments.
`doomed.py write FIRST FOLDER` saves from a step on until it is killed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.train import checkpoint, checkpoint_store

CALLS = ("mkdir", "fsync", "rename", "replace", "symlink", "unlink", "rmdir")


def save(run: Path, step: int, size: int = 1000, **options: Any) -> Path:
    shared = torch.full((size,), float(step))
    model = {"embed": shared, "readout": shared, "bias": torch.ones(3)}
    return checkpoint.save(run, step, {"model": model, "ema": {"embed": shared + 1}}, {"epoch": step}, **options)


def copy_links(run: Path) -> None:
    """Replace links by copies of their targets, as `cp -rL` does."""
    for name in ("last", "best"):
        if (run / name).is_symlink():
            target = (run / name).resolve()
            (run / name).unlink()
            shutil.copytree(target, run / name)


@dataclass(frozen=True)
class Scenario:
    """The state of a run before the save that is killed, and that save."""

    prepare: Callable[[Path], object]
    act: Callable[[Path], object]


def save_three(run: Path) -> None:
    for step in (800, 1600, 2400):
        save(run, step, best=step == 800)


def save_and_copy(run: Path) -> None:
    save(run, 1600, best=True)
    copy_links(run)
    shutil.rmtree(run / "checkpoints")


SCENARIOS = {
    "first": Scenario(lambda run: None, lambda run: save(run, 800)),
    "second": Scenario(lambda run: save(run, 800), lambda run: save(run, 1600)),
    "pruning": Scenario(save_three, lambda run: save(run, 3200, best=True)),
    "again": Scenario(lambda run: save(run, 800), lambda run: save(run, 800, size=999)),
    "copied": Scenario(save_and_copy, lambda run: save(run, 2400, best=True)),
}


class Killer:
    """Counts the calls that change the disk and kills the process before the chosen one."""

    def __init__(self, run: Path, moment: int) -> None:
        self.run, self.moment, self.count = run, moment, 0
        self.flushed = {path.stat().st_ino for path in run.rglob("*") if path.is_file()}
        for name in CALLS:
            setattr(os, name, self.wrap(name, getattr(os, name)))

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            if self.count == self.moment:
                self.truncate_unflushed()
                (self.run.parent / "call").write_text(name)
                os.kill(os.getpid(), signal.SIGKILL)
            self.count += 1
            if name == "fsync":
                self.flushed.add(os.fstat(arguments[0]).st_ino)
            return call(*arguments, **options)

        return wrapper

    def truncate_unflushed(self) -> None:
        for path in self.run.rglob("*"):
            if path.is_file() and not path.is_symlink() and path.stat().st_ino not in self.flushed:
                os.truncate(path, path.stat().st_size // 2)


def inspect(run: Path) -> dict[str, Any]:
    found = checkpoint.newest(run)
    step = found.checkpoint.step if found.checkpoint else None
    size = len(found.checkpoint.tensors("model")["readout"]) if found.checkpoint else None
    best = checkpoint.best(run)
    complete = all(checkpoint.read(path) for path in checkpoint_store.checkpoints(run))
    return {"step": step, "size": size, "refused": found.refused, "complete": complete, "best": best and best.step}


def kill_during(run: Path, moment: int, act: Callable[[Path], object]) -> bool:
    child = os.fork()
    if child == 0:
        Killer(run, moment)
        act(run)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def kill_before_each_call(scenario: Scenario, folder: Path) -> None:
    run, prepared = folder / "run", folder / "prepared"
    prepared.mkdir()
    scenario.prepare(prepared)
    killed, moment = True, 0
    while killed:
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(prepared, run, symlinks=True)
        killed = kill_during(run, moment, scenario.act)
        found = inspect(run)
        scenario.act(run)  # resume: the same step is saved again, and stale files are removed
        leftovers = [path.name for path in run.rglob(".tmp-*")]
        call = (folder / "call").read_text() if killed else "done"
        print(json.dumps({"call": call, **found, "after": inspect(run), "left": leftovers}))
        moment += 1


def kill_at_random(count: int, folder: Path, size: int = 300_000) -> None:
    generator = random.Random(0)
    run = folder / "run"
    started = time.monotonic()
    save(run, 1, size)
    limit = max(0.06, 2 * (time.monotonic() - started))  # on a busy machine too, some saves end before the kill
    step = 1
    for _ in range(count):
        child = os.fork()
        if child == 0:
            for later in range(step + 1, step + 1000):
                save(run, later, size)
        time.sleep(generator.uniform(0, limit))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = inspect(run)
        print(json.dumps({"before": step, **found}))
        step = found["step"] or step
        limit *= 1 if step > 1 else 1.5  # the first save was lucky: so far none of the others ended


def save_until_killed(step: int, folder: Path) -> None:
    while True:
        save(folder / "run", step, 30_000)
        step += 1


if __name__ == "__main__":
    what, argument, place = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if what == "each":
        kill_before_each_call(SCENARIOS[argument], place)
    elif what == "random":
        kill_at_random(int(argument), place)
    else:
        save_until_killed(int(argument), place)
