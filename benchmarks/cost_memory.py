"""Memory that `regard cost` estimates beside the memory that training takes, for small shapes.

    python benchmarks/cost_memory.py

Each shape is trained for a few updates of Adam in a process of its own, with one thread; measured is the peak of
anonymous memory (RssAnon in /proc/self/status, sampled every millisecond) above what the process had before the model
was built, after a tiny model of the same kind was trained: libraries allocate memory of their own at their first use.
The estimate is `regard.cost`: weights, gradients, moments, and the activations of a step on the meta device. The LSTM
is shown beside the others without a limit: oneDNN's kernel allocates workspace that no tensor of torch accounts for.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

LIMIT = 0.15
SHAPES: dict[str, tuple[str, dict[str, Any], int, int, int]] = {
    "gpt": ("gpt", {"layers": 6, "width": 384, "heads": 6, "max_positions": 256, "dropout": 0.0}, 5000, 8, 256),
    "llama": ("llama", {"layers": 4, "width": 512, "ffn_width": 1376, "heads": 8, "max_positions": 256}, 8000, 4, 256),
    "wide": ("gpt", {"layers": 2, "width": 512, "heads": 8, "max_positions": 128, "dropout": 0.0}, 30_000, 8, 128),
    "rnnlm": ("rnnlm", {"layers": 2, "width": 512, "dropout": 0.0}, 8000, 32, 64),
}
"""kind of model, its settings, vocabulary, rows and positions of a batch"""


NO_LIMIT = {"rnnlm"}
TINY: dict[str, dict[str, Any]] = {
    "gpt": {"layers": 1, "width": 24},
    "llama": {"layers": 1, "width": 32, "ffn_width": 64},
    "rnnlm": {"layers": 1, "width": 16},
}
"""the same models with hardly any weights, trained first"""


def main() -> None:
    wrong = []
    for name in SHAPES:
        command = [sys.executable, __file__, name]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        estimate, measured = found["estimate"], found["measured"]
        off = estimate / measured - 1
        print(f"{name:<6} estimated {estimate / 2**20:7.1f} MiB, measured {measured / 2**20:7.1f} MiB: {off:+.1%}")
        wrong += [name] if abs(off) > LIMIT and name not in NO_LIMIT else []
    if wrong:
        sys.exit(f"more than {LIMIT:.0%} off: {', '.join(wrong)}")


def anonymous_memory() -> int:
    """Bytes of anonymous memory of this process."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


class PeakSampler(threading.Thread):
    """Samples the anonymous memory of this process."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0

    def run(self) -> None:
        while True:
            self.peak = max(self.peak, anonymous_memory())
            time.sleep(0.001)


def child(name: str) -> None:
    """Estimate and measurement of one shape."""
    import torch

    from regard.cost import BYTES, TrainingMemory, activation_bytes
    from regard.models import GPTConfig, LlamaConfig, RNNLMConfig
    from regard.models.base import parameters
    from regard.objective import Batch, Objective, StatefulNextToken
    from regard.sequence import Tokens
    from regard.spaces import Words
    from regard.tasks.generate.loader import empty_source
    from regard.train.config import TrainConfig
    from regard.train.optim import FlatParameters
    from regard.train.parallel import tune_malloc

    torch.set_num_threads(1)
    tune_malloc()  # as the trainer does
    kind, settings, vocabulary, rows, positions = SHAPES[name]
    config: Any = {"gpt": GPTConfig, "llama": LlamaConfig, "rnnlm": RNNLMConfig}[kind](**settings)
    words, steps = Words(vocabulary), 4

    def objective_and_batch(config: Any, rows: int) -> tuple[Objective, Batch]:
        ids = torch.zeros(rows, positions + 1, dtype=torch.long)
        batch = Batch(empty_source(rows), Tokens.full(ids), True)
        return Objective(config.build(words, words), StatefulNextToken(words)).train(), batch

    def loss(objective: Objective, batch: Batch) -> Any:
        return objective(batch)[0].mean(objective.task.counts(batch))

    with torch.device("meta"):
        objective, batch = objective_and_batch(config, rows)
    batch = batch.to("meta")
    weights = BYTES * parameters(objective)
    activations = activation_bytes(objective, lambda: loss(objective, batch))
    estimate = TrainingMemory(weights, weights, 2 * weights, activations).total

    def train(config: Any, rows: int) -> None:
        objective, batch = objective_and_batch(config, rows)
        flat = FlatParameters(objective)
        optimizer = flat.optimizer(TrainConfig().optimizer)
        for _ in range(steps):
            flat.zero_grad()
            loss(objective, batch).backward()
            optimizer.step()

    train(replace(config, **TINY[kind]), 1)  # libraries allocate their own memory at their first use
    before, sampler = anonymous_memory(), PeakSampler()
    sampler.start()
    train(config, rows)
    print(json.dumps({"estimate": estimate, "measured": sampler.peak - before}))


if __name__ == "__main__":
    child(sys.argv[1]) if len(sys.argv) > 1 else main()
