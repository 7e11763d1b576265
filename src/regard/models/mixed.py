"""Any encoder with any decoder: halves of different models in one.

An encoder says how wide its states are and what its layers remember at the end; a decoder is built for that, with a
bridge where the two do not fit. So what is read always reaches who speaks about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from regard.errors import ConfigError
from regard.models.base import EncoderDecoder
from regard.models.convolution import ConvolutionConfig
from regard.models.gnmt import GNMTConfig
from regard.models.luong import LuongConfig
from regard.models.recurrent import RecurrentConfig
from regard.models.rnnsearch import RNNsearchConfig
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.transformer import TransformerConfig
from regard.spaces import Space

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
        said, read = self.decoder, memory_width(self.encoder)
        if isinstance(said, LuongConfig) and said.score in ("dot", "cosine") and said.width != read:
            raise ConfigError(
                f'decoder.score = "{said.score}" compares vectors of one width; decoder.width = {said.width}, and the '
                f'encoder\'s states have {read}: use decoder.score = "general", or decoder.width = {read}'
            )

    def check_translates(self, joint: bool) -> None:
        """The two sides share nothing, so any vocabularies will do."""
        return

    @property
    def shape(self) -> str:
        """The model in a few words."""
        return f"mixed: encoder {_reads(self.encoder)}; decoder {_says(self.decoder)}"

    @property
    def reach(self) -> int | None:
        """The most places that both halves can read; None: any number."""
        return min((half.reach for half in (self.encoder, self.decoder) if half.reach is not None), default=None)

    def build(self, source: Space, target: Space) -> EncoderDecoder:
        """A model with fresh weights that reads `source` and says `target`."""
        encoder = self.encoder.build_encoder(source)
        return EncoderDecoder(encoder, self.decoder.build_decoder(target, encoder))


def memory_width(encoder: EncoderConfig) -> int:
    """How wide the states are that an encoder hands to a decoder, before it is built.

    >>> memory_width(RecurrentConfig(width=8)), memory_width(ConvolutionConfig(width=8))
    (16, 8)
    """
    match encoder:
        case RecurrentConfig() | Seq2SeqConfig():
            return 2 * encoder.width if encoder.bidirectional else encoder.width
        case RNNsearchConfig():
            return 2 * encoder.width
    return encoder.width


def _reads(encoder: EncoderConfig) -> str:
    """The half that reads, in a few words."""
    match encoder:
        case Seq2SeqConfig():
            shape = _stacked(f"seq2seq {encoder.cell}", encoder)
            return f"{shape}, both directions" if encoder.bidirectional else shape
        case RNNsearchConfig():
            return f"rnnsearch width {encoder.width}, embeddings {encoder.embedding}"
        case TransformerConfig() | LuongConfig() | GNMTConfig():
            return _stacked(encoder.kind, encoder)
    return encoder.shape


def _says(decoder: DecoderConfig) -> str:
    """The half that speaks, in a few words."""
    match decoder:
        case Seq2SeqConfig():
            shape = _stacked(f"seq2seq {decoder.cell}", decoder)
            return f"{shape}, context with every word" if decoder.context == "every" else shape
        case LuongConfig():
            shape = f"{_stacked('luong', decoder)}, score {decoder.score}"
            return shape if decoder.feeding == "input" else f"{shape}, no feeding"
        case TransformerConfig() | GNMTConfig():
            return _stacked(decoder.kind, decoder)
    return decoder.shape


def _stacked(name: str, half: TransformerConfig | Seq2SeqConfig | LuongConfig | GNMTConfig) -> str:
    layers = "1 layer" if half.layers == 1 else f"{half.layers} layers"
    heads = f", {half.heads} heads" if isinstance(half, TransformerConfig) else ""
    return f"{name} {layers}{heads}, width {half.width}"
