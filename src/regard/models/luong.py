"""Luong, Pham and Manning 2015, "Effective Approaches to Attention-based Neural Machine Translation".

New against RNNsearch: the stack of LSTMs takes its step first, then its new state asks the source, with a score that
may be a plain dot product; state and context become one attentional vector h~ = tanh(Wc [c; h]), which the softmax
sees and which is fed to the next step ("input feeding"), so that it knows where was looked before. Without feeding no
step waits for attention: the whole target is read by the fused kernel, and looks at the source at once.

The encoder is Sutskever's. Global attention only. Different here: a cosine is offered beside the paper's three scores.
"""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models.base import Decoder, Encoder, EncoderDecoder, State
from regard.models.recurrent import RecurrentEncoder, check_recurrent, unpacked
from regard.nn.alignment import SCORES, Alignment, Annotations, ScoreName, mix
from regard.nn.bridge import begin, bridge, shown
from regard.nn.recurrent import Stack, States, unit_words, unroll
from regard.sequence import Memory, Rows, Tokens
from regard.spaces import Readable, Space
from regard.trace import scene, tap, tracing


@dataclass(frozen=True)
class LuongConfig:
    """The shape of a Luong model; the defaults are the paper's.

    >>> LuongConfig(layers=0)
    Traceback (most recent call last):
    regard.errors.ConfigError: layers = 0 and width = 1000 must be at least 1
    """

    kind: Literal["luong"] = "luong"
    """Luong et al. 2015"""
    layers: int = 4
    """number of stacked layers, in the encoder and in the decoder"""
    width: int = 1000
    """width of a word's vector and of each layer's state"""
    score: ScoreName = "general"
    """how a state h is compared with a place s of the source: h.s, h.Ws, v.tanh(W[h; s]), or a sharpened cosine"""
    feeding: Literal["input", "none"] = "input"
    """what a step is told of where the one before looked: its attentional vector, beside the word; or nothing"""
    dropout: float = 0.2
    """share of numbers dropped from embeddings, between layers and from what the softmax sees"""
    reverse: bool = True
    """read the source backwards, so that its first word is close to the target's first"""

    def __post_init__(self) -> None:
        check_recurrent(self.layers, self.width, self.dropout)

    def check_translates(self, joint: bool) -> None:
        """Nothing is shared between the two sides, so any vocabularies will do."""
        return

    @property
    def shape(self) -> str:
        """The model in a few words."""
        fed = "" if self.feeding == "input" else ", no feeding"
        return f"luong {self.layers}+{self.layers} layers, width {self.width}, score {self.score}{fed}"

    @property
    def reach(self) -> int | None:
        """The most places that can be read: any number."""
        return None

    def build_encoder(self, source: Readable) -> RecurrentEncoder:
        """The half that reads."""
        encoder = RecurrentEncoder(source, "lstm", self.layers, self.width, self.dropout, reverse=self.reverse)
        unit_words(encoder)
        return encoder

    def build_decoder(self, target: Space, encoder: Encoder) -> LuongDecoder:
        """The half that says something about what `encoder` has read."""
        return DECODERS[self.feeding](self, target, encoder)

    def build(self, source: Space, target: Space) -> EncoderDecoder:
        """A model with fresh weights that reads `source` and says `target`."""
        encoder = self.build_encoder(source)
        return EncoderDecoder(encoder, self.build_decoder(target, encoder))


@dataclass(frozen=True)
class Looked(Rows):
    """The source as the decoder sees it."""

    annotations: Annotations
    said: Tensor
    """(B, S, D): what each place would add to the attentional vector, if it alone were looked at"""


@dataclass(frozen=True)
class Fed(Rows):
    """What each layer remembers, and the last attentional vector (N, D)."""

    layers: States
    attended: Tensor


