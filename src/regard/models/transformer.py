"""The Transformer: Vaswani et al. 2017, "Attention Is All You Need".

New against RNNsearch: no recurrence at all. Every word looks at every other in one matrix product, so a sentence is
read at once; order comes in through positions that are added to the embeddings. Post-norm as in the paper, or
pre-norm as in the later Tensor2Tensor, which trains without a long warm-up. Different here: attention weights are not
dropped out (the paper has no such dropout, and the fused kernel would have to be left).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models.base import Decoder, Encoder, EncoderDecoder, Layer, Scope, State
from regard.nn.attention import CrossAttention, KeysValues, SelfAttention, Sight, together
from regard.nn.feedforward import FeedForward
from regard.nn.kv_cache import Past
from regard.nn.positions import LearnedPositions, Positions, Sinusoids
from regard.sequence import Memory, Padded, Rows, Tokens
from regard.spaces import Readable, Space
from regard.trace import tap


@dataclass(frozen=True)
class TransformerConfig:
    """The shape of a Transformer; the defaults are the paper's base model.

    >>> TransformerConfig(width=128, heads=5)
    Traceback (most recent call last):
    regard.errors.ConfigError: heads = 5 does not divide width = 128; every head needs an equal share of it
    """

    kind: Literal["transformer"] = "transformer"
    """Vaswani et al. 2017"""
    layers: int = 6
    """number of stacked layers, in the encoder and in the decoder"""
    width: int = 512
    """width of a word's vector"""
    inner: int = 2048
    """width inside the feed-forward network"""
    heads: int = 8
    """attention heads; they share the width"""
    dropout: float = 0.1
    """share of numbers dropped from each sublayer's output and from the embeddings"""
    norm: Literal["post", "pre"] = "post"
    """where layers are normalised: after the sum (the paper) or before the sublayer"""
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    """how a word knows its place"""
    longest: int = 1024
    """places that learned positions have"""
    tie: Literal["all", "target", "none"] = "all"
    """embeddings that share the softmax's weights: source and target (needs one vocabulary), target, or none"""

    def __post_init__(self) -> None:
        if min(self.layers, self.width, self.inner, self.heads, self.longest) < 1:
            raise ConfigError("layers, width, inner, heads and longest must be at least 1")
        if self.width % self.heads:
            raise ConfigError(
                f"heads = {self.heads} does not divide width = {self.width}; every head needs an equal share of it"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout = {self.dropout} must be at least 0 and below 1")

    def check_translates(self, joint: bool) -> None:
        """Two vocabularies may have the same size, so spaces alone cannot tell whether they can be tied."""
        if self.tie == "all" and not joint:
            raise ConfigError(
                'model.tie = "all" needs one vocabulary for both sides, and task.joint = false makes two; '
                'use model.tie = "target"'
            )

    @property
    def shape(self) -> str:
        """The model in a few words."""
        return f"transformer {self.layers}+{self.layers} layers, {self.heads} heads, width {self.width}"

    @property
    def reach(self) -> int | None:
        """The most places that can be read; None: as many as there are."""
        return self.longest if self.positions == "learned" else None

    @property
    def scope(self) -> Scope:
        """All of it."""
        return "all"

    def build_encoder(self, source: Readable) -> TransformerEncoder:
        """The half that reads."""
        return TransformerEncoder(self, source)

    def build_decoder(self, target: Space, encoder: Encoder) -> TransformerDecoder:
        """The half that says something about what `encoder` has read."""
        return TransformerDecoder(self, target, encoder.width)

    def build(self, source: Space, target: Space) -> EncoderDecoder:
        """A model with fresh weights that reads `source` and says `target`."""
        encoder = self.build_encoder(source)
        decoder = self.build_decoder(target, encoder)
        if self.tie == "all":
            if source != target:
                raise ConfigError('tie = "all" needs one vocabulary for both sides; use tie = "target"')
            encoder.embed.weight = decoder.embed.weight
        return EncoderDecoder(encoder, decoder)


class PostNorm(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))), the paper's section 3.1 and 5.4."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(dropout)

    def before(self, x_NLD: Tensor) -> Tensor:
        return x_NLD

    def after(self, x_NLD: Tensor, made_NLD: Tensor) -> Tensor:
        return self.norm(x_NLD + self.dropout(made_NLD))


class PreNorm(nn.Module):
    """x + Dropout(Sublayer(LayerNorm(x))): the residual stream is never normalised on its way up."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(dropout)

    def before(self, x_NLD: Tensor) -> Tensor:
        return self.norm(x_NLD)

    def after(self, x_NLD: Tensor, made_NLD: Tensor) -> Tensor:
        return x_NLD + self.dropout(made_NLD)


NORMS: dict[str, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}


class EncoderLayer(Layer):
    """Self-attention, then the feed-forward network, each with its residual and norm."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        norm, width = NORMS[config.norm], config.width
        self.attention = SelfAttention(width, config.heads, "query:source key:source")
        self.ffn = FeedForward(width, config.inner)
        self.around_attention, self.around_ffn = norm(width, config.dropout), norm(width, config.dropout)

    def forward(self, x_BSD: Tensor, sight: Sight) -> Tensor:
        made = self.attention(*self.attention.project(self.around_attention.before(x_BSD)), sight)
        x_BSD = self.around_attention.after(x_BSD, made)
        x_BSD = self.around_ffn.after(x_BSD, self.ffn(self.around_ffn.before(x_BSD)))
        return tap(self, "residual", x_BSD, "batch position:source width")


