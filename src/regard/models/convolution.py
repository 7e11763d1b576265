"""A convolutional encoder: Gehring et al. 2017, "A Convolutional Encoder Model for Neural Machine Translation".

New against a recurrent encoder: no place waits for the one before it, so a sentence is read at once; but a place sees
only the words that the windows of all layers reach, and positions tell it where it stands. A convolution gives as many
places as it reads: it can label a sequence, but to generate one of another length it needs a decoder. Different here:
gated or ReLU units instead of tanh, one stack instead of two, sinusoids instead of learned positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from regard.errors import ConfigError
from regard.models.base import Encoder, Scope
from regard.nn.convolution import GatedConvolution, ReluConvolution
from regard.nn.positions import Sinusoids
from regard.sequence import Memory, Tokens
from regard.spaces import Readable
from regard.trace import tap


@dataclass(frozen=True)
class ConvolutionConfig:
    """The shape of a convolutional encoder: half a model, to be paired with any decoder (kind = "mixed").

    >>> ConvolutionConfig(kernel=4)
    Traceback (most recent call last):
    regard.errors.ConfigError: kernel = 4 must be odd, so that a window has its place in the middle; try 3 or 5
    """

    kind: Literal["convolution"] = "convolution"
    """Gehring et al. 2017"""
    layers: int = 6
    """number of stacked convolutions; a place sees layers x (kernel - 1) / 2 words to each side"""
    width: int = 256
    """width of a word's vector and of each layer"""
    kernel: int = 3
    """words in a window"""
    units: Literal["gated", "relu"] = "gated"
    """what follows a convolution"""
    dropout: float = 0.1
    """share of numbers dropped from the embeddings and before each layer"""

    def __post_init__(self) -> None:
        if min(self.layers, self.width, self.kernel) < 1:
            raise ConfigError(
                f"layers = {self.layers}, width = {self.width} and kernel = {self.kernel} must be at least 1"
            )
        if self.kernel % 2 == 0:
            raise ConfigError(
                f"kernel = {self.kernel} must be odd, so that a window has its place in the middle; "
                f"try {self.kernel - 1} or {self.kernel + 1}"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout = {self.dropout} must be at least 0 and below 1")

    @property
    def shape(self) -> str:
        """The encoder in a few words."""
        layers = "1 layer" if self.layers == 1 else f"{self.layers} layers"
        return f"convolution {layers}, kernel {self.kernel}, width {self.width}"

    @property
    def reach(self) -> int | None:
        """The most places that can be read: any number."""
        return None

    @property
    def scope(self) -> Scope:
        """Its neighbours."""
        return "near"

    def build_encoder(self, source: Readable) -> ConvolutionEncoder:
        """An encoder with fresh weights; the head or decoder that goes with it is somebody else's."""
        return ConvolutionEncoder(self, source)


UNITS: dict[str, type[GatedConvolution] | type[ReluConvolution]] = {"gated": GatedConvolution, "relu": ReluConvolution}


class ConvolutionEncoder(Encoder):
    """The source, read at once through windows that grow from layer to layer."""

    def __init__(self, config: ConvolutionConfig, space: Readable) -> None:
        super().__init__()
        self.width, self.dropout = config.width, nn.Dropout(config.dropout)
        self.embed, self.positions = space.embed(config.width), Sinusoids(config.width)
        self.scale = config.width**0.5  # as in the Transformer: or the sinusoids would drown the words
        self.layers = nn.ModuleList(UNITS[config.units](config.width, config.kernel) for _ in range(config.layers))

    def forward(self, source: Tokens) -> Memory:
        if source.documents is not None:
            raise ValueError("a convolution reads one document a row: packing (documents) needs attention")
        places_1S = torch.arange(source.data.shape[1], device=source.data.device)[None]
        positions = self.positions(places_1S if source.positions is None else source.positions)
        x_BSD = self.dropout(self.embed(source.data) * self.scale + positions)
        outs = [tap(self, "residual", x_BSD, "batch position:source width")]
        for i, layer in enumerate(self.layers):
            made_BSD = layer(source.like(self.dropout(outs[-1]) if i else outs[-1]))
            outs.append(tap(layer, "residual", made_BSD, "batch position:source width"))
        return Memory(source.like(outs[-1]), (), tuple(outs))
