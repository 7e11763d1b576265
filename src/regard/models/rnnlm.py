"""The recurrent language model: Mikolov et al. 2010; with stacked LSTMs and dropout between them, Zaremba et al. 2014.

New against n-grams: a hidden state of fixed width summarizes the whole past. The outputs need not be tokens: over real
numbers the same model generates time series. A condition x makes it Vec2Seq: p(y | x), with x
given as the first state or joined to every input, [x; y_{t-1}]. Different here: no variational dropout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from regard.errors import ConfigError
from regard.models.base import EmptyEncoder, Encoder, EncoderDecoder, ModelConfigBase
from regard.models.recurrent import check_recurrent
from regard.models.seq2seq import RecurrentDecoder
from regard.nn.recurrent import Cell, set_forget_bias
from regard.plurals import count_noun
from regard.sequence import Memory, Padded
from regard.spaces import Space


@dataclass(frozen=True)
class RNNLMConfig(ModelConfigBase):
    """Config of a recurrent language model; the defaults are Zaremba's medium one.

    >>> RNNLMConfig().summary
    'rnnlm lstm 2 layers, width 650'
    """

    kind: Literal["rnnlm"] = "rnnlm"
    """Mikolov et al. 2010, Zaremba et al. 2014"""
    cell: Cell = "lstm"
    """recurrent cell"""
    layers: int = 2
    """number of stacked layers"""
    width: int = 650
    """width of the embeddings and of each layer's state"""
    dropout: float = 0.5
    """dropout between layers, on the embeddings and before the output projection"""
    tie: bool = False
    """weight tying of the output projection with the embedding (Press and Wolf 2017)"""
    forget_bias: float | None = None
    """initial forget-gate bias of LSTMs; 1 keeps gradients longer (Jozefowicz et al. 2015)"""
    condition: Literal["none", "start", "every"] = "none"
    """how the model is conditioned on a source vector: not, by the initial state, or also by every input"""

    def __post_init__(self) -> None:
        check_recurrent(self.layers, self.width, self.dropout, self.cell, self.forget_bias)

    def check_shared_vocab(self, shared: bool) -> None:
        raise ConfigError('model.kind = "rnnlm" reads no source, so it cannot translate; use transformer or seq2seq')

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        return f"rnnlm {self.cell} {count_noun(self.layers, 'layer')}, width {self.width}"

    def build(self, source: Space, target: Space) -> EncoderDecoder:
        """The language model, with fresh weights; `source` is the space of the condition."""
        encoder: Encoder = EmptyEncoder() if self.condition == "none" else ConditionEncoder(source, self.width)
        where: Literal["start", "every"] = "every" if self.condition == "every" else "start"
        decoder = RecurrentDecoder(target, encoder, self.cell, self.layers, self.width, self.dropout, where)
        set_forget_bias(decoder, self.forget_bias)
        if self.tie:
            target.tie(decoder.embed, decoder.readout)
        return EncoderDecoder(encoder, decoder)


class ConditionEncoder(Encoder):
    """Encodes the vector x of p(y | x) as a memory of one position; of several, the decoder gets the mean."""

    def __init__(self, space: Space, width: int) -> None:
        super().__init__()
        self.width, self.embed = width, space.embed(width)

    def forward(self, source: Padded) -> Memory:
        return Memory(source.like(self.embed(source.data)))
