"""Limits of recurrent networks, measured: time of a training step against length, and the first word after many others.

python benchmarks/rnn_limits.py            about six CPU minutes; writes src/regard/lessons/measured/rnn_limits.json

Time: forward and backward pass of one sequence, LSTM and Transformer encoders of about as many parameters, one thread,
float32; the median of some rounds, both models in turn within each, in CPU time. Context: a model reads n random words
and is asked for the first one: the package's recurrent and Transformer encoders, trained for the same number of steps
on fresh random sequences of that length; accuracy on 1,000 more.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.models.base import Encoder, parameters
from regard.models.recurrent import RecurrentConfig
from regard.models.transformer import TransformerConfig
from regard.sequence import Tokens
from regard.spaces import Words

OUT = Path(__file__).parents[1] / "src" / "regard" / "lessons" / "measured" / "rnn_limits.json"
VOCABULARY, ASKED = 20, 16
"""words of the recall task, of which 4 are special"""
TIMED: dict[str, Any] = {
    "LSTM": RecurrentConfig(cell="lstm", layers=2, width=256, dropout=0.0, bidirectional=False),
    "Transformer": TransformerConfig(layers=2, width=256, ffn_width=512, heads=4, dropout=0.0),
}
RECALLED: dict[str, Any] = {
    "RNN": RecurrentConfig(cell="tanh", layers=1, width=32, dropout=0.0, bidirectional=False),
    "GRU": RecurrentConfig(cell="gru", layers=1, width=32, dropout=0.0, bidirectional=False),
    "LSTM": RecurrentConfig(cell="lstm", layers=1, width=32, dropout=0.0, bidirectional=False),
    "Transformer": TransformerConfig(layers=1, width=32, ffn_width=64, heads=2, dropout=0.0, norm="pre"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", nargs="+", type=int, default=[8, 16, 32, 64, 128, 256])
    parser.add_argument("--recall", nargs="+", type=int, default=[4, 8, 12, 16, 32, 64])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=600)
    args = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[str, Any] = {"command": "python benchmarks/rnn_limits.py", "date": time.strftime("%Y-%m-%d")}
    found |= {"time": timing(args.lengths, args.rounds), "recall": recall(args.recall, args.steps)}
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"-> {OUT}")


def timing(lengths: list[int], rounds: int) -> dict[str, Any]:
    """Milliseconds of CPU time of a training step by length."""
    models = {name: config.build_encoder(Words(1000)) for name, config in TIMED.items()}
    rows: dict[str, list[float]] = {name: [] for name in models}
    for length in lengths:
        source = Tokens.full(torch.randint(4, 1000, (1, length)))
        times: dict[str, list[float]] = {name: [] for name in models}
        for round_ in range(rounds + 1):
            for name, encoder in models.items():
                started = time.process_time()
                encoder(source).states.data.sum().backward()
                if round_:  # the first is warmup
                    times[name].append(1000 * (time.process_time() - started))
        for name, row in times.items():
            rows[name].append(round(statistics.median(row), 3))
        print(length, {name: row[-1] for name, row in rows.items()}, flush=True)
    return {"lengths": lengths, "ms": rows, "parameters": {name: parameters(model) for name, model in models.items()}}


def recall(lengths: list[int], steps: int) -> dict[str, Any]:
    """Accuracy on the first word of a sequence, asked for at its end, by length."""
    rows: dict[str, list[float]] = {}
    for name, config in RECALLED.items():
        rows[name] = [recall_accuracy(config.build_encoder, length, steps) for length in lengths]
        print(name, rows[name], flush=True)
    return {"lengths": lengths, "accuracy": rows, "steps": steps, "chance": 1 / ASKED}


def recall_accuracy(build: Any, length: int, steps: int) -> float:
    """Train an encoder and a linear layer on its last state; then accuracy on fresh sequences."""
    torch.manual_seed(1)
    encoder, head = build(Words(VOCABULARY)), nn.Linear(32, ASKED)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=5e-3)
    for _ in range(steps):
        ids = torch.randint(4, VOCABULARY, (32, length))
        loss = nn.functional.cross_entropy(last(encoder, head, ids), ids[:, 0] - 4)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        ids = torch.randint(4, VOCABULARY, (1000, length))
        return round(float((last(encoder.eval(), head, ids).argmax(-1) == ids[:, 0] - 4).double().mean()), 3)


def last(encoder: Encoder, head: nn.Linear, ids: Tensor) -> Tensor:
    """Scores from the state of the last word."""
    scores: Tensor = head(encoder(Tokens.full(ids)).states.data[:, -1])
    return scores


if __name__ == "__main__":
    main()
