"""Llama, the decoder as it is built today: Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models".

New against GPT: queries and keys are rotated by their positions instead of adding positions to the embeddings (rotary
positions, Su et al. 2021), RMSNorm (Zhang and Sennrich 2019), a gated feed-forward network (SwiGLU, Shazeer 2020), key
and value heads that groups of query heads share (Ainslie et al. 2023; from Llama 2 on), and no biases. Mistral, Qwen2
(`qkv_bias`), TinyLlama and SmolLM2 are this model in other sizes. Rotated pairs are laid out as in Hugging Face's code
(nn/rotary.py). Different here: weights start as GPT's do, since the paper does not say how; dropout is an option.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor, nn

from regard.config import check_at_least, check_share
from regard.errors import ConfigError
from regard.models.base import Decoder, EmptyEncoder, EncoderDecoder, Layer, ModelConfigBase, RecordedValues, State
from regard.nn.attention import AttentionMask, GroupedQueryAttention, KeysValues, check_heads
from regard.nn.feedforward import SwiGLU
from regard.nn.kv_cache import KVCache
from regard.nn.norm import RMSNorm
from regard.nn.rotary import Rotary, Rotation, rotation
from regard.plurals import count_noun
from regard.sequence import Memory, Tokens
from regard.spaces import Space
from regard.trace import tap

AXES = "batch position:target width"
INIT_STD = 0.02
"""of all weights and embeddings at the start"""


@dataclass(frozen=True)
class LlamaConfig(ModelConfigBase):
    """Config of a Llama; the defaults have about the size of GPT-2's smallest.

    >>> LlamaConfig(heads=12, kv_heads=5)
    Traceback (most recent call last):
    regard.errors.ConfigError: kv_heads = 5 does not divide heads = 12; each needs a group of equal size
    """

    kind: Literal["llama"] = "llama"
    """Touvron et al. 2023"""
    layers: int = 12
    """number of stacked blocks"""
    width: int = 768
    """model width: embeddings and hidden states"""
    ffn_width: int = 2048
    """width of the gated feed-forward network; 8/3 of the model width has as many weights as GPT's 4"""
    heads: int = 12
    """attention heads (queries)"""
    kv_heads: int | None = None
    """key and value heads, each shared by a group of query heads; by default as many as heads"""
    head_width: int | None = None
    """width of a head, an even number; by default the heads share the model width"""
    rope_theta: float = 10_000.0
    """base of the rotary positions: larger for longer contexts"""
    qkv_bias: bool = False
    """biases of queries, keys and values, as in Qwen2"""
    norm_eps: float = 1e-5
    """added to the mean square in RMSNorm"""
    tie: bool = False
    """tie the output projection to the embeddings"""
    dropout: float = 0.0
    """share of numbers dropped from each sublayer's output and from the embeddings"""
    max_positions: int = 2048
    """context length"""

    def __post_init__(self) -> None:
        given = [name for name in ("kv_heads", "head_width") if getattr(self, name) is not None]
        check_at_least(self, 1, "layers", "width", "ffn_width", "heads", "max_positions", "rope_theta", *given)
        check_at_least(self, 0, "norm_eps")
        check_share(self, "dropout")
        check_heads(self.width, self.heads, self.head_width)
        if self.head_size % 2:
            raise ConfigError(f"a head has the width {self.head_size}; rotary positions rotate pairs: make it even")
        if self.heads % self.kv_count:
            raise ConfigError(
                f"kv_heads = {self.kv_heads} does not divide heads = {self.heads}; each needs a group of equal size"
            )

    def check_shared_vocab(self, shared: bool) -> None:
        raise ConfigError('model.kind = "llama" reads no source, so it cannot translate; use transformer or seq2seq')

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        shared = f" ({self.kv_count} for keys and values)" if self.kv_count != self.heads else ""
        heads = f"{count_noun(self.heads, 'head')}{shared}"
        return f"llama {count_noun(self.layers, 'layer')}, {heads}, width {self.width}"

    @property
    def position_limit(self) -> int | None:
        return self.max_positions

    @property
    def head_size(self) -> int:
        """Width of a head."""
        return self.width // self.heads if self.head_width is None else self.head_width

    @property
    def kv_count(self) -> int:
        """Number of key and value heads."""
        return self.heads if self.kv_heads is None else self.kv_heads

    def build(self, source: Space, target: Space) -> EncoderDecoder:
        """The language model, with fresh weights; `source` is not used."""
        return EncoderDecoder(EmptyEncoder(), Llama(self, target))


