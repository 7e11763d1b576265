"""A run killed with kill -9 many times must end with the hash of a run that was never stopped.

Dropout on, accumulation 2, averaged weights (EMA) on, a checkpoint at every step. Half of the kills come at random
moments (reading, preparing, training, saving), half inside the commit protocol: just before the k-th call that
changes the disk, for k = 1, 2, 3, ...

    python benchmarks/kills.py [--kills 50]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from regard.run import Recipe, Run
from regard.train import checkpoint

SETTINGS = [
    "data.kind=phrases", "data.count=2000", "text.vocab_size=500", "model.kind=transformer", "model.layers=2",
    "model.width=64", "model.ffn_width=128", "model.heads=4", "model.dropout=0.2", "train.batch_tokens=512",
    "train.accumulate=2", "train.ema=0.99", "train.save_every=1", "train.validate_every=100", "train.steps=600",
    "task.bleu_sentences=20", "text.dropout=0.1",
]  # fmt: skip
CALLS = ("mkdir", "fsync", "rename", "replace", "symlink", "unlink", "rmdir")


def kill_before(moment: int) -> None:
    """Count the calls that change the disk once training saves, and kill the process before the chosen one."""
    calls = 0

    def wrap(call):
        def wrapper(*args, **options):
            nonlocal calls
            calls += 1
            if calls == moment:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **options)

        return wrapper

    original, saves = checkpoint.save, 0

    def save(*args, **options):
        nonlocal saves
        saves += 1
        if saves < 3:  # some progress between two kills
            return original(*args, **options)
        for name in CALLS:
            setattr(os, name, wrap(getattr(os, name)))
        checkpoint.save = original
        return original(*args, **options)

    checkpoint.save = save


def child(path: str, moment: int) -> None:
    if moment:
        kill_before(moment)
    Run(Path(path)).train(
        Recipe.read(None, SETTINGS), listeners=[lambda event: print(type(event).__name__, flush=True)]
    )


def start(path: Path, moment: int = 0) -> subprocess.Popen:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--child", str(path), str(moment)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen) -> int:
    process.communicate()
    return process.returncode


def kill_at_random(process: subprocess.Popen, generator: random.Random) -> int:
    """Kill one in five during startup and preparation, the others within three seconds of the first step."""
    if generator.random() < 0.2:
        time.sleep(generator.uniform(0.5, 6.0))
    else:
        for line in process.stdout:
            if line.startswith("Stepped"):
                break
        time.sleep(generator.uniform(0.0, 3.0))
    process.kill()
    return finish(process)


def kill_repeatedly(path: Path, kills: int) -> tuple[int, int, int]:
    """Numbers of kills at random and inside the protocol, and of lost checkpoints."""
    generator, at_random, in_protocol, lost, step = random.Random(1), 0, 0, 0, -1
    while at_random + in_protocol < kills:
        protocol = (at_random + in_protocol) % 2 == 1
        process = start(path, 1 + in_protocol if protocol else 0)
        code = finish(process) if protocol else kill_at_random(process, generator)
        if code == 0:
            break  # it finished early
        at_random, in_protocol = at_random + (not protocol), in_protocol + protocol
        found = checkpoint.newest(path).checkpoint
        lost += step >= 0 and (found is None or found.step < step)
        step = found.step if found else step
        print(f"\r  {at_random + in_protocol} kills, step {step}", end="", flush=True)
    assert finish(start(path)) == 0
    print()
    return at_random, in_protocol, lost


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kills", type=int, default=50)
    options.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.child:
        return child(args.child[0], int(args.child[1]))
    with tempfile.TemporaryDirectory() as folder:
        whole, killed = Path(folder, "whole"), Path(folder, "killed")
        assert finish(start(whole)) == 0
        at_random, in_protocol, lost = kill_repeatedly(killed, args.kills)
        hashes = [checkpoint.newest(run).checkpoint.digest for run in (whole, killed)]
    print(
        f"killed {at_random} times at random, {in_protocol} times inside the commit protocol; {lost} checkpoints lost"
    )
    same = "the same" if len(set(hashes)) == 1 else "DIFFERENT"
    print(f"never stopped {hashes[0][:16]}, killed {hashes[1][:16]}: {same}")
    sys.exit(len(set(hashes)) - 1 or lost)


if __name__ == "__main__":
    main()
