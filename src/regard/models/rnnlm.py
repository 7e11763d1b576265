"""The recurrent language model: Mikolov et al. 2010; with stacked LSTMs and dropout between them, Zaremba et al. 2014.

New against n-grams: what was said lies in a state of fixed width, however long ago it was. The outputs need not be
words: over real numbers the same model is a generator of series. A condition x makes it Vec2Seq: p(y | x), with x
given as the first state or joined to every input, [x; y_{t-1}]. Different here: no variational dropout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from regard.errors import ConfigError
from regard.models.base import Encoder, EncoderDecoder, Nothing
from regard.models.recurrent import check_recurrent
from regard.models.seq2seq import RecurrentDecoder
from regard.nn.recurrent import Cell, set_forget_bias
from regard.sequence import Memory, Padded
from regard.spaces import Space


@dataclass(frozen=True)
class RNNLMConfig:
    """The shape of a recurrent language model; the defaults are Zaremba's medium one.

    >>> RNNLMConfig().shape
    'rnnlm lstm 2 layers, width 650'
    """

    kind: Literal["rnnlm"] = "rnnlm"
    """Mikolov et al. 2010, Zaremba et al. 2014"""
    cell: Cell = "lstm"
    """what a layer is made of"""
    layers: int = 2
    """number of stacked layers"""
    width: int = 650
    """width of a word's vector and of each layer's state"""
    dropout: float = 0.5
    """share of numbers dropped between layers, from the embeddings and before the softmax"""
    tie: bool = False
    """the softmax shares the embedding's weights (Press and Wolf 2017)"""
    forget_bias: float | None = None
    """what the forget gates of LSTMs start from; 1 keeps gradients longer (Jozefowicz et al. 2015)"""
    condition: Literal["none", "start", "every"] = "none"
    """where the source, a vector, is given: nowhere, as the first state, or also with every word"""

    def __post_init__(self) -> None:
        check_recurrent(self.layers, self.width, self.dropout, self.cell, self.forget_bias)

    def check_translates(self, joint: bool) -> None:
        """A language model has nothing to translate from."""
        raise ConfigError('model.kind = "rnnlm" reads no source, so it cannot translate; use transformer or seq2seq')

    @property
    def shape(self) -> str:
        """The model in a few words."""
        layers = "1 layer" if self.layers == 1 else f"{self.layers} layers"
        return f"rnnlm {self.cell} {layers}, width {self.width}"

    @property
    def reach(self) -> int | None:
        """The most places that can be read: any number."""
        return None

    def build(self, source: Space, target: Space) -> EncoderDecoder:
        """A language model with fresh weights; `source` is what the condition is, if there is one."""
        encoder: Encoder = Nothing() if self.condition == "none" else Condition(source, self.width)
        where: Literal["start", "every"] = "every" if self.condition == "every" else "start"
        decoder = RecurrentDecoder(target, encoder, self.cell, self.layers, self.width, self.dropout, where)
        set_forget_bias(decoder, self.forget_bias)
        if self.tie:
            target.tie(decoder.embed, decoder.readout)
        return EncoderDecoder(encoder, decoder)


class Condition(Encoder):
    """A vector as a memory of one place: the x of p(y | x). Of several, the decoder is given the mean.

    >>> import torch
    >>> from regard.spaces import Values
    >>> Condition(Values(3), 8)(Padded(torch.ones(2, 1, 3), torch.tensor([1, 1]))).states.data.shape
    torch.Size([2, 1, 8])
    """

    def __init__(self, space: Space, width: int) -> None:
        super().__init__()
        self.width, self.embed = width, space.embed(width)

    def forward(self, source: Padded) -> Memory:
        return Memory(source.like(self.embed(source.data)))
