"""How large a word's vector is when it enters a fresh model: recurrent layers hear 1, attention multiplies back."""

import pytest
import torch

from regard.models.gnmt import GNMTConfig
from regard.models.gpt import GPTConfig
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
def test_words_enter_recurrent_translators_with_a_deviation_of_one(name):
    torch.manual_seed(1)
    model = RECURRENT[name].build(Words(500), Words(400))
    for half in (model.encoder, model.decoder):
        assert half.embed.weight.std().item() == pytest.approx(1.0, rel=0.02)


def test_what_shares_the_softmaxs_weights_begins_small():
    torch.manual_seed(1)
    words = Words(500)
    for config in (
        TransformerConfig(layers=1, width=64, inner=64, heads=2),
        GPTConfig(layers=1, width=64, heads=2, longest=8),
        RNNLMConfig(layers=1, width=64, tie=True),
    ):
        assert config.build(words, words).decoder.embed.weight.std().item() == pytest.approx(64**-0.5, rel=0.05)
