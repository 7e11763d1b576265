"""KV cache of incremental decoding: keys and values of the tokens read so far, one cache per layer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.nn.attention import AttentionMask, KeysValues
from regard.sequence import Memory, Rows, Tokens


@dataclass(frozen=True)
class KVCache(Rows):
    """KV caches of all layers of a decoder. Rows are filled independently, so that prompts may differ in length.

    >>> from regard.sequence import Padded
    >>> memory = Memory(Padded(torch.zeros(2, 0, 1), torch.zeros(2, dtype=torch.long)))
    >>> cache = KVCache.empty(memory, layers=1, heads=2, max_tokens=4, head_width=4)
    >>> cache.attention_mask(Tokens.full(torch.tensor([[5, 6], [7, 8]])))
    'causal'
    """

    layers: tuple[KeysValues, ...]
    lengths: Tensor
    """(N,) tokens read by each row"""
    used: int = 0
    """upper bound of `lengths`, known on the host"""
    ragged: bool = False
    """False promises that all rows have filled `used` slots"""

    @classmethod
    def empty(cls, memory: Memory, layers: int, heads: int, max_tokens: int, head_width: int) -> KVCache:
        """Capacity for `max_tokens` tokens; reads no parameter, so that a sharded model can call it."""
        like = memory.states.data  # its shape, not len(): torch.export keeps that a symbol
        shape, zeros = (like.shape[0], heads, max_tokens, head_width), like.new_zeros
        return cls(tuple(KeysValues(zeros(shape), zeros(shape)) for _ in range(layers)), memory.states.lengths * 0)

    def select(self, rows: Tensor) -> KVCache:
        layers = tuple(cache.reorder(rows, self.used) for cache in self.layers)
        return replace(self, layers=layers, lengths=self.lengths.index_select(0, rows))

    def write_slots(self, tokens: Tokens) -> int | Tensor:
        """Slots of these tokens. Padding lands after the real ones and is overwritten by the next step."""
        return self.positions(tokens) if self.ragged else self.used

    def positions(self, tokens: Tokens) -> Tensor:
        """(N, T): the position of each of these tokens."""
        return self.lengths[:, None] + torch.arange(tokens.data.shape[1], device=self.lengths.device)

    def attention_mask(self, tokens: Tokens) -> AttentionMask:
        """Causal mask: hides later slots and, in packed rows, other documents."""
        length = tokens.data.shape[1]
        if tokens.documents is not None:
            if self.layers[0].keys.shape[2]:
                raise ValueError("packed documents are read at once: use max_tokens 0, or decode each in its own row")
            same_NTT = tokens.documents[:, :, None] == tokens.documents[:, None]
            return same_NTT.tril()[:, None]
        if not self.ragged and not self.used:
            return "causal"  # padding is on the right, where no real position looks
        if not self.ragged and length == 1:
            return "full"
        past_NTR = torch.arange(self.used + length, device=self.lengths.device) <= self.positions(tokens)[..., None]
        return past_NTR[:, None]

    def advance(self, tokens: Tokens, layers: list[KeysValues]) -> KVCache:
        """The cache after reading `tokens`. Without capacity it stays empty, and decoding further fails."""
        new = tuple(layers) if self.layers[0].keys.shape[2] else ()
        used = self.used + tokens.data.shape[1]
        return KVCache(new, self.lengths + tokens.lengths, used, self.ragged or tokens.ragged)
