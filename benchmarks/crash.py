"""Checkpoints under kill -9, changed bytes and a full disk: regard beside torch.save over the same path.

python benchmarks/crash.py [--kills 1000] [--mutations 10000] [--parameters 7600000]
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch

from regard.errors import ModelError, OutputError
from regard.train import checkpoint

Groups = dict[str, dict[str, torch.Tensor]]


def groups(parameters: int, value: float = 0.0) -> Groups:
    """A model of layers of 256 x 1024 and its Adam moments: three times the parameters."""
    layer = 256 * 1024
    names = [f"layer.{i}.weight" for i in range(-(-parameters // layer))]
    shape = (min(parameters, layer) // 256, 256)
    model = {name: torch.randn(shape) + value for name in names}
    moments = {f"{name}.{moment}": torch.randn(shape) for name in names for moment in ("exp_avg", "exp_avg_sq")}
    return {"model": model, "optimizer": moments}


def kill_at_random(act: Callable[[int], object], limit: float, generator: random.Random) -> None:
    """Run act(0), act(1), ... in a child process and kill it with SIGKILL after a random time."""
    child = os.fork()
    if child == 0:
        for number in range(1_000_000):
            act(number)
    time.sleep(generator.uniform(0, limit))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def max_wait(act: Callable[[], object]) -> float:
    """Twice the time of one save, so that kills fall everywhere in it."""
    start = time.perf_counter()
    for _ in range(3):
        act()
    return 2 * (time.perf_counter() - start) / 3


def kill_regard(folder: Path, tensors: Groups, kills: int) -> None:
    run, generator, step, lost, committed = folder / "run", random.Random(0), 3, 0, 0
    wait = max_wait(lambda: checkpoint.save(run, step, tensors, {"step": 0, "again": random.random()}))
    for _ in range(kills):
        first = step + 1
        kill_at_random(lambda i, n=first: checkpoint.save(run, n + i, tensors, {"step": n + i}), wait, generator)  # type: ignore[misc]
        found = checkpoint.newest(run)
        if found.checkpoint is None or found.checkpoint.step < step or found.refused:
            lost += 1
        else:
            committed += found.checkpoint.step > step
            step = found.checkpoint.step
    print(f"regard: {lost} of {kills} checkpoints lost to kill -9 ({committed} kills fell after a commit)")


def kill_torch(folder: Path, tensors: Groups, kills: int) -> None:
    path, generator, lost = folder / "checkpoint.pt", random.Random(0), 0
    wait = max_wait(lambda: torch.save(tensors, path))
    for _ in range(kills):
        torch.save(tensors, path)
        kill_at_random(lambda i: torch.save(tensors, path), wait, generator)
        try:
            torch.load(path, weights_only=True)
        except Exception:
            lost += 1
    print(f"torch.save over the same path: {lost} of {kills} checkpoints lost to kill -9")


def mutate(folder: Path, mutations: int) -> None:
    run, generator, unnoticed, recovered = folder / "mutated", random.Random(1), 0, 0
    for step in (1, 2):
        path = checkpoint.save(run, step, {"model": {"w": torch.randn(500), "b": torch.randn(20)}}, {"step": step})
    original = {file: file.read_bytes() for file in sorted(path.iterdir())}
    for _ in range(mutations):
        file = generator.choice(list(original))
        data = bytearray(original[file])
        place = generator.randrange(len(data))
        if generator.random() < 0.2:
            del data[place:]
        else:
            data[place] ^= 1 << generator.randrange(8)
        file.write_bytes(data)
        try:
            checkpoint.read(path)
            unnoticed += 1
        except ModelError:
            found = checkpoint.newest(run).checkpoint
            recovered += found is not None and found.step == 1
        file.write_bytes(original[file])
    print(f"mutations: {unnoticed} of {mutations} unnoticed, the older checkpoint used in {recovered}")


def full_disk(folder: Path) -> None:
    disk = folder / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)]
    if subprocess.run(command, capture_output=True).returncode != 0:
        print("full disk: not measured, a tmpfs cannot be mounted here")
        return
    try:
        tensors = groups(262_144)
        checkpoint.save(disk / "run", 1, tensors, {})
        digest = checkpoint.read(disk / "run" / "last").digest
        fit = 0
        for step in range(2, 102):
            try:
                checkpoint.save(disk / "run", step, groups(262_144 * (2 + step % 5)), {})
                fit += 1
            except OutputError as error:
                message = str(error)
        found = checkpoint.newest(disk / "run")
        same = found.checkpoint is not None and found.checkpoint.digest == digest
        extra = len(list((disk / "run" / "checkpoints").iterdir())) - 1
        print(f"full disk (8 MB tmpfs): {100 - fit} of 100 saves refused, old one intact: {same}, left over: {extra}")
        print(f"  {message.replace(str(disk), 'RUN')}")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def milliseconds(act: Callable[[int], object], times: int = 7) -> str:
    durations = []
    for number in range(times):
        start = time.perf_counter()
        act(number)
        durations.append(1000 * (time.perf_counter() - start))
    return f"{statistics.median(durations):.0f} ms ({min(durations):.0f} to {max(durations):.0f})"


def anonymous_memory() -> int:
    """Anonymous memory of this process in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def added_memory(act: Callable[[], object]) -> int:
    before, peak, done = anonymous_memory(), 0, threading.Event()

    def sample() -> None:
        nonlocal peak
        while not done.is_set():
            peak = max(peak, anonymous_memory())
            time.sleep(0.001)

    sampler = threading.Thread(target=sample)
    sampler.start()
    act()
    done.set()
    sampler.join()
    return max(0, peak - before)


def plain_save(tensors: Groups, path: Path, *, flush: bool) -> None:
    with path.open("wb") as file:
        torch.save(tensors, file)
        if flush:
            file.flush()
            os.fsync(file.fileno())


def speed(folder: Path, parameters: int) -> None:
    tensors = groups(parameters)
    count = sum(tensor.numel() for tensor in tensors["model"].values())
    size = sum(tensor.nbytes for group in tensors.values() for tensor in group.values())
    run, path = folder / "speed", folder / "speed.pt"
    print(f"{count / 1e6:.1f} M parameters and Adam's moments, {size / 1e6:.0f} MB:")
    print(f"  save, hashed and flushed: {milliseconds(lambda i: checkpoint.save(run, i, tensors, {}))}")
    print(f"  torch.save, flushed:      {milliseconds(lambda i: plain_save(tensors, path, flush=True))}")
    print(f"  torch.save, not flushed:  {milliseconds(lambda i: plain_save(tensors, path, flush=False))}")
    print(f"  newest, every byte checked: {milliseconds(lambda i: checkpoint.newest(run))}")
    read = checkpoint.read(run / "last")
    print(f"  reading the tensors:        {milliseconds(lambda i: [read.tensors(name) for name in read.groups])}")
    print(f"  memory added by a save: {added_memory(lambda: checkpoint.save(run, 99, tensors, {})) / 1e6:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--parameters", type=int, default=7_600_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="regard-crash-"))
    try:
        speed(folder, options.parameters)
        full_disk(folder)
        mutate(folder, options.mutations)
        tensors = groups(262_144)
        kill_torch(folder, tensors, max(60, options.kills // 10))
        kill_regard(folder, tensors, options.kills)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
