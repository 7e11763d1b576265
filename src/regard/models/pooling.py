"""What speaks for a whole text: one vector out of all that an encoder hands on."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.models.base import Encoder
from regard.sequence import Memory, final, first, last, mean

Pool = Callable[[Memory], Tensor]


def most(memory: Memory) -> Tensor:
    """The largest of each unit over the real places (Collobert et al. 2011, Kim 2014).

    >>> from regard.sequence import Padded
    >>> most(Memory(Padded(torch.tensor([[[1.0, 5.0], [3.0, 2.0], [9.0, 9.0]]]), torch.tensor([2]))))
    tensor([[3., 5.]])
    """
    states = memory.states
    return states.data.masked_fill(~states.mask[..., None], -torch.inf).amax(1)


class Pooling(nn.Module):
    """One vector for each text, some of its numbers dropped in training; zeros for what has no place at all.

    >>> from regard.sequence import Padded
    >>> Pooling(first)(Memory(Padded(torch.ones(2, 1, 2), torch.tensor([1, 0]))))
    tensor([[1., 1.],
            [0., 0.]])
    """

    def __init__(self, pool: Pool, dropout: float = 0.0) -> None:
        super().__init__()
        self.pool, self.dropout = pool, nn.Dropout(dropout)

    def forward(self, memory: Memory) -> Tensor:
        states = memory.states
        if not states.data.shape[1]:
            return states.data.new_zeros(states.data.shape[0], states.data.shape[2])
        return self.dropout(self.pool(memory).masked_fill((states.lengths == 0)[:, None], 0.0))


def pool_of(name: str, encoder: Encoder, dropout: float = 0.0) -> Pooling:
    """What makes one vector of what an encoder hands on; of a recurrent one "last" is what it remembers at the end.

    Read in both directions, that is the state after the last word and the state after the first, side by side: the
    state that stands at the last word has read only this one on the way back.

    >>> from regard.models.recurrent import RecurrentConfig
    >>> from regard.spaces import Words
    >>> pool_of("last", RecurrentConfig().build_encoder(Words(9))).pool.__name__
    'final'
    """
    pools: dict[str, Pool] = {"last": final if encoder.final else last, "mean": mean, "max": most, "first": first}
    return Pooling(pools[name], dropout)
