"""Sequence to sequence: Sutskever, Vinyals and Le 2014, "Sequence to Sequence Learning ..."; Cho et al. 2014.

New against a language model: a second stack reads the source, and what each of its layers remembers at the end is
where the decoder's layers begin. Whatever the sentence's length, it must pass through those few vectors. In Cho et
al. a summary of the source also joins every input of the decoder, so that it need not be carried along. Different
here: any cell; the summary is the layers' last hidden states themselves, and it does not reach the softmax directly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models.base import Decoder, Encoder, EncoderDecoder, State
from regard.nn.bridge import bridge, summary, summary_width
from regard.nn.recurrent import BidirectionalStack, Cell, Stack, set_forget_bias
from regard.sequence import Memory, Rows, Tokens
from regard.spaces import Space
from regard.trace import scene, tap


@dataclass(frozen=True)
class Seq2SeqConfig:
    """The shape of a recurrent encoder-decoder; Sutskever's has 4 layers of width 1000.

    >>> Seq2SeqConfig(layers=0)
    Traceback (most recent call last):
    regard.errors.ConfigError: layers = 0 and width = 1000 must be at least 1
    """

    kind: Literal["seq2seq"] = "seq2seq"
    """Sutskever et al. 2014"""
    layers: int = 4
    """number of stacked layers, in the encoder and in the decoder"""
    width: int = 1000
    """width of a word's vector and of each layer's state"""
    dropout: float = 0.0
    """share of numbers dropped between layers and from the embeddings"""
    reverse: bool = True
    """read the source backwards, so that its first word is close to the target's first (Sutskever et al., 3.3)"""
    cell: Cell = "lstm"
    """what a layer is made of"""
    bidirectional: bool = False
    """read the source in both directions, each layer twice as wide; reverse then changes nothing"""
    context: Literal["start", "every"] = "start"
    """where the decoder is given the source: as its first state, or also with every word (Cho et al. 2014)"""
    forget_bias: float | None = None
    """what the forget gates of LSTMs start from; 1 keeps gradients longer (Jozefowicz et al. 2015)"""

    def __post_init__(self) -> None:
        check_recurrent(self.layers, self.width, self.dropout, self.cell, self.forget_bias)

    def check_translates(self, joint: bool) -> None:
        """Nothing is shared between the two sides, so any vocabularies will do."""
        return

    @property
    def shape(self) -> str:
        """The model in a few words."""
        cell = "" if self.cell == "lstm" else f" {self.cell}"
        return f"seq2seq{cell} {self.layers}+{self.layers} layers, width {self.width}"

    @property
    def reach(self) -> int | None:
        """The most places that can be read: any number."""
        return None

    def build_encoder(self, source: Space) -> RecurrentEncoder:
        """The half that reads."""
        encoder = RecurrentEncoder(self, source)
        set_forget_bias(encoder, self.forget_bias)
        return encoder

    def build_decoder(self, target: Space, encoder: Encoder) -> RecurrentDecoder:
        """The half that says something about what `encoder` has read."""
        decoder = RecurrentDecoder(target, encoder, self.cell, self.layers, self.width, self.dropout, self.context)
        set_forget_bias(decoder, self.forget_bias)
        return decoder

    def build(self, source: Space, target: Space) -> EncoderDecoder:
        """A model with fresh weights that reads `source` and says `target`."""
        encoder = self.build_encoder(source)
        return EncoderDecoder(encoder, self.build_decoder(target, encoder))


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

    def __init__(self, config: Seq2SeqConfig, space: Space) -> None:
        super().__init__()
        self.reverse = config.reverse and not config.bidirectional
        self.dropout, self.embed = nn.Dropout(config.dropout), space.embed(config.width)
        stacked = BidirectionalStack if config.bidirectional else Stack
        self.stack = stacked(config.cell, [config.width] * (config.layers + 1), config.dropout)
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


@dataclass(frozen=True)
class Recurrence(Rows):
    """What each layer remembers: (N, D) tensors."""

    layers: tuple[tuple[Tensor, ...], ...]


@dataclass(frozen=True)
class Summary(Rows):
    """The source in one vector, for decoders that are given it with every word."""

    context: Tensor
    """(B, D); (B, 0) for decoders that are not"""


class RecurrentDecoder(Decoder):
    """Goes on from where the encoder stopped, or from what a bridge makes of its states; without one, from zeros."""

    def __init__(
        self,
        space: Space,
        encoder: Encoder,
        cell: Cell,
        layers: int,
        width: int,
        dropout: float = 0.0,
        context: Literal["start", "every"] = "start",
    ) -> None:
        super().__init__()
        self.dropout, self.every = nn.Dropout(dropout), context == "every"
        self.embed, self.readout = space.embed(width), space.head(width)
        extra = summary_width(encoder.width, encoder.final) if self.every else 0
        self.stack = Stack(cell, [width + extra, *[width] * layers], dropout)
        self.bridge = bridge(encoder.width, encoder.final, self.stack.shape)

    def start(self, memory: Memory, room: int) -> State:
        context_BD = summary(memory) if self.every else memory.states.data.new_zeros(len(memory), 0)
        return State(Summary(context_BD), Recurrence(self.bridge(memory)))

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        x_NTD = self.dropout(self.embed(unpacked(tokens).data))
        if self.every:
            given: Summary = state.source  # type: ignore[assignment]
            context_ND = tap(self, "context", given.context.repeat_interleave(state.width, 0), "batch width")
            x_NTD = torch.cat([x_NTD, context_ND[:, None].expand(-1, x_NTD.shape[1], -1)], -1)
        with scene(reads="target"):
            outs, ends = self.stack(tokens.like(x_NTD), state.hypothesis.layers)
        features_NTD = tap(self, "features", self.dropout(outs[-1]), "batch position:target width")
        return features_NTD, replace(state, hypothesis=Recurrence(ends))
