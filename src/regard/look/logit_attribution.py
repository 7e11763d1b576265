"""Direct logit attribution: what each layer and head adds to the logit of a chosen output (Elhage et al. 2021).

The residual stream is a sum: embedding, position, the output of each attention head and of each feed-forward network.
The logit is linear in it once each norm divides by the deviation that it had in this pass, so the logit is a sum of one
number per part. Only the direct path counts: what a part changes in later layers is their contribution. A pointwise
function on the path (GELU in BERT's head, tanh in a pooler and in Luong's model) is replaced by its output divided by
its input, unit by unit; the maximum of RNNsearch's output layer is linear where it is. The parts sum to the logit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from regard.errors import ModelError
from regard.look.bars import BarsView
from regard.look.decoding_path import layer_number
from regard.look.replay import Output, Replay
from regard.look.tokens import token_label
from regard.trace import Record

INPUTS = ("embedding", "position", "segment")
STATES = {"hidden": "recurrent layer", "start": "initial state"}
POINTWISE = (
    F.gelu, F.silu, F.relu, torch.tanh, torch.relu, torch.sigmoid, Tensor.tanh, Tensor.relu, Tensor.sigmoid,
)  # fmt: skip
SMALL = 1e-5
"""share of the logit below which what is left over is rounding"""


@dataclass(frozen=True)
class LogitPart:
    """What one part of a model adds to a logit."""

    kind: str
    """"embedding", "position", "segment", "self-attention", "cross-attention", "feed-forward", "recurrent layer",
    "initial state", "biases" or "rest\""""
    value: float
    name: str = ""
    """of the record whose value it is"""
    layer: int | None = None
    head: int | None = None

    @property
    def label(self) -> str:
        """Layer, kind and head, or the direction of a recurrent layer that reads from the end."""
        layer = "" if self.layer is None else f"layer {self.layer}, "
        detail = f" head {self.head}" if self.head is not None else " backward" if "backward" in self.name else ""
        return f"{layer}{self.kind}{detail}"


@dataclass(frozen=True, eq=False)
class LogitAttribution(BarsView):
    """The parts of one logit, in the order of computation; they sum to it."""

    parts: list[LogitPart] = field(default_factory=list)
    logit: float = 0.0
    output: Output | None = None

    def to_dict(self) -> dict[str, Any]:
        parts = [vars(part) | {"label": part.label} for part in self.parts]
        token = self.output and {**vars(self.output), "label": token_label(self.output.token)}
        return {"title": self.title, "logit": self.logit, "output": token, "parts": parts, "notes": list(self.notes)}


def logit_attribution(replay: Replay, at: int = 0) -> LogitAttribution:
    """The parts of the logit of one output; `at` is its number among the outputs of the pass."""
    output = replay.check(at)
    leaves = Leaves()
    trace, _ = replay.record()
    names = {r.name: r for r in trace.records}
    replace = {name: leaves.make(name) for name in names if _is_part(name, names)}
    linear = LinearizedFunctions()
    with torch.enable_grad(), linear, replay.run_changed(replace):
        logit = replay.logits()[0, at, output.id]
    values = {name: leaves.contributions(name, logit, "head" in names[name].axes) for name in replace}
    parts = [part for name, found in values.items() for part in _parts(name, names[name], found)]
    if not any(part.value for part in parts):
        raise ModelError(
            "no direct logit attribution: no embedding, attention head, feed-forward network or recurrent layer of "
            "this model leads to its logits by sums; use --view saliency or importance"
        )
    parts.append(LogitPart("biases", linear.contribution(logit)))
    parts = [part for part in parts if part.value]
    total = float(logit.detach())
    rest = total - sum(part.value for part in parts)
    if abs(rest) > SMALL * max(1.0, abs(total), max(abs(part.value) for part in parts)):
        parts.append(LogitPart("rest", rest))
    where = f" after {token_label(output.place)}" if output.place and replay.read is not None else ""
    emission = "emission " if replay.chain else ""
    title = f"{emission}logit of {token_label(output.token)}{where}: what each part adds"
    notes = [f"sum of the parts {sum(part.value for part in parts):.4f}, {emission}logit {total:.4f}"]
    notes += [f"the CRF adds: {replay.chain[at].text}"] if replay.chain else []
    labels, numbers = [part.label for part in parts], np.array([part.value for part in parts])
    return LogitAttribution(title, labels, numbers, notes, parts, total, output)


