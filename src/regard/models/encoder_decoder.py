"""Encoder-decoder models that pair any encoder with any decoder.

An encoder declares the width of its states and of its final states; a decoder is built for them, with a bridge where
the two do not match.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch

from regard.errors import ConfigError
from regard.models.alexnet import AlexNetConfig
from regard.models.base import Decoder, Encoder, EncoderDecoderConfigBase
from regard.models.cnn import CNNConfig
from regard.models.convolution import ConvolutionConfig
from regard.models.gnmt import GNMTConfig
from regard.models.luong import LuongConfig
from regard.models.recurrent import RecurrentConfig
from regard.models.resnet import ResNetConfig
from regard.models.rnnsearch import RNNsearchConfig
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.transformer import TransformerConfig
from regard.models.vit import ViTConfig
from regard.plugins import MODELS, Extensible
from regard.spaces import Pixels, Space, Words

EncoderConfig = Annotated[
    ConvolutionConfig
    | RecurrentConfig
    | TransformerConfig
    | Seq2SeqConfig
    | RNNsearchConfig
    | LuongConfig
    | GNMTConfig
    | CNNConfig
    | AlexNetConfig
    | ResNetConfig
    | ViTConfig,
    Extensible(MODELS, "build_encoder"),
]
"""configs with build_encoder(source); the source of the last four is an image"""
DecoderConfig = Annotated[
    LuongConfig | TransformerConfig | Seq2SeqConfig | RNNsearchConfig | GNMTConfig,
    Extensible(MODELS, "build_decoder"),
]
"""configs with build_decoder(target, encoder)"""


@dataclass(frozen=True)
class EncoderDecoderConfig(EncoderDecoderConfigBase):
    """The encoder of one model with the decoder of another; settings of the other halves are not used.

    >>> from regard.spaces import Words
    >>> encoder, decoder = ConvolutionConfig(layers=1, width=8), Seq2SeqConfig(layers=2, width=6, cell="gru")
    >>> model = EncoderDecoderConfig(encoder=encoder, decoder=decoder).build(Words(9), Words(7))
    >>> model.decoder.bridge.linear
    Linear(in_features=8, out_features=12, bias=True)
    """

    kind: Literal["encoder-decoder"] = "encoder-decoder"
    """the encoder of one model with the decoder of another"""
    encoder: EncoderConfig = ConvolutionConfig()
    """the encoder"""
    decoder: DecoderConfig = LuongConfig(layers=1, width=256)
    """the decoder"""

    def __post_init__(self) -> None:
        side = 64 * getattr(self.encoder, "patch", 1)  # the size of images is known to the recipe only
        source: Any = Pixels(3, side, side) if self.reads_images else Words(8)
        try:
            with torch.device("meta"):  # incompatible halves are reported before any data is read
                self.build(source, Words(8))
        except ConfigError as error:
            raise ConfigError(f"encoder and decoder do not go together: {error}") from None

    @property
    def reads_images(self) -> bool:  # type: ignore[override]
        """Whether the encoder reads images: such a model writes captions."""
        return self.encoder.reads_images

    def check_shared_vocab(self, shared: bool) -> None:
        if self.reads_images:
            raise ConfigError(
                f'model.encoder.kind = "{self.encoder.kind}" reads images, and a translation is of a text; use '
                'task.kind = "caption", or another encoder'
            )

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        return f"encoder-decoder: encoder of {self.encoder.summary}; decoder of {self.decoder.summary}"

    @property
    def position_limit(self) -> int | None:
        limits = (self.encoder.position_limit, self.decoder.position_limit)
        return min((limit for limit in limits if limit is not None), default=None)

    def build_encoder(self, source: Any) -> Encoder:
        return self.encoder.build_encoder(source)

    def build_decoder(self, target: Space, encoder: Encoder) -> Decoder:
        return self.decoder.build_decoder(target, encoder)
