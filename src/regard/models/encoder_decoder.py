"""Any encoder with any decoder: halves of different models in one.

An encoder says how wide its states are and what its layers remember at the end; a decoder is built for that, with a
bridge where the two do not fit. So what is read always reaches who speaks about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from regard.errors import ConfigError
from regard.models.base import EncoderDecoder
from regard.models.convolution import ConvolutionConfig
from regard.models.gnmt import GNMTConfig
from regard.models.luong import LuongConfig
from regard.models.recurrent import RecurrentConfig
from regard.models.rnnsearch import RNNsearchConfig
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.transformer import TransformerConfig
from regard.spaces import Space, Words

EncoderConfig = (
    ConvolutionConfig | RecurrentConfig | TransformerConfig | Seq2SeqConfig | RNNsearchConfig | LuongConfig | GNMTConfig
)
"""What can read: a config with build_encoder(source)."""
DecoderConfig = LuongConfig | TransformerConfig | Seq2SeqConfig | RNNsearchConfig | GNMTConfig
"""What can say: a config with build_decoder(target, encoder)."""


@dataclass(frozen=True)
class MixedConfig:
    """An encoder of one model and the decoder of another; what the other halves' settings say is not used.

    >>> from regard.spaces import Words
    >>> encoder, decoder = ConvolutionConfig(layers=1, width=8), Seq2SeqConfig(layers=2, width=6, cell="gru")
    >>> model = MixedConfig(encoder=encoder, decoder=decoder).build(Words(9), Words(7))
    >>> model.decoder.bridge.linear
    Linear(in_features=8, out_features=12, bias=True)
    """

    kind: Literal["mixed"] = "mixed"
    """halves of two models"""
    encoder: EncoderConfig = ConvolutionConfig()
    """who reads"""
    decoder: DecoderConfig = LuongConfig(layers=1, width=256)
    """who speaks"""

    def __post_init__(self) -> None:
        try:
            with torch.device("meta"):  # halves that do not go together say so before there is any data
                self.build(Words(8), Words(8))
        except ConfigError as error:
            raise ConfigError(f"encoder and decoder do not go together: {error}") from None

    def check_translates(self, joint: bool) -> None:
        """The two sides share nothing, so any vocabularies will do."""
        return

    @property
    def shape(self) -> str:
        """The model in a few words."""
        return f"mixed: encoder of {self.encoder.shape}; decoder of {self.decoder.shape}"

    @property
    def reach(self) -> int | None:
        """The most places that both halves can read; None: any number."""
        return min((half.reach for half in (self.encoder, self.decoder) if half.reach is not None), default=None)

    def build(self, source: Space, target: Space) -> EncoderDecoder:
        """A model with fresh weights that reads `source` and says `target`."""
        encoder = self.encoder.build_encoder(source)
        return EncoderDecoder(encoder, self.decoder.build_decoder(target, encoder))