class LuongDecoder(Decoder, ABC):
    """What both have: the stack, the look at the source, the attentional vector."""

    def __init__(self, config: LuongConfig, space: Space, encoder: Encoder) -> None:
        super().__init__()
        if not encoder.width:
            raise ConfigError("luong looks at a source, and this encoder reads none; use an encoder that does")
        width, memory = config.width, encoder.width
        self.embed, self.dropout, self.readout = space.embed(width), nn.Dropout(config.dropout), space.head(width)
        unit_words(self.embed)
        self.stack = Stack("lstm", [width] * (config.layers + 1), config.dropout)
        self.bridge = bridge(memory, encoder.final, self.stack.shape)
        self.cross = Alignment(SCORES[config.score](width, memory))
        self.context_said, self.hidden_said = (nn.Linear(inputs, width, bias=False) for inputs in (memory, width))

    def start(self, memory: Memory, room: int) -> State:
        looked = Looked(self.cross.annotate(memory.states), self.context_said(memory.states.data))
        states = begin(self.stack.each(), self.bridge(memory))
        return State(looked, Fed(states, torch.zeros_like(states[-1][0])))

    def look(self, hidden_NTD: Tensor, source: Looked) -> Tensor:
        """(N, T, D): tanh(Wc [context; hidden]), eq. 5. A context is a sum of places: so is what Wc makes of it."""
        if tracing():  # by way of the context: one that is replaced is the one that is gone on with
            of_context = self.context_said(self.cross(hidden_NTD, source.annotations))
        else:
            of_context = mix(self.cross.weights(hidden_NTD, source.annotations), source.said)
        return torch.tanh(of_context + self.hidden_said(hidden_NTD))


class FeedingDecoder(LuongDecoder):
    """Each step reads its word and the attentional vector of the step before (section 3.3)."""

    def __init__(self, config: LuongConfig, space: Space, encoder: Encoder) -> None:
        super().__init__(config, space, encoder)
        self.feed = nn.Linear(config.width, 4 * config.width, bias=False)  # the lowest layer's weights for it

    def start(self, memory: Memory, room: int) -> State:
        state = super().start(memory, room)
        fed: Fed = state.hypothesis  # before the first step there was none to look: zeros
        return replace(state, hypothesis=replace(fed, attended=shown(self, "start_attended", fed.attended)))

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        source: Looked = state.source  # type: ignore[assignment]
        lowest, *upper = self.stack.each()

        def step(given_NG: Tensor, past: Fed) -> tuple[Tensor, Fed]:
            hidden_ND, end = lowest.advance(given_NG + self.feed(past.attended), past.layers[0])
            ends = [end]
            for layer, before in zip(upper, past.layers[1:], strict=True):
                hidden_ND, end = layer.step(self.dropout(hidden_ND), before)
                ends.append(end)
            attended_ND = tap(self, "attended", self.look(hidden_ND[:, None], source).squeeze(1), "batch width")
            return attended_ND, Fed(tuple(ends), attended_ND)

        words_NTG = lowest.project(self.dropout(self.embed(unpacked(tokens).data)))  # all at once, out of the loop
        with scene(reads="target"):
            attended_NTD, past = unroll(step, tokens.like(words_NTG), state.hypothesis)
        features_NTD = tap(self, "features", self.dropout(attended_NTD), "batch position:target width")
        return features_NTD, replace(state, hypothesis=past)


class UnfedDecoder(LuongDecoder):
    """No step waits for a look at the source: the fused kernel reads all words, and then all of them look at once."""

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        source: Looked = state.source  # type: ignore[assignment]
        x_NTD = self.dropout(self.embed(unpacked(tokens).data))
        with scene(reads="target"):
            outs, ends = self.stack(tokens.like(x_NTD), state.hypothesis.layers)
        attended_NTD = tap(self, "attended", self.look(outs[-1], source), "batch position:target width")
        features_NTD = tap(self, "features", self.dropout(attended_NTD), "batch position:target width")
        return features_NTD, replace(state, hypothesis=replace(state.hypothesis, layers=ends))


DECODERS: dict[str, type[FeedingDecoder] | type[UnfedDecoder]] = {"input": FeedingDecoder, "none": UnfedDecoder}
