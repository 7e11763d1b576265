"""One file a paper. The union below is the list of models that a recipe can name; presets carry their provenance."""

from __future__ import annotations

from dataclasses import dataclass

from regard.models.gpt import GPTConfig
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.transformer import TransformerConfig

ModelConfig = TransformerConfig | GPTConfig | Seq2SeqConfig


@dataclass(frozen=True)
class Preset:
    """A published shape under its name.

    >>> PRESETS["transformer-base"].config.layers
    6
    """

    config: ModelConfig
    provenance: str


_TINY = TransformerConfig(layers=4, width=128, inner=256, heads=4, dropout=0.3)

PRESETS = {
    "transformer-base": Preset(TransformerConfig(), "Vaswani et al. 2017, table 3, base"),
    "transformer-big": Preset(
        TransformerConfig(width=1024, inner=4096, heads=16, dropout=0.3),
        "Vaswani et al. 2017, table 3, big (En-De; En-Fr uses dropout 0.1)",
    ),
    "transformer-tiny": Preset(
        _TINY, "Wu et al. 2021, fairseq's transformer_tiny for Multi30k: 4 layers, width 128, inner 256, 4 heads"
    ),
    "gpt-2": Preset(GPTConfig(), "Radford et al. 2019, table 2, smallest"),
    "seq2seq": Preset(Seq2SeqConfig(), "Sutskever et al. 2014, 4 layers of 1000"),
}
