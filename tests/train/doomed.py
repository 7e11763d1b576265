"""Processes that are killed while they save: run as a script by the tests, it prints one JSON line for each death.

`doomed.py each SCENARIO FOLDER` kills a save before its first, second, ... call that changes the disk, until one
save gets through; what was written but not flushed is cut in half, as after a power cut.
`doomed.py random COUNT FOLDER` kills a process that does nothing but save, at random moments.
`doomed.py write SECONDS FOLDER` saves for a while and is not killed.
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


def unlink_links(run: Path) -> None:
    """What `cp -rL` makes of a run: directories where links were."""
    for name in ("last", "best"):
        if (run / name).is_symlink():
            target = (run / name).resolve()
            (run / name).unlink()
            shutil.copytree(target, run / name)


@dataclass(frozen=True)
class Scenario:
    """What a run is before the save that does not end, and that save."""

    prepare: Callable[[Path], object]
    act: Callable[[Path], object]


def three(run: Path) -> None:
    for step in (800, 1600, 2400):
        save(run, step, best=step == 800)


def a_copy(run: Path) -> None:
    save(run, 1600, best=True)
    unlink_links(run)
    shutil.rmtree(run / "checkpoints")


SCENARIOS = {
    "first": Scenario(lambda run: None, lambda run: save(run, 800)),
    "second": Scenario(lambda run: save(run, 800), lambda run: save(run, 1600)),
    "pruning": Scenario(three, lambda run: save(run, 3200, best=True)),
    "again": Scenario(lambda run: save(run, 800), lambda run: save(run, 800, size=999)),
    "copied": Scenario(a_copy, lambda run: save(run, 2400, best=True)),
}


class Death:
    """Counts the calls that change the disk and ends the process before the chosen one."""

    def __init__(self, run: Path, moment: int) -> None:
        self.run, self.moment, self.count = run, moment, 0
        self.flushed = {path.stat().st_ino for path in run.rglob("*") if path.is_file()}
        for name in CALLS:
            setattr(os, name, self.wrapped(name, getattr(os, name)))

    def wrapped(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            if self.count == self.moment:
                self.cut()
                (self.run.parent / "call").write_text(name)
                os.kill(os.getpid(), signal.SIGKILL)
            self.count += 1
            if name == "fsync":
                self.flushed.add(os.fstat(arguments[0]).st_ino)
            return call(*arguments, **options)

        return counted

    def cut(self) -> None:
        for path in self.run.rglob("*"):
            if path.is_file() and not path.is_symlink() and path.stat().st_ino not in self.flushed:
                os.truncate(path, path.stat().st_size // 2)


def look(run: Path) -> dict[str, Any]:
    found = checkpoint.newest(run)
    step = found.checkpoint.step if found.checkpoint else None
    size = len(found.checkpoint.tensors("model")["readout"]) if found.checkpoint else None
    best = checkpoint.best(run)
    whole = all(checkpoint.read(path) for path in checkpoint_store.checkpoints(run))
    return {"step": step, "size": size, "refused": found.refused, "whole": whole, "best": best and best.step}


def killed(run: Path, moment: int, act: Callable[[Path], object]) -> bool:
    child = os.fork()
    if child == 0:
        Death(run, moment)
        act(run)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def each(scenario: Scenario, folder: Path) -> None:
    run, prepared = folder / "run", folder / "prepared"
    prepared.mkdir()
    scenario.prepare(prepared)
    alive, moment = True, 0
    while alive:
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(prepared, run, symlinks=True)
        alive = killed(run, moment, scenario.act)
        seen = look(run)
        scenario.act(run)  # the run goes on: the same step is saved again, and what lay about is swept
        left = [path.name for path in run.rglob(".tmp-*")]
        call = (folder / "call").read_text() if alive else "done"
        print(json.dumps({"call": call, **seen, "after": look(run), "left": left}))
        moment += 1


def at_random(count: int, folder: Path, size: int = 300_000) -> None:
    chance = random.Random(0)
    run = folder / "run"
    save(run, 1, size)
    step = 1
    for _ in range(count):
        child = os.fork()
        if child == 0:
            for later in range(step + 1, step + 1000):
                save(run, later, size)
        time.sleep(chance.uniform(0, 0.06))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        seen = look(run)
        print(json.dumps({"before": step, **seen}))
        step = seen["step"] or step


def write(seconds: float, folder: Path) -> None:
    start, step = time.monotonic(), 0
    while time.monotonic() < start + seconds:
        step += 1
        save(folder / "run", step, 30_000)


if __name__ == "__main__":
    what, argument, place = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if what == "each":
        each(SCENARIOS[argument], place)
    elif what == "random":
        at_random(int(argument), place)
    else:
        write(float(argument), place)
