"""Pooling: one vector per text from the states of an encoder."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.models.base import Encoder
from regard.models.bert import BertEncoder, BertPooler, init_bert
from regard.sequence import Memory, final, first, last, mean
from regard.trace import tap

Pool = Callable[[Memory], Tensor]


def max_pool(memory: Memory) -> Tensor:
    """Max pooling over the real positions (Collobert et al. 2011, Kim 2014)."""
    states = memory.states
    return states.data.masked_fill(~states.mask[..., None], -torch.inf).amax(1)


class Pooling(nn.Module):
    """Pooling with dropout; an empty text gives zeros."""

    def __init__(self, pool: Pool, dropout: float = 0.0) -> None:
        super().__init__()
        self.pool, self.dropout = pool, nn.Dropout(dropout)

    def forward(self, memory: Memory) -> Tensor:
        states = memory.states
        if not states.data.shape[1]:
            return states.data.new_zeros(states.data.shape[0], states.data.shape[2])
        return self.dropout(self.pool(memory).masked_fill((states.lengths == 0)[:, None], 0.0))


class ReLUPooler(nn.Module):
    """relu(W h + b) of the first state: DistilBERT's layer below the head of a classifier."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        init_bert(self)

    def forward(self, memory: Memory) -> Tensor:
        return tap(self, "pooled", self.dense(first(memory)).relu(), "batch width")


def make_pooling(name: str, encoder: Encoder, dropout: float = 0.0) -> Pooling:
    """The pooling of this name for an encoder.

    "last" of a recurrent encoder is its final state; of a bidirectional one, the final states of both directions
    concatenated, since the backward state at the last word has read only that word. "first" of a BERT encoder goes
    through its pooler, as when the paper fine-tunes it.
    """
    if name == "first-relu":
        return Pooling(ReLUPooler(encoder.width), dropout)
    if name == "first" and isinstance(encoder, BertEncoder):
        return Pooling(BertPooler(encoder.width), dropout)
    pools: dict[str, Pool] = {"last": final if encoder.final else last, "mean": mean, "max": max_pool, "first": first}
    return Pooling(pools[name], dropout)
