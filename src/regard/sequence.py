"""Batched sequences: frozen dataclasses of tensors, batch first.

Every `Rows` is a pytree node; tokens carry what packing needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import register_pytree_node, tree_leaves, tree_map_only

PAD, UNK, SOS, EOS = range(4)
"""ids of <PAD>, <UNK>, <SOS>, <EOS> in every vocabulary trained here; a loaded one may differ: ask its tokenizer"""


class Rows:
    """A dataclass of tensors that have the batch as first axis."""

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
        """A copy on another device; these rows themselves if they are there already."""
        return self if self.device == torch.device(device) else self.map(lambda tensor: tensor.to(device))

    def __len__(self) -> int:
        return self._any().shape[0]

    @property
    def device(self) -> torch.device:
        return self._any().device

    def _any(self) -> Tensor:
        return next(leaf for leaf in tree_leaves(self) if torch.is_tensor(leaf))


def select_position(x: Tensor, at_B: Tensor) -> Tensor:
    """Of x (B, L, ...) the position `at_B` of each row.

    >>> select_position(torch.tensor([[[1], [2]], [[3], [4]]]), torch.tensor([1, 0])).tolist()
    [[2], [3]]
    """
    index = at_B.view(-1, *[1] * (x.ndim - 1)).expand(-1, 1, *x.shape[2:])  # take_along_dim has no symbolic shapes
    return x.gather(1, index).squeeze(1)


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
    """False promises that there is no padding: known on the host, without a device synchronization"""

    @property
    def mask(self) -> Tensor:
        """(B, L), True at real positions, False at padding."""
        return torch.arange(self.data.shape[1], device=self.lengths.device) < self.lengths[:, None]

    def reverse(self) -> Self:
        """Reverse the real tokens of each row; padding stays on the right. Its own inverse."""
        index_BL = torch.arange(self.data.shape[1], device=self.lengths.device).expand(self.data.shape[0], -1)
        from_BL = torch.where(self.mask, self.lengths[:, None] - 1 - index_BL, index_BL)
        return self.map(
            lambda t: t if t.ndim == 1 else t.gather(1, from_BL.view(*t.shape[:2], *[1] * (t.ndim - 2)).expand_as(t))
        )

    def last(self, x_BLD: Tensor) -> Tensor:
        """(B, D): the row of `x_BLD` at each sequence's last position."""
        return select_position(x_BLD, (self.lengths - 1).clamp(min=0))

    def like(self, x_BLD: Tensor) -> Padded:
        """Other data with the same lengths."""
        return Padded(x_BLD, self.lengths, self.ragged)


@dataclass(frozen=True)
class Tokens(Padded):
    """Token ids (B, L), or the values (B, L, F) of a series."""

    segments: Tensor | None = None
    """(B, L) segment ids"""
    positions: Tensor | None = None
    """(B, L); None: counted from the state on"""
    documents: Tensor | None = None
    """(B, L) document ids of packed rows; positions attend to their own document only"""

    @classmethod
    def pad(cls, rows: Sequence[Any], before: Sequence[int] = (), after: Sequence[int] = ()) -> Tokens:
        """A batch of rows of ids, numbers or vectors, padded on the right; `before` and `after` are added to each row.

        >>> Tokens.pad([[5, 6], [7]], before=[2], after=[3]).data
        tensor([[2, 5, 6, 3],
                [2, 7, 3, 0]])
        """
        arrays = [np.asarray(row) for row in rows]
        # an empty list says nothing about the type: NumPy makes it float64
        floats = any(row.dtype.kind == "f" and (row.size or row.dtype != np.float64) for row in arrays)
        shape = max((row.shape[1:] for row in arrays), key=len, default=())
        lengths = [len(before) + len(row) + len(after) for row in arrays]
        data = np.full((len(rows), max(lengths, default=0), *shape), PAD, np.float32 if floats else np.int64)
        for line, row, length in zip(data, arrays, lengths, strict=True):
            line[len(before) : length - len(after)] = row
            if before or after:
                line[: len(before)], line[length - len(after) : length] = before, after
        return cls(torch.from_numpy(data), torch.tensor(lengths, dtype=torch.long), len(set(lengths)) > 1)

    @classmethod
    def full(cls, data: Tensor) -> Tokens:
        """Rows of equal length, without padding."""
        return cls(data, torch.full((data.shape[0],), data.shape[1], device=data.device), ragged=False)

    @classmethod
    def pack(cls, documents: Sequence[Sequence[int]]) -> Tokens:
        """Packing: several documents in one row, each with positions from 0."""
        number = [i for i, d in enumerate(documents) for _ in d]
        return replace(
            cls.full(torch.tensor([[x for d in documents for x in d]])),
            documents=torch.tensor([number]),
            positions=torch.tensor([[i for d in documents for i in range(len(d))]]),
        )

    def shift(self) -> tuple[Tokens, Tensor, Tensor]:
        """Teacher forcing: (inputs, targets, mask of the targets that count)."""
        read = self.map(lambda t: t if t.ndim == 1 else t[:, :-1])
        real_BT = self.mask[:, 1:]
        if self.documents is not None:  # the last token of a document does not predict the next document
            real_BT = real_BT & (self.documents[:, 1:] == self.documents[:, :-1])
        return replace(read, lengths=(self.lengths - 1).clamp(min=0)), self.data[:, 1:], real_BT


@dataclass(frozen=True)
class Images(Rows):
    """Images of one size."""

    pixels: Tensor
    """(B, C, Y, X)"""


@dataclass(frozen=True)
class Clips(Rows):
    """Image sequences of one size and length."""

    pixels: Tensor
    """(B, T, C, Y, X)"""


@dataclass(frozen=True)
class Memory(Rows):
    """Output of an encoder. Poolings to one vector: first, mean, last, final.

    >>> memory = Memory(Padded(torch.tensor([[[1.0], [2.0], [9.0]]]), torch.tensor([2])))
    >>> [pool(memory).item() for pool in (first, mean, last)]
    [1.0, 1.5, 2.0]
    """

    states: Padded
    """data (B, S, D)"""
    final: tuple[tuple[Tensor, ...], ...] = ()
    """final state of each recurrent layer"""
    layers: tuple[Tensor, ...] = ()
    """(B, S, D) each: outputs of all layers, the lowest first"""


def first(memory: Memory) -> Tensor:
    """First pooling: the vector at the first position, as BERT's [CLS]."""
    return memory.states.data[:, 0]


def mean(memory: Memory) -> Tensor:
    """Mean pooling over the real positions."""
    states, real_BS1 = memory.states, memory.states.mask[..., None]
    return (states.data * real_BS1).sum(1) / states.lengths[:, None].clamp(min=1)


def last(memory: Memory) -> Tensor:
    """Last pooling: the vector at each row's last real position."""
    return memory.states.last(memory.states.data)


def final(memory: Memory) -> Tensor:
    """Final pooling: the final hidden state of the top recurrent layer."""
    return memory.final[-1][0]
