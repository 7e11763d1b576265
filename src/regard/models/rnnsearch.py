"""RNNsearch: Bahdanau, Cho and Bengio 2015, "Neural Machine Translation by Jointly Learning to Align and Translate".

New against seq2seq: the source is read in both directions and every place of it is kept. Before each word the decoder
looks back and asks which places matter now; no sentence must pass through one vector any more. Appendix A is built as
printed: the unit resets its state before the recurrent product, s_i-1 asks, and s_i-1 is what the readout sees.

Different here: the encoder's GRUs are torch's, fused, which reset after the product; gates, bridge and readout have a
bias (the paper leaves them out of its equations); dropout, which the paper has not, is 0 unless asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models.base import Decoder, Encoder, EncoderDecoder, State
from regard.models.recurrent import unpacked
from regard.nn.alignment import Additive, Alignment, Annotations, mix
from regard.nn.bridge import Bridge, begin, summary_width
from regard.nn.recurrent import Bidirectional, unit_words
from regard.nn.rnnsearch_loop import search
from regard.sequence import Memory, Rows, Tokens
from regard.spaces import Readable, Space
from regard.trace import scene, tap, tracing


@dataclass(frozen=True)
class RNNsearchConfig:
    """The shape of an RNNsearch; the defaults are the paper's.

    >>> RNNsearchConfig(maxout=0)
    Traceback (most recent call last):
    regard.errors.ConfigError: embedding = 620, width = 1000, alignment = 1000 and maxout = 0 must be at least 1
    """

    kind: Literal["rnnsearch"] = "rnnsearch"
    """Bahdanau et al. 2015"""
    embedding: int = 620
    """width of a word's vector"""
    width: int = 1000
    """width of the decoder's state and of each of the encoder's two directions"""
    alignment: int = 1000
    """width inside the little network that scores how well a state fits a place of the source"""
    maxout: int = 500
    """width of what the softmax sees: the larger of each of so many pairs"""
    dropout: float = 0.0
    """share of numbers dropped from embeddings, from the encoder's states and from what the softmax sees"""

    def __post_init__(self) -> None:
        if min(self.embedding, self.width, self.alignment, self.maxout) < 1:
            raise ConfigError(
                f"embedding = {self.embedding}, width = {self.width}, alignment = {self.alignment} and "
                f"maxout = {self.maxout} must be at least 1"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout = {self.dropout} must be at least 0 and below 1")

    def check_translates(self, joint: bool) -> None:
        """Nothing is shared between the two sides, so any vocabularies will do."""
        return

    @property
    def shape(self) -> str:
        """The model in a few words."""
        return f"rnnsearch width {self.width}, embeddings {self.embedding}, maxout {self.maxout}"

    @property
    def reach(self) -> int | None:
        """The most places that can be read: any number."""
        return None

    def build_encoder(self, source: Readable) -> BiGRUEncoder:
        """The half that reads."""
        return BiGRUEncoder(self, source)

    def build_decoder(self, target: Space, encoder: Encoder) -> SearchingDecoder:
        """The half that says something about what `encoder` has read."""
        return SearchingDecoder(self, target, encoder)

    def build(self, source: Space, target: Space) -> EncoderDecoder:
        """A model with fresh weights that reads `source` and says `target`."""
        encoder = self.build_encoder(source)
        return EncoderDecoder(encoder, self.build_decoder(target, encoder))


class BiGRUEncoder(Encoder):
    """Both directions of a GRU, side by side at each place; hands on where the one that reads backwards stopped."""

    def __init__(self, config: RNNsearchConfig, space: Readable) -> None:
        super().__init__()
        self.width, self.final = 2 * config.width, ((config.width,),)
        self.embed, self.dropout = space.embed(config.embedding), nn.Dropout(config.dropout)
        unit_words(self.embed)
        self.layer = Bidirectional("gru", config.embedding, config.width)

    def forward(self, source: Tokens) -> Memory:
        x_BSE = self.dropout(self.embed(unpacked(source).data))
        out_BSM, (_, beginning) = self.layer(source.like(x_BSE))
        out_BSM = tap(self, "residual", out_BSM, "batch position:source width")
        return Memory(source.like(self.dropout(out_BSM)), (beginning,), (x_BSE, out_BSM))


class GatedUnit(nn.Module):
    """Cho et al. 2014, "RNN Encoder-Decoder", A.1.1: s' = (1 - z) s + z tanh(given + U (r s)), r before the product."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gates, self.candidate = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, given_NG: Tensor, hidden_ND: Tensor) -> Tensor:
        """The next state; `given` is what word and context say to reset gate, update gate and candidate."""
        gates_NC, candidate_ND = given_NG.split([2 * hidden_ND.shape[1], hidden_ND.shape[1]], -1)
        r_ND, z_ND = (gates_NC + self.gates(hidden_ND)).sigmoid().chunk(2, -1)
        if tracing():
            with scene(gate=("reset", "update")):
                r_ND, z_ND = tap(self, "gates", torch.stack([r_ND, z_ND], 1), "batch gate:gate width").unbind(1)
        n_ND = tap(self, "candidate", torch.tanh(candidate_ND + self.candidate(r_ND * hidden_ND)), "batch width")
        return tap(self, "hidden", torch.lerp(hidden_ND, n_ND, z_ND), "batch width")


@dataclass(frozen=True)
class Searched(Rows):
    """The source as the decoder sees it."""

    annotations: Annotations
    given: Tensor
    """(B, S, 3 D): what each place would say to the gates, if it alone were looked at"""


@dataclass(frozen=True)
class Searching(Rows):
    """The decoder's state s_i-1: (N, D)."""

    hidden: Tensor


class SearchingDecoder(Decoder):
    """Looks back at the source before each word.

    What does not depend on the step before stays out of the loop. A context is a sum of places, so what it says to
    the gates is the same sum of what the places say to them, made once a source; the readout is made after the loop.
    """

    def __init__(self, config: RNNsearchConfig, space: Space, encoder: Encoder) -> None:
        super().__init__()
        if not encoder.width:
            raise ConfigError("rnnsearch looks back at a source, and this encoder reads none; use an encoder that does")
        width, word, memory, pairs = config.width, config.embedding, encoder.width, 2 * config.maxout
        self.embed, self.dropout = space.embed(word), nn.Dropout(config.dropout)
        unit_words(self.embed)
        self.bridge = Bridge(summary_width(memory, encoder.final), ((width,),))
        self.cross, self.unit = Alignment(Additive(width, memory, config.alignment)), GatedUnit(width)
        self.word_given, self.context_given = nn.Linear(word, 3 * width), nn.Linear(memory, 3 * width, bias=False)
        self.word_read, self.context_read = nn.Linear(word, pairs), nn.Linear(memory, pairs, bias=False)
        self.hidden_read, self.readout = nn.Linear(width, pairs, bias=False), space.head(config.maxout)

    def start(self, memory: Memory, room: int) -> State:
        ((hidden_BD,),) = begin([self.unit], self.bridge(memory))
        seen = Searched(self.cross.annotate(memory.states), self.context_given(memory.states.data))
        return State(seen, Searching(hidden_BD))

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        source: Searched = state.source  # type: ignore[assignment]
        word_NTE = self.dropout(self.embed(unpacked(tokens).data))
        read = self._watched if tracing() else self._read
        hidden_NLD, context_NTM = read(self.word_given(word_NTE), source, state.hypothesis.hidden)
        # L = T + 1 states: s_0 has read nothing, s_n all n tokens of a row
        pairs_NTP = self.hidden_read(hidden_NLD[:, :-1]) + self.word_read(word_NTE) + self.context_read(context_NTM)
        features_NTD = self.dropout(torch.maximum(*pairs_NTP.unflatten(2, (-1, 2)).unbind(3)))
        features_NTD = tap(self, "features", features_NTD, "batch position:target width")
        end_ND = hidden_NLD.take_along_dim(tokens.lengths[:, None, None], 1).squeeze(1)
        return features_NTD, replace(state, hypothesis=Searching(end_ND))

    def _read(self, given_NTG: Tensor, source: Searched, hidden_ND: Tensor) -> tuple[Tensor, Tensor]:
        seen = source.annotations
        if torch.is_grad_enabled() and hidden_ND.shape[0] == seen.keys.shape[0]:
            score: Additive = self.cross.score  # type: ignore[assignment]
            unit = self.unit
            learnt = (score.query.weight, score.v.weight, unit.gates.weight, unit.candidate.weight)
            hidden_NLD, weights_N1TS = search(given_NTG, seen.keys, source.given, seen.real, hidden_ND, *learnt)
            return hidden_NLD, mix(weights_N1TS, seen.states)
        hiddens, weights = [hidden_ND], list[Tensor]()
        for given_NG in given_NTG.unbind(1):
            weights.append(self.cross.weights(hiddens[-1][:, None], seen))
            hiddens.append(self.unit(given_NG + mix(weights[-1], source.given).squeeze(1), hiddens[-1]))
        return torch.stack(hiddens, 1), mix(torch.cat(weights, 2), seen.states)

    def _watched(self, given_NTG: Tensor, source: Searched, hidden_ND: Tensor) -> tuple[Tensor, Tensor]:
        """The same by way of the context, so that a context that is replaced is the one that is gone on with."""
        hiddens, contexts = [hidden_ND], []
        for t, given_NG in enumerate(given_NTG.unbind(1)):
            with scene(reads="target", position=t):
                contexts.append(self.cross(hiddens[-1][:, None], source.annotations))
                hiddens.append(self.unit(given_NG + self.context_given(contexts[-1]).squeeze(1), hiddens[-1]))
        return torch.stack(hiddens, 1), torch.cat(contexts, 1)
