"""Sequence to sequence: Sutskever, Vinyals and Le 2014, "Sequence to Sequence Learning ..."; Cho et al. 2014.

New against a language model: a second stack encodes the source, and its final states initialize the decoder's layers.
Whatever its length, a sentence must pass through those few vectors. In Cho et al. a summary of the source also joins
every input of the decoder, so that it need not be remembered. Different here: any cell; the summary is the final hidden
states themselves, and it does not reach the output projection directly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from regard.models.base import Decoder, Encoder, EncoderDecoderConfigBase, RecordedValues, State
from regard.models.recurrent import RecurrentEncoder, check_recurrent, require_unpacked
from regard.nn.bridge import make_bridge, show_initial, summary, summary_width, tap_once
from regard.nn.recurrent import Cell, Stack, States, init_embeddings_unit_std, set_forget_bias
from regard.sequence import Memory, Rows, Tokens
from regard.spaces import InputSpace, Space
from regard.trace import tap, trace_context


@dataclass(frozen=True)
class Seq2SeqConfig(EncoderDecoderConfigBase):
    """Config of a recurrent encoder-decoder; Sutskever's has 4 layers of width 1000.

    >>> Seq2SeqConfig(layers=0)
    Traceback (most recent call last):
    regard.errors.ConfigError: layers = 0 and width = 1000 must be at least 1
    """

    kind: Literal["seq2seq"] = "seq2seq"
    """Sutskever et al. 2014"""
    layers: int = 4
    """number of stacked layers, in the encoder and in the decoder"""
    width: int = 1000
    """width of the embeddings and of each layer's state"""
    dropout: float = 0.0
    """dropout between layers and on the embeddings"""
    reverse: bool = True
    """reverse the source, so that its first word is close to the target's first (Sutskever et al., 3.3)"""
    cell: Cell = "lstm"
    """recurrent cell"""
    bidirectional: bool = False
    """bidirectional encoder, each layer twice as wide; reverse then changes nothing"""
    context: Literal["start", "every"] = "start"
    """how the decoder sees the source: by its initial state, or also by every input (Cho et al. 2014)"""
    forget_bias: float | None = None
    """initial forget-gate bias of LSTMs; 1 keeps gradients longer (Jozefowicz et al. 2015)"""

    def __post_init__(self) -> None:
        check_recurrent(self.layers, self.width, self.dropout, self.cell, self.forget_bias)

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        cell = "" if self.cell == "lstm" else f" {self.cell}"
        both = ", both directions" if self.bidirectional else ""
        every = ", context with every word" if self.context == "every" else ""
        return f"seq2seq{cell} {self.layers}+{self.layers} layers, width {self.width}{both}{every}"

    def build_encoder(self, source: InputSpace) -> RecurrentEncoder:
        reverse = self.reverse and not self.bidirectional
        encoder = RecurrentEncoder(
            source, self.cell, self.layers, self.width, self.dropout, self.bidirectional, reverse
        )
        init_embeddings_unit_std(encoder)
        set_forget_bias(encoder, self.forget_bias)
        return encoder

    def build_decoder(self, target: Space, encoder: Encoder) -> RecurrentDecoder:
        decoder = RecurrentDecoder(target, encoder, self.cell, self.layers, self.width, self.dropout, self.context)
        init_embeddings_unit_std(decoder)
        set_forget_bias(decoder, self.forget_bias)
        return decoder


@dataclass(frozen=True)
class StackState(Rows):
    """State of each recurrent layer, the lowest first."""

    layers: States


@dataclass(frozen=True)
class SourceSummary(Rows):
    """The source in one vector, for decoders that get it with every input."""

    context: Tensor
    """(B, D); (B, 0) if unused"""


class RecurrentDecoder(Decoder):
    """Stacked recurrent decoder; a bridge makes its initial state from the encoder's, or zeros without a source."""

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
        self.bridge = make_bridge(encoder.width, encoder.final, self.stack.state_widths)

    def start(self, memory: Memory, max_tokens: int) -> State:
        if self.every:
            context_BD = tap_once(self, "context", summary(memory))
        else:
            context_BD = memory.states.data.new_zeros(memory.states.data.shape[0], 0)
        return State(SourceSummary(context_BD), StackState(show_initial(self.stack.layer_list(), self.bridge(memory))))

    def lens_features(self, x_PD: Tensor, recorded: RecordedValues) -> Tensor:
        return x_PD

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        embedded_NTD = tap(self, "embedding", self.embed(require_unpacked(tokens).data), "batch position:target width")
        x_NTD = self.dropout(embedded_NTD)
        if self.every:
            source: SourceSummary = state.source  # type: ignore[assignment]
            context_ND = source.context.repeat_interleave(state.width, 0)
            x_NTD = torch.cat([x_NTD, context_ND[:, None].expand(-1, x_NTD.shape[1], -1)], -1)
        with trace_context(reads="target"):
            outs, ends = self.stack(tokens.like(x_NTD), state.hypothesis.layers)
        features_NTD = tap(self, "features", self.dropout(outs[-1]), "batch position:target width")
        return features_NTD, replace(state, hypothesis=StackState(ends))
