"""Scaled dot-product attention with many heads (Vaswani et al. 2017, 3.2), and the cache that decoding needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.sequence import Rows, Tokens
from regard.trace import tap, tracing

Sight = Tensor | Literal["all", "past"]
"""Who sees whom: a boolean mask (N, 1 or H, T or 1, L), True = may be seen; or, with no tensor made, "all" keys, or
as many keys as queries and no later one ("past")."""


@dataclass(frozen=True)
class KeysValues(Rows):
    """Keys and values, either just made or kept in a room of fixed size.

    >>> cache = KeysValues(torch.zeros(1, 1, 4, 2), torch.zeros(1, 1, 4, 2))
    >>> new = KeysValues(torch.ones(1, 1, 1, 2), torch.ones(1, 1, 1, 2))
    >>> cache.write(new, 2).keys[0, 0, :, 0]
    tensor([0., 0., 1., 0.])
    """

    keys: Tensor
    """(N, H, R, K)"""
    values: Tensor
    """(N, H, R, K)"""

    def write(self, new: KeysValues, at: int | Tensor) -> KeysValues:
        """Put `new` into the slots from `at` on, or into slots (N, T), in place. No room: nothing is kept."""
        if not self.keys.shape[2]:
            return new
        if isinstance(at, int):
            slots = slice(at, at + new.keys.shape[2])
            self.keys[:, :, slots], self.values[:, :, slots] = new.keys, new.values
            return self
        index = at[:, None, :, None].expand_as(new.keys)
        return KeysValues(self.keys.scatter_(2, index, new.keys), self.values.scatter_(2, index, new.values))

    def upto(self, used: int) -> KeysValues:
        """A view of the slots in use: attention must not read a room that is still empty."""
        if used == self.keys.shape[2]:
            return self
        return KeysValues(self.keys[:, :, :used], self.values[:, :, :used])

    def moved(self, rows: Tensor, used: int) -> KeysValues:
        """Rows taken, slots in use only; in place unless rows are added. New room is zeros: 0 x garbage may be NaN."""
        keys, values = (t[:, :, :used].index_select(0, rows) for t in (self.keys, self.values))
        room, N = self, self.keys.shape[0]
        if len(rows) < N:
            room = KeysValues(self.keys[: len(rows)], self.values[: len(rows)])
        elif len(rows) > N:
            room = self.map(lambda t: t.new_zeros(len(rows), *t.shape[1:]))
        room.keys[:, :, :used], room.values[:, :, :used] = keys, values
        return room


class SelfAttention(nn.Module):
    """Queries, keys and values from one sequence; one matrix makes all three.

    >>> attention, x = SelfAttention(8, 2), torch.randn(1, 3, 8)
    >>> queries, made = attention.project(x)
    >>> attention(queries, made, "past").shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, width: int, heads: int, axes: str = "query:target key:target") -> None:
        super().__init__()
        self.heads, self.axes = heads, axes
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        for part in self.qkv.weight.chunk(3):
            nn.init.xavier_uniform_(part)
        nn.init.zeros_(self.qkv.bias)
        nn.init.xavier_uniform_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def project(self, x_NTD: Tensor) -> tuple[Tensor, KeysValues]:
        """Queries, and the keys and values that a cache may take."""
        q, k, v = self.qkv(x_NTD).chunk(3, -1)
        return split(q, self.heads), KeysValues(split(k, self.heads), split(v, self.heads))

    def forward(self, q_NHTK: Tensor, seen: KeysValues, sight: Sight) -> Tensor:
        return self.out(attend(self, q_NHTK, seen, sight, self.axes).transpose(1, 2).flatten(2))


