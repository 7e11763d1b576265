"""ELMo's vectors as input of a recurrent encoder: Peters et al. 2018, section 3.3.

New against a recurrent encoder of word embeddings: it reads [x_k; ELMo_k] at each word, its own embedding beside the
mix of the layers of two language models, which were trained on other, larger texts and usually stay as they are
(train.freeze). The mix, the embedding and what is above them are learned by the task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn

from regard.config import check_share
from regard.models.base import Encoder, ModelConfigBase
from regard.models.elmo import ELMoConfig
from regard.models.recurrent import check_recurrent
from regard.nn.recurrent import BidirectionalStack, Cell
from regard.plurals import count_noun
from regard.sequence import Memory, Tokens
from regard.spaces import InputSpace
from regard.trace import tap, trace_context


@dataclass(frozen=True)
class ELMoRecurrentConfig(ModelConfigBase):
    """Config of a bidirectional recurrent encoder that reads ELMo's vectors beside word embeddings."""

    kind: Literal["elmo-recurrent"] = "elmo-recurrent"
    """a recurrent encoder over ELMo's vectors and word embeddings"""
    elmo: ELMoConfig = ELMoConfig()
    """the language models whose layers are mixed; taken from the run of model.init if there is one"""
    elmo_dropout: float = 0.5
    """dropout on the mix of layers"""
    cell: Cell = "lstm"
    """recurrent cell"""
    layers: int = 1
    """number of stacked layers over the vectors, in both directions"""
    width: int = 128
    """width of the word embeddings and of each layer's state in each direction"""
    dropout: float = 0.3
    """dropout between layers and on the word embeddings"""

    reads_spellings: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_recurrent(self.layers, self.width, self.dropout, self.cell)
        check_share(self, "elmo_dropout")

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        return f"{self.cell} {count_noun(self.layers, 'layer')}, width {self.width}, over {self.elmo.summary}"

    @property
    def language_models(self) -> ELMoConfig:
        return self.elmo

    def build_encoder(self, source: InputSpace) -> ELMoRecurrentEncoder:
        """The encoder, with fresh weights; the caller attaches a head."""
        return ELMoRecurrentEncoder(self, source)


class ELMoRecurrentEncoder(Encoder):
    """A bidirectional recurrent stack over [x_k; ELMo_k]."""

    def __init__(self, config: ELMoRecurrentConfig, space: InputSpace) -> None:
        super().__init__()
        self.elmo, self.elmo_dropout = config.elmo.build_encoder(space), nn.Dropout(config.elmo_dropout)
        self.embed, self.dropout = space.embed(config.width), nn.Dropout(config.dropout)
        widths = [config.width + self.elmo.width, *[config.width] * config.layers]
        self.stack = BidirectionalStack(config.cell, widths, config.dropout)
        self.final = self.stack.state_widths
        self.width = self.final[-1][0]

    def forward(self, source: Tokens) -> Memory:
        elmo = self.elmo(source)
        x_BSD = tap(self, "embedding", self.embed(source.data), "batch position:source width")
        both_BSD = torch.cat([self.dropout(x_BSD), self.elmo_dropout(elmo.states.data)], -1)
        with trace_context(reads="source"):
            outs, ends = self.stack(source.like(both_BSD))
        return Memory(source.like(outs[-1]), ends, (*elmo.layers, *outs))

    def embeddings(self) -> tuple[nn.Module, ...]:
        return self.embed, self.elmo.embed
