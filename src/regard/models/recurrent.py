"""A recurrent encoder: Elman 1990 (tanh), Hochreiter and Schmidhuber 1997 (LSTM), Cho et al. 2014 (GRU).

New against a window over the tokens: a hidden state summarizes all tokens read so far, however long ago. A
bidirectional encoder (Schuster and Paliwal 1997) also sees what follows. It works with any head or decoder: one output
per sequence (its last states, or their mean), one per position, or a sequence of another length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models.base import Encoder, ModelConfigBase, ReceptiveField
from regard.nn.recurrent import BidirectionalStack, Cell, Stack, set_forget_bias
from regard.plurals import count_noun
from regard.sequence import Memory, Tokens
from regard.spaces import InputSpace
from regard.trace import tap, trace_context, tracing


@dataclass(frozen=True)
class RecurrentConfig(ModelConfigBase):
    """Config of a recurrent encoder, for a head or a decoder (kind = "encoder-decoder").

    >>> RecurrentConfig(cell="gru", layers=2).summary
    'gru 2 layers, width 128, both directions'
    """

    kind: Literal["recurrent"] = "recurrent"
    """RNN, LSTM or GRU encoder"""
    cell: Cell = "lstm"
    """recurrent cell"""
    layers: int = 1
    """number of stacked layers"""
    width: int = 128
    """width of the embeddings and of each layer's state"""
    bidirectional: bool = True
    """read in both directions, each layer twice as wide"""
    dropout: float = 0.3
    """dropout between layers and on the embeddings"""
    forget_bias: float | None = None
    """initial forget-gate bias of LSTMs; 1 keeps gradients longer (Jozefowicz et al. 2015)"""

    def __post_init__(self) -> None:
        check_recurrent(self.layers, self.width, self.dropout, self.cell, self.forget_bias)

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        both = ", both directions" if self.bidirectional else ""
        return f"{self.cell} {count_noun(self.layers, 'layer')}, width {self.width}{both}"

    @property
    def receptive_field(self) -> ReceptiveField:
        return "full" if self.bidirectional else "left"

    def build_encoder(self, source: InputSpace) -> RecurrentEncoder:
        """The encoder, with fresh weights; the caller attaches a head or a decoder."""
        encoder = RecurrentEncoder(source, self.cell, self.layers, self.width, self.dropout, self.bidirectional)
        set_forget_bias(encoder, self.forget_bias)
        return encoder


def check_recurrent(
    layers: int, width: int, dropout: float, cell: Cell = "lstm", forget_bias: float | None = None
) -> None:
    """Check the settings of a recurrent stack.

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


def require_unpacked(tokens: Tokens) -> Tokens:
    """The tokens, unless rows are packed with several documents.

    >>> require_unpacked(Tokens.pack([[4, 5], [6]]))
    Traceback (most recent call last):
    ValueError: a recurrent model reads one document per row: packing (documents) needs attention
    """
    if tokens.documents is not None:
        raise ValueError("a recurrent model reads one document per row: packing (documents) needs attention")
    return tokens


class RecurrentEncoder(Encoder):
    """Stacked recurrent encoder; memory.final holds the final state of each layer."""

    def __init__(
        self,
        space: InputSpace,
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
        self.final = self.stack.state_widths
        self.width = self.final[-1][0]

    def embed_tokens(self, read: Tokens) -> Tensor:
        """Embeddings of the tokens as they are read; recorded in the order of the text."""
        x_BSD = self.embed(read.data)
        if tracing():
            x_BSD = read.like(x_BSD).reverse().data if self.reverse else x_BSD
            x_BSD = tap(self, "embedding", x_BSD, "batch position:source width")
            x_BSD = read.like(x_BSD).reverse().data if self.reverse else x_BSD
        return x_BSD

    def forward(self, source: Tokens) -> Memory:
        read = require_unpacked(source).reverse() if self.reverse else require_unpacked(source)
        x_BSD = self.dropout(self.embed_tokens(read))
        with trace_context(reads="source", backwards=self.reverse):
            outs, ends = self.stack(read.like(x_BSD))
        layers = (x_BSD, *outs)
        if self.reverse:
            layers = tuple(source.like(layer_BSD).reverse().data for layer_BSD in layers)
        return Memory(source.like(layers[-1]), ends, layers)
