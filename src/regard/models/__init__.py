"""Models, one file per paper. The unions below list the models that a recipe can name; presets cite their source.

Other packages add models by entry points: docs/add-a-model.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch

from regard.config import Table, plain
from regard.models.base import parameters
from regard.models.bert import BertConfig
from regard.models.convolution import ConvolutionConfig
from regard.models.encoder_decoder import EncoderDecoderConfig
from regard.models.gnmt import GNMTConfig
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.models.luong import LuongConfig
from regard.models.mlp import MLPConfig
from regard.models.recurrent import RecurrentConfig
from regard.models.rnnlm import RNNLMConfig
from regard.models.rnnsearch import RNNsearchConfig
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.transformer import TransformerConfig
from regard.plugins import MODELS, Extensible
from regard.spaces import Words

ModelConfig = Annotated[
    TransformerConfig
    | GPTConfig
    | LlamaConfig
    | Seq2SeqConfig
    | RNNLMConfig
    | RNNsearchConfig
    | LuongConfig
    | GNMTConfig
    | EncoderDecoderConfig,
    Extensible(MODELS, "build"),
]
"""models that generate: configs with build(source, target)"""

OwnEncoders = RecurrentConfig | ConvolutionConfig | TransformerConfig | BertConfig | MLPConfig
EncoderOnlyConfig = Annotated[OwnEncoders, Extensible(MODELS, "build_encoder")]
"""encoders for a classification, tagging or forecasting head: configs with build_encoder(source)"""


@dataclass(frozen=True)
class Preset:
    """A published model size.

    >>> PRESETS["transformer-base"].config.layers, PRESETS["transformer-base"].parameters
    (6, 63082496)
    """

    config: ModelConfig | BertConfig
    provenance: str
    """where it was published"""
    words: tuple[int, int]
    """sizes of the source and target vocabularies there"""

    @property
    def parameters(self) -> int:
        """Number of parameters with those vocabularies, computed on the meta device."""
        with torch.device("meta"):
            return parameters(self.config.build(*(Words(size) for size in self.words)))


_TINY = TransformerConfig(layers=4, width=128, ffn_width=256, heads=4, dropout=0.3)

PRESETS = {
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
    "gpt-2": Preset(GPTConfig(), "Radford et al. 2019, table 2, smallest", (50_257, 50_257)),
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
}


def preset_tables() -> dict[str, Table]:
    """The presets as tables of a recipe."""
    return {name: plain(preset.config) for name, preset in PRESETS.items()}
