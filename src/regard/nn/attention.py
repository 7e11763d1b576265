"""Multi-head scaled dot-product attention (Vaswani et al. 2017, 3.2), and the keys and values that a KV cache holds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.nn.rotary import Rotation, rotate
from regard.sequence import Padded, Rows, Tokens
from regard.trace import tap, tracing

AttentionMask = Tensor | Literal["full", "causal"]
"""Attention mask: a boolean tensor (N, 1 or H, T or 1, L), True = may attend. "full" (all keys) and "causal" (the
causal mask, with as many keys as queries) need no tensor."""
FEW_KEYS = 512
"""up to so many keys, in bfloat16 on a CPU, products one by one train faster than the fused kernel"""
MANY_WEIGHTS = 1 << 25
"""products one by one keep the attention weights of a batch, at most so many: 64 MiB per layer"""


@dataclass(frozen=True)
class KeysValues(Rows):
    """Keys and values of one attention layer: just computed, or a KV cache of fixed capacity R.

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
        """Write `new` into the slots from `at` on, or into slots (N, T), in place. Without capacity, return `new`."""
        if not self.keys.shape[2]:
            return new
        if isinstance(at, int):
            slots = slice(at, at + new.keys.shape[2])
            self.keys[:, :, slots], self.values[:, :, slots] = new.keys, new.values
            return self
        index = at[:, None, :, None].expand_as(new.keys)
        return KeysValues(self.keys.scatter_(2, index, new.keys), self.values.scatter_(2, index, new.values))

    def prefix(self, used: int) -> KeysValues:
        """View of the slots in use: attention must not read empty slots."""
        if used == self.keys.shape[2]:
            return self
        return KeysValues(self.keys[:, :, :used], self.values[:, :, :used])

    def reorder(self, rows: Tensor, used: int) -> KeysValues:
        """Select rows, copying slots in use only; in place unless rows are added.

        New slots are zeros: 0 x garbage may be NaN.
        """
        keys, values = (t[:, :, :used].index_select(0, rows) for t in (self.keys, self.values))
        target, N = self, self.keys.shape[0]
        if len(rows) < N:
            target = KeysValues(self.keys[: len(rows)], self.values[: len(rows)])
        elif len(rows) > N:
            target = self.map(lambda t: t.new_zeros(len(rows), *t.shape[1:]))
        target.keys[:, :, :used], target.values[:, :, :used] = keys, values
        return target


