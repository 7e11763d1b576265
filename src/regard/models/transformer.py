"""The Transformer: Vaswani et al. 2017, "Attention Is All You Need".

New against RNNsearch: no recurrence at all. Every token attends to every other in one matrix product, so a sentence is
read at once; order comes in through positions that are added to the embeddings. Post-norm as in the paper, or
pre-norm as in the later Tensor2Tensor, which trains without a long warm-up. Different here: attention weights are not
dropped out (the paper has no such dropout, and it would rule out the fused kernel).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from regard.config import check_at_least, check_share
from regard.errors import ConfigError
from regard.models.base import (
    Decoder,
    Encoder,
    EncoderDecoder,
    EncoderDecoderConfigBase,
    Layer,
    ReceptiveField,
    RecordedValues,
    State,
)
from regard.nn.attention import (
    AttentionMask,
    CrossAttention,
    KeysValues,
    SelfAttention,
    check_heads,
    cross_attention_mask,
    self_attention_mask,
)
from regard.nn.feedforward import FeedForward, GELUFeedForward, SwishFeedForward
from regard.nn.kv_cache import KVCache
from regard.nn.norm import LayerNorm
from regard.nn.positions import LearnedPositions, Positions, SinusoidHalves, Sinusoids
from regard.plurals import count_noun
from regard.sequence import Memory, Padded, Rows, Tokens
from regard.spaces import InputSpace, Space, Words
from regard.trace import tap, tracing

Activation = Literal["relu", "swish", "gelu", "gelu-tanh"]
FEED_FORWARD: dict[str, Callable[..., nn.Module]] = {
    "relu": FeedForward,
    "swish": SwishFeedForward,
    "gelu": partial(GELUFeedForward, approximate="none"),
    "gelu-tanh": partial(GELUFeedForward, approximate="tanh"),
}


@dataclass(frozen=True)
class TransformerConfig(EncoderDecoderConfigBase):
    """Config of a Transformer; the defaults are the paper's base model.

    >>> TransformerConfig(width=128, heads=5)
    Traceback (most recent call last):
    regard.errors.ConfigError: heads = 5 does not divide width = 128; every head needs an equal share of it
    """

    kind: Literal["transformer"] = "transformer"
    """Vaswani et al. 2017"""
    layers: int = 6
    """number of stacked layers, in the encoder and, without decoder_layers, in the decoder"""
    width: int = 512
    """model width: embeddings and hidden states"""
    ffn_width: int = 2048
    """inner width of the feed-forward network"""
    heads: int = 8
    """attention heads; they share the width"""
    dropout: float = 0.1
    """share of numbers dropped from each sublayer's output and from the embeddings"""
    norm: Literal["post", "pre"] = "post"
    """layer normalization: after the residual sum (post, the paper) or before the sublayer (pre)"""
    positions: Literal["sinusoidal", "sinusoidal-halves", "learned"] = "sinusoidal"
    """positional encoding: sinusoidal, sines and cosines in turn (the paper); sinusoidal-halves, all sines before all
    cosines (Marian); or learned"""
    max_positions: int = 1024
    """size of the table of learned positions"""
    tie: Literal["all", "target", "none"] = "all"
    """embeddings tied to the output projection: source and target (needs one vocabulary), target, or none"""
    activation: Activation = "relu"
    """activation of the feed-forward networks: relu (the paper), swish (Marian), gelu or gelu-tanh"""
    scale_embedding: bool = True
    """multiply embeddings by the square root of the width (the paper, section 3.4)"""
    output_bias: bool = False
    """the output projection has a bias (Marian); the paper's has none"""
    decoder_layers: int | None = None
    """layers of the decoder, if not as many as in the encoder"""

    def __post_init__(self) -> None:
        check_at_least(self, 1, "layers", "width", "ffn_width", "heads", "max_positions")
        if self.decoder_layers is not None:
            check_at_least(self, 1, "decoder_layers")
        check_heads(self.width, self.heads)
        check_share(self, "dropout")

    def check_shared_vocab(self, shared: bool) -> None:
        """Two vocabularies may have the same size, so the spaces alone cannot tell whether they can be tied."""
        if self.tie == "all" and not shared:
            raise ConfigError(
                'model.tie = "all" needs one vocabulary for both sides, and task.share_vocab = false makes two; '
                'use model.tie = "target"'
            )

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        layers = f"{self.layers}+{self.decoder_depth}"
        return f"transformer {layers} layers, {count_noun(self.heads, 'head')}, width {self.width}"

    @property
    def decoder_depth(self) -> int:
        """Layers of the decoder."""
        return self.decoder_layers or self.layers

    @property
    def position_limit(self) -> int | None:
        return self.max_positions if self.positions == "learned" else None

    @property
    def receptive_field(self) -> ReceptiveField:
        return "full"

    def build_encoder(self, source: InputSpace) -> TransformerEncoder:
        return TransformerEncoder(self, source)

    def build_decoder(self, target: Space, encoder: Encoder) -> TransformerDecoder:
        return TransformerDecoder(self, target, encoder.width)

    def build(self, source: Space, target: Space) -> EncoderDecoder:
        encoder = self.build_encoder(source)
        decoder = self.build_decoder(target, encoder)
        if self.tie == "all":
            if source != target:
                raise ConfigError('tie = "all" needs one vocabulary for both sides; use tie = "target"')
            encoder.embed.weight = decoder.embed.weight
        return EncoderDecoder(encoder, decoder)


