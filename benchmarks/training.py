"""Training speed beside Hugging Face and torch.nn: target tokens per second on Multi30k English-German, interleaved.

The same model (3+3 layers, width 256, ffn_width 1024, 4 heads, one vocabulary of 8,000, dropout 0.1), the same
sentences, the same optimizer (Adam) and label smoothing 0.1:
  regard      bucketed batches, as `regard train --nproc CORES` (one process per core, one thread each) and with threads
  marian      Hugging Face's MarianMTModel on the very same bucketed batches
  torch       torch.nn.Transformer on unsorted padded batches with as many target tokens on average

    REGARD_DATA=folder python benchmarks/training.py [--rounds 5] [--batches 40] [--keep FILE]

`--batches` takes that many batches spread evenly over the epoch; 0 takes all of them (a round of whole epochs is 15
minutes and more: `--keep` appends every measured epoch to a file and continues from there, so that five rounds can be
measured in several sessions; `--only` selects implementations). The share of the GEMM limit is the model's FLOP rate
over that of a large float32 matrix product in the same round.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from regard.data import Shards, rank_share
from regard.distributed import ProcessGroup
from regard.models.transformer import TransformerConfig
from regard.objective import NextToken, Objective
from regard.spaces import Words
from regard.tasks.translate.loader import PairLoader
from regard.tasks.translate.prepare import TranslatePreparation, Vocabularies
from regard.tasks.translate.sources import PairFiles
from regard.train.config import TrainConfig
from regard.train.parallel import launch, tune_malloc
from regard.train.trainer import Trainer

SHAPE = TransformerConfig(layers=3, width=256, ffn_width=1024, heads=4, dropout=0.1)
CORES = os.cpu_count() or 1


def flop_per_target_token() -> float:
    """6 FLOP per weight that is used, forward and backward: 45.9 M."""
    D, F, V = SHAPE.width, SHAPE.ffn_width, 8000
    encoder, decoder = SHAPE.layers * (4 * D * D + 2 * D * F), SHAPE.layers * (8 * D * D + 2 * D * F)
    return 6.0 * (encoder + decoder + D * V)


def gemm(threads: int) -> float:
    """GFLOP/s of a float32 matrix product, the best of several."""
    torch.set_num_threads(threads)
    a, b = torch.randn(2048, 1024), torch.randn(1024, 2048)
    best = 0.0
    for _ in range(8):
        started = time.perf_counter()
        a @ b
        best = max(best, 2 * 2048 * 1024 * 2048 / (time.perf_counter() - started) / 1e9)
    return best


def select_batches(loader: PairLoader, count: int) -> list[np.ndarray]:
    rows = list(loader.plan(loader.train).epoch(0))
    return rows if not count else [rows[i] for i in np.linspace(0, len(rows) - 1, count).astype(int)]


def ours(folder: Path, count: int, group: ProcessGroup) -> dict[str, float]:
    """Seconds and target tokens of the step of regard's trainer."""
    tune_malloc()
    vocabularies = Vocabularies.load(folder)
    loader = PairLoader(
        Shards.open(folder / "train"), Shards.open(folder / "valid"), vocabularies, batch_tokens=4096, group=group
    )
    words = Words(vocabularies.target.size, 0.1)
    torch.manual_seed(1)
    objective = Objective(SHAPE.build(words, words), NextToken(words))
    with tempfile.TemporaryDirectory() as run:
        trainer = Trainer(objective, loader, TrainConfig(steps=10**6), Path(run), group, (), None, 1)
        batches = [
            loader.batch(loader.train, rank_share(rows, group.rank, group.size))
            for rows in select_batches(loader, count)
        ]
        trainer.step([(batches[0], {})])  # warmup
        trainer.state.tokens = 0
        group.max_over_ranks(0)
        started = time.perf_counter()
        for batch in batches:
            trainer.step([(batch, {})])
        seconds = time.perf_counter() - started
    return {"seconds": seconds, "tokens": trainer.state.tokens}


