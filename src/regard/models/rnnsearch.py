"""RNNsearch: Bahdanau, Cho and Bengio 2015, "Neural Machine Translation by Jointly Learning to Align and Translate".

New against seq2seq: the source is read in both directions and all its states are kept. Before each word the decoder
attends to them; no sentence must pass through one vector any more. Appendix A is built as printed: the unit resets its
state before the recurrent product, s_i-1 is the query, and s_i-1 is what the readout sees.

Different here: the encoder's GRUs are torch's, fused, which reset after the product; gates, bridge and readout have a
bias (the paper leaves them out of its equations); dropout, which the paper does not use, is 0 by default.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from regard.config import check_at_least, check_share
from regard.errors import ConfigError
from regard.models.base import Decoder, Encoder, EncoderDecoderConfigBase, RecordedValues, State
from regard.models.recurrent import require_unpacked
from regard.nn.alignment import Additive, Alignment, Annotations, weighted_sum
from regard.nn.bridge import LinearBridge, show_initial, summary_width
from regard.nn.recurrent import Bidirectional, init_embeddings_unit_std
from regard.nn.rnnsearch_loop import rnnsearch_loop
from regard.sequence import Memory, Rows, Tokens, select_position
from regard.spaces import InputSpace, Space
from regard.trace import tap, trace_context, tracing


@dataclass(frozen=True)
class RNNsearchConfig(EncoderDecoderConfigBase):
    """Config of an RNNsearch; the defaults are the paper's.

    >>> RNNsearchConfig(maxout=0)
    Traceback (most recent call last):
    regard.errors.ConfigError: embedding = 620, width = 1000, alignment = 1000 and maxout = 0 must be at least 1
    """

    kind: Literal["rnnsearch"] = "rnnsearch"
    """Bahdanau et al. 2015"""
    embedding: int = 620
    """width of the embeddings"""
    width: int = 1000
    """width of the decoder's state and of each of the encoder's two directions"""
    alignment: int = 1000
    """inner width of the additive attention score"""
    maxout: int = 500
    """width of the maxout layer before the output projection"""
    dropout: float = 0.0
    """dropout on the embeddings, on the encoder's states and before the output projection"""

    def __post_init__(self) -> None:
        check_at_least(self, 1, "embedding", "width", "alignment", "maxout")
        check_share(self, "dropout")

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        return f"rnnsearch width {self.width}, embeddings {self.embedding}, maxout {self.maxout}"

    def build_encoder(self, source: InputSpace) -> BiGRUEncoder:
        return BiGRUEncoder(self, source)

    def build_decoder(self, target: Space, encoder: Encoder) -> RNNsearchDecoder:
        return RNNsearchDecoder(self, target, encoder)


class BiGRUEncoder(Encoder):
    """Bidirectional GRU encoder; memory.final is the last state of the backward GRU."""

    def __init__(self, config: RNNsearchConfig, space: InputSpace) -> None:
        super().__init__()
        self.width, self.final = 2 * config.width, ((config.width,),)
        self.embed, self.dropout = space.embed(config.embedding), nn.Dropout(config.dropout)
        init_embeddings_unit_std(self.embed)
        self.layer = Bidirectional("gru", config.embedding, config.width)

    def forward(self, source: Tokens) -> Memory:
        embedded_BSE = tap(self, "embedding", self.embed(require_unpacked(source).data), "batch position:source width")
        x_BSE = self.dropout(embedded_BSE)
        out_BSM, (_, backward) = self.layer(source.like(x_BSE))
        out_BSM = tap(self, "residual", out_BSM, "batch position:source width")
        return Memory(source.like(self.dropout(out_BSM)), (backward,), (x_BSE, out_BSM))


class GatedUnit(nn.Module):
    """Cho et al. 2014, "RNN Encoder-Decoder", A.1.1: s' = (1 - z) s + z tanh(x + U (r s)), r before the product."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gates, self.candidate = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, inputs_NG: Tensor, hidden_ND: Tensor) -> Tensor:
        """The next state; `inputs` are what word and context contribute to reset gate, update gate and candidate."""
        gates_NC, candidate_ND = inputs_NG.split([2 * hidden_ND.shape[1], hidden_ND.shape[1]], -1)
        r_ND, z_ND = (gates_NC + self.gates(hidden_ND)).sigmoid().chunk(2, -1)
        if tracing():
            with trace_context(gate=("reset", "update")):
                r_ND, z_ND = tap(self, "gates", torch.stack([r_ND, z_ND], 1), "batch gate:gate width").unbind(1)
        n_ND = tap(self, "candidate", torch.tanh(candidate_ND + self.candidate(r_ND * hidden_ND)), "batch width")
        return tap(self, "hidden", torch.lerp(hidden_ND, n_ND, z_ND), "batch width")


@dataclass(frozen=True)
class RNNsearchSource(Rows):
    """The source, as the decoder attends to it."""

    annotations: Annotations
    gates: Tensor
    """(B, S, 3 D): what each position would contribute to the gates with an attention weight of 1"""


@dataclass(frozen=True)
class RNNsearchState(Rows):
    """The decoder's state s_i-1: (N, D)."""

    hidden: Tensor


