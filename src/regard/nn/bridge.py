"""Where a recurrent decoder begins: what the encoder's layers remember if it fits, and if not, what is made of it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from regard.nn.recurrent import States
from regard.sequence import Memory, mean

Widths = Sequence[Sequence[int]]
"""of what each layer remembers: one tuple a layer, one number a tensor"""


class Handover(nn.Module):
    """Layer i goes on from where the encoder's layer i stopped (Sutskever et al. 2014).

    >>> from regard.sequence import Padded
    >>> end = ((torch.ones(1, 3),),)
    >>> Handover()(Memory(Padded(torch.ones(1, 2, 3), torch.tensor([2])), end)) is end
    True
    """

    def forward(self, memory: Memory) -> States:
        return memory.final


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
        made = iter(self.linear(summary(memory)).tanh().split([width for layer in self.wanted for width in layer], -1))
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


def bridge(width: int, final: Widths, wanted: Widths) -> nn.Module:
    """From an encoder (the width of its states, what it hands on) to a decoder that remembers `wanted`.

    >>> bridge(4, ((3,),), ((3,),)), bridge(0, (), ((3,),)), bridge(4, (), ((3,),)).linear
    (Handover(), Zeros(), Linear(in_features=4, out_features=3, bias=True))
    """
    if final and [list(layer) for layer in final] == [list(layer) for layer in wanted]:
        return Handover()
    return Bridge(summary_width(width, final), wanted) if width else Zeros(wanted)
