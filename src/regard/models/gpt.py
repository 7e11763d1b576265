"""GPT: Radford et al. 2018 and 2019, "Improving Language Understanding", "Language Models are Unsupervised ...".

New against the Transformer: the decoder alone, without a source, trained on nothing but the next token.
Pre-norm with a last norm as in GPT-2, learned positions, GELU; the softmax shares the embedding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor, nn

from regard.config import check_at_least, check_share
from regard.errors import ConfigError
from regard.models.base import Decoder, EmptyEncoder, EncoderDecoder, Layer, ModelConfigBase, State
from regard.nn.attention import AttentionMask, KeysValues, SelfAttention
from regard.nn.feedforward import GELUFeedForward
from regard.nn.kv_cache import KVCache
from regard.nn.norm import LayerNorm
from regard.nn.positions import LearnedPositions
from regard.plurals import count_noun
from regard.sequence import Memory, Tokens
from regard.spaces import Space
from regard.trace import tap

AXES = "batch position:target width"


@dataclass(frozen=True)
class GPTConfig(ModelConfigBase):
    """Config of a GPT; the defaults are GPT-2's smallest."""

    kind: Literal["gpt"] = "gpt"
    """Radford et al. 2019"""
    layers: int = 12
    """number of stacked blocks"""
    width: int = 768
    """model width; the feed-forward network is four times as wide"""
    heads: int = 12
    """attention heads; they share the width"""
    dropout: float = 0.1
    """share of numbers dropped from each sublayer's output and from the embeddings"""
    max_positions: int = 1024
    """size of the table of learned positions: the context length"""

    def __post_init__(self) -> None:
        check_at_least(self, 1, "layers", "width", "heads", "max_positions")
        if self.width % self.heads:
            raise ConfigError(
                f"heads = {self.heads} does not divide width = {self.width}; every head needs an equal share of it"
            )
        check_share(self, "dropout")

    def check_shared_vocab(self, shared: bool) -> None:
        raise ConfigError('model.kind = "gpt" reads no source, so it cannot translate; use transformer or seq2seq')

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        return f"gpt {count_noun(self.layers, 'layer')}, {count_noun(self.heads, 'head')}, width {self.width}"

    @property
    def position_limit(self) -> int | None:
        return self.max_positions

    def build(self, source: Space, target: Space) -> EncoderDecoder:
        """The language model, with fresh weights; `source` is not used."""
        return EncoderDecoder(EmptyEncoder(), GPT(self, target))


class GPTBlock(Layer):
    """x + attention(norm(x)), then x + ffn(norm(x))."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        width = config.width
        self.attention, self.ffn = SelfAttention(width, config.heads), GELUFeedForward(width, 4 * width)
        self.norm1, self.norm2, self.dropout = LayerNorm(width), LayerNorm(width), nn.Dropout(config.dropout)
        for linear in (self.attention.qkv, self.attention.out, self.ffn.up, self.ffn.down):
            nn.init.normal_(linear.weight, std=0.02)
            nn.init.zeros_(linear.bias)
        for linear in (self.attention.out, self.ffn.down):  # GPT-2, 2.3: 1 / sqrt(number of residual layers)
            nn.init.normal_(linear.weight, std=0.02 / math.sqrt(2 * config.layers))

    def forward(
        self, x_NTD: Tensor, cache: KeysValues, at: int | Tensor, mask: AttentionMask
    ) -> tuple[Tensor, KeysValues]:
        queries, new = self.attention.project(self.norm1(x_NTD))
        cache = cache.write(new, at)
        used = at + x_NTD.shape[1] if isinstance(at, int) else mask.shape[3]  # type: ignore[union-attr]
        x_NTD = x_NTD + self.dropout(self.attention(queries, cache.prefix(used), mask))
        x_NTD = tap(self, "attention_residual", x_NTD, AXES)
        x_NTD = x_NTD + self.dropout(self.ffn(self.norm2(x_NTD)))
        return tap(self, "residual", x_NTD, AXES), cache


class GPT(Decoder):
    """Decoder without a source."""

    def __init__(self, config: GPTConfig, space: Space) -> None:
        super().__init__()
        self.width, self.heads, self.dropout = config.width, config.heads, nn.Dropout(config.dropout)
        self.embed, self.readout = space.embed(config.width), space.head(config.width)
        self.positions, self.norm = LearnedPositions(config.width, config.max_positions), LayerNorm(config.width)
        self.layers = nn.ModuleList(GPTBlock(config) for _ in range(config.layers))
        space.tie(self.embed, self.readout)

    def start(self, memory: Memory, max_tokens: int) -> State:
        return State(memory.states, KVCache.empty(memory, len(self.layers), self.heads, max_tokens, self.width))

    def hidden_state(self, state: State) -> None:
        """None: a KV cache grows with the text."""
        return

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        cache: KVCache = state.hypothesis
        at, mask, caches = cache.write_slots(tokens), cache.attention_mask(tokens), []
        positions_NT = cache.positions(tokens) if tokens.positions is None else tokens.positions
        x_NTD = tap(self, "embedding", self.embed(tokens.data), AXES)
        x_NTD = self.dropout(x_NTD + tap(self, "position", self.positions(positions_NT), AXES))
        x_NTD = tap(self, "residual", x_NTD, AXES)
        for layer, own in zip(self.layers, cache.layers, strict=True):
            x_NTD, own = layer(x_NTD, own, at, mask)
            caches.append(own)
        features_NTD = tap(self, "features", self.norm(x_NTD), AXES)
        return features_NTD, replace(state, hypothesis=cache.advance(tokens, caches))
