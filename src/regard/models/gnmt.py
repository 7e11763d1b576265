"""Google's Neural Machine Translation System: Wu et al. 2016, the shape of its network (section 3).

New against Luong: depth. Eight layers per side, of which only the encoder's first is bidirectional; from the third on
each layer has a residual connection, or it would not train. The decoder's lowest layer alone attends to the source,
with Bahdanau's additive score, and all layers above read its context: so every layer is one fused kernel over the whole
target under teacher forcing.

Different here: the query is the lowest layer's current output, in the paper that of the previous step; the decoder
starts from zeros (the paper does not say); float32, and nothing of the paper's device placement or quantization.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models.base import Decoder, Encoder, EncoderDecoderConfigBase, RecordedValues, State
from regard.models.recurrent import check_recurrent, require_unpacked
from regard.models.seq2seq import StackState
from regard.nn.alignment import Additive, Alignment
from regard.nn.bridge import show_initial
from regard.nn.recurrent import LSTM, Bidirectional, States, init_embeddings_unit_std
from regard.sequence import Memory, Padded, Tokens
from regard.spaces import InputSpace, Space
from regard.trace import tap


@dataclass(frozen=True)
class GNMTConfig(EncoderDecoderConfigBase):
    """Config of a GNMT; the defaults are the paper's.

    >>> GNMTConfig(layers=1)
    Traceback (most recent call last):
    regard.errors.ConfigError: layers = 1 must be at least 2: a bidirectional one, and one above it
    """

    kind: Literal["gnmt"] = "gnmt"
    """Wu et al. 2016"""
    layers: int = 8
    """number of stacked layers, in the encoder and in the decoder"""
    width: int = 1024
    """width of the embeddings, of each layer's state and of the additive attention score"""
    dropout: float = 0.2
    """dropout on the input of each layer and before the output projection"""

    def __post_init__(self) -> None:
        if self.layers < 2:
            raise ConfigError(f"layers = {self.layers} must be at least 2: a bidirectional one, and one above it")
        check_recurrent(self.layers, self.width, self.dropout)

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        return f"gnmt {self.layers}+{self.layers} layers, width {self.width}"

    def build_encoder(self, source: InputSpace) -> GNMTEncoder:
        return GNMTEncoder(self, source)

    def build_decoder(self, target: Space, encoder: Encoder) -> GNMTDecoder:
        return GNMTDecoder(self, target, encoder)


class ResidualLSTMStack(nn.Module):
    """Layers two to the highest; each may read a context too, and has a residual connection from the third on."""

    def __init__(self, config: GNMTConfig, inputs: int, context: int) -> None:
        super().__init__()
        widths = [inputs] + [config.width] * (config.layers - 2)
        self.layers = nn.ModuleList(LSTM(width + context, config.width) for width in widths)
        self.dropout = nn.Dropout(config.dropout)

    def zeros(self, like: Tensor) -> States:
        """Zero states of all layers."""
        return tuple(layer.zeros(like) for layer in self.layers)  # type: ignore[operator]

    def forward(self, x: Padded, context: tuple[Tensor, ...], states: States) -> tuple[tuple[Tensor, ...], States]:
        """(outputs of each layer, state of each layer)."""
        outs: list[Tensor] = []
        ends = []
        for layer, state in zip(self.layers, states, strict=True):
            out_NLD, end = layer(x.like(self.dropout(torch.cat([x.data, *context], -1))), state)
            x = x.like(tap(layer, "residual_sum", out_NLD + x.data, "batch position width") if outs else out_NLD)
            outs.append(x.data)
            ends.append(end)
        return tuple(outs), tuple(ends)


class GNMTEncoder(Encoder):
    """One bidirectional layer, and a residual stack on top of it."""

    def __init__(self, config: GNMTConfig, space: InputSpace) -> None:
        super().__init__()
        self.width, self.final = config.width, ((config.width, config.width),) * (config.layers - 1)
        self.embed, self.dropout = space.embed(config.width), nn.Dropout(config.dropout)
        init_embeddings_unit_std(self.embed)
        self.first = Bidirectional("lstm", config.width, config.width)
        self.stack = ResidualLSTMStack(config, 2 * config.width, 0)

    def forward(self, source: Tokens) -> Memory:
        embedded_BSD = tap(self, "embedding", self.embed(require_unpacked(source).data), "batch position:source width")
        x_BSD = self.dropout(embedded_BSD)
        both_BSM, _ = self.first(source.like(x_BSD))
        outs, ends = self.stack(source.like(both_BSM), (), self.stack.zeros(both_BSM))
        top_BSD = tap(self, "residual", outs[-1], "batch position:source width")
        return Memory(source.like(top_BSD), ends, (x_BSD, both_BSM, *outs))


class GNMTDecoder(Decoder):
    """The lowest layer attends to the source; the residual stack above it reads its output and its context."""

    def __init__(self, config: GNMTConfig, space: Space, encoder: Encoder) -> None:
        super().__init__()
        if not encoder.width:
            raise ConfigError("gnmt attends to a source, and this encoder reads none; use an encoder that does")
        width = config.width
        self.embed, self.dropout, self.readout = space.embed(width), nn.Dropout(config.dropout), space.head(width)
        init_embeddings_unit_std(self.embed)
        self.first, self.stack = LSTM(width, width), ResidualLSTMStack(config, width, encoder.width)
        self.cross = Alignment(Additive(width, encoder.width, width))

    def start(self, memory: Memory, max_tokens: int) -> State:
        like = memory.states.data
        states = show_initial((self.first, *self.stack.layers), (self.first.zeros(like), *self.stack.zeros(like)))
        return State(self.cross.annotate(memory.states), StackState(states))

    def lens_features(self, x_PD: Tensor, recorded: RecordedValues) -> Tensor:
        return x_PD

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        lowest, *upper = state.hypothesis.layers
        embedded_NTD = tap(self, "embedding", self.embed(require_unpacked(tokens).data), "batch position:target width")
        x_NTD = self.dropout(embedded_NTD)
        lower_NTD, end = self.first(tokens.like(x_NTD), lowest)
        context_NTM = self.cross(lower_NTD, state.source)
        outs, ends = self.stack(tokens.like(lower_NTD), (context_NTM,), tuple(upper))
        features_NTD = tap(self, "features", self.dropout(outs[-1]), "batch position:target width")
        return features_NTD, replace(state, hypothesis=StackState((end, *ends)))
