"""Luong, Pham and Manning 2015, "Effective Approaches to Attention-based Neural Machine Translation".

New against RNNsearch: the stack of LSTMs takes its step first, then its new state is the query, with a score that may
be a plain dot product; state and context become one attentional vector h~ = tanh(Wc [c; h]), which is the input of the
output projection and of the next step ("input feeding"), so that past attention is known. Without feeding no step waits
for attention: the whole target is read by the fused kernel, and attends to the source at once.

The encoder is Sutskever's. Global attention only. Different here: a cosine is offered beside the paper's three scores.
"""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models.base import Decoder, Encoder, EncoderDecoderConfigBase, RecordedValues, State
from regard.models.recurrent import RecurrentEncoder, check_recurrent, require_unpacked
from regard.nn.alignment import SCORES, Alignment, Annotations, ScoreName, weighted_sum
from regard.nn.bridge import make_bridge, show_initial, tap_once
from regard.nn.recurrent import Stack, States, init_embeddings_unit_std, unroll
from regard.sequence import Memory, Rows, Tokens
from regard.spaces import InputSpace, Space
from regard.trace import tap, trace_context, tracing


@dataclass(frozen=True)
class LuongConfig(EncoderDecoderConfigBase):
    """Config of a Luong model; the defaults are the paper's.

    >>> LuongConfig(layers=0)
    Traceback (most recent call last):
    regard.errors.ConfigError: layers = 0 and width = 1000 must be at least 1
    """

    kind: Literal["luong"] = "luong"
    """Luong et al. 2015"""
    layers: int = 4
    """number of stacked layers, in the encoder and in the decoder"""
    width: int = 1000
    """width of the embeddings and of each layer's state"""
    score: ScoreName = "general"
    """attention score of a state h and a source state s: h.s, h.Ws, v.tanh(W[h; s]), or a scaled cosine"""
    feeding: Literal["input", "none"] = "input"
    """input feeding: the attentional vector of the previous step is an input of the next; or none"""
    dropout: float = 0.2
    """dropout on the embeddings, between layers and before the output projection"""
    reverse: bool = True
    """reverse the source, so that its first word is close to the target's first"""

    def __post_init__(self) -> None:
        check_recurrent(self.layers, self.width, self.dropout)

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        feeding = "" if self.feeding == "input" else ", no feeding"
        return f"luong {self.layers}+{self.layers} layers, width {self.width}, score {self.score}{feeding}"

    def build_encoder(self, source: InputSpace) -> RecurrentEncoder:
        encoder = RecurrentEncoder(source, "lstm", self.layers, self.width, self.dropout, reverse=self.reverse)
        init_embeddings_unit_std(encoder)
        return encoder

    def build_decoder(self, target: Space, encoder: Encoder) -> LuongDecoder:
        return DECODERS[self.feeding](self, target, encoder)


@dataclass(frozen=True)
class LuongSource(Rows):
    """The source, as the decoder attends to it."""

    annotations: Annotations
    projected: Tensor
    """(B, S, D): what each position would add to the attentional vector with an attention weight of 1"""


@dataclass(frozen=True)
class LuongState(Rows):
    """State of each layer, and the last attentional vector (N, D)."""

    layers: States
    attended: Tensor