class CrossAttention(nn.Module):
    """Queries from one sequence, keys and values from another: the W hypotheses of a source share one copy of them.

    >>> attention = CrossAttention(8, 2)
    >>> source = attention.keys_values(torch.randn(1, 5, 8))
    >>> attention(torch.randn(3, 1, 8), source, "all").shape
    torch.Size([3, 1, 8])
    """

    def __init__(self, width: int, heads: int, axes: str = "query:target key:source") -> None:
        super().__init__()
        self.heads, self.axes = heads, axes
        self.query, self.kv, self.out = nn.Linear(width, width), nn.Linear(width, 2 * width), nn.Linear(width, width)
        for part in (self.query.weight, *self.kv.weight.chunk(2), self.out.weight):
            nn.init.xavier_uniform_(part)
        for linear in (self.query, self.kv, self.out):
            nn.init.zeros_(linear.bias)

    def keys_values(self, x_BSD: Tensor) -> KeysValues:
        """What the source offers; made once a sentence."""
        k, v = self.kv(x_BSD).chunk(2, -1)
        return KeysValues(split(k, self.heads), split(v, self.heads))

    def forward(self, x_NTD: Tensor, seen: KeysValues, sight: Sight) -> Tensor:
        B = seen.keys.shape[0]  # not len(seen): that walks a tree, at every layer of every step
        width = x_NTD.shape[0] // max(B, 1)
        q_NHTK = split(self.query(x_NTD), self.heads)
        if tracing():  # each hypothesis a row of its own, so that a record has one shape whatever the width
            sight = sight if isinstance(sight, str) else sight.repeat_interleave(width, 0)
            z_NHTK = attend(self, q_NHTK, seen.map(lambda t: t.repeat_interleave(width, 0)), sight, self.axes)
        elif width == 1:
            z_NHTK = attend(self, q_NHTK, seen, sight, self.axes)
        else:  # the hypotheses of a source are width x T queries to one copy of its keys
            N, H, T, K = q_NHTK.shape
            q_BHQK = q_NHTK.view(B, width, H, T, K).transpose(1, 2).reshape(B, H, width * T, K)
            z_BHQK = attend(self, q_BHQK, seen, sight, self.axes)
            z_NHTK = z_BHQK.view(B, H, width, T, K).transpose(1, 2).reshape(N, H, T, K)
        return self.out(z_NHTK.transpose(1, 2).flatten(2))


def split(x_NLD: Tensor, heads: int) -> Tensor:
    """(N, H, L, K): the width shared out among the heads.

    >>> split(torch.zeros(2, 3, 8), 4).shape
    torch.Size([2, 4, 3, 2])
    """
    return x_NLD.unflatten(2, (heads, -1)).transpose(1, 2)


def attend(module: nn.Module, q_NHTK: Tensor, seen: KeysValues, sight: Sight, axes: str) -> Tensor:
    """softmax(q k^T / sqrt(K)) v. Fused when nobody looks; by hand when somebody does: the kernel keeps its weights.

    >>> q = torch.tensor([[[[-1.0, 1, 0, 1]]]])
    >>> k, v = torch.eye(4)[[0, 1, 0]][None, None], torch.tensor([[[[1.0, 0], [0, 1], [1, 0]]]])
    >>> attend(nn.Identity(), q, KeysValues(k, v), "all", "query key")
    tensor([[[[0.4239, 0.5761]]]])
    """
    if tracing():
        return _watched(module, q_NHTK, seen, sight, axes)
    if isinstance(sight, Tensor):
        return F.scaled_dot_product_attention(q_NHTK, seen.keys, seen.values, attn_mask=sight)
    return F.scaled_dot_product_attention(q_NHTK, seen.keys, seen.values, is_causal=sight == "past")


def _watched(module: nn.Module, q_NHTK: Tensor, seen: KeysValues, sight: Sight, axes: str) -> Tensor:
    query, key = axes.split()
    q_NHTK = tap(module, "queries", q_NHTK, f"batch head {query} width")
    k_NHLK = tap(module, "keys", seen.keys, f"batch head {key} width")
    v_NHLK = tap(module, "values", seen.values, f"batch head {key} width")
    scores = tap(module, "scores", q_NHTK @ k_NHLK.mT / math.sqrt(q_NHTK.shape[-1]), f"batch head {axes}")
    if sight == "past":
        sight = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if isinstance(sight, Tensor):
        # who may see nothing sees zeros, as in the fused kernel, not NaN
        weights = scores.masked_fill(~sight, -math.inf).softmax(-1).masked_fill(~sight, 0.0)
    else:
        weights = scores.softmax(-1)
    weights = tap(module, "weights", weights, f"batch head {axes}")
    return tap(module, "context", weights @ v_NHLK, f"batch head {query} width")


def together(tokens: Tokens) -> Sight:
    """A place sees the real places of its own document.

    >>> together(Tokens.of([[5, 6], [7]])).shape, together(Tokens.of([[5, 6]]))
    (torch.Size([2, 1, 1, 2]), 'all')
    """
    if tokens.documents is not None:
        same_BLL = tokens.documents[:, :, None] == tokens.documents[:, None]
        return (same_BLL & tokens.mask[:, None])[:, None]
    return tokens.mask[:, None, None] if tokens.ragged else "all"
