"""Sequence to sequence with LSTMs: Sutskever, Vinyals and Le 2014, "Sequence to Sequence Learning ...".

New against a language model: a second stack reads the source, and what each of its layers remembers at the end is
where the decoder's layers begin. Whatever the sentence's length, it must pass through those few vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models.base import Decoder, Encoder, EncoderDecoder, State
from regard.nn.recurrent import StackedLSTM
from regard.sequence import Memory, Rows, Tokens
from regard.spaces import Space
from regard.trace import tap


@dataclass(frozen=True)
class Seq2SeqConfig:
    """The shape of an LSTM encoder-decoder; the paper's has 4 layers of width 1000.

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
    """read the source backwards, so that its first word is close to the target's first (the paper, 3.3)"""

    def __post_init__(self) -> None:
        if min(self.layers, self.width) < 1:
            raise ConfigError(f"layers = {self.layers} and width = {self.width} must be at least 1")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout = {self.dropout} must be at least 0 and below 1")

    def check_translates(self, joint: bool) -> None:
        """Nothing is shared between the two sides, so any vocabularies will do."""
        return

    @property
    def shape(self) -> str:
        """The model in a few words."""
        return f"seq2seq {self.layers}+{self.layers} layers, width {self.width}"

    def build(self, source: Space, target: Space) -> EncoderDecoder:
        """A model with fresh weights that reads `source` and says `target`."""
        return EncoderDecoder(LSTMEncoder(self, source), LSTMDecoder(self, target))


def unpacked(tokens: Tokens) -> Tokens:
    """The tokens, unless they hold several documents a row."""
    if tokens.documents is not None:
        raise ValueError("a recurrent model reads one document a row: packing (documents) needs attention")
    return tokens


class LSTMEncoder(Encoder):
    """A stack that hands on each layer's last hidden and cell."""

    def __init__(self, config: Seq2SeqConfig, space: Space) -> None:
        super().__init__()
        self.reverse, self.dropout = config.reverse, nn.Dropout(config.dropout)
        self.embed = space.embed(config.width)
        self.stack = StackedLSTM([config.width] * (config.layers + 1), config.dropout)

    def forward(self, source: Tokens) -> Memory:
        source = unpacked(source).reversed() if self.reverse else unpacked(source)
        x_BSD = self.dropout(self.embed(source.data))
        outs, ends = self.stack(source.like(x_BSD))
        return Memory(source.like(outs[-1]), ends, (x_BSD, *outs))


@dataclass(frozen=True)
class Recurrence(Rows):
    """What each layer remembers: (N, D) tensors."""

    layers: tuple[tuple[Tensor, ...], ...]


class LSTMDecoder(Decoder):
    """Layer i goes on from where the encoder's layer i stopped; without an encoder, from zeros."""

    def __init__(self, config: Seq2SeqConfig, space: Space) -> None:
        super().__init__()
        self.dropout = nn.Dropout(config.dropout)
        self.embed, self.readout = space.embed(config.width), space.head(config.width)
        self.stack = StackedLSTM([config.width] * (config.layers + 1), config.dropout)

    def start(self, memory: Memory, room: int) -> State:
        zeros: Any = (layer.zeros(memory.states.data) for layer in self.stack.layers)  # type: ignore[operator]
        return State(memory.states, Recurrence(memory.final or tuple(zeros)))

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        x_NTD = self.dropout(self.embed(unpacked(tokens).data))
        outs, ends = self.stack(tokens.like(x_NTD), state.hypothesis.layers)
        features_NTD = tap(self, "features", self.dropout(outs[-1]), "batch position:target width")
        return features_NTD, replace(state, hypothesis=Recurrence(ends))
