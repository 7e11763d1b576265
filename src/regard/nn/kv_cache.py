"""What self-attention remembers: the keys and values of the tokens read so far, a cache a layer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.nn.attention import KeysValues, Sight
from regard.sequence import Memory, Rows, Tokens


@dataclass(frozen=True)
class Past(Rows):
    """Caches that are filled row by row, so that prompts may differ in length.

    >>> from regard.sequence import Padded
    >>> memory = Memory(Padded(torch.zeros(2, 0, 1), torch.zeros(2, dtype=torch.long)))
    >>> past = Past.empty(memory, layers=1, heads=2, room=4, width=8)
    >>> past.sight(Tokens.full(torch.tensor([[5, 6], [7, 8]])))
    'past'
    """

    caches: tuple[KeysValues, ...]
    filled: Tensor
    """(N,) how many tokens each row has read"""
    used: int = 0
    """no row has filled more: known on the host"""
    ragged: bool = False
    """False promises that all rows have filled `used` slots"""

    @classmethod
    def empty(cls, memory: Memory, layers: int, heads: int, room: int, width: int) -> Past:
        """Room for `room` tokens; reads no parameter, so that a sharded model can call it."""
        shape, zeros = (len(memory), heads, room, width // heads), memory.states.data.new_zeros
        return cls(tuple(KeysValues(zeros(shape), zeros(shape)) for _ in range(layers)), memory.states.lengths * 0)

    def select(self, rows: Tensor) -> Past:
        caches = tuple(cache.moved(rows, self.used) for cache in self.caches)
        return replace(self, caches=caches, filled=self.filled.index_select(0, rows))

    def at(self, tokens: Tokens) -> int | Tensor:
        """Where these tokens go. Padding lands after the real ones and is written over by the next step."""
        return self.slots(tokens) if self.ragged else self.used

    def slots(self, tokens: Tokens) -> Tensor:
        """(N, T): which place each of these tokens has."""
        return self.filled[:, None] + torch.arange(tokens.data.shape[1], device=self.filled.device)

    def sight(self, tokens: Tokens) -> Sight:
        """Nobody sees a later slot; with documents, nobody sees another document."""
        length = tokens.data.shape[1]
        if tokens.documents is not None:
            if self.caches[0].keys.shape[2]:
                raise ValueError("packed documents are read at once: start with room 0, or decode each in its own row")
            same_NTT = tokens.documents[:, :, None] == tokens.documents[:, None]
            return same_NTT.tril()[:, None]
        if not self.ragged and not self.used:
            return "past"  # padding stands on the right, where no real place looks
        if not self.ragged and length == 1:
            return "all"
        past_NTR = torch.arange(self.used + length, device=self.filled.device) <= self.slots(tokens)[..., None]
        return past_NTR[:, None]

    def after(self, tokens: Tokens, caches: list[KeysValues]) -> Past:
        """What is remembered once `tokens` were read. Without room the state is spent: going on fails."""
        kept = tuple(caches) if self.caches[0].keys.shape[2] else ()
        used = self.used + tokens.data.shape[1]
        return Past(kept, self.filled + tokens.lengths, used, self.ragged or tokens.ragged)
