"""Training speed of RNNsearch beside plain loops, interleaved: target tokens per CPU second.

The same equations and weights, batches (Multi30k English-German, bucketed), optimizer (Adam) and label smoothing:
  regard     what does not depend on the previous step is out of the loop, and the loop has a handwritten backward
  plain      everything in the loop, as tutorials write it: scores of [s; h_j], gates of [y; s; c], readout, logits
  keys once  the same, but U h_j is computed once per sentence

    REGARD_DATA=folder python benchmarks/rnnsearch.py [--rounds 5] [--batches 12] [--threads 1]

CPU seconds, not wall time: the machine may be busy. Ends with an error if the median ratio to `plain` is below 1.5.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from regard.data import Shards
from regard.distributed import ProcessGroup
from regard.models.rnnsearch import RNNsearchConfig
from regard.objective import Batch, NextToken, Objective
from regard.spaces import Words
from regard.tasks.translate.loader import PairLoader
from regard.tasks.translate.prepare import TranslatePreparation, Vocabularies
from regard.tasks.translate.sources import PairFiles
from regard.train.config import TrainConfig
from regard.train.parallel import tune_malloc
from regard.train.trainer import Trainer

MIN_RATIO = 1.5
SHAPE = RNNsearchConfig(embedding=256, width=384, alignment=384, maxout=256)
"""as in recipes/compare/multi30k-de-en.toml."""


class Plain(nn.Module):
    """The paper's equations, step by step."""

    def __init__(self, shape: RNNsearchConfig, words: int) -> None:
        super().__init__()
        word, D, A = shape.embedding, shape.width, shape.alignment
        self.source, self.target = nn.Embedding(words, word), nn.Embedding(words, word)
        self.encoder, self.bridge = nn.GRU(word, D, batch_first=True, bidirectional=True), nn.Linear(D, D)
        self.query, self.key, self.v = (nn.Linear(i, o, bias=False) for i, o in ((D, A), (2 * D, A), (A, 1)))
        self.gates, self.candidate = nn.Linear(word + 3 * D, 2 * D), nn.Linear(word + 3 * D, D)
        self.pairs, self.out = nn.Linear(word + 3 * D, 2 * shape.maxout), nn.Linear(shape.maxout, words, bias=False)

    def forward(self, batch: Batch) -> Tensor:
        source, inputs = batch.source, batch.target.shift()[0]
        packed = nn.utils.rnn.pack_padded_sequence(
            self.source(source.data), source.lengths, batch_first=True, enforce_sorted=False
        )
        out, ends = self.encoder(packed)
        states, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=source.data.shape[1])
        s, keys, logits = torch.tanh(self.bridge(ends[1])), self.keys(states), []
        for t in range(inputs.data.shape[1]):
            y = self.target(inputs.data[:, t])
            scores = self.score(s, states, keys).masked_fill(~source.mask, -torch.inf)
            c = torch.bmm(scores.softmax(1)[:, None], states)[:, 0]
            pairs = self.pairs(torch.cat([y, s, c], 1))
            r, z = torch.sigmoid(self.gates(torch.cat([y, s, c], 1))).chunk(2, 1)
            s = (1 - z) * s + z * torch.tanh(self.candidate(torch.cat([y, r * s, c], 1)))
            logits.append(self.out(pairs.unflatten(1, (-1, 2)).amax(2)))
        return torch.stack(logits, 1)

    def keys(self, states: Tensor) -> Tensor:
        return states

    def score(self, s: Tensor, states: Tensor, keys: Tensor) -> Tensor:
        return self.v(torch.tanh(self.query(s)[:, None] + self.key(states)))[..., 0]


class KeysOnce(Plain):
    def keys(self, states: Tensor) -> Tensor:
        return self.key(states)

    def score(self, s: Tensor, states: Tensor, keys: Tensor) -> Tensor:
        return self.v(torch.tanh(self.query(s)[:, None] + keys))[..., 0]


def plain_step(model: nn.Module) -> Callable[[Batch], int]:
    """An ordinary training step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    score = nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=0)

    def step(batch: Batch) -> int:
        _, targets, real = batch.target.shift()
        score(model(batch).flatten(0, 1), targets.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return int(real.sum())

    return step


def trainer_step(shape: RNNsearchConfig, loader: PairLoader, run: Path) -> Callable[[Batch], int]:
    """The step of regard's trainer."""
    words = Words(loader.vocabularies.target.size, 0.1)
    objective = Objective(shape.build(words, words), NextToken(words))
    trainer = Trainer(objective, loader, TrainConfig(steps=10**6), run, ProcessGroup(), (), None, 1)

    def step(batch: Batch) -> int:
        before = trainer.state.tokens
        trainer.step([(batch, {})])
        return trainer.state.tokens - before

    return step


def speed(step: Callable[[Batch], int], batches: list[Batch]) -> float:
    started = time.process_time()
    tokens = sum(step(batch) for batch in batches)
    return tokens / (time.process_time() - started)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--batches", type=int, default=12)
    options.add_argument("--threads", type=int, default=1)
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    tune_malloc()
    data = Path(os.environ.get("REGARD_DATA") or sys.exit("set REGARD_DATA to the folder that holds multi30k/"))
    data = data / "multi30k"
    files = PairFiles(train=(f"{data}/train.en", f"{data}/train.de"), valid=(f"{data}/val.en", f"{data}/val.de"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        TranslatePreparation(files).run(folder)
        vocabularies = Vocabularies.load(folder)
        loader = PairLoader(
            Shards.open(folder / "train"), Shards.open(folder / "valid"), vocabularies, batch_tokens=4096
        )
        plan = list(loader.plan(loader.train).epoch(0))
        sample = [plan[i] for i in np.linspace(0, len(plan) - 1, args.batches).astype(int)]
        batches = [loader.batch(loader.train, rows) for rows in sample]
        torch.manual_seed(1)
        steps = {"regard": trainer_step(SHAPE, loader, folder / "run")}
        steps |= {
            n: plain_step(m(SHAPE, vocabularies.target.size)) for n, m in (("plain", Plain), ("keys once", KeysOnce))
        }
        found: dict[str, list[float]] = {name: [] for name in steps}
        for step in steps.values():
            step(batches[0])  # warmup
        for done in range(args.rounds):
            for name, step in steps.items():
                found[name].append(speed(step, batches))
            print(f"round {done + 1}: " + ", ".join(f"{n} {f[-1]:.0f}" for n, f in found.items()), flush=True)
    report(found)


def report(found: dict[str, list[float]]) -> None:
    print("target tokens per CPU second: median (smallest to largest)")
    for name, speeds in found.items():
        print(f"  {name:10} {statistics.median(speeds):6.0f} ({min(speeds):.0f} to {max(speeds):.0f})")
    medians = {}
    for peer in ("plain", "keys once"):
        ratios = [a / b for a, b in zip(found["regard"], found[peer], strict=True)]
        medians[peer] = statistics.median(ratios)
        print(f"  regard / {peer}: {medians[peer]:.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    if medians["plain"] < MIN_RATIO:
        sys.exit(f"too slow: {medians['plain']:.2f} x the plain loop, {MIN_RATIO} x is expected")


if __name__ == "__main__":
    main()
