"""A convolutional encoder: Gehring et al. 2017, "A Convolutional Encoder Model for Neural Machine Translation".

New against a recurrent encoder: all positions are computed at once; but a position sees only its receptive field, and
order comes in through positional encodings. The output is as long as the input: to generate a sequence of another
length it needs a decoder. Different here: gated or ReLU units instead of tanh, one stack instead of two, sinusoids
instead of learned positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from regard.config import check_at_least, check_share
from regard.errors import ConfigError
from regard.models.base import Encoder, ModelConfigBase, ReceptiveField
from regard.nn.convolution import GatedConvolution, ReluConvolution
from regard.nn.positions import Sinusoids
from regard.plurals import count_noun
from regard.sequence import Memory, Tokens
from regard.spaces import InputSpace
from regard.trace import tap, tracing


@dataclass(frozen=True)
class ConvolutionConfig(ModelConfigBase):
    """Config of a convolutional encoder, for a head or a decoder (kind = "encoder-decoder").

    >>> ConvolutionConfig(kernel=4)
    Traceback (most recent call last):
    regard.errors.ConfigError: kernel = 4 must be odd, so that a window is centered; try 3 or 5
    """

    kind: Literal["convolution"] = "convolution"
    """Gehring et al. 2017"""
    layers: int = 6
    """number of stacked convolutions; the receptive field is layers x (kernel - 1) / 2 tokens to each side"""
    width: int = 256
    """width of the embeddings and of each layer"""
    kernel: int = 3
    """kernel size in tokens"""
    units: Literal["gated", "relu"] = "gated"
    """activation: gated linear units or ReLU"""
    dropout: float = 0.1
    """dropout on the embeddings and before each layer"""

    def __post_init__(self) -> None:
        check_at_least(self, 1, "layers", "width", "kernel")
        if self.kernel % 2 == 0:
            raise ConfigError(
                f"kernel = {self.kernel} must be odd, so that a window is centered; "
                f"try {self.kernel - 1} or {self.kernel + 1}"
            )
        check_share(self, "dropout")

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        return f"convolution {count_noun(self.layers, 'layer')}, kernel {self.kernel}, width {self.width}"

    @property
    def receptive_field(self) -> ReceptiveField:
        return "local"

    def build_encoder(self, source: InputSpace) -> ConvolutionEncoder:
        """The encoder, with fresh weights; the caller attaches a head or a decoder."""
        return ConvolutionEncoder(self, source)


UNITS: dict[str, type[GatedConvolution] | type[ReluConvolution]] = {"gated": GatedConvolution, "relu": ReluConvolution}


class ConvolutionEncoder(Encoder):
    """Stacked convolutions over embeddings and positional encodings."""

    def __init__(self, config: ConvolutionConfig, space: InputSpace) -> None:
        super().__init__()
        self.width, self.dropout = config.width, nn.Dropout(config.dropout)
        self.embed, self.positions = space.embed(config.width), Sinusoids(config.width)
        self.scale = config.width**0.5  # as in the Transformer: or the sinusoids would dominate the embeddings
        self.layers = nn.ModuleList(UNITS[config.units](config.width, config.kernel) for _ in range(config.layers))

    def forward(self, source: Tokens) -> Memory:
        if source.documents is not None:
            raise ValueError("a convolution reads one document per row: packing (documents) needs attention")
        counted_1S = torch.arange(source.data.shape[1], device=source.data.device)[None]
        positions = self.positions(counted_1S if source.positions is None else source.positions)
        embedded_BSD = tap(self, "embedding", self.embed(source.data), "batch position:source width")
        scaled_BSD = tap(self, "scaled_embedding", embedded_BSD * self.scale, "batch position:source width")
        if tracing():  # one row of positions serves the whole batch; a record has a row for each text
            positions = tap(self, "position", positions.expand_as(embedded_BSD), "batch position:source width")
        x_BSD = self.dropout(scaled_BSD + positions)
        outs = [tap(self, "residual", x_BSD, "batch position:source width")]
        for i, layer in enumerate(self.layers):
            conv_BSD = layer(source.like(self.dropout(outs[-1]) if i else outs[-1]))
            outs.append(tap(layer, "residual", conv_BSD, "batch position:source width"))
        return Memory(source.like(outs[-1]), (), tuple(outs))