class PostNorm(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))), the paper's section 3.1 and 5.4."""

    def __init__(self, width: int, dropout: float, side: str = "target") -> None:
        super().__init__()
        self.norm, self.dropout = LayerNorm(width, side), nn.Dropout(dropout)

    def pre(self, x_NLD: Tensor) -> Tensor:
        return x_NLD

    def residual(self, x_NLD: Tensor, sublayer_NLD: Tensor) -> Tensor:
        return self.norm(residual_sum(self, x_NLD, sublayer_NLD))


class PreNorm(nn.Module):
    """x + Dropout(Sublayer(LayerNorm(x))): the residual stream itself is never normalized."""

    def __init__(self, width: int, dropout: float, side: str = "target") -> None:
        super().__init__()
        self.norm, self.dropout = LayerNorm(width, side), nn.Dropout(dropout)

    def pre(self, x_NLD: Tensor) -> Tensor:
        return self.norm(x_NLD)

    def residual(self, x_NLD: Tensor, sublayer_NLD: Tensor) -> Tensor:
        return residual_sum(self, x_NLD, sublayer_NLD)


def residual_sum(module: PostNorm | PreNorm, x_NLD: Tensor, sublayer_NLD: Tensor) -> Tensor:
    """x + Dropout(Sublayer(x)), recorded."""
    return tap(module, "residual_sum", x_NLD + module.dropout(sublayer_NLD), module.norm.axes)


NORMS: dict[str, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}


class EncoderLayer(Layer):
    """Self-attention and feed-forward network, each with residual connection and norm."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        norm, width = NORMS[config.norm], config.width
        self.attention = SelfAttention(width, config.heads, "query:source key:source")
        self.ffn = FEED_FORWARD[config.activation](width, config.ffn_width, side="source")
        self.attention_norm, self.ffn_norm = (norm(width, config.dropout, "source") for _ in range(2))

    def forward(self, x_BSD: Tensor, mask: AttentionMask) -> Tensor:
        attended = self.attention(*self.attention.project(self.attention_norm.pre(x_BSD)), mask)
        x_BSD = self.attention_norm.residual(x_BSD, attended)
        x_BSD = self.ffn_norm.residual(x_BSD, self.ffn(self.ffn_norm.pre(x_BSD)))
        return tap(self, "residual", x_BSD, "batch position:source width")


class DecoderLayer(Layer):
    """Self-attention, cross-attention and feed-forward network.

    The source's keys and values are computed here, at the first forward after start().
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        norm, width = NORMS[config.norm], config.width
        self.attention, self.cross = SelfAttention(width, config.heads), CrossAttention(width, config.heads)
        self.ffn = FEED_FORWARD[config.activation](width, config.ffn_width)
        self.attention_norm, self.cross_norm, self.ffn_norm = (norm(width, config.dropout) for _ in range(3))

    def forward(
        self,
        x_NTD: Tensor,
        cache: KeysValues,
        at: int | Tensor,
        masks: tuple[AttentionMask, AttentionMask],
        memory: Padded,
        source: KeysValues | None,
    ) -> tuple[Tensor, KeysValues, KeysValues]:
        source = self.cross.keys_values(memory.data) if source is None else source
        attended, cache = self.attention.read(self.attention_norm.pre(x_NTD), cache, at, masks[0])
        x_NTD = self.attention_norm.residual(x_NTD, attended)
        x_NTD = self.cross_norm.residual(x_NTD, self.cross(self.cross_norm.pre(x_NTD), source, masks[1]))
        x_NTD = self.ffn_norm.residual(x_NTD, self.ffn(self.ffn_norm.pre(x_NTD)))
        return tap(self, "residual", x_NTD, "batch position:target width"), cache, source