class LuongDecoder(Decoder, ABC):
    """Stacked LSTM decoder with global attention."""

    def __init__(self, config: LuongConfig, space: Space, encoder: Encoder) -> None:
        super().__init__()
        if not encoder.width:
            raise ConfigError("luong attends to a source, and this encoder reads none; use an encoder that does")
        width, memory = config.width, encoder.width
        self.embed, self.dropout, self.readout = space.embed(width), nn.Dropout(config.dropout), space.head(width)
        init_embeddings_unit_std(self.embed)
        self.stack = Stack("lstm", [width] * (config.layers + 1), config.dropout)
        self.bridge = make_bridge(memory, encoder.final, self.stack.state_widths)
        self.cross = Alignment(SCORES[config.score](width, memory))
        self.context_projection, self.hidden_projection = (
            nn.Linear(inputs, width, bias=False) for inputs in (memory, width)
        )

    def start(self, memory: Memory, max_tokens: int) -> State:
        source = LuongSource(self.cross.annotate(memory.states), self.context_projection(memory.states.data))
        states = show_initial(self.stack.layer_list(), self.bridge(memory))
        return State(source, LuongState(states, torch.zeros_like(states[-1][0])))

    def embed_tokens(self, tokens: Tokens) -> Tensor:
        """(N, T, D): embeddings of the input tokens, recorded, with dropout."""
        x_NTD = self.embed(require_unpacked(tokens).data)
        return self.dropout(tap(self, "embedding", x_NTD, "batch position:target width"))

    def attend(self, hidden_NTD: Tensor, source: LuongSource) -> Tensor:
        """(N, T, D): tanh(Wc [context; hidden]), eq. 5. Wc is applied to the states, before the weighted sum."""
        if tracing():  # through the context, so that a replaced context takes effect
            return self.attentional_vector(hidden_NTD, self.cross(hidden_NTD, source.annotations))
        of_context = weighted_sum(self.cross.weights(hidden_NTD, source.annotations), source.projected)
        return torch.tanh(of_context + self.hidden_projection(hidden_NTD))

    def attentional_vector(self, hidden: Tensor, context: Tensor) -> Tensor:
        """tanh(Wc [context; hidden]) of states and contexts at any number of positions."""
        return torch.tanh(self.context_projection(context) + self.hidden_projection(hidden))

    def lens_features(self, x_PD: Tensor, recorded: RecordedValues) -> Tensor:
        """The attentional vector of a layer's state and of the context that the top layer attended to."""
        return self.attentional_vector(x_PD, recorded("cross.context"))


class InputFeedingDecoder(LuongDecoder):
    """Input feeding: each step reads its word and the attentional vector of the previous step (section 3.3)."""

    def __init__(self, config: LuongConfig, space: Space, encoder: Encoder) -> None:
        super().__init__(config, space, encoder)
        self.input_feed = nn.Linear(config.width, 4 * config.width, bias=False)  # into the gates of the lowest layer

    def start(self, memory: Memory, max_tokens: int) -> State:
        state = super().start(memory, max_tokens)
        initial: LuongState = state.hypothesis
        attended = tap_once(self, "start_attended", initial.attended)  # zeros before the first step
        return replace(state, hypothesis=replace(initial, attended=attended))

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        source: LuongSource = state.source  # type: ignore[assignment]
        lowest, *upper = self.stack.layer_list()

        def step(inputs_NG: Tensor, before: LuongState) -> tuple[Tensor, LuongState]:
            hidden_ND, end = lowest.advance(inputs_NG + self.input_feed(before.attended), before.layers[0])
            ends = [end]
            for layer, old in zip(upper, before.layers[1:], strict=True):
                hidden_ND, end = layer.step(self.dropout(hidden_ND), old)
                ends.append(end)
            attended_ND = tap(self, "attended", self.attend(hidden_ND[:, None], source).squeeze(1), "batch width")
            return attended_ND, LuongState(tuple(ends), attended_ND)

        words_NTG = lowest.project(self.embed_tokens(tokens))  # all at once, outside the loop
        with trace_context(reads="target"):
            attended_NTD, last = unroll(step, tokens.like(words_NTG), state.hypothesis)
        features_NTD = tap(self, "features", self.dropout(attended_NTD), "batch position:target width")
        return features_NTD, replace(state, hypothesis=last)


class ParallelLuongDecoder(LuongDecoder):
    """No input feeding: the fused kernel reads all words, and then all of them attend at once."""

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        source: LuongSource = state.source  # type: ignore[assignment]
        x_NTD = self.embed_tokens(tokens)
        with trace_context(reads="target"):
            outs, ends = self.stack(tokens.like(x_NTD), state.hypothesis.layers)
        attended_NTD = tap(self, "attended", self.attend(outs[-1], source), "batch position:target width")
        features_NTD = tap(self, "features", self.dropout(attended_NTD), "batch position:target width")
        return features_NTD, replace(state, hypothesis=replace(state.hypothesis, layers=ends))


DECODERS: dict[str, type[InputFeedingDecoder] | type[ParallelLuongDecoder]] = {
    "input": InputFeedingDecoder,
    "none": ParallelLuongDecoder,
}
