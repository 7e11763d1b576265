"""Models, one file per paper. The unions below list the models that a recipe can name.

Other packages add models by entry points: docs/add-a-model.md.
"""

from __future__ import annotations

from typing import Annotated

from regard.models.alexnet import AlexNetConfig
from regard.models.bert import BertConfig
from regard.models.cnn import CNNConfig
from regard.models.cnn_lstm import CNNLSTMConfig
from regard.models.convolution import ConvolutionConfig
from regard.models.elmo import ELMoConfig
from regard.models.elmo_recurrent import ELMoRecurrentConfig
from regard.models.encoder_decoder import EncoderDecoderConfig
from regard.models.gnmt import GNMTConfig
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.models.luong import LuongConfig
from regard.models.mlp import MLPConfig
from regard.models.presets import PRESETS, Preset, preset_tables
from regard.models.recurrent import RecurrentConfig
from regard.models.resnet import ResNetConfig
from regard.models.rnnlm import RNNLMConfig
from regard.models.rnnsearch import RNNsearchConfig
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.transformer import TransformerConfig
from regard.models.vit import ViTConfig
from regard.plugins import MODELS, Extensible

ModelConfig = Annotated[
    TransformerConfig
    | GPTConfig
    | LlamaConfig
    | Seq2SeqConfig
    | RNNLMConfig
    | ELMoConfig
    | RNNsearchConfig
    | LuongConfig
    | GNMTConfig
    | EncoderDecoderConfig,
    Extensible(MODELS, "build"),
]
"""models that generate: configs with build(source, target)"""

OwnEncoders = (
    RecurrentConfig | ConvolutionConfig | TransformerConfig | BertConfig | ELMoConfig | ELMoRecurrentConfig | MLPConfig
)
EncoderOnlyConfig = Annotated[OwnEncoders, Extensible(MODELS, "build_encoder")]
"""encoders for a classification, tagging or forecasting head: configs with build_encoder(source)"""

ImageEncoders = CNNConfig | AlexNetConfig | ResNetConfig | ViTConfig | CNNLSTMConfig
"""encoders of images, and of image sequences"""
ClassifierConfig = Annotated[OwnEncoders | ImageEncoders, Extensible(MODELS, "build_encoder")]
"""encoders of a classifier: of texts, table rows or images"""

__all__ = [
    "PRESETS", "ClassifierConfig", "EncoderOnlyConfig", "ImageEncoders", "ModelConfig", "OwnEncoders", "Preset",
    "preset_tables",
]  # fmt: skip
