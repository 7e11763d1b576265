"""Signals and non-finite losses during training: a flag for SIGINT and SIGTERM, and a search for the first NaN."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from types import FrameType
from typing import Any

import torch
from torch import nn

from regard.interrupts import SignalScope
from regard.objective import Batch


class SignalFlag(SignalScope):
    """SIGINT and SIGTERM set `caught`, which the trainer reads after each step; a second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self.caught = 0

    def handle(self, number: int, frame: FrameType | None) -> None:
        if self.caught and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.caught = number


def first_nonfinite(objective: nn.Module, batches: Sequence[Batch], seed: int, hidden_state: Any = None) -> str:
    """Name of the first module with a NaN or infinite output, else of the first parameter with such a gradient.

    The batches of a step are repeated exactly: with its seed, from its hidden state, in its order.
    """
    found: list[str] = []

    def check_output(name: str) -> Any:
        def hook(module: nn.Module, args: Any, out: Any) -> None:
            leaves = torch.utils._pytree.tree_leaves(out)
            if any(torch.is_tensor(t) and t.is_floating_point() and not t.isfinite().all() for t in leaves):
                found.append(name)

        return hook

    hooks = [module.register_forward_hook(check_output(name)) for name, module in objective.named_modules()]
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for batch in batches:
                if len(batch):
                    _, hidden_state = objective(batch, hidden_state)
    finally:
        for hook in hooks:
            hook.remove()
    bad = [n for n, p in objective.named_parameters() if p.grad is not None and not p.grad.isfinite().all()]
    name = next(iter(found or [f"gradient of {n}" for n in bad]), "loss")
    return name.replace("model.", "", 1) or "loss"
