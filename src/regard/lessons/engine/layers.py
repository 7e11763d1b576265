"""The package's own layers with weights that a lesson gives, in double precision."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.lessons.engine.lesson import Value
from regard.nn.attention import KeysValues, Sight, attend
from regard.nn.recurrent import Cell, Recurrent, recurrent
from regard.trace import record


def tensor(value: Value) -> Tensor:
    """The numbers of a value.

    >>> tensor(Value("x", [1, 0], ("input",)))
    tensor([1., 0.], dtype=torch.float64)
    """
    return torch.tensor(value.data, dtype=torch.float64)


def cell(kind: Cell, of_input: Tensor, of_state: Tensor, bias: Tensor) -> Recurrent:
    """A recurrent layer with these weights; where torch keeps two biases, the second is 0.

    >>> layer = cell("relu", torch.eye(2), torch.zeros(2, 2), torch.zeros(2))
    >>> layer.step(torch.tensor([[1.0, -1.0]]).double(), layer.zeros(torch.zeros(1, 2).double()))[0].tolist()
    [[1.0, 0.0]]
    """
    made = recurrent(kind, of_input.shape[1], of_state.shape[1]).double()
    given = {"weight_ih_l0": of_input, "weight_hh_l0": of_state, "bias_ih_l0": bias, "bias_hh_l0": torch.zeros(())}
    with torch.no_grad():
        for name, numbers in given.items():
            getattr(made.rnn, name).copy_(numbers)
    return made


def linear(weight: Tensor, bias: Tensor | None = None) -> nn.Linear:
    """A linear layer with these weights.

    >>> linear(torch.tensor([[1.0, 2.0]]))(torch.tensor([3.0, 4.0]).double()).item()
    11.0
    """
    made = nn.Linear(weight.shape[1], weight.shape[0], bias is not None, dtype=torch.float64)
    with torch.no_grad():
        made.weight.copy_(weight)
        if bias is not None:
            made.bias.copy_(bias)
    return made


def looked(queries: Tensor, keys: Tensor, values: Tensor, sight: Sight = "all") -> dict[str, Tensor]:
    """What the package's attention shows while it works, of (head, place, width) each: scores, weights, context.

    >>> looked(torch.ones(1, 1, 1), torch.zeros(1, 2, 1), torch.tensor([[[1.0], [3.0]]]))["context"]
    tensor([[[2.]]])
    """
    layer = nn.Identity()
    with record(layer) as trace, torch.no_grad():
        attend(layer, queries[None], KeysValues(keys[None], values[None]), sight, "query key")
    return {seen.name: seen.data[0] for seen in trace.records}


def apart(a: Tensor, b: Tensor) -> float:
    """The largest difference of two tensors.

    >>> apart(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]))
    0.5
    """
    return float((a - b).detach().abs().max()) if a.numel() else 0.0
