"""The package's layers with weights given by a lesson, in double precision."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.nn.attention import AttentionMask, KeysValues, attend
from regard.nn.recurrent import Cell, Recurrent, recurrent
from regard.trace import record


def recurrent_layer(kind: Cell, input_weight: Tensor, state_weight: Tensor, bias: Tensor) -> Recurrent:
    """Recurrent layer with the given weights; of torch's two biases the second is 0."""
    layer = recurrent(kind, input_weight.shape[1], state_weight.shape[1]).double()
    weights = {"weight_ih_l0": input_weight, "weight_hh_l0": state_weight}
    weights |= {"bias_ih_l0": bias, "bias_hh_l0": torch.zeros(())}
    with torch.no_grad():
        for name, weight in weights.items():
            getattr(layer.rnn, name).copy_(weight)
    return layer


def torch_output(layer: Recurrent, x: Tensor, *state: Tensor) -> Tensor:
    """One step of torch.nn.LSTM or torch.nn.GRU with the weights of a layer, from a state (h, c) or (h)."""
    kind = nn.LSTM if len(state) == 2 else nn.GRU
    module = kind(len(x), len(state[0]), batch_first=True, dtype=torch.float64)
    module.load_state_dict(layer.rnn.state_dict())
    start = tuple(part[None, None] for part in state)
    with torch.no_grad():
        return module(x[None, None], start if len(start) == 2 else start[0])[0][0, 0]


def linear(weight: Tensor, bias: Tensor | None = None) -> nn.Linear:
    """Linear layer with the given weights."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias is not None, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(weight)
        if bias is not None:
            layer.bias.copy_(bias)
    return layer


def trace_attention(queries: Tensor, keys: Tensor, values: Tensor, mask: AttentionMask = "full") -> dict[str, Tensor]:
    """Scores, weights and context of the package's attention; operands of shape (head, position, width)."""
    layer = nn.Identity()
    with record(layer) as trace, torch.no_grad():
        attend(layer, queries[None], KeysValues(keys[None], values[None]), mask, "query key")
    return {seen.name: seen.data[0] for seen in trace.records}


def max_difference(a: Tensor, b: Tensor) -> float:
    """Largest absolute difference of two tensors."""
    return float((a - b).detach().abs().max()) if a.numel() else 0.0
