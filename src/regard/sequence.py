"""Data that travels: frozen dataclasses of tensors, batch first.

Every `Rows` is a pytree node, so nobody walks containers by hand; tokens carry what packing needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils._pytree import register_pytree_node, tree_leaves, tree_map_only

PAD, UNK, SOS, EOS = range(4)
"""Ids of <PAD>, <UNK>, <SOS>, <EOS> in every vocabulary made here. A loaded one may differ: ask its tokenizer."""


class Rows:
    """A dataclass whose every tensor has the batch first.

    >>> Padded(torch.tensor([[5, 6], [7, 0]]), torch.tensor([2, 1])).select(torch.tensor([1])).data
    tensor([[7, 0]])
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        register_pytree_node(
            cls,
            lambda rows: ([getattr(rows, f.name) for f in fields(rows)], None),
            lambda values, _: cls(*values),
            serialized_type_name=f"{cls.__module__}.{cls.__qualname__}",
        )

    def map(self, fn: Callable[[Tensor], Tensor]) -> Self:
        return tree_map_only(Tensor, fn, self)

    def select(self, rows: Tensor) -> Self:
        return self.map(lambda tensor: tensor.index_select(0, rows))

    def to(self, device: torch.device | str) -> Self:
        return self.map(lambda tensor: tensor.to(device))

    def __len__(self) -> int:
        return self._any().shape[0]

    @property
    def device(self) -> torch.device:
        return self._any().device

    def _any(self) -> Tensor:
        return next(leaf for leaf in tree_leaves(self) if torch.is_tensor(leaf))


@dataclass(frozen=True)
class Padded(Rows):
    """Sequences of unequal length as one tensor, padded on the right.

    >>> Padded(torch.tensor([[5, 6], [7, 0]]), torch.tensor([2, 1])).mask
    tensor([[ True,  True],
            [ True, False]])
    """

    data: Tensor
    """(B, L) ids, or (B, L, D) vectors or values"""
    lengths: Tensor
    """(B,)"""
    ragged: bool = True
    """False promises that nothing is padded: known on the host, so no device is asked"""

    @property
    def mask(self) -> Tensor:
        """(B, L), True where there is something."""
        return torch.arange(self.data.shape[1], device=self.lengths.device) < self.lengths[:, None]

    def reversed(self) -> Self:
        """Each row backwards, its padding still at the end; twice is nothing."""
        place_BL = torch.arange(self.data.shape[1], device=self.lengths.device).expand(len(self), -1)
        from_BL = torch.where(self.mask, self.lengths[:, None] - 1 - place_BL, place_BL)
        return self.map(
            lambda t: t if t.ndim == 1 else t.take_along_dim(from_BL.reshape(*from_BL.shape, *[1] * (t.ndim - 2)), 1)
        )

    def last(self, x_BLD: Tensor) -> Tensor:
        """(B, D): the row of `x_BLD` at each sequence's last position."""
        at_B11 = (self.lengths - 1).clamp(min=0)[:, None, None]
        return x_BLD.take_along_dim(at_B11, 1).squeeze(1)

    def like(self, x_BLD: Tensor) -> Padded:
        """Other vectors at the same places."""
        return Padded(x_BLD, self.lengths, self.ragged)


@dataclass(frozen=True)
class Tokens(Padded):
    """What a model reads, one thing a place: ids (B, L), or the values (B, L, F) of a series.

    >>> Tokens.of([[5, 6, 7], [8]]).data
    tensor([[5, 6, 7],
            [8, 0, 0]])
    """

    segments: Tensor | None = None
    """(B, L) first or second sentence"""
    positions: Tensor | None = None
    """(B, L); None: counted from the state on"""
    documents: Tensor | None = None
    """(B, L); places see only their own document"""

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> Tokens:
        lengths = [len(row) for row in rows]
        longest = max(lengths, default=0)
        data = [list(row) + [PAD] * (longest - len(row)) for row in rows]
        ids = torch.tensor(data, dtype=torch.long if longest == 0 else None).reshape(len(rows), longest)
        return cls(ids, torch.tensor(lengths, dtype=torch.long), len(set(lengths)) > 1)

    @classmethod
    def full(cls, data: Tensor) -> Tokens:
        """Rows of equal length: nothing is padding."""
        return cls(data, torch.full((data.shape[0],), data.shape[1], device=data.device), ragged=False)

    @classmethod
    def packed(cls, documents: Sequence[Sequence[int]]) -> Tokens:
        """Many documents in one row; each counts its places from 0."""
        number = [i for i, d in enumerate(documents) for _ in d]
        return replace(
            cls.full(torch.tensor([[x for d in documents for x in d]])),
            documents=torch.tensor([number]),
            positions=torch.tensor([[i for d in documents for i in range(len(d))]]),
        )

    def shifted(self) -> tuple[Tokens, Tensor, Tensor]:
        """(what is read, what is wanted after each place, where that counts)."""
        read = self.map(lambda t: t if t.ndim == 1 else t[:, :-1])
        real_BT = self.mask[:, 1:]
        if self.documents is not None:  # the last word of a document does not predict the next document
            real_BT = real_BT & (self.documents[:, 1:] == self.documents[:, :-1])
        return replace(read, lengths=(self.lengths - 1).clamp(min=0)), self.data[:, 1:], real_BT


@dataclass(frozen=True)
class Images(Rows):
    """Pictures of one size.

    >>> len(Images(torch.zeros(2, 3, 8, 8)))
    2
    """

    pixels: Tensor
    """(B, C, Y, X)"""


@dataclass(frozen=True)
class Memory(Rows):
    """What an encoder hands on. How to make one vector of it is the head's business: first, mean, last, final.

    >>> memory = Memory(Padded(torch.tensor([[[1.0], [2.0], [9.0]]]), torch.tensor([2])))
    >>> [pool(memory).item() for pool in (first, mean, last)]
    [1.0, 1.5, 2.0]
    """

    states: Padded
    """data (B, S, D)"""
    final: tuple[tuple[Tensor, ...], ...] = ()
    """one a layer: what a recurrent layer remembers at the end"""
    layers: tuple[Tensor, ...] = ()
    """(B, S, D) each, the lowest first"""


def first(memory: Memory) -> Tensor:
    """The vector at the first place, as BERT's [CLS].

    >>> first(Memory(Padded(torch.ones(1, 2, 3), torch.tensor([2]))))
    tensor([[1., 1., 1.]])
    """
    return memory.states.data[:, 0]


def mean(memory: Memory) -> Tensor:
    """The mean over the real places.

    >>> mean(Memory(Padded(torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([2]))))
    tensor([[2.]])
    """
    states, real_BS1 = memory.states, memory.states.mask[..., None]
    return (states.data * real_BS1).sum(1) / states.lengths[:, None].clamp(min=1)


def last(memory: Memory) -> Tensor:
    """The vector at each row's last real place.

    >>> last(Memory(Padded(torch.tensor([[[1.0], [3.0], [9.0]]]), torch.tensor([2]))))
    tensor([[3.]])
    """
    return memory.states.last(memory.states.data)


def final(memory: Memory) -> Tensor:
    """What the highest recurrent layer remembers at the end.

    >>> final(Memory(Padded(torch.ones(1, 2, 1), torch.tensor([2])), ((torch.tensor([[7.0]]),),)))
    tensor([[7.]])
    """
    return memory.final[-1][0]
