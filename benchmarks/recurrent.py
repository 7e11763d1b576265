"""Training speed of a recurrent language model: regard's trainer beside a bare torch.nn loop.

The same batches of Tiny Shakespeare's characters (streams cut into windows, truncated BPTT),
the same shape, Adam, clipping at 1, in one process and in turns, so that other work slows both:
  regard   RNNLMConfig, StatefulNextToken and Trainer.step, as `regard train` runs them
  torch    nn.Embedding, nn.LSTM (or GRU, RNN) over all layers at once, nn.Linear, cross_entropy, fused Adam

    REGARD_DATA=folder python benchmarks/recurrent.py [--cell lstm] [--rounds 5] [--steps 40]

Both must learn: the last loss of each is printed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.distributed import ProcessGroup
from regard.models.rnnlm import RNNLMConfig
from regard.objective import Batch, Objective, StatefulNextToken
from regard.sequence import Tokens
from regard.spaces import Words
from regard.train.config import TrainConfig
from regard.train.events import Stepped
from regard.train.optim import Adam
from regard.train.parallel import tune_malloc
from regard.train.schedule import Constant
from regard.train.trainer import Trainer

RATE = 2e-3


class Windows:
    """Streams of a text, cut into windows; the last target of one is the first input of the next."""

    def __init__(self, text: str, streams: int, window: int) -> None:
        letters = sorted(set(text))
        ids = torch.tensor([letters.index(c) for c in text])
        self.size, self.window, per = len(letters), window, len(ids) // streams
        self.ids = ids[: per * streams].view(streams, per)
        self.count = (per - 1) // window

    def batch(self, number: int) -> Batch:
        at = number % self.count * self.window
        window_ids = self.ids[:, at : at + self.window + 1].contiguous()
        empty = torch.zeros(len(window_ids), 0, dtype=torch.long)
        return Batch(Tokens.full(empty), Tokens.full(window_ids), resets_state=number % self.count == 0)

    def train_batches(self, position: object) -> Iterator[tuple[Batch, dict[str, int]]]:
        yield from ((self.batch(i), {"batch": i + 1}) for i in range(10**9))

    def valid_batches(self) -> Iterator[Batch]:
        yield self.batch(0)

    def batches_per_epoch(self) -> int:
        return self.count


class Ours:
    """The step of regard's trainer."""

    def __init__(self, args: argparse.Namespace, loader: Windows, run: Path) -> None:
        torch.manual_seed(1)
        words, self.losses = Words(loader.size), list[float]()
        shape = RNNLMConfig(cell=args.cell, layers=args.layers, width=args.width, dropout=args.dropout)
        config = TrainConfig(steps=10**6, clip_norm=1.0, optimizer=Adam(), schedule=Constant(lr=RATE))
        objective = Objective(shape.build(words, words), StatefulNextToken(words))
        self.trainer = Trainer(objective, loader, config, run, ProcessGroup(), [self.record_loss], None, 1)

    def record_loss(self, event: object) -> None:
        if isinstance(event, Stepped):
            self.losses.append(event.loss)

    def step(self, batch: Batch) -> None:
        self.trainer.step([(batch, {})])


class Bare(nn.Module):
    """A loop as in a tutorial."""

    def __init__(self, args: argparse.Namespace, loader: Windows) -> None:
        super().__init__()
        torch.manual_seed(1)
        kinds: dict[str, Callable[..., nn.Module]] = {
            "lstm": nn.LSTM,
            "gru": nn.GRU,
            "tanh": nn.RNN,
            "relu": lambda *a, **k: nn.RNN(*a, nonlinearity="relu", **k),
        }
        self.embed, self.drop = nn.Embedding(loader.size, args.width), nn.Dropout(args.dropout)
        between = args.dropout if args.layers > 1 else 0.0
        self.rnn = kinds[args.cell](args.width, args.width, args.layers, batch_first=True, dropout=between)
        self.readout = nn.Linear(args.width, loader.size, bias=False)
        nn.init.normal_(self.embed.weight, std=args.width**-0.5)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=RATE, fused=True)
        self.state: Tensor | tuple[Tensor, ...] | None = None
        self.losses = list[float]()

    def step(self, batch: Batch) -> None:
        inputs, targets = batch.target.data[:, :-1], batch.target.data[:, 1:]
        out, state = self.rnn(self.drop(self.embed(inputs)), None if batch.resets_state else self.state)
        self.state = tuple(s.detach() for s in state) if isinstance(state, tuple) else state.detach()
        loss = F.cross_entropy(self.readout(self.drop(out)).flatten(0, 1), targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.losses.append(loss.item())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cell", default="lstm", choices=["lstm", "gru", "tanh", "relu"])
    options.add_argument("--layers", type=int, default=2)
    options.add_argument("--width", type=int, default=256)
    options.add_argument("--dropout", type=float, default=0.1)
    options.add_argument("--streams", type=int, default=32)
    options.add_argument("--window", type=int, default=64)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--steps", type=int, default=40)
    options.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    tune_malloc()  # for both: a bare loop without it is slower
    text = (Path(os.environ["REGARD_DATA"]) / "tiny-shakespeare" / "input.txt").read_text(encoding="utf-8")
    loader = Windows(text, args.streams, args.window)
    with tempfile.TemporaryDirectory() as run:
        sides = {"regard": Ours(args, loader, Path(run)), "torch": Bare(args, loader)}
        speeds = measure(sides, loader, args)
    print(f"\ncharacters/s, {args.cell}, {args.layers} x {args.width}, {args.streams} streams of {args.window}:")
    for name, found in speeds.items():
        print(f"  {name:7} {statistics.median(found):8.0f} ({min(found):.0f} to {max(found):.0f})", end="")
        print(f"   loss {statistics.mean(sides[name].losses[-5:]):.3f} after {len(sides[name].losses)} steps")
    ratios = [a / b for a, b in zip(speeds["regard"], speeds["torch"], strict=True)]
    print(f"  regard / torch: {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")


def measure(sides: dict[str, Ours | Bare], loader: Windows, args: argparse.Namespace) -> dict[str, list[float]]:
    speeds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(args.rounds + 1):  # the first round is warmup
        batches = [loader.batch(number * args.steps + i) for i in range(args.steps)]
        order = list(sides) if number % 2 else list(sides)[::-1]
        for name in order:
            started = time.perf_counter()
            for batch in batches:
                sides[name].step(batch)
            if number:
                speeds[name].append(args.steps * args.streams * args.window / (time.perf_counter() - started))
    return speeds


if __name__ == "__main__":
    main()
