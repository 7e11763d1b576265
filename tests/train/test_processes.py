"""Several processes through the command line: two that were stopped and resumed, and the same under torchrun."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from helpers import PATIENCE, TINY_TRANSLATOR, child_environment
from regard.train import checkpoint

RECIPE = f"""{TINY_TRANSLATOR}dropout = 0.1
[train]
steps = 8
validate_every = 4
save_every = 2
batch_tokens = 512
ema = 0.9
accumulate = 2
[task]
bleu_sentences = 3
"""


def run_python(folder: Path, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=child_environment(), capture_output=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.slow
def test_two_processes_resume_bit_for_bit_and_torchrun_equals_nproc(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(RECIPE, encoding="utf-8")
    regard = ("-m", "regard", "train", "tiny.toml", "-q", "--out")
    run_python(tmp_path, *regard, "whole", "--nproc", "2")
    run_python(tmp_path, *regard, "resumed", "--nproc", "2", "train.steps=4")
    run_python(tmp_path, *regard, "resumed", "--nproc", "2")
    run_python(tmp_path, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", *regard, "torchrun")
    found = [checkpoint.newest(tmp_path / run).checkpoint for run in ("whole", "resumed", "torchrun")]
    assert [(f.step, f.state["processes"]) for f in found if f] == [(8, 2)] * 3
    assert len({f.digest for f in found if f}) == 1


CLOSED_GROUP = """
import torch
from regard.distributed import ProcessGroup
group = ProcessGroup.init()
weight = torch.nn.Parameter(torch.ones(1))
torch.optim.Adam([weight], fused=True)  # imports torch.distributed.nn
group.max_over_ranks(1)
group.close()
from torch.distributed.nn import functional
assert functional.broadcast.__defaults__ == (None,), functional.broadcast.__defaults__
"""


def test_nothing_keeps_a_closed_process_group_alive(tmp_path: Path) -> None:
    ranks = []
    for rank in ("0", "1"):
        meeting = {"REGARD_INIT_METHOD": f"file://{tmp_path / 'rendezvous'}", "RANK": rank, "WORLD_SIZE": "2"}
        command = [sys.executable, "-c", CLOSED_GROUP]
        ranks.append(subprocess.Popen(command, env={**child_environment(), **meeting}, stderr=subprocess.PIPE))
    for process in ranks:
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err.decode()