def _is_part(name: str, names: Mapping[str, Record]) -> bool:
    base, _, last = name.rpartition(".")
    if last == "context":
        return "head" in names[name].axes
    if last == "output":
        return f"{base}.activations" in names
    return last in (*INPUTS, *STATES)


def _parts(name: str, record: Record, values: Sequence[float]) -> list[LogitPart]:
    """One part per record, or one per head of an attention."""
    base, _, last = name.rpartition(".")
    layer = layer_number(name)
    if last != "context":
        kind = last if last in INPUTS else STATES.get(last, "feed-forward")
        return [LogitPart(kind, sum(values), name, layer)]
    kind = "cross-attention" if base.endswith("cross") else "self-attention"
    if len(values) == 1:
        return [LogitPart(kind, values[0], name, layer)]
    return [LogitPart(kind, value, name, layer, head) for head, value in enumerate(values)]


class Leaves:
    """Values at taps as leaves of the autograd graph: nothing is propagated below them."""

    def __init__(self) -> None:
        self.found: dict[str, list[Tensor]] = {}

    def make(self, name: str) -> Callable[[Tensor], Tensor]:
        """The replacement of a tap by a leaf; a recurrent layer has one per position."""

        def replace(value: Tensor) -> Tensor:
            leaf = value.detach().clone().requires_grad_()
            self.found.setdefault(name, []).append(leaf)
            return leaf

        return replace

    def contributions(self, name: str, logit: Tensor, by_head: bool) -> list[float]:
        """Gradient x value of a tap: in all, or per head."""
        leaves = self.found[name]
        found = torch.autograd.grad(logit, leaves, retain_graph=True, materialize_grads=True)
        products = [grad.double() * leaf.detach().double() for grad, leaf in zip(found, leaves, strict=True)]
        if not by_head:
            return [float(sum(p.sum() for p in products))]
        per_head: Tensor = torch.stack([p.transpose(0, 1).flatten(1).sum(1) for p in products]).sum(0)
        return [float(value) for value in per_head]


class LinearizedFunctions(TorchFunctionMode):
    """Norms at the scale of this pass and pointwise functions as products; biases become leaves of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.biases: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.layer_norm:
            return self._layer_norm(*args, **kwargs)
        if func is F.rms_norm:
            return self._rms_norm(*args, **kwargs)
        if func is F.linear:
            return self._linear(*args, **kwargs)
        out = func(*args, **kwargs)
        if func in POINTWISE:
            x = args[0]
            return x * torch.where(x == 0, torch.zeros_like(x), out / x).detach()
        return out

    def _bias(self, bias: Tensor) -> Tensor:
        self.biases.append(bias.detach().clone().requires_grad_())
        return self.biases[-1]

    def _linear(self, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        out = F.linear(input, weight.detach())
        return out if bias is None else out + self._bias(bias)

    def _layer_norm(
        self, input: Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
    ) -> Tensor:
        centered = input - input.mean(-1, keepdim=True)
        deviation = (centered.square().mean(-1, keepdim=True) + eps).sqrt().detach()
        out = centered / deviation * weight.detach()
        return out if bias is None else out + self._bias(bias)

    def _rms_norm(self, input: Tensor, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Tensor:
        tiny = torch.finfo(input.dtype).eps if eps is None else eps
        scale = (input.square().mean(-1, keepdim=True) + tiny).sqrt().detach()
        return input / scale * weight.detach()

    def contribution(self, logit: Tensor) -> float:
        """What all biases on the path add: those of attention outputs, of norms and of the output projection."""
        if not self.biases:
            return 0.0
        found = torch.autograd.grad(logit, self.biases, materialize_grads=True)
        pairs = zip(found, self.biases, strict=True)
        return float(sum((grad.double() * bias.detach().double()).sum() for grad, bias in pairs))
