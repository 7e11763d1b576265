"""One-line summaries of models."""

import pytest

from regard.models.convolution import ConvolutionConfig
from regard.models.gpt import GPTConfig
from regard.models.mlp import MLPConfig
from regard.models.recurrent import RecurrentConfig
from regard.models.rnnlm import RNNLMConfig
from regard.models.transformer import TransformerConfig


@pytest.mark.parametrize("config", [ConvolutionConfig, GPTConfig, MLPConfig, RecurrentConfig, RNNLMConfig])
def test_one_layer_is_singular(config):
    assert " 1 layer, " in config(layers=1).summary and " 2 layers, " in config(layers=2).summary


@pytest.mark.parametrize("config", [GPTConfig, TransformerConfig])
def test_one_head_is_singular(config):
    assert ", 1 head, " in config(heads=1).summary and ", 2 heads, " in config(heads=2).summary
