"""Head importance by ablation: the change of the log-probability of each output without one attention head.

All weights of a head are set to 0, so that it adds nothing but its output projection's bias; every head of the model is
ablated in turn, each in a pass of its own over the same input and answer (Michel et al. 2019, "Are Sixteen Heads Really
Better than One?"). A change below 0 says that the head was needed for that output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from regard.errors import ModelError
from regard.look.bars import BarsView
from regard.look.decoding_path import layer_number
from regard.look.replay import Output, Replacement, Replay
from regard.look.tokens import token_label

WEIGHTS = "weights"


@dataclass(frozen=True)
class AttentionHead:
    """One head of one attention module."""

    name: str
    """of the record of its weights"""
    head: int
    heads: int
    """number of heads of the module"""

    @property
    def label(self) -> str:
        """Module, layer and head."""
        base, layer = self.name.removesuffix(f".{WEIGHTS}"), layer_number(self.name)
        side, kind = base.split(".")[0], base.rpartition(".")[2]
        title = {"attention": "self-attention", "cross": "cross-attention"}.get(kind, kind)
        where = side if layer is None else f"{side} layer {layer}"
        return f"{where}, {title}" if self.heads == 1 else f"{where}, {title} head {self.head}"


@dataclass(frozen=True, eq=False)
class HeadImportance(BarsView):
    """Change of the log-probability of one output without each head; `changes` has all outputs."""

    heads: list[AttentionHead] = field(default_factory=list)
    outputs: list[Output] = field(default_factory=list)
    log_probs: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """(outputs,): of the unchanged pass"""
    changes: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """(heads, outputs)"""
    at: int = 0

    def to_dict(self) -> dict[str, Any]:
        heads = [vars(head) | {"label": head.label} for head in self.heads]
        outputs = [vars(output) for output in self.outputs]
        return {"title": self.title, "heads": heads, "outputs": outputs} | self._fields("log_probs", "changes", "at")


def attention_heads(replay: Replay) -> list[AttentionHead]:
    """All heads of a model whose weights are recorded, in the order of computation."""
    trace, _ = replay.record()
    sizes = {
        record.name: record.data.shape[1]
        for record in trace.records
        if record.name.rpartition(".")[2] == WEIGHTS and record.axes == ("batch", "head", "query", "key")
    }
    if not sizes:
        raise ModelError("head importance needs attention heads, and this model has none; use --view saliency")
    return [AttentionHead(name, head, count) for name, count in sizes.items() for head in range(count)]


def ablate(head: int) -> Replacement:
    """Set all weights of one head to 0."""

    def replace(weights_NHTL: Tensor) -> Tensor:
        changed = weights_NHTL.clone()
        changed[:, head] = 0.0
        return changed

    return replace


def head_importance_steps(replay: Replay, at: int = 0) -> Iterator[tuple[int, int] | HeadImportance]:
    """(heads done, heads in all) after each head, and the view at the end."""
    output = replay.check(at)
    heads = attention_heads(replay)
    before, changes = replay.log_probs()[0], []
    for done, head in enumerate(heads, 1):
        changes.append((replay.log_probs({head.name: ablate(head.head)})[0] - before).cpu().numpy())
        yield done, len(heads)
    matrix = np.stack(changes)
    title = f"log-probability of {token_label(output.token)}: change without each head"
    probability = float(before[at].exp())
    notes = [f"with all heads: log-probability {float(before[at]):.4f}, probability {probability:.4f}"]
    labels, all_outputs = [head.label for head in heads], list(replay.outputs)
    yield HeadImportance(title, labels, matrix[:, at], notes, heads, all_outputs, before.cpu().numpy(), matrix, at)
