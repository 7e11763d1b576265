"""A multi-layer perceptron: Rumelhart, Hinton and Williams 1986, "Learning representations by back-propagating errors".

New against the perceptron: hidden layers, whose weights are learnt by the chain rule. One thing in, one answer out, as
for a row of a table: each place is read alone, and knows nothing of its neighbours. Different here: ReLU, no sigmoid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models.base import Encoder, Layer, Scope
from regard.sequence import Memory, Tokens
from regard.spaces import Readable
from regard.trace import tap


@dataclass(frozen=True)
class MLPConfig:
    """The shape of a multi-layer perceptron.

    >>> MLPConfig(layers=0)
    Traceback (most recent call last):
    regard.errors.ConfigError: layers = 0 and width = 64 must be at least 1
    """

    kind: Literal["mlp"] = "mlp"
    """each place alone, through hidden layers"""
    layers: int = 2
    """number of hidden layers"""
    width: int = 64
    """units of each hidden layer"""
    dropout: float = 0.0
    """share of numbers dropped after each hidden layer"""

    def __post_init__(self) -> None:
        if min(self.layers, self.width) < 1:
            raise ConfigError(f"layers = {self.layers} and width = {self.width} must be at least 1")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout = {self.dropout} must be at least 0 and below 1")

    @property
    def shape(self) -> str:
        """The encoder in a few words."""
        layers = "1 layer" if self.layers == 1 else f"{self.layers} layers"
        return f"mlp {layers}, width {self.width}"

    @property
    def reach(self) -> int | None:
        """The most places that can be read: any number."""
        return None

    @property
    def scope(self) -> Scope:
        """Nothing but itself."""
        return "itself"

    def build_encoder(self, source: Readable) -> MLPEncoder:
        """An encoder with fresh weights; the head that goes with it is somebody else's."""
        return MLPEncoder(self, source)


class Hidden(Layer):
    """max(0, W x + b)."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.linear, self.dropout = nn.Linear(width, width), nn.Dropout(dropout)

    def forward(self, x_BLD: Tensor) -> Tensor:
        return self.dropout(tap(self, "hidden", self.linear(x_BLD).relu(), "batch position:source width"))


class MLPEncoder(Encoder):
    """What goes in, through hidden layers, place by place; the first of them is how the space embeds a thing."""

    def __init__(self, config: MLPConfig, space: Readable) -> None:
        super().__init__()
        self.width, self.embed = config.width, space.embed(config.width)
        self.layers = nn.ModuleList(Hidden(config.width, config.dropout) for _ in range(config.layers - 1))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, source: Tokens) -> Memory:
        first_BSD = tap(self, "hidden", self.embed(source.data).relu(), "batch position:source width")
        outs = [self.dropout(first_BSD)]
        for layer in self.layers:
            outs.append(layer(outs[-1]))
        return Memory(source.like(outs[-1]), (), tuple(outs))
