"""Bridges: the initial state of a recurrent decoder, copied from the encoder's final states or projected from them.

A trace holds the source in one vector as "context", and the initial state of each layer as "start" (hidden state) and
"start_cell"; the context fact `begins` marks records made before the first token was read. Replaced values are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from regard.nn.recurrent import States
from regard.sequence import Memory, mean
from regard.trace import tap, trace_context, tracing

Widths = Sequence[Sequence[int]]
"""widths of the state tensors of each layer: one tuple per layer, one number per tensor"""
STARTS = ("start", "start_cell")
"""tap names of a layer's initial hidden state and initial cell"""


class CopyState(nn.Module):
    """The decoder's layer i starts from the final state of the encoder's layer i (Sutskever et al. 2014)."""

    def forward(self, memory: Memory) -> States:
        if not tracing():
            return memory.final
        context_BD = tap_once(self, "context", summary(memory))
        hidden = context_BD.split([layer[0].shape[-1] for layer in memory.final], -1)
        return tuple((first, *layer[1:]) for first, layer in zip(hidden, memory.final, strict=True))


class ZeroState(nn.Module):
    """Zero initial state, for decoders without a source.

    >>> from regard.sequence import Padded
    >>> ZeroState([[3, 3]])(Memory(Padded(torch.ones(1, 0, 1), torch.tensor([0]))))
    ((tensor([[0., 0., 0.]]), tensor([[0., 0., 0.]])),)
    """

    def __init__(self, widths: Widths) -> None:
        super().__init__()
        self.widths = widths

    def forward(self, memory: Memory) -> States:
        like = memory.states.data
        return tuple(tuple(like.new_zeros(like.shape[0], width) for width in layer) for layer in self.widths)


class LinearBridge(nn.Module):
    """tanh(W summary + b) for each state tensor of each layer, as in Bahdanau et al. 2015.

    >>> from regard.sequence import Padded
    >>> states = LinearBridge(4, [[3, 3], [3, 3]])(Memory(Padded(torch.ones(2, 5, 4), torch.tensor([5, 2]))))
    >>> len(states), [tensor.shape for tensor in states[0]]
    (2, [torch.Size([2, 3]), torch.Size([2, 3])])
    """

    def __init__(self, inputs: int, widths: Widths) -> None:
        super().__init__()
        self.widths = widths
        self.linear = nn.Linear(inputs, sum(width for layer in widths for width in layer))

    def forward(self, memory: Memory) -> States:
        context_BD = tap_once(self, "context", summary(memory))
        parts = iter(self.linear(context_BD).tanh().split([width for layer in self.widths for width in layer], -1))
        return tuple(tuple(next(parts) for _ in layer) for layer in self.widths)


def summary(memory: Memory) -> Tensor:
    """(B, D): a source in one vector: the final hidden states of all recurrent layers, or the mean of all states.

    >>> from regard.sequence import Padded
    >>> summary(Memory(Padded(torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([2]))))
    tensor([[2.]])
    """
    return torch.cat([layer[0] for layer in memory.final], -1) if memory.final else mean(memory)


def summary_width(width: int, final: Widths) -> int:
    """Width of `summary` for an encoder with these widths.

    >>> summary_width(4, ()), summary_width(4, ((3, 3), (3, 3)))
    (4, 6)
    """
    return sum(layer[0] for layer in final) if final else width


def tap_once(module: nn.Module, name: str, vector_BD: Tensor) -> Tensor:
    """Tap a vector per source that exists before the decoder has read its first token.

    >>> from regard.trace import record
    >>> with record(layer := nn.Identity(), replace={"context": torch.zeros_like}) as trace:
    ...     tap_once(layer, "context", torch.ones(1, 2))
    tensor([[0., 0.]])
    """
    with trace_context(begins=True):
        return tap(module, name, vector_BD, "batch width")


def show_initial(layers: Iterable[nn.Module], states: States) -> States:
    """Tap the initial states of layers; returns them, or their replacements."""
    if not tracing():
        return states
    return tuple(
        tuple(tap_once(layer, name, part) for name, part in zip(STARTS, state, strict=False))
        for layer, state in zip(layers, states, strict=True)
    )


def make_bridge(width: int, final: Widths, widths: Widths) -> nn.Module:
    """The bridge from an encoder (width of its states, widths of its final states) to a decoder with states `widths`.

    >>> make_bridge(4, ((3,),), ((3,),)), make_bridge(0, (), ((3,),)), make_bridge(4, (), ((3,),)).linear
    (CopyState(), ZeroState(), Linear(in_features=4, out_features=3, bias=True))
    """
    if final and [list(layer) for layer in final] == [list(layer) for layer in widths]:
        return CopyState()
    return LinearBridge(summary_width(width, final), widths) if width else ZeroState(widths)