def marian(folder: Path, count: int) -> dict[str, float]:
    from transformers import MarianConfig, MarianMTModel

    torch.manual_seed(1)
    vocabularies = Vocabularies.load(folder)
    loader = PairLoader(Shards.open(folder / "train"), Shards.open(folder / "valid"), vocabularies, batch_tokens=4096)
    config = MarianConfig(
        vocab_size=vocabularies.target.size, d_model=SHAPE.width, encoder_layers=SHAPE.layers,
        decoder_layers=SHAPE.layers, encoder_attention_heads=SHAPE.heads, decoder_attention_heads=SHAPE.heads,
        encoder_ffn_dim=SHAPE.ffn_width, decoder_ffn_dim=SHAPE.ffn_width, dropout=SHAPE.dropout, attention_dropout=0.0,
        activation_dropout=0.0, activation_function="relu", scale_embedding=True, pad_token_id=0, eos_token_id=3,
        decoder_start_token_id=2, forced_eos_token_id=None, max_position_embeddings=512, use_cache=False,
    )  # fmt: skip
    model = MarianMTModel(config).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    score = nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=-100)

    def step(batch) -> int:
        inputs, targets, real = batch.target.shift()
        labels = targets.masked_fill(~real, -100)
        logits = model(
            input_ids=batch.source.data, attention_mask=batch.source.mask.long(), decoder_input_ids=inputs.data
        ).logits
        score(logits.flatten(0, 1), labels.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return int(real.sum())

    batches = [loader.batch(loader.train, rows) for rows in select_batches(loader, count)]
    step(batches[0])
    started = time.perf_counter()
    tokens = sum(step(batch) for batch in batches)
    return {"seconds": time.perf_counter() - started, "tokens": tokens}


class Plain(nn.Module):
    """torch.nn.Transformer as its tutorial uses it."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(size, SHAPE.width), nn.Embedding(512, SHAPE.width)
        self.transformer = nn.Transformer(
            SHAPE.width, SHAPE.heads, SHAPE.layers, SHAPE.layers, SHAPE.ffn_width, SHAPE.dropout, batch_first=True
        )
        self.readout = nn.Linear(SHAPE.width, size, bias=False)

    def forward(self, source, target):
        embed = lambda t: self.embed(t.data) * 16 + self.positions(torch.arange(t.data.shape[1]))  # noqa: E731
        causal = nn.Transformer.generate_square_subsequent_mask(target.data.shape[1], dtype=torch.bool)
        out = self.transformer(
            embed(source), embed(target), tgt_mask=causal, src_key_padding_mask=~source.mask,
            memory_key_padding_mask=~source.mask, tgt_key_padding_mask=~target.mask,
        )  # fmt: skip
        return self.readout(out)


def plain(folder: Path, count: int) -> dict[str, float]:
    torch.manual_seed(1)
    vocabularies = Vocabularies.load(folder)
    loader = PairLoader(Shards.open(folder / "train"), Shards.open(folder / "valid"), vocabularies, batch_tokens=4096)
    model = Plain(vocabularies.target.size).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    score = nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=0)
    total = len(list(loader.plan(loader.train).epoch(0)))
    rows = np.random.default_rng(1).permutation(len(loader.train))
    unsorted = np.array_split(rows, total)
    sample = unsorted if not count else [unsorted[i] for i in np.linspace(0, total - 1, count).astype(int)]

    def step(batch) -> int:
        inputs, targets, real = batch.target.shift()
        score(model(batch.source, inputs).flatten(0, 1), targets.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return int(real.sum())

    batches = [loader.batch(loader.train, rows) for rows in sample]
    step(batches[0])
    started = time.perf_counter()
    tokens = sum(step(batch) for batch in batches)
    return {"seconds": time.perf_counter() - started, "tokens": tokens}


def measure(who: str, folder: Path, count: int) -> float:
    """Target tokens per second, in new processes."""
    out = folder / f"{who}.json"
    command = [sys.executable, __file__, "--as", who, "--folder", str(folder), "--batches", str(count)]
    if who == "regard, one process per core":
        code = launch(CORES, command)
    else:
        code = subprocess.run(command, check=False).returncode
    assert code == 0, who
    found = json.loads(out.read_text())
    return found["tokens"] / found["seconds"]


WHO = ["regard, one process per core", "regard, threads", "marian", "torch"]
LIMIT = "gemm"


class Measurements:
    """Measurements so far, one JSON line each, in a file or in memory.

    The n-th measurement of an implementation belongs to round n.
    """

    def __init__(self, path: Path | None, batches: int) -> None:
        self.path, self.batches, self.lines = path, batches, list[dict]()
        if path is not None and path.exists():
            self.lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def of(self, who: str) -> list[float]:
        return [line["found"] for line in self.lines if (line["who"], line["batches"]) == (who, self.batches)]

    def add(self, who: str, found: float) -> None:
        self.lines.append({"who": who, "batches": self.batches, "found": found})
        print(f"{time.strftime('%H:%M:%S')} {who}: {found:.0f}", flush=True)
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(self.lines[-1]) + "\n")


def child(who: str, folder: Path, count: int) -> None:
    group = ProcessGroup.init()
    torch.set_num_threads(1 if group.size > 1 else CORES)
    run = {"marian": marian, "torch": plain}.get(who)
    found = run(folder, count) if run else ours(folder, count, group)
    if group.is_main:
        (folder / f"{who}.json").write_text(json.dumps(found))
    group.close()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--batches", type=int, default=40)
    options.add_argument("--keep", type=Path)
    options.add_argument("--only", nargs="+", default=WHO, choices=WHO)
    options.add_argument("--as", dest="who", help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.who:
        return child(args.who, args.folder, args.batches)
    data = Path(os.environ["REGARD_DATA"]) / "multi30k"
    measurements = Measurements(args.keep, args.batches)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = PairFiles(train=(f"{data}/train.en", f"{data}/train.de"), valid=(f"{data}/val.en", f"{data}/val.de"))
        TranslatePreparation(files).run(folder)
        for done in range(args.rounds):
            for who in args.only:
                if len(measurements.of(who)) <= done:
                    measurements.add(who, measure(who, folder, args.batches))
            if len(measurements.of(LIMIT)) <= done:
                measurements.add(LIMIT, gemm(CORES))
    report({who: measurements.of(who) for who in args.only}, measurements.of(LIMIT))


def report(speeds: dict[str, list[float]], limits: list[float]) -> None:
    print("\ntarget tokens/s: median (smallest to largest)")
    for who, found in speeds.items():
        print(f"  {who:28} {statistics.median(found):7.0f} ({min(found):.0f} to {max(found):.0f}), {len(found)} rounds")
    for who in [who for who in WHO[:2] if who in speeds]:
        for peer in [peer for peer in WHO[2:] if peer in speeds]:
            ratios = [a / b for a, b in zip(speeds[who], speeds[peer], strict=True)]
            print(f"  {who} / {peer}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
        shares = [a * flop_per_target_token() / (b * 1e9) for a, b in zip(speeds[who], limits, strict=True)]
        print(
            f"  {who}: {100 * statistics.median(shares):.0f} % of the GEMM limit "
            f"({statistics.median(limits):.0f} GFLOP/s)"
        )


if __name__ == "__main__":
    main()