class RNNsearchDecoder(Decoder):
    """GRU decoder with additive attention.

    What does not depend on the previous step stays out of the loop. A context is a weighted sum of positions, so its
    contribution to the gates is the same sum of theirs, computed once per source; the readout follows the loop.
    """

    def __init__(self, config: RNNsearchConfig, space: Space, encoder: Encoder) -> None:
        super().__init__()
        if not encoder.width:
            raise ConfigError("rnnsearch attends to a source, and this encoder reads none; use an encoder that does")
        width, word, memory, pairs = config.width, config.embedding, encoder.width, 2 * config.maxout
        self.embed, self.dropout = space.embed(word), nn.Dropout(config.dropout)
        init_embeddings_unit_std(self.embed)
        self.bridge = LinearBridge(summary_width(memory, encoder.final), ((width,),))
        self.cross, self.unit = Alignment(Additive(width, memory, config.alignment)), GatedUnit(width)
        self.word_gates, self.context_gates = nn.Linear(word, 3 * width), nn.Linear(memory, 3 * width, bias=False)
        self.word_readout, self.context_readout = nn.Linear(word, pairs), nn.Linear(memory, pairs, bias=False)
        self.hidden_readout, self.readout = nn.Linear(width, pairs, bias=False), space.head(config.maxout)

    def start(self, memory: Memory, max_tokens: int) -> State:
        ((hidden_BD,),) = show_initial([self.unit], self.bridge(memory))
        source = RNNsearchSource(self.cross.annotate(memory.states), self.context_gates(memory.states.data))
        return State(source, RNNsearchState(hidden_BD))

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        source: RNNsearchSource = state.source  # type: ignore[assignment]
        embedded_NTE = tap(self, "embedding", self.embed(require_unpacked(tokens).data), "batch position:target width")
        word_NTE = self.dropout(embedded_NTE)
        run = self._run_traced if tracing() else self._run
        hidden_NLD, context_NTM = run(self.word_gates(word_NTE), source, state.hypothesis.hidden)
        # L = T + 1 states: s_0 before the first token, s_n after all n tokens of a row
        features_NTD = self.dropout(self.maxout(hidden_NLD[:, :-1], word_NTE, context_NTM))
        features_NTD = tap(self, "features", features_NTD, "batch position:target width")
        end_ND = select_position(hidden_NLD, tokens.lengths)
        return features_NTD, replace(state, hypothesis=RNNsearchState(end_ND))

    def maxout(self, hidden: Tensor, word: Tensor, context: Tensor) -> Tensor:
        """Deep output with a maxout layer (A.2.2): the larger of each pair of sums of s_i-1, y_i-1 and c_i."""
        pairs = self.hidden_readout(hidden) + self.word_readout(word) + self.context_readout(context)
        return torch.maximum(*pairs.unflatten(-1, (-1, 2)).unbind(-1))

    def lens_features(self, x_PD: Tensor, recorded: RecordedValues) -> Tensor:
        """Deep output of the states before each step, with the word and the context of the step."""
        before_PD = torch.cat([recorded("unit.start")[None], x_PD[:-1]])
        return self.maxout(before_PD, recorded("embedding"), recorded("cross.context"))

    def _run(self, inputs_NTG: Tensor, source: RNNsearchSource, hidden_ND: Tensor) -> tuple[Tensor, Tensor]:
        annotations = source.annotations
        if torch.is_grad_enabled() and hidden_ND.shape[0] == annotations.keys.shape[0]:
            score: Additive = self.cross.score  # type: ignore[assignment]
            unit = self.unit
            parameters = (score.query.weight, score.v.weight, unit.gates.weight, unit.candidate.weight)
            hidden_NLD, weights_N1TS = rnnsearch_loop(
                inputs_NTG, annotations.keys, source.gates, annotations.mask, hidden_ND, *parameters
            )
            return hidden_NLD, weighted_sum(weights_N1TS, annotations.states)
        hiddens, weights = [hidden_ND], list[Tensor]()
        for inputs_NG in inputs_NTG.unbind(1):
            weights.append(self.cross.weights(hiddens[-1][:, None], annotations))
            hiddens.append(self.unit(inputs_NG + weighted_sum(weights[-1], source.gates).squeeze(1), hiddens[-1]))
        return torch.stack(hiddens, 1), weighted_sum(torch.cat(weights, 2), annotations.states)

    def _run_traced(self, inputs_NTG: Tensor, source: RNNsearchSource, hidden_ND: Tensor) -> tuple[Tensor, Tensor]:
        """The same through the context, so that a replaced context takes effect."""
        hiddens, contexts = [hidden_ND], []
        for t, inputs_NG in enumerate(inputs_NTG.unbind(1)):
            with trace_context(reads="target", position=t):
                contexts.append(self.cross(hiddens[-1][:, None], source.annotations))
                hiddens.append(self.unit(inputs_NG + self.context_gates(contexts[-1]).squeeze(1), hiddens[-1]))
        return torch.stack(hiddens, 1), torch.cat(contexts, 1)