class LlamaBlock(Layer):
    """x + attention(norm(x)), then x + ffn(norm(x))."""

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        width, eps = config.width, config.norm_eps
        self.attention = GroupedQueryAttention(width, config.heads, config.kv_count, config.head_size, config.qkv_bias)
        self.ffn, self.dropout = SwiGLU(width, config.ffn_width), nn.Dropout(config.dropout)
        self.norm1, self.norm2 = RMSNorm(width, eps=eps), RMSNorm(width, eps=eps)
        for linear in (self.attention.qkv, self.attention.out, self.ffn.gate, self.ffn.up, self.ffn.down):
            nn.init.normal_(linear.weight, std=INIT_STD)
        if self.attention.qkv.bias is not None:
            nn.init.zeros_(self.attention.qkv.bias)

    def forward(
        self, x_NTD: Tensor, by: Rotation, cache: KeysValues, at: int | Tensor, mask: AttentionMask
    ) -> tuple[Tensor, KeysValues]:
        attended_NTD, cache = self.attention.read(self.norm1(x_NTD), by, cache, at, mask)
        x_NTD = tap(self, "attention_residual", x_NTD + self.dropout(attended_NTD), AXES)
        x_NTD = x_NTD + self.dropout(self.ffn(self.norm2(x_NTD)))
        return tap(self, "residual", x_NTD, AXES), cache


class Llama(Decoder):
    """Decoder without a source."""

    def __init__(self, config: LlamaConfig, space: Space) -> None:
        super().__init__()
        self.kv_heads, self.head_size, self.dropout = config.kv_count, config.head_size, nn.Dropout(config.dropout)
        self.embed, self.readout = space.embed(config.width), space.head(config.width)
        self.rotary = Rotary(config.head_size, config.rope_theta)
        self.layers = nn.ModuleList(LlamaBlock(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.width, eps=config.norm_eps)
        for table in (self.embed, self.readout):
            if isinstance(table, nn.Embedding | nn.Linear):
                nn.init.normal_(table.weight, std=INIT_STD)
        if config.tie:
            space.tie(self.embed, self.readout)

    def start(self, memory: Memory, max_tokens: int) -> State:
        return State(memory.states, KVCache.empty(memory, len(self.layers), self.kv_heads, max_tokens, self.head_size))

    def hidden_state(self, state: State) -> None:
        """None: a KV cache grows with the text."""
        return

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        cache: KVCache = state.hypothesis
        at, mask, caches = cache.write_slots(tokens), cache.attention_mask(tokens), []
        positions_NT = cache.positions(tokens) if tokens.positions is None else tokens.positions
        x_NTD = self.dropout(tap(self, "embedding", self.embed(tokens.data), AXES))
        by = rotation(tap(self, "position", self.rotary(positions_NT), AXES), x_NTD.dtype)
        x_NTD = tap(self, "residual", x_NTD, AXES)
        for layer, own in zip(self.layers, cache.layers, strict=True):
            x_NTD, own = layer(x_NTD, by, own, at, mask)
            caches.append(own)
        features_NTD = tap(self, "features", self.norm(x_NTD), AXES)
        return features_NTD, replace(state, hypothesis=cache.advance(tokens, caches))

    def lens_features(self, x_PD: Tensor, recorded: RecordedValues) -> Tensor:
        return self.norm(x_PD)
