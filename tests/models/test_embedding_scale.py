"""Initial scale of the embeddings: std 1 for recurrent layers, rescaled for attention."""

import pytest
import torch

from regard.models.gnmt import GNMTConfig
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.models.luong import LuongConfig
from regard.models.rnnlm import RNNLMConfig
from regard.models.rnnsearch import RNNsearchConfig
from regard.models.seq2seq import Seq2SeqConfig
from regard.models.transformer import TransformerConfig
from regard.spaces import Words

RECURRENT = {
    "seq2seq": Seq2SeqConfig(layers=1, width=64),
    "both directions": Seq2SeqConfig(layers=1, width=64, cell="gru", bidirectional=True, context="every"),
    "luong": LuongConfig(layers=1, width=64),
    "unfed": LuongConfig(layers=1, width=64, feeding="none"),
    "gnmt": GNMTConfig(layers=2, width=64),
    "rnnsearch": RNNsearchConfig(embedding=64, width=32, alignment=32, maxout=32),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_embeddings_of_recurrent_translators_start_with_std_one(name):
    torch.manual_seed(1)
    model = RECURRENT[name].build(Words(500), Words(400))
    for half in (model.encoder, model.decoder):
        assert half.embed.weight.std().item() == pytest.approx(1.0, rel=0.02)


def test_tied_embeddings_start_small():
    torch.manual_seed(1)
    words = Words(500)
    for config in (
        TransformerConfig(layers=1, width=64, ffn_width=64, heads=2),
        RNNLMConfig(layers=1, width=64, tie=True),
    ):
        assert config.build(words, words).decoder.embed.weight.std().item() == pytest.approx(64**-0.5, rel=0.05)


@pytest.mark.parametrize(
    "config",
    [
        GPTConfig(layers=8, width=64, heads=2, max_positions=50, norm="post"),
        GPTConfig(layers=8, width=64, heads=2, max_positions=50),
        LlamaConfig(layers=8, width=64, ffn_width=128, heads=2, tie=True),
    ],
    ids=["gpt-1", "gpt-2", "llama"],
)
def test_weights_of_language_models_start_with_std_002_and_gpt_2s_residual_layers_smaller(config):
    torch.manual_seed(1)
    decoder = config.build(Words(500), Words(500)).decoder
    scaled = 0.02 / (2 * config.layers) ** 0.5 if isinstance(config, GPTConfig) and config.norm == "pre" else 0.02
    assert decoder.readout.weight is decoder.embed.weight
    for name, weight in decoder.named_parameters():
        if weight.ndim == 2:
            std = scaled if name.endswith(("attention.out.weight", "ffn.down.weight")) else 0.02
            assert weight.std().item() == pytest.approx(std, rel=0.07), name
        elif name.endswith("bias"):
            assert not weight.any(), name
