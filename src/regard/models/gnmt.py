"""Google's Neural Machine Translation System: Wu et al. 2016, the shape of its network (section 3).

New against Luong: depth. Eight layers a side, of which only the encoder's first reads both directions; from the third
on each layer adds to what it was given (residuals), or it would not train. The decoder's lowest layer alone asks the
source, by Bahdanau's little network, and all layers above are told what it found: so every layer is one fused kernel
over the whole target when it is taught.

Different here: the lowest layer asks with what it says now, where the paper asks with what it said a step before;
the decoder begins with zeros (the paper does not say); float32, and nothing of the paper's devices or quantisation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models.base import Decoder, Encoder, EncoderDecoder, State
from regard.models.recurrent import check_recurrent, unpacked
from regard.nn.alignment import Additive, Alignment
from regard.nn.bridge import begin
from regard.nn.recurrent import LSTM, Bidirectional, States, unit_words
from regard.sequence import Memory, Padded, Rows, Tokens
from regard.spaces import Readable, Space
from regard.trace import tap


@dataclass(frozen=True)
class GNMTConfig:
    """The shape of a GNMT; the defaults are the paper's.

    >>> GNMTConfig(layers=1)
    Traceback (most recent call last):
    regard.errors.ConfigError: layers = 1 must be at least 2: one that reads both directions, and one above it
    """

    kind: Literal["gnmt"] = "gnmt"
    """Wu et al. 2016"""
    layers: int = 8
    """number of stacked layers, in the encoder and in the decoder"""
    width: int = 1024
    """width of a word's vector, of each layer's state and inside the network that scores the source"""
    dropout: float = 0.2
    """share of numbers dropped from what each layer reads and from what the softmax sees"""

    def __post_init__(self) -> None:
        if self.layers < 2:
            raise ConfigError(
                f"layers = {self.layers} must be at least 2: one that reads both directions, and one above it"
            )
        check_recurrent(self.layers, self.width, self.dropout)

    def check_translates(self, joint: bool) -> None:
        """Nothing is shared between the two sides, so any vocabularies will do."""
        return

    @property
    def shape(self) -> str:
        """The model in a few words."""
        return f"gnmt {self.layers}+{self.layers} layers, width {self.width}"

    @property
    def reach(self) -> int | None:
        """The most places that can be read: any number."""
        return None

    def build_encoder(self, source: Readable) -> GNMTEncoder:
        """The half that reads."""
        return GNMTEncoder(self, source)

    def build_decoder(self, target: Space, encoder: Encoder) -> GNMTDecoder:
        """The half that says something about what `encoder` has read."""
        return GNMTDecoder(self, target, encoder)

    def build(self, source: Space, target: Space) -> EncoderDecoder:
        """A model with fresh weights that reads `source` and says `target`."""
        encoder = self.build_encoder(source)
        return EncoderDecoder(encoder, self.build_decoder(target, encoder))


class Tower(nn.Module):
    """Layers two to the highest: each may be told something beside what is below, and from the third on adds to it."""

    def __init__(self, config: GNMTConfig, below: int, beside: int) -> None:
        super().__init__()
        widths = [below] + [config.width] * (config.layers - 2)
        self.layers = nn.ModuleList(LSTM(width + beside, config.width) for width in widths)
        self.dropout = nn.Dropout(config.dropout)

    def zeros(self, like: Tensor) -> States:
        """The states before anything was read."""
        return tuple(layer.zeros(like) for layer in self.layers)  # type: ignore[operator]

    def forward(self, x: Padded, beside: tuple[Tensor, ...], states: States) -> tuple[tuple[Tensor, ...], States]:
        """(what each layer hands up, state of each layer)."""
        outs: list[Tensor] = []
        ends = []
        for layer, state in zip(self.layers, states, strict=True):
            out_NLD, end = layer(x.like(self.dropout(torch.cat([x.data, *beside], -1))), state)
            x = x.like(out_NLD + x.data if outs else out_NLD)
            outs.append(x.data)
            ends.append(end)
        return tuple(outs), tuple(ends)


class GNMTEncoder(Encoder):
    """One layer that reads both directions, and a tower on top of it."""

    def __init__(self, config: GNMTConfig, space: Readable) -> None:
        super().__init__()
        self.width, self.final = config.width, ((config.width, config.width),) * (config.layers - 1)
        self.embed, self.dropout = space.embed(config.width), nn.Dropout(config.dropout)
        unit_words(self.embed)
        self.first = Bidirectional("lstm", config.width, config.width)
        self.tower = Tower(config, 2 * config.width, 0)

    def forward(self, source: Tokens) -> Memory:
        x_BSD = self.dropout(self.embed(unpacked(source).data))
        both_BSM, _ = self.first(source.like(x_BSD))
        outs, ends = self.tower(source.like(both_BSM), (), self.tower.zeros(both_BSM))
        top_BSD = tap(self, "residual", outs[-1], "batch position:source width")
        return Memory(source.like(top_BSD), ends, (x_BSD, both_BSM, *outs))


@dataclass(frozen=True)
class Deep(Rows):
    """What each layer remembers, the lowest first."""

    layers: States


class GNMTDecoder(Decoder):
    """The lowest layer asks the source; the tower above it reads what was found beside what is below."""

    def __init__(self, config: GNMTConfig, space: Space, encoder: Encoder) -> None:
        super().__init__()
        if not encoder.width:
            raise ConfigError("gnmt looks at a source, and this encoder reads none; use an encoder that does")
        width = config.width
        self.embed, self.dropout, self.readout = space.embed(width), nn.Dropout(config.dropout), space.head(width)
        unit_words(self.embed)
        self.first, self.tower = LSTM(width, width), Tower(config, width, encoder.width)
        self.cross = Alignment(Additive(width, encoder.width, width))

    def start(self, memory: Memory, room: int) -> State:
        like = memory.states.data
        states = begin((self.first, *self.tower.layers), (self.first.zeros(like), *self.tower.zeros(like)))
        return State(self.cross.annotate(memory.states), Deep(states))

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        lowest, *upper = state.hypothesis.layers
        x_NTD = self.dropout(self.embed(unpacked(tokens).data))
        below_NTD, end = self.first(tokens.like(x_NTD), lowest)
        context_NTM = self.cross(below_NTD, state.source)
        outs, ends = self.tower(tokens.like(below_NTD), (context_NTM,), tuple(upper))
        features_NTD = tap(self, "features", self.dropout(outs[-1]), "batch position:target width")
        return features_NTD, replace(state, hypothesis=Deep((end, *ends)))
