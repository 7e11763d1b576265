"""Many processes through the command line: a run of two that was stopped, and the same under torchrun."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.train import checkpoint

RECIPE = """
[data]
kind = "phrases"
count = 300
[model]
kind = "transformer"
layers = 1
width = 16
heads = 2
inner = 32
[text]
size = 200
dropout = 0.1
[train]
steps = 8
every = 4
save = 2
tokens = 512
ema = 0.9
accumulate = 2
[task]
scored = 3
"""


def command(folder: Path, *words: str) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.slow
@pytest.mark.xdist_group("two")
def test_two_processes_go_on_bit_for_bit_and_torchrun_does_what_nproc_does(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(RECIPE, encoding="utf-8")
    regard = ("-m", "regard", "train", "tiny.toml", "-q", "--out")
    command(tmp_path, *regard, "whole", "--nproc", "2")
    command(tmp_path, *regard, "chain", "--nproc", "2", "train.steps=4")
    command(tmp_path, *regard, "chain", "--nproc", "2")
    command(tmp_path, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", *regard, "torchrun")
    found = [checkpoint.newest(tmp_path / run).checkpoint for run in ("whole", "chain", "torchrun")]
    assert [(f.step, f.state["processes"]) for f in found if f] == [(8, 2)] * 3
    assert len({f.digest for f in found if f}) == 1
