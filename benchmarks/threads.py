"""One thread against several, in training and in use, for models from small to large: where do threads pay?

Each cell runs in one process and in turns, so that other work slows both: a round is a few training steps (or
translations of single sentences, or of 32 at once) with one thread, then the same with --threads. Printed are
milliseconds with one thread and the ratio several / one (above 1: threads are slower), median and range over rounds.

    python benchmarks/threads.py [--threads 2] [--rounds 5] [--only transformer-64] [--training]

`regard.device.default_threads` is the rule that follows from it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from regard.decode import DecodeConfig, search
from regard.distributed import ProcessGroup
from regard.models import ModelConfig
from regard.models.base import EncoderDecoder, parameters
from regard.models.rnnsearch import RNNsearchConfig
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.transformer import TransformerConfig
from regard.nn.inference import optimize_for_inference
from regard.objective import NextToken, Objective
from regard.sequence import SOS, Tokens
from regard.spaces import Words
from regard.tasks.copying import CopyTask
from regard.train.config import TrainConfig
from regard.train.parallel import tune_malloc
from regard.train.trainer import Trainer

Cell = tuple[ModelConfig, int, int]
"""the model, its vocabulary, and the rows of a batch (of about 12 tokens each)"""


def transformer(width: int, layers: int) -> TransformerConfig:
    return TransformerConfig(layers=layers, width=width, ffn_width=4 * width, heads=4)


CELLS: dict[str, Cell] = {
    "transformer-32": (transformer(32, 1), 500, 32),
    "transformer-64": (transformer(64, 2), 1000, 64),
    "transformer-128": (transformer(128, 3), 4000, 128),
    "transformer-256": (transformer(256, 3), 8000, 256),
    "transformer-512": (transformer(512, 3), 8000, 256),
    "lstm-64": (Seq2SeqConfig(layers=1, width=64), 1000, 64),
    "lstm-256": (Seq2SeqConfig(layers=2, width=256), 8000, 256),
    "rnnsearch-192": (RNNsearchConfig(embedding=192, width=192, alignment=192, maxout=192), 4000, 128),
}


def training(cell: Cell, run: Path) -> tuple[int, Callable[[], object]]:
    """The number of parameters, and two training steps."""
    shape, size, rows = cell
    torch.manual_seed(1)
    loader, words = CopyTask(size=size, rows=rows, max_length=20), Words(size)
    objective = Objective(shape.build(words, words), NextToken(words))
    trainer = Trainer(objective, loader, TrainConfig(steps=10**6), run, ProcessGroup(), [], None, 1)
    batches = [(loader.batch(i), {"batch": i + 1}) for i in range(8)]
    at = iter(range(10**9))

    def steps() -> None:
        for _ in range(2):
            trainer.step([batches[next(at) % len(batches)]])

    return parameters(objective), steps


def use(cell: Cell, rows: int) -> Callable[[], object]:
    """Translation of `rows` sentences of 12 tokens into 20, by a beam of 4."""
    shape, size, _ = cell
    torch.manual_seed(1)
    words = Words(size)
    model: EncoderDecoder = optimize_for_inference(shape.build(words, words).eval())
    source, prompt = Tokens.full(torch.randint(4, size, (rows, 12))), Tokens.full(torch.full((rows, 1), SOS))
    config = DecodeConfig(beam=4)
    return lambda: search(model, source, prompt, config.strategy(), torch.full((rows,), 20))


def ratios(work: Callable[[], object], threads: int, rounds: int) -> tuple[float, list[float]]:
    """Milliseconds with one thread, and several / one in each round; the first round is not counted."""
    alone, found = [], []
    for number in range(rounds + 1):
        seconds = {}
        for count in (1, threads):
            torch.set_num_threads(count)
            work()
            began = time.perf_counter()
            for _ in range(3):
                work()
            seconds[count] = time.perf_counter() - began
        if number:
            alone.append(1000 * seconds[1] / 3)
            found.append(seconds[threads] / seconds[1])
    return statistics.median(alone), found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=CELLS, default=list(CELLS))
    parser.add_argument("--training", action="store_true", help="Only training: use is not measured.")
    args = parser.parse_args()
    tune_malloc()
    print(f"{args.threads} threads / 1 thread, load {os.getloadavg()[0]:.1f}; median (smallest to largest)")
    print(f"{'model':<16} {'parameters':>11}  {'training':<32} {'use, 1 sentence':<32} use, 32 sentences")
    for name in args.only:
        with tempfile.TemporaryDirectory() as folder:
            count, steps = training(CELLS[name], Path(folder))
            cells = []
            for work in (steps, *([] if args.training else [use(CELLS[name], 1), use(CELLS[name], 32)])):
                alone, found = ratios(work, args.threads, args.rounds)
                spread = f"{min(found):.2f} to {max(found):.2f}"
                cells.append(f"{alone:8.1f} ms  {statistics.median(found):.2f} ({spread})")
        print(f"{name:<16} {count:>11,}  " + " ".join(f"{cell:<32}" for cell in cells).rstrip(), flush=True)


if __name__ == "__main__":
    main()