class DecoderLayer(Layer):
    """The source's keys and values are made in here, at the first forward after start()."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        norm, width = NORMS[config.norm], config.width
        self.attention, self.cross = SelfAttention(width, config.heads), CrossAttention(width, config.heads)
        self.ffn = FeedForward(width, config.inner)
        self.around_attention, self.around_cross, self.around_ffn = (norm(width, config.dropout) for _ in range(3))

    def forward(
        self,
        x_NTD: Tensor,
        cache: KeysValues,
        at: int | Tensor,
        sights: tuple[Sight, Sight],
        memory: Padded,
        seen: KeysValues | None,
    ) -> tuple[Tensor, KeysValues, KeysValues]:
        seen = self.cross.keys_values(memory.data) if seen is None else seen
        queries, made = self.attention.project(self.around_attention.before(x_NTD))
        cache = cache.write(made, at)
        used = at + x_NTD.shape[1] if isinstance(at, int) else sights[0].shape[3]  # type: ignore[union-attr]
        looked = self.attention(queries, cache.upto(used), sights[0])
        x_NTD = self.around_attention.after(x_NTD, looked)
        x_NTD = self.around_cross.after(x_NTD, self.cross(self.around_cross.before(x_NTD), seen, sights[1]))
        x_NTD = self.around_ffn.after(x_NTD, self.ffn(self.around_ffn.before(x_NTD)))
        return tap(self, "residual", x_NTD, "batch position:target width"), cache, seen


class Entrance(nn.Module):
    """Embeddings x sqrt(d), plus positions, then dropout (sections 3.4, 3.5, 5.4)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.scale, self.dropout = math.sqrt(config.width), nn.Dropout(config.dropout)
        self.positions: Positions
        if config.positions == "learned":
            self.positions = LearnedPositions(config.width, config.longest)
        else:
            self.positions = Sinusoids(config.width)

    def forward(self, x_NLD: Tensor, places_NL: Tensor) -> Tensor:
        return self.dropout(torch.add(self.positions(places_NL), x_NLD, alpha=self.scale))


class TransformerEncoder(Encoder):
    """The source, read at once: every place sees every other."""

    def __init__(self, config: TransformerConfig, space: Readable) -> None:
        super().__init__()
        self.width = config.width
        self.embed, self.entrance = space.embed(config.width), Entrance(config)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()

    def forward(self, source: Tokens) -> Memory:
        counted_1S = torch.arange(source.data.shape[1], device=source.data.device)[None]
        x_BSD = self.entrance(self.embed(source.data), counted_1S if source.positions is None else source.positions)
        outs, sight = [tap(self, "residual", x_BSD, "batch position:source width")], together(source)
        for layer in self.layers:
            outs.append(layer(outs[-1], sight))
        return Memory(source.like(self.norm(outs[-1])), (), tuple(outs))


@dataclass(frozen=True)
class Seen(Rows):
    """The source as the decoder's layers see it."""

    memory: Padded
    projected: tuple[KeysValues | None, ...]
    """one a layer, None until the first forward"""


class TransformerDecoder(Decoder):
    """The target, each place seeing itself, what was said before, and the whole source."""

    def __init__(self, config: TransformerConfig, space: Space, memory: int | None = None) -> None:
        super().__init__()
        self.width, self.heads = config.width, config.heads
        # an encoder of another family may be wider or narrower than what the layers look at
        self.fit = nn.Linear(memory, config.width) if memory not in (None, config.width) else nn.Identity()
        self.embed, self.entrance, self.readout = space.embed(config.width), Entrance(config), space.head(config.width)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width) if config.norm == "pre" else nn.Identity()
        if config.tie != "none":
            space.tie(self.embed, self.readout)

    def start(self, memory: Memory, room: int) -> State:
        past = Past.empty(memory, len(self.layers), self.heads, room, self.width)
        states = memory.states.like(self.fit(memory.states.data))
        return State(Seen(states, (None,) * len(self.layers)), past)

    def carry(self, state: State) -> None:
        """Nothing: what attention remembers grows with every word."""
        return

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        past: Past = state.hypothesis
        source: Seen = state.source  # type: ignore[assignment]
        sights, at, caches, projected = (past.sight(tokens), together_with(source.memory)), past.at(tokens), [], []
        x_NTD = self.entrance(
            self.embed(tokens.data), past.slots(tokens) if tokens.positions is None else tokens.positions
        )
        x_NTD = tap(self, "residual", x_NTD, "batch position:target width")
        for layer, cache, seen in zip(self.layers, past.caches, source.projected, strict=True):
            x_NTD, cache, seen = layer(x_NTD, cache, at, sights, source.memory, seen)
            caches.append(cache)
            projected.append(seen)
        features_NTD = tap(self, "features", self.norm(x_NTD), "batch position:target width")
        return features_NTD, replace(
            state, source=Seen(source.memory, tuple(projected)), hypothesis=past.after(tokens, caches)
        )


def together_with(memory: Padded) -> Sight:
    """A query sees the real places of its source; an empty source is seen by nobody."""
    return memory.mask[:, None, None] if memory.ragged else "all"