class InputEmbedding(nn.Module):
    """Embeddings x sqrt(d) plus positional encodings, then dropout (sections 3.4, 3.5, 5.4)."""

    def __init__(self, config: TransformerConfig, side: str = "target") -> None:
        super().__init__()
        self.axes = f"batch position:{side} width"
        self.scale = math.sqrt(config.width) if config.scale_embedding else 1.0
        self.dropout = nn.Dropout(config.dropout)
        self.positions: Positions
        if config.positions == "learned":
            self.positions = LearnedPositions(config.width, config.max_positions)
        elif config.positions == "sinusoidal-halves":
            self.positions = SinusoidHalves(config.width)
        else:
            self.positions = Sinusoids(config.width)

    def forward(self, x_NLD: Tensor, positions_NL: Tensor) -> Tensor:
        x_NLD, positions_NLD = tap(self, "embedding", x_NLD, self.axes), self.positions(positions_NL)
        if not tracing():
            return self.dropout(torch.add(positions_NLD, x_NLD, alpha=self.scale))
        if self.scale != 1:
            x_NLD = tap(self, "scaled_embedding", x_NLD * self.scale, self.axes)
        # one row of positions may serve the whole batch; a record has a row for each text
        return self.dropout(x_NLD + tap(self, "position", positions_NLD.expand_as(x_NLD), self.axes))


class TransformerEncoder(Encoder):
    """Transformer encoder: bidirectional self-attention."""

    def __init__(self, config: TransformerConfig, space: InputSpace) -> None:
        super().__init__()
        self.width = config.width
        self.embed, self.input_embedding = space.embed(config.width), InputEmbedding(config, "source")
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.norm = LayerNorm(config.width, "source") if config.norm == "pre" else nn.Identity()

    def forward(self, source: Tokens) -> Memory:
        counted_1S = torch.arange(source.data.shape[1], device=source.data.device)[None]
        positions = counted_1S if source.positions is None else source.positions
        x_BSD = self.input_embedding(self.embed(source.data), positions)
        outs, mask = [tap(self, "residual", x_BSD, "batch position:source width")], self_attention_mask(source)
        for layer in self.layers:
            outs.append(layer(outs[-1], mask))
        return Memory(source.like(self.norm(outs[-1])), (), tuple(outs))

    def lens_states(self, x: Tensor) -> Tensor:
        return self.norm(x)


@dataclass(frozen=True)
class SourceKV(Rows):
    """Keys and values of the source, for the decoder's cross-attention."""

    memory: Padded
    layers: tuple[KeysValues | None, ...]
    """one per layer, None until the first forward"""


class TransformerDecoder(Decoder):
    """Transformer decoder: causal self-attention, and cross-attention to the source."""

    def __init__(self, config: TransformerConfig, space: Space, memory: int | None = None) -> None:
        super().__init__()
        self.width, self.heads = config.width, config.heads
        # an encoder of another family may be wider or narrower than this decoder
        self.memory_projection = (
            nn.Linear(memory, config.width) if memory not in (None, config.width) else nn.Identity()
        )
        self.embed, self.input_embedding, self.readout = (
            space.embed(config.width),
            InputEmbedding(config),
            space.head(config.width),
        )
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_depth))
        self.norm = LayerNorm(config.width) if config.norm == "pre" else nn.Identity()
        if config.tie != "none":
            space.tie(self.embed, self.readout)
        if config.output_bias and isinstance(space, Words):
            self.readout.bias = nn.Parameter(torch.zeros(space.size))

    def start(self, memory: Memory, max_tokens: int) -> State:
        cache = KVCache.empty(memory, len(self.layers), self.heads, max_tokens, self.width // self.heads)
        states = memory.states.like(self.memory_projection(memory.states.data))
        return State(SourceKV(states, (None,) * len(self.layers)), cache)

    def lens_features(self, x_PD: Tensor, recorded: RecordedValues) -> Tensor:
        return self.norm(x_PD)

    def hidden_state(self, state: State) -> None:
        """None: a KV cache grows with the text."""
        return

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        cache: KVCache = state.hypothesis
        source: SourceKV = state.source  # type: ignore[assignment]
        masks, at = (cache.attention_mask(tokens), cross_attention_mask(source.memory)), cache.write_slots(tokens)
        x_NTD = self.input_embedding(
            self.embed(tokens.data), cache.positions(tokens) if tokens.positions is None else tokens.positions
        )
        x_NTD = tap(self, "residual", x_NTD, "batch position:target width")
        caches, sources = [], []
        for layer, own, given in zip(self.layers, cache.layers, source.layers, strict=True):
            x_NTD, own, given = layer(x_NTD, own, at, masks, source.memory, given)
            caches.append(own)
            sources.append(given)
        features_NTD = tap(self, "features", self.norm(x_NTD), "batch position:target width")
        return features_NTD, replace(
            state, source=SourceKV(source.memory, tuple(sources)), hypothesis=cache.advance(tokens, caches)
        )
