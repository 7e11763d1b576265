"""GPT: Radford et al. 2018 and 2019, "Improving Language Understanding", "Language Models are Unsupervised ...".

New against the Transformer: the decoder alone, with no source to look at, trained on nothing but the next word.
Pre-norm with a last norm as in GPT-2, learned positions, GELU; the softmax shares the embedding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models.base import Decoder, EncoderDecoder, Layer, Nothing, State
from regard.nn.attention import KeysValues, SelfAttention, Sight
from regard.nn.feedforward import GELUFeedForward
from regard.nn.kv_cache import Past
from regard.nn.positions import LearnedPositions
from regard.sequence import Memory, Tokens
from regard.spaces import Space
from regard.trace import tap


@dataclass(frozen=True)
class GPTConfig:
    """The shape of a GPT; the defaults are GPT-2's smallest.

    >>> GPTConfig().width
    768
    """

    kind: Literal["gpt"] = "gpt"
    """Radford et al. 2019"""
    layers: int = 12
    """number of stacked blocks"""
    width: int = 768
    """width of a word's vector; inside the feed-forward network it is four times as wide"""
    heads: int = 12
    """attention heads; they share the width"""
    dropout: float = 0.1
    """share of numbers dropped from each sublayer's output and from the embeddings"""
    longest: int = 1024
    """places that the learned positions have"""

    def __post_init__(self) -> None:
        if min(self.layers, self.width, self.heads, self.longest) < 1:
            raise ConfigError("layers, width, heads and longest must be at least 1")
        if self.width % self.heads:
            raise ConfigError(
                f"heads = {self.heads} does not divide width = {self.width}; every head needs an equal share of it"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout = {self.dropout} must be at least 0 and below 1")

    def check_translates(self, joint: bool) -> None:
        """A language model has nothing to translate from."""
        raise ConfigError('model.kind = "gpt" reads no source, so it cannot translate; use transformer or seq2seq')

    @property
    def shape(self) -> str:
        """The model in a few words."""
        layers = "1 layer" if self.layers == 1 else f"{self.layers} layers"
        return f"gpt {layers}, {self.heads} heads, width {self.width}"

    @property
    def reach(self) -> int | None:
        """The most places that can be read."""
        return self.longest

    def build(self, source: Space, target: Space) -> EncoderDecoder:
        """A language model with fresh weights; there is nothing to read, so `source` is not used."""
        return EncoderDecoder(Nothing(), GPT(self, target))


class Block(Layer):
    """Two lines: x + attention(norm(x)), then x + ffn(norm(x))."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        width = config.width
        self.attention, self.ffn = SelfAttention(width, config.heads), GELUFeedForward(width, 4 * width)
        self.norm1, self.norm2, self.dropout = nn.LayerNorm(width), nn.LayerNorm(width), nn.Dropout(config.dropout)
        for linear in (self.attention.qkv, self.attention.out, self.ffn.rise, self.ffn.fall):
            nn.init.normal_(linear.weight, std=0.02)
            nn.init.zeros_(linear.bias)
        for linear in (self.attention.out, self.ffn.fall):  # GPT-2, 2.3: 1 / sqrt(number of residual layers)
            nn.init.normal_(linear.weight, std=0.02 / math.sqrt(2 * config.layers))

    def forward(self, x_NTD: Tensor, cache: KeysValues, at: int | Tensor, sight: Sight) -> tuple[Tensor, KeysValues]:
        queries, made = self.attention.project(self.norm1(x_NTD))
        cache = cache.write(made, at)
        used = at + x_NTD.shape[1] if isinstance(at, int) else sight.shape[3]  # type: ignore[union-attr]
        x_NTD = x_NTD + self.dropout(self.attention(queries, cache.upto(used), sight))
        x_NTD = x_NTD + self.dropout(self.ffn(self.norm2(x_NTD)))
        return tap(self, "residual", x_NTD, "batch position:target width"), cache


class GPT(Decoder):
    """A decoder without a source."""

    def __init__(self, config: GPTConfig, space: Space) -> None:
        super().__init__()
        self.width, self.heads, self.dropout = config.width, config.heads, nn.Dropout(config.dropout)
        self.embed, self.readout = space.embed(config.width), space.head(config.width)
        self.positions, self.norm = LearnedPositions(config.width, config.longest), nn.LayerNorm(config.width)
        self.layers = nn.ModuleList(Block(config) for _ in range(config.layers))
        space.tie(self.embed, self.readout)

    def start(self, memory: Memory, room: int) -> State:
        return State(memory.states, Past.empty(memory, len(self.layers), self.heads, room, self.width))

    def carry(self, state: State) -> None:
        """Nothing: what attention remembers grows with every word."""
        return

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        past: Past = state.hypothesis
        at, sight, caches = past.at(tokens), past.sight(tokens), []
        places_NT = past.slots(tokens) if tokens.positions is None else tokens.positions
        x_NTD = self.dropout(self.embed(tokens.data) + self.positions(places_NT))
        x_NTD = tap(self, "residual", x_NTD, "batch position:target width")
        for layer, cache in zip(self.layers, past.caches, strict=True):
            x_NTD, cache = layer(x_NTD, cache, at, sight)
            caches.append(cache)
        features_NTD = tap(self, "features", self.norm(x_NTD), "batch position:target width")
        return features_NTD, replace(state, hypothesis=past.after(tokens, caches))
