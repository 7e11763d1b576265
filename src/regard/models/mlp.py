"""A multi-layer perceptron: Rumelhart, Hinton and Williams 1986, "Learning representations by back-propagating errors".

New against the perceptron: hidden layers, whose weights are learned by backpropagation. One output per position, as for
a row of a table: each position is read independently of its neighbors. Different here: ReLU, no sigmoid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from regard.config import check_at_least, check_share
from regard.models.base import Encoder, Layer, ModelConfigBase, ReceptiveField
from regard.plurals import count_noun
from regard.sequence import Memory, Tokens
from regard.spaces import InputSpace
from regard.trace import tap


@dataclass(frozen=True)
class MLPConfig(ModelConfigBase):
    """Config of a multi-layer perceptron.

    >>> MLPConfig(layers=0)
    Traceback (most recent call last):
    regard.errors.ConfigError: layers = 0 and width = 64 must be at least 1
    """

    kind: Literal["mlp"] = "mlp"
    """multi-layer perceptron on each position"""
    layers: int = 2
    """number of hidden layers"""
    width: int = 64
    """units of each hidden layer"""
    dropout: float = 0.0
    """dropout after each hidden layer"""

    def __post_init__(self) -> None:
        check_at_least(self, 1, "layers", "width")
        check_share(self, "dropout")

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        return f"mlp {count_noun(self.layers, 'layer')}, width {self.width}"

    @property
    def receptive_field(self) -> ReceptiveField:
        return "position"

    def build_encoder(self, source: InputSpace) -> MLPEncoder:
        """The encoder, with fresh weights; the caller attaches a head."""
        return MLPEncoder(self, source)


class HiddenLayer(Layer):
    """max(0, W x + b)."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.linear, self.dropout = nn.Linear(width, width), nn.Dropout(dropout)

    def forward(self, x_BLD: Tensor) -> Tensor:
        return self.dropout(tap(self, "hidden", self.linear(x_BLD).relu(), "batch position:source width"))


class MLPEncoder(Encoder):
    """Hidden layers applied at each position; the first is the embedding of the input space."""

    def __init__(self, config: MLPConfig, space: InputSpace) -> None:
        super().__init__()
        self.width, self.embed = config.width, space.embed(config.width)
        self.layers = nn.ModuleList(HiddenLayer(config.width, config.dropout) for _ in range(config.layers - 1))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, source: Tokens) -> Memory:
        first_BSD = tap(self, "hidden", self.embed(source.data).relu(), "batch position:source width")
        outs = [self.dropout(first_BSD)]
        for layer in self.layers:
            outs.append(layer(outs[-1]))
        return Memory(source.like(outs[-1]), (), tuple(outs))
