"""Presets: published model sizes by name, each with its source and its exact number of parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from regard.config import Table, plain
from regard.models.alexnet import AlexNetConfig
from regard.models.base import Classifier, parameters
from regard.models.bert import BertConfig
from regard.models.elmo import ELMoConfig
from regard.models.gnmt import GNMTConfig
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.models.luong import LuongConfig
from regard.models.pooling import make_pooling
from regard.models.resnet import ResNetConfig
from regard.models.rnnlm import RNNLMConfig
from regard.models.rnnsearch import RNNsearchConfig
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.transformer import TransformerConfig
from regard.models.vit import ViTConfig
from regard.spaces import Classes, Pixels, Words


def build_with_words(config: Any, words: tuple[int, int]) -> nn.Module:
    """The model of a config between two vocabularies."""
    return config.build(*(Words(size) for size in words))


def build_image_classifier(config: Any, words: tuple[int, int]) -> nn.Module:
    """The classifier of color images; `words` are the rows of an image, and the classes."""
    size, classes = words
    encoder = config.build_encoder(Pixels(3, size, size))
    return Classifier(encoder, make_pooling("first", encoder), Classes(classes), encoder.width)


@dataclass(frozen=True)
class Preset:
    """A published model size.

    >>> PRESETS["transformer-base"].config.layers, PRESETS["transformer-base"].parameters
    (6, 63082496)
    """

    config: Any
    """config of the model"""
    provenance: str
    """where it was published"""
    words: tuple[int, int]
    """sizes of the source and target vocabularies there; of vision models, rows of an image and classes"""
    builder: Callable[[Any, tuple[int, int]], nn.Module] = build_with_words
    """builds the model from config and words; another where they do not say it all, such as an encoder with a head"""

    @property
    def parameters(self) -> int:
        """Number of parameters with those vocabularies, computed on the meta device."""
        return parameters(self.build_on_meta())

    def build_on_meta(self) -> nn.Module:
        """The model on the meta device: shapes without numbers, whatever its size."""
        with torch.device("meta"):
            return self.builder(self.config, self.words)


def _gpt2(name: str, layers: int, width: int, heads: int) -> Preset:
    config = GPTConfig(layers=layers, width=width, heads=heads)
    return Preset(config, f"Radford et al. 2019, table 2, {name}", (50_257, 50_257))


def _gpt3(name: str, layers: int, width: int, heads: int, head_width: int) -> Preset:
    config = GPTConfig(layers=layers, width=width, heads=heads, head_width=head_width, dropout=0.0, max_positions=2048)
    return Preset(config, f"Brown et al. 2020, table 2.1, {name}", (50_257, 50_257))


def _vision(config: Any, provenance: str, size: int = 224, classes: int = 1000) -> Preset:
    return Preset(config, provenance, (size, classes), build_image_classifier)


def _llama(provenance: str, words: int, config: LlamaConfig) -> Preset:
    return Preset(config, provenance, (words, words))


_TINY = TransformerConfig(layers=4, width=128, ffn_width=256, heads=4, dropout=0.3)

PRESETS: dict[str, Preset] = {
    "transformer-base": Preset(TransformerConfig(), "Vaswani et al. 2017, table 3, base", (37_000, 37_000)),
    "transformer-big": Preset(
        TransformerConfig(width=1024, ffn_width=4096, heads=16, dropout=0.3),
        "Vaswani et al. 2017, table 3, big (En-De; En-Fr uses dropout 0.1)",
        (37_000, 37_000),
    ),
    "transformer-tiny": Preset(
        _TINY,
        "Wu et al. 2021, fairseq's transformer_tiny for Multi30k: 4 layers, width 128, inner 256, 4 heads",
        (10_000, 10_000),
    ),
    "gpt-1": Preset(
        GPTConfig(norm="post", max_positions=512), "Radford et al. 2018, section 4.1; 40,000 merges", (40_478, 40_478)
    ),
    "gpt-2": _gpt2("smallest", 12, 768, 12),
    "gpt-2-medium": _gpt2("second", 24, 1024, 16),
    "gpt-2-large": _gpt2("third", 36, 1280, 20),
    "gpt-2-xl": _gpt2("largest", 48, 1600, 25),
    "gpt-3-small": _gpt3("small", 12, 768, 12, 64),
    "gpt-3-medium": _gpt3("medium", 24, 1024, 16, 64),
    "gpt-3-large": _gpt3("large", 24, 1536, 16, 96),
    "gpt-3-xl": _gpt3(
        "XL (24 heads of 128 as printed; with 16 it would have the 1.3 B that are quoted)", 24, 2048, 24, 128
    ),
    "gpt-3-2.7b": _gpt3("2.7B", 32, 2560, 32, 80),
    "gpt-3-6.7b": _gpt3("6.7B", 32, 4096, 32, 128),
    "gpt-3-13b": _gpt3("13B", 40, 5140, 40, 128),
    "gpt-3-175b": _gpt3("175B", 96, 12_288, 96, 128),
    "gpt-3": _gpt3("175B", 96, 12_288, 96, 128),
    "llama-7b": _llama(
        "Touvron et al. 2023, table 2, 7B (Llama 2 has the same shape and a context of 4,096)",
        32_000,
        LlamaConfig(layers=32, width=4096, ffn_width=11_008, heads=32, norm_eps=1e-6),
    ),
    "llama-2-70b": _llama(
        "Touvron et al. 2023, Llama 2, 70B: grouped queries",
        32_000,
        LlamaConfig(layers=80, width=8192, ffn_width=28_672, heads=64, kv_heads=8, max_positions=4096),
    ),
    "llama-3-8b": _llama(
        "Grattafiori et al. 2024, table 3, 8B",
        128_256,
        LlamaConfig(
            layers=32, width=4096, ffn_width=14_336, heads=32, kv_heads=8, rope_theta=500_000.0, max_positions=8192
        ),
    ),
    "mistral-7b": _llama(
        "Jiang et al. 2023, table 1 (without its sliding window)",
        32_000,
        LlamaConfig(layers=32, width=4096, ffn_width=14_336, heads=32, kv_heads=8, max_positions=8192),
    ),
    "qwen2-0.5b": _llama(
        "Yang et al. 2024, table 1, 0.5B",
        151_936,
        LlamaConfig(
            layers=24,
            width=896,
            ffn_width=4864,
            heads=14,
            kv_heads=2,
            rope_theta=1e6,
            qkv_bias=True,
            norm_eps=1e-6,
            tie=True,
            max_positions=32_768,
        ),
    ),
    "smollm2-135m": _llama(
        "Allal et al. 2025, SmolLM2, 135M",
        49_152,
        LlamaConfig(
            layers=30,
            width=576,
            ffn_width=1536,
            heads=9,
            kv_heads=3,
            rope_theta=100_000.0,
            tie=True,
            max_positions=8192,
        ),
    ),
    "tinyllama": _llama(
        "Zhang et al. 2024, table 2, 1.1B",
        32_000,
        LlamaConfig(layers=22, width=2048, ffn_width=5632, heads=32, kv_heads=4),
    ),
    "bert-base": Preset(BertConfig(), "Devlin et al. 2019, section 3, base, with its pooler", (30_522, 30_522)),
    "bert-large": Preset(
        BertConfig(layers=24, width=1024, ffn_width=4096, heads=16),
        "Devlin et al. 2019, section 3, large, with its pooler",
        (30_522, 30_522),
    ),
    "bert-mini": Preset(
        BertConfig(layers=4, width=256, ffn_width=1024, heads=4),
        "Turc et al. 2019, mini: 4 layers of width 256, with its pooler",
        (30_522, 30_522),
    ),
    "bert-small": Preset(
        BertConfig(layers=4, width=512, ffn_width=2048, heads=8),
        "Turc et al. 2019, small: 4 layers of width 512, with its pooler",
        (30_522, 30_522),
    ),
    "seq2seq": Preset(Seq2SeqConfig(), "Sutskever et al. 2014, 4 layers of 1000", (160_000, 80_000)),
    "lstm-medium": Preset(
        RNNLMConfig(), "Zaremba et al. 2014, 4.1, medium: 2 layers of 650, dropout 0.5", (10_000, 10_000)
    ),
    "lstm-large": Preset(
        RNNLMConfig(width=1500, dropout=0.65),
        "Zaremba et al. 2014, 4.1, large: 2 layers of 1500, dropout 0.65",
        (10_000, 10_000),
    ),
    "elmo": Preset(
        ELMoConfig(),
        "Peters et al. 2018, 3.4: 2 layers of 4096 cells projected to 512, 2048 filters, 2 highway layers",
        (793_471, 793_471),
    ),
    "rnnsearch-50": Preset(
        RNNsearchConfig(),
        "Bahdanau et al. 2015, A.2.3: states of 1000, embeddings of 620, maxout of 500; 30,000 words, 50 a sentence",
        (30_000, 30_000),
    ),
    "luong": Preset(
        LuongConfig(),
        "Luong et al. 2015, 4.1: 4 layers of 1000, dropout 0.2, global, input feeding; 50,000 words",
        (50_000, 50_000),
    ),
    "gnmt": Preset(
        GNMTConfig(),
        "Wu et al. 2016, sections 3 and 8: 8 + 8 layers of 1024, dropout 0.2; 32,000 word pieces",
        (32_000, 32_000),
    ),
    "alexnet": _vision(AlexNetConfig(), "Krizhevsky et al. 2012, as one stream (2014); ImageNet, 1,000 classes"),
    "resnet-18": _vision(ResNetConfig(), "He et al. 2015, table 1, 18 layers; ImageNet"),
    "resnet-34": _vision(ResNetConfig(depths=(3, 4, 6, 3)), "He et al. 2015, table 1, 34 layers; ImageNet"),
    "resnet-50": _vision(
        ResNetConfig(depths=(3, 4, 6, 3), block="bottleneck"), "He et al. 2015, table 1, 50 layers; ImageNet"
    ),
    "resnet-20": _vision(
        ResNetConfig(depths=(3, 3, 3), width=16, stem="small", shortcut="pad"),
        "He et al. 2015, section 4.2, 20 layers; CIFAR-10, images of 32 x 32",
        32,
        10,
    ),
    "vit-b16": _vision(ViTConfig(), "Dosovitskiy et al. 2021, table 1, Base with patches of 16 x 16; 224 x 224"),
}


def preset_tables() -> dict[str, Table]:
    """The presets as tables of a recipe."""
    return {name: plain(preset.config) for name, preset in PRESETS.items()}
