"""What stops a run in good order: a signal, or a gradient that is not a number."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from types import FrameType
from typing import Any

import torch
from torch import nn

from regard.interrupts import Answering
from regard.objective import Batch


class Signals(Answering):
    """Ctrl-C and SIGTERM set a flag that the trainer reads after each step; a second Ctrl-C stops at once.

    >>> with Signals() as signals:
    ...     signals.caught
    0
    """

    def __init__(self) -> None:
        self.caught = 0

    def catch(self, number: int, frame: FrameType | None) -> None:
        if self.caught and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.caught = number


def culprit(objective: nn.Module, batches: Sequence[Batch], seed: int, carry: Any = None) -> str:
    """The first module whose output is not finite on these batches, or the first weight whose gradient is not.

    The batches of a step are read again as the step read them: by its seed, from its carry, one after the other.

    >>> from regard.models.gpt import GPTConfig
    >>> from regard.sequence import Tokens
    >>> from regard.spaces import Words
    >>> from regard.objective import Continue, Objective
    >>> model = GPTConfig(layers=2, width=8, heads=2, longest=8, dropout=0.0).build(Words(8), Words(8))
    >>> _ = nn.init.constant_(model.decoder.layers[1].ffn.rise.weight, float("nan"))
    >>> culprit(Objective(model, Continue(Words(8))), [Batch(Tokens.of([[]]), Tokens.of([[2, 7, 3]]))], seed=1)
    'decoder.layers.1.ffn.rise'
    """
    found: list[str] = []

    def watch(name: str) -> Any:
        def hook(module: nn.Module, args: Any, out: Any) -> None:
            leaves = torch.utils._pytree.tree_leaves(out)
            if any(torch.is_tensor(t) and t.is_floating_point() and not t.isfinite().all() for t in leaves):
                found.append(name)

        return hook

    hooks = [module.register_forward_hook(watch(name)) for name, module in objective.named_modules()]
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for batch in batches:
                if len(batch):
                    _, carry = objective(batch, carry)
    finally:
        for hook in hooks:
            hook.remove()
    bad = [n for n, p in objective.named_parameters() if p.grad is not None and not p.grad.isfinite().all()]
    name = next(iter(found or [f"gradient of {n}" for n in bad]), "loss")
    return name.replace("model.", "", 1) or "loss"
