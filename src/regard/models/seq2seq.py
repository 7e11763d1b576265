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

from regard.models.base import Decoder, Encoder, EncoderDecoder, State
from regard.models.recurrent import RecurrentEncoder, check_recurrent, unpacked
from regard.nn.bridge import begin, bridge, shown, summary, summary_width
from regard.nn.recurrent import Cell, Stack, set_forget_bias, unit_words
from regard.sequence import Memory, Rows, Tokens
from regard.spaces import Readable, Space
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
        both = ", both directions" if self.bidirectional else ""
        every = ", context with every word" if self.context == "every" else ""
        return f"seq2seq{cell} {self.layers}+{self.layers} layers, width {self.width}{both}{every}"

    @property
    def reach(self) -> int | None:
        """The most places that can be read: any number."""
        return None

    def build_encoder(self, source: Readable) -> RecurrentEncoder:
        """The half that reads."""
        reverse = self.reverse and not self.bidirectional
        encoder = RecurrentEncoder(
            source, self.cell, self.layers, self.width, self.dropout, self.bidirectional, reverse
        )
        unit_words(encoder)
        set_forget_bias(encoder, self.forget_bias)
        return encoder

    def build_decoder(self, target: Space, encoder: Encoder) -> RecurrentDecoder:
        """The half that says something about what `encoder` has read."""
        decoder = RecurrentDecoder(target, encoder, self.cell, self.layers, self.width, self.dropout, self.context)
        unit_words(decoder)
        set_forget_bias(decoder, self.forget_bias)
        return decoder

    def build(self, source: Space, target: Space) -> EncoderDecoder:
        """A model with fresh weights that reads `source` and says `target`."""
        encoder = self.build_encoder(source)
        return EncoderDecoder(encoder, self.build_decoder(target, encoder))


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
        if self.every:
            context_BD = shown(self, "context", summary(memory))
        else:
            context_BD = memory.states.data.new_zeros(len(memory), 0)
        return State(Summary(context_BD), Recurrence(begin(self.stack.each(), self.bridge(memory))))

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        x_NTD = self.dropout(self.embed(unpacked(tokens).data))
        if self.every:
            given: Summary = state.source  # type: ignore[assignment]
            context_ND = given.context.repeat_interleave(state.width, 0)
            x_NTD = torch.cat([x_NTD, context_ND[:, None].expand(-1, x_NTD.shape[1], -1)], -1)
        with scene(reads="target"):
            outs, ends = self.stack(tokens.like(x_NTD), state.hypothesis.layers)
        features_NTD = tap(self, "features", self.dropout(outs[-1]), "batch position:target width")
        return features_NTD, replace(state, hypothesis=Recurrence(ends))