class SelfAttention(nn.Module):
    """Multi-head self-attention; one matrix projects queries, keys and values. Heads share the width by default.

    >>> attention, x = SelfAttention(8, 2), torch.randn(1, 3, 8)
    >>> queries, kv = attention.project(x)
    >>> attention(queries, kv, "causal").shape
    torch.Size([1, 3, 8])
    """

    def __init__(
        self,
        width: int,
        heads: int,
        axes: str = "query:target key:target",
        head_width: int | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.heads, self.axes, inner = heads, axes, heads * (head_width or width // heads)
        self.qkv, self.out = nn.Linear(width, 3 * inner, bias=bias), nn.Linear(inner, width, bias=bias)
        for part in self.qkv.weight.chunk(3):
            nn.init.xavier_uniform_(part)
        nn.init.xavier_uniform_(self.out.weight)
        if bias:
            nn.init.zeros_(self.qkv.bias)
            nn.init.zeros_(self.out.bias)

    def project(self, x_NTD: Tensor) -> tuple[Tensor, KeysValues]:
        """Queries, and the keys and values to be cached."""
        q, k, v = self.qkv(x_NTD).chunk(3, -1)
        return split(q, self.heads), KeysValues(split(k, self.heads), split(v, self.heads))

    def forward(self, q_NHTK: Tensor, kv: KeysValues, mask: AttentionMask) -> Tensor:
        z_NHTK = attend(self, q_NHTK, kv, mask, self.axes)
        return project_out(self, z_NHTK, self.axes)

    def read(
        self, x_NTD: Tensor, cache: KeysValues, at: int | Tensor, mask: AttentionMask
    ) -> tuple[Tensor, KeysValues]:
        """Attention of new tokens to the KV cache and to each other, and the cache with their keys and values."""
        q_NHTK, new = self.project(x_NTD)
        cache = cache.write(new, at)
        return self(q_NHTK, cache.prefix(slots_used(new, at, mask)), mask), cache


class GroupedQueryAttention(nn.Module):
    """Self-attention with rotary positions; groups of query heads share a key and value head (Ainslie et al. 2023).

    One key head for each query head is multi-head attention, one for all is multi-query attention (Shazeer 2019). The
    KV cache holds the key and value heads only.

    >>> from regard.nn.rotary import Rotary, rotation
    >>> attention, x = GroupedQueryAttention(8, heads=4, kv_heads=2, head_width=2), torch.randn(1, 3, 8)
    >>> queries, kv = attention.project(x, rotation(Rotary(2)(torch.arange(3)[None]), x.dtype))
    >>> queries.shape, kv.keys.shape, attention(queries, kv, "causal").shape
    (torch.Size([1, 4, 3, 2]), torch.Size([1, 2, 3, 2]), torch.Size([1, 3, 8]))
    """

    def __init__(self, width: int, heads: int, kv_heads: int, head_width: int, qkv_bias: bool = False) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_width = heads, kv_heads, head_width
        self.qkv = nn.Linear(width, (heads + 2 * kv_heads) * head_width, bias=qkv_bias)
        self.out = nn.Linear(heads * head_width, width, bias=False)

    def project(self, x_NTD: Tensor, by: Rotation) -> tuple[Tensor, KeysValues]:
        """Queries, and the keys and values to be cached; queries and keys are rotated to their positions."""
        rotated_NTHK, v_NTHK = (
            self.qkv(x_NTD).unflatten(2, (-1, self.head_width)).split([self.heads + self.kv_heads, self.kv_heads], 2)
        )
        q, k = rotate(rotated_NTHK, by).transpose(1, 2).split([self.heads, self.kv_heads], 1)
        return q, KeysValues(k, v_NTHK.transpose(1, 2))

    def forward(self, q_NHTK: Tensor, kv: KeysValues, mask: AttentionMask) -> Tensor:
        group, axes = self.heads // self.kv_heads, "query:target key:target"
        if group > 1 and q_NHTK.shape[2] == 1 and not tracing():  # a group is as many queries to one copy of the keys
            q_NHTK = q_NHTK.view(-1, self.kv_heads, group, self.head_width)
            z_NHTK = attend(self, q_NHTK, kv, "full" if mask == "causal" else mask, axes)
            return self.out(z_NHTK.flatten(1)[:, None])
        kv = kv.map(lambda t: t.repeat_interleave(group, 1)) if group > 1 else kv
        return project_out(self, attend(self, q_NHTK, kv, mask, axes), axes)

    def read(
        self, x_NTD: Tensor, by: Rotation, cache: KeysValues, at: int | Tensor, mask: AttentionMask
    ) -> tuple[Tensor, KeysValues]:
        """Attention of new tokens to the KV cache and to each other, and the cache with their keys and values."""
        q_NHTK, new = self.project(x_NTD, by)
        cache = cache.write(new, at)
        return self(q_NHTK, cache.prefix(slots_used(new, at, mask)), mask), cache


class CrossAttention(nn.Module):
    """Multi-head cross-attention: queries from the target, keys and values from the source.

    The W hypotheses of a source share one copy of its keys and values.

    >>> attention = CrossAttention(8, 2)
    >>> source = attention.keys_values(torch.randn(1, 5, 8))
    >>> attention(torch.randn(3, 1, 8), source, "full").shape
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
        """Keys and values of the source, computed once per sentence."""
        k, v = self.kv(x_BSD).chunk(2, -1)
        return KeysValues(split(k, self.heads), split(v, self.heads))

    def forward(self, x_NTD: Tensor, kv: KeysValues, mask: AttentionMask) -> Tensor:
        B = kv.keys.shape[0]  # not len(kv): that walks a pytree, at every layer of every step
        width = x_NTD.shape[0] // max(B, 1)
        q_NHTK = split(self.query(x_NTD), self.heads)
        if tracing():  # one row per hypothesis, so that a record has one shape whatever the beam width
            mask = mask if isinstance(mask, str) else mask.repeat_interleave(width, 0)
            z_NHTK = attend(self, q_NHTK, kv.map(lambda t: t.repeat_interleave(width, 0)), mask, self.axes)
        elif width == 1:
            z_NHTK = attend(self, q_NHTK, kv, mask, self.axes)
        else:  # the hypotheses of a source are width x T queries to one copy of its keys
            N, H, T, K = q_NHTK.shape
            q_BHQK = q_NHTK.view(B, width, H, T, K).transpose(1, 2).reshape(B, H, width * T, K)
            z_BHQK = attend(self, q_BHQK, kv, mask, self.axes)
            z_NHTK = z_BHQK.view(B, H, width, T, K).transpose(1, 2).reshape(N, H, T, K)
        return project_out(self, z_NHTK, self.axes)


def check_heads(width: int, heads: int, head_width: int | None = None) -> None:
    """Refuse a number of heads that does not divide the width of a model, unless their width is given."""
    if head_width is None and width % heads:
        raise ConfigError(f"heads = {heads} does not divide width = {width}; every head needs an equal share of it")


def slots_used(new: KeysValues, at: int | Tensor, mask: AttentionMask) -> int:
    """Slots of a KV cache in use after `new` was written at `at`."""
    return at + new.keys.shape[2] if isinstance(at, int) else mask.shape[3]  # type: ignore[union-attr]


def split(x_NLD: Tensor, heads: int) -> Tensor:
    """(N, L, D) -> (N, H, L, K): split the width into heads."""
    return x_NLD.unflatten(2, (heads, -1)).transpose(1, 2)


def project_out(module: SelfAttention | GroupedQueryAttention | CrossAttention, z_NHTK: Tensor, axes: str) -> Tensor:
    """(N, H, T, K) -> (N, T, D): the concatenated heads through the output projection; recorded."""
    return tap(module, "output", module.out(z_NHTK.transpose(1, 2).flatten(2)), f"batch {axes.split()[0]} width")


def attend(module: nn.Module, q_NHTK: Tensor, kv: KeysValues, mask: AttentionMask, axes: str) -> Tensor:
    """softmax(q k^T / sqrt(K)) v: by the fused kernel; step by step when tracing, as the kernel hides its weights.

    >>> q = torch.tensor([[[[-1.0, 1, 0, 1]]]])
    >>> k, v = torch.eye(4)[[0, 1, 0]][None, None], torch.tensor([[[[1.0, 0], [0, 1], [1, 0]]]])
    >>> attend(nn.Identity(), q, KeysValues(k, v), "full", "query key")
    tensor([[[[0.4239, 0.5761]]]])
    """
    if tracing():
        return _attend_traced(module, q_NHTK, kv, mask, axes)
    if _fused_kernel_is_slow(q_NHTK, kv.keys):
        return _attend_by_products(q_NHTK, kv, mask)
    if isinstance(mask, Tensor):
        return F.scaled_dot_product_attention(q_NHTK, kv.keys, kv.values, attn_mask=mask)
    return F.scaled_dot_product_attention(q_NHTK, kv.keys, kv.values, is_causal=mask == "causal")


def _fused_kernel_is_slow(q_NHTK: Tensor, k_NHLK: Tensor) -> bool:
    """Whether the keys are few and trained on in bfloat16 on a CPU, where the fused kernel's backward pass is slow."""
    is_bfloat16 = k_NHLK.device.type == "cpu" and torch.is_autocast_enabled("cpu") and torch.is_grad_enabled()
    keys = k_NHLK.shape[2]
    return is_bfloat16 and keys <= FEW_KEYS and math.prod(q_NHTK.shape[:3]) * keys <= MANY_WEIGHTS


def _attend_by_products(q_NHTK: Tensor, kv: KeysValues, mask: AttentionMask) -> Tensor:
    """softmax(q k^T / sqrt(K)) v by one product after the other; a query without visible keys gets zeros."""
    scores_NHTL = (q_NHTK / math.sqrt(q_NHTK.shape[-1])) @ kv.keys.mT
    shape, device = scores_NHTL.shape[-2:], scores_NHTL.device
    visible = torch.ones(shape, dtype=torch.bool, device=device).tril() if mask == "causal" else mask
    if not isinstance(visible, Tensor):
        return scores_NHTL.softmax(-1) @ kv.values
    # the smallest number instead of -inf: a row of -inf would have gradients of NaN
    bias = torch.zeros(visible.shape, dtype=scores_NHTL.dtype, device=device)
    bias = bias.masked_fill(~visible, torch.finfo(bias.dtype).min)
    z_NHTK = (scores_NHTL + bias).softmax(-1) @ kv.values
    return z_NHTK if mask == "causal" else z_NHTK.masked_fill(~visible.any(-1, keepdim=True), 0.0)


def _attend_traced(module: nn.Module, q_NHTK: Tensor, kv: KeysValues, mask: AttentionMask, axes: str) -> Tensor:
    query, key = axes.split()
    q_NHTK = tap(module, "queries", q_NHTK, f"batch head {query} width")
    k_NHLK = tap(module, "keys", kv.keys, f"batch head {key} width")
    v_NHLK = tap(module, "values", kv.values, f"batch head {key} width")
    products = tap(module, "products", q_NHTK @ k_NHLK.mT, f"batch head {axes}")
    scores = tap(module, "scores", products / math.sqrt(q_NHTK.shape[-1]), f"batch head {axes}")
    if mask == "causal":
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if isinstance(mask, Tensor):
        # a query without visible keys gets zeros, as in the fused kernel, not NaN
        weights = scores.masked_fill(~mask, -math.inf).softmax(-1).masked_fill(~mask, 0.0)
    else:
        weights = scores.softmax(-1)
    weights = tap(module, "weights", weights, f"batch head {axes}")
    return tap(module, "context", weights @ v_NHLK, f"batch head {query} width")


def self_attention_mask(tokens: Tokens) -> AttentionMask:
    """Mask of bidirectional self-attention: hides padding and other packed documents.

    >>> self_attention_mask(Tokens.pad([[5, 6], [7]])).shape, self_attention_mask(Tokens.pad([[5, 6]]))
    (torch.Size([2, 1, 1, 2]), 'full')
    """
    if tokens.documents is not None:
        same_BLL = tokens.documents[:, :, None] == tokens.documents[:, None]
        return (same_BLL & tokens.mask[:, None])[:, None]
    return tokens.mask[:, None, None] if tokens.ragged else "full"


def cross_attention_mask(memory: Padded) -> AttentionMask:
    """Mask of cross-attention: hides the padding of the source; an empty source is hidden altogether."""
    return memory.mask[:, None, None] if memory.ragged else "full"
