"""Training speed of a small GPT beside a plain loop written as nanoGPT writes it, in one run.

    REGARD_DATA=folder python benchmarks/gpt_training.py [--rounds 5] [--steps 60] [--clock cpu]

Both train nanoGPT's CPU size (4 layers, 4 heads, width 128, context 64, 12 windows of Tiny Shakespeare's characters,
AdamW, clipping at 1, float32, one thread) in turn within every round. Ours is the trainer of `regard train` with the
recipe recipes/generate/tiny-shakespeare-gpt.toml: loader, objective, schedule, divergence rule; without biases and with
an exact GELU, as the loop beside it. That has a module of its own (fused attention, tied embedding, learned positions),
random windows, and nothing else. Each has a process of its own. A ratio is the median over the rounds, with its spread;
without REGARD_DATA the text is made of random words.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.distributed import ProcessGroup
from regard.run import Recipe, Run
from regard.train.parallel import tune_malloc
from regard.train.trainer import Trainer

LAYERS, HEADS, WIDTH, CONTEXT, ROWS = 4, 4, 128, 64, 12
RECIPE = Path(__file__).parents[1] / "recipes/generate/tiny-shakespeare-gpt.toml"
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
GOAL = 1.0


class PlainBlock(nn.Module):
    """A pre-norm block."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, bias=False), nn.LayerNorm(WIDTH, bias=False)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, width = x.shape
        q, k, v = (
            part.view(rows, length, HEADS, width // HEADS).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(width, dim=2)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).contiguous().view(rows, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class PlainGPT(nn.Module):
    """A GPT in the plainest form."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(PlainBlock() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH, bias=False), nn.Linear(WIDTH, vocabulary, bias=False)
        self.tokens.weight = self.head.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


class PlainLoop:
    """Random windows, forward, backward, clipping, AdamW."""

    def __init__(self, data: np.ndarray, vocabulary: int) -> None:
        torch.manual_seed(1337)
        self.data, self.model = data, PlainGPT(vocabulary)
        decay = [p for p in self.model.parameters() if p.dim() >= 2]
        rest = [p for p in self.model.parameters() if p.dim() < 2]
        groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99))

    def run(self, steps: int) -> float:
        loss = torch.zeros(())
        for _ in range(steps):
            starts = torch.randint(len(self.data) - CONTEXT, (ROWS,))
            ids = torch.stack([torch.from_numpy(self.data[i : i + CONTEXT].astype(np.int64)) for i in starts])
            after = [self.data[i + 1 : i + 1 + CONTEXT].astype(np.int64) for i in starts]
            targets = torch.stack([torch.from_numpy(row) for row in after])
            loss = self.model(ids, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60, help="updates per round, of each")
    parser.add_argument("--clock", default="wall", choices=list(CLOCKS))
    parser.add_argument("--worker", choices=("regard", "plain"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        if args.worker:
            return serve(start_training(args.worker, Path(folder)), args)
        speeds = []
        with worker("regard", args) as regard, worker("plain", args) as plain:
            for number in range(args.rounds + 1):
                pair = [args.steps * ROWS * CONTEXT / measure(process) for process in (regard, plain)]
                if number:  # the first round warms up
                    speeds.append(pair)
                    print(f"round {number}: {pair[0]:,.0f} and {pair[1]:,.0f} tokens/s", flush=True)
    ratios = [a / b for a, b in speeds]
    ours, theirs = (statistics.median(column) for column in zip(*speeds, strict=True))
    ratio, spread = statistics.median(ratios), f"{min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} rounds"
    print(f"regard {ours:,.0f} tokens/s, plain loop {theirs:,.0f}: {ratio:.2f} x ({spread})")
    if ratio < GOAL:
        sys.exit(f"below {GOAL} x")


@contextmanager
def worker(name: str, args: argparse.Namespace) -> Iterator[subprocess.Popen[str]]:
    """A process that trains with one implementation: `regard train` sets malloc's thresholds for its whole process."""
    command = [sys.executable, __file__, "--worker", name, "--steps", str(args.steps), "--clock", args.clock]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.communicate()


def measure(process: subprocess.Popen[str]) -> float:
    """Seconds that a worker takes for a round."""
    assert process.stdin and process.stdout
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def serve(run: Callable[[int], object], args: argparse.Namespace) -> None:
    """Train for a round per line of input, and print its seconds."""
    clock = CLOCKS[args.clock]
    for _ in sys.stdin:
        began = clock()
        run(args.steps)
        print(clock() - began, flush=True)


def start_training(name: str, home: Path) -> Callable[[int], object]:
    """Steps of one implementation: a call trains for so many."""
    settings = [f"data.train={text_file(home)}", "task.samples=0", "model.bias=false", "model.activation=gelu"]
    recipe = Recipe.read(RECIPE, settings)
    Run(home / "run").prepare(recipe)
    objective, loader, validate = recipe.training_parts(home / "run", ProcessGroup())
    if name == "plain":
        return PlainLoop(np.asarray(loader.train), objective.task.space.size).run
    tune_malloc()  # as `train` does
    trainer = Trainer(objective, loader, recipe.train, home / "run", ProcessGroup(), (), validate, recipe.seed)
    torch.set_num_threads(1)
    stream = loader.train_batches(None)

    def run(steps: int) -> None:
        for _ in range(steps):
            trainer.step([next(stream)])

    return run


def text_file(home: Path) -> Path:
    """Tiny Shakespeare, or as many characters of random words."""
    if "REGARD_DATA" in os.environ:
        return Path(os.environ["REGARD_DATA"], "tiny-shakespeare/input.txt")
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(5000)]
    path = home / "words.txt"
    path.write_text("".join(" ".join(draw.choices(words, k=9)) + "\n" for _ in range(20_000)), encoding="utf-8")
    return path


if __name__ == "__main__":
    main()
