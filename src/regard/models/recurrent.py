"""A recurrent encoder: Elman 1990 (tanh), Hochreiter and Schmidhuber 1997 (LSTM), Cho et al. 2014 (GRU).

New against a window over the words: what was read is remembered, however long ago, in a state that each word changes.
In both directions (Schuster and Paliwal 1997) a place knows what follows it too. It reads for any head or decoder: one
answer for the whole (its last states, or their mean), one a place, or a sequence of another length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import nn

from regard.errors import ConfigError
from regard.models.base import Encoder, Scope
from regard.nn.recurrent import BidirectionalStack, Cell, Stack, set_forget_bias
from regard.sequence import Memory, Tokens
from regard.spaces import Readable
from regard.trace import scene


@dataclass(frozen=True)
class RecurrentConfig:
    """The shape of a recurrent encoder: half a model, for a head that answers or a decoder (kind = "mixed").

    >>> RecurrentConfig(cell="gru", layers=2).shape
    'gru 2 layers, width 128, both directions'
    """

    kind: Literal["recurrent"] = "recurrent"
    """words one after the other"""
    cell: Cell = "lstm"
    """what a layer is made of"""
    layers: int = 1
    """number of stacked layers"""
    width: int = 128
    """width of a word's vector and of each layer's state"""
    bidirectional: bool = True
    """read in both directions, each layer twice as wide"""
    dropout: float = 0.3
    """share of numbers dropped between layers and from the embeddings"""
    forget_bias: float | None = None
    """what the forget gates of LSTMs start from; 1 keeps gradients longer (Jozefowicz et al. 2015)"""

    def __post_init__(self) -> None:
        check_recurrent(self.layers, self.width, self.dropout, self.cell, self.forget_bias)

    @property
    def shape(self) -> str:
        """The encoder in a few words."""
        layers = "1 layer" if self.layers == 1 else f"{self.layers} layers"
        return f"{self.cell} {layers}, width {self.width}{', both directions' if self.bidirectional else ''}"

    @property
    def reach(self) -> int | None:
        """The most places that can be read: any number."""
        return None

    @property
    def scope(self) -> Scope:
        """All of it when it is read in both directions."""
        return "all" if self.bidirectional else "before"

    def build_encoder(self, source: Readable) -> RecurrentEncoder:
        """An encoder with fresh weights; the head or decoder that goes with it is somebody else's."""
        encoder = RecurrentEncoder(source, self.cell, self.layers, self.width, self.dropout, self.bidirectional)
        set_forget_bias(encoder, self.forget_bias)
        return encoder


def check_recurrent(
    layers: int, width: int, dropout: float, cell: Cell = "lstm", forget_bias: float | None = None
) -> None:
    """Refuse a stack that cannot be.

    >>> check_recurrent(1, 8, 0.0, "gru", 1.0)
    Traceback (most recent call last):
    regard.errors.ConfigError: forget_bias = 1.0 needs a forget gate, and cell = "gru" has none; use cell = "lstm"
    """
    if min(layers, width) < 1:
        raise ConfigError(f"layers = {layers} and width = {width} must be at least 1")
    if not 0 <= dropout < 1:
        raise ConfigError(f"dropout = {dropout} must be at least 0 and below 1")
    if forget_bias is not None and cell != "lstm":
        raise ConfigError(
            f'forget_bias = {forget_bias} needs a forget gate, and cell = "{cell}" has none; use cell = "lstm"'
        )


def unpacked(tokens: Tokens) -> Tokens:
    """The tokens, unless they hold several documents a row.

    >>> unpacked(Tokens.packed([[4, 5], [6]]))
    Traceback (most recent call last):
    ValueError: a recurrent model reads one document a row: packing (documents) needs attention
    """
    if tokens.documents is not None:
        raise ValueError("a recurrent model reads one document a row: packing (documents) needs attention")
    return tokens


class RecurrentEncoder(Encoder):
    """A stack that hands on what each layer remembers at the end; its states stand where their words stand."""

    def __init__(
        self,
        space: Readable,
        cell: Cell,
        layers: int,
        width: int,
        dropout: float = 0.0,
        bidirectional: bool = False,
        reverse: bool = False,
    ) -> None:
        super().__init__()
        self.reverse = reverse
        self.dropout, self.embed = nn.Dropout(dropout), space.embed(width)
        stacked = BidirectionalStack if bidirectional else Stack
        self.stack = stacked(cell, [width] * (layers + 1), dropout)
        self.final = self.stack.shape
        self.width = self.final[-1][0]

    def forward(self, source: Tokens) -> Memory:
        read = unpacked(source).reversed() if self.reverse else unpacked(source)
        x_BSD = self.dropout(self.embed(read.data))
        with scene(reads="source", backwards=self.reverse):
            outs, ends = self.stack(read.like(x_BSD))
        layers = (x_BSD, *outs)
        if self.reverse:
            layers = tuple(source.like(layer_BSD).reversed().data for layer_BSD in layers)
        return Memory(source.like(layers[-1]), ends, layers)
