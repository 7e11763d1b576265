"""Where a recurrent decoder begins: what the encoder's layers remember if it fits, and if not, what is made of it.

Who records sees the source in one vector as "context", and what each layer begins from as "start" (its hidden state)
and "start_cell"; the scene's fact `begins` says that no word was read yet. Of all of them, what is put in their place
is what is gone on with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from regard.nn.recurrent import States
from regard.sequence import Memory, mean
from regard.trace import scene, tap, tracing

Widths = Sequence[Sequence[int]]
"""of what each layer remembers: one tuple a layer, one number a tensor"""
STARTS = ("start", "start_cell")
"""what a layer's first hidden state and its first cell are called"""


class Handover(nn.Module):
    """Layer i goes on from where the encoder's layer i stopped (Sutskever et al. 2014).

    >>> from regard.sequence import Padded
    >>> end = ((torch.ones(1, 3),),)
    >>> Handover()(Memory(Padded(torch.ones(1, 2, 3), torch.tensor([2])), end)) is end
    True
    """

    def forward(self, memory: Memory) -> States:
        if not tracing():
            return memory.final
        context_BD = shown(self, "context", summary(memory))
        hidden = context_BD.split([layer[0].shape[-1] for layer in memory.final], -1)
        return tuple((first, *layer[1:]) for first, layer in zip(hidden, memory.final, strict=True))


class Zeros(nn.Module):
    """There is no source: every layer begins with nothing.

    >>> from regard.sequence import Padded
    >>> Zeros([[3, 3]])(Memory(Padded(torch.ones(1, 0, 1), torch.tensor([0]))))
    ((tensor([[0., 0., 0.]]), tensor([[0., 0., 0.]])),)
    """

    def __init__(self, wanted: Widths) -> None:
        super().__init__()
        self.wanted = wanted

    def forward(self, memory: Memory) -> States:
        like = memory.states.data
        return tuple(tuple(like.new_zeros(like.shape[0], width) for width in layer) for layer in self.wanted)


class Bridge(nn.Module):
    """tanh(W summary + b) for each tensor of each layer, as Bahdanau et al. 2015 begin their decoder.

    >>> from regard.sequence import Padded
    >>> states = Bridge(4, [[3, 3], [3, 3]])(Memory(Padded(torch.ones(2, 5, 4), torch.tensor([5, 2]))))
    >>> len(states), [tensor.shape for tensor in states[0]]
    (2, [torch.Size([2, 3]), torch.Size([2, 3])])
    """

    def __init__(self, inputs: int, wanted: Widths) -> None:
        super().__init__()
        self.wanted = wanted
        self.linear = nn.Linear(inputs, sum(width for layer in wanted for width in layer))

    def forward(self, memory: Memory) -> States:
        context_BD = shown(self, "context", summary(memory))
        made = iter(self.linear(context_BD).tanh().split([width for layer in self.wanted for width in layer], -1))
        return tuple(tuple(next(made) for _ in layer) for layer in self.wanted)


def summary(memory: Memory) -> Tensor:
    """(B, D): a source in one vector: what all recurrent layers' hidden states are at the end, or the mean of states.

    >>> from regard.sequence import Padded
    >>> summary(Memory(Padded(torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([2]))))
    tensor([[2.]])
    """
    return torch.cat([layer[0] for layer in memory.final], -1) if memory.final else mean(memory)


def summary_width(width: int, final: Widths) -> int:
    """How wide the summary of such an encoder's memory is.

    >>> summary_width(4, ()), summary_width(4, ((3, 3), (3, 3)))
    (4, 6)
    """
    return sum(layer[0] for layer in final) if final else width


def shown(module: nn.Module, name: str, vector_BD: Tensor) -> Tensor:
    """A vector a source that a decoder has before it reads its first word; goes on with what comes back.

    >>> from regard.trace import record
    >>> with record(layer := nn.Identity(), replace={"context": torch.zeros_like}) as trace:
    ...     shown(layer, "context", torch.ones(1, 2))
    tensor([[0., 0.]])
    """
    with scene(begins=True):
        return tap(module, name, vector_BD, "batch width")


def begin(layers: Iterable[nn.Module], states: States) -> States:
    """The states that layers begin from, shown to whoever records.

    >>> begin([nn.Identity()], ((torch.ones(1, 2),),))
    ((tensor([[1., 1.]]),),)
    """
    if not tracing():
        return states
    return tuple(
        tuple(shown(layer, name, part) for name, part in zip(STARTS, state, strict=False))
        for layer, state in zip(layers, states, strict=True)
    )


def bridge(width: int, final: Widths, wanted: Widths) -> nn.Module:
    """From an encoder (the width of its states, what it hands on) to a decoder that remembers `wanted`.

    >>> bridge(4, ((3,),), ((3,),)), bridge(0, (), ((3,),)), bridge(4, (), ((3,),)).linear
    (Handover(), Zeros(), Linear(in_features=4, out_features=3, bias=True))
    """
    if final and [list(layer) for layer in final] == [list(layer) for layer in wanted]:
        return Handover()
    return Bridge(summary_width(width, final), wanted) if width else Zeros(wanted)
