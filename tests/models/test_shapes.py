"""How models are told in a few words."""

import pytest

from regard.models.convolution import ConvolutionConfig
from regard.models.gpt import GPTConfig
from regard.models.mlp import MLPConfig
from regard.models.recurrent import RecurrentConfig
from regard.models.rnnlm import RNNLMConfig


@pytest.mark.parametrize("config", [ConvolutionConfig, GPTConfig, MLPConfig, RecurrentConfig, RNNLMConfig])
def test_one_layer_is_told_as_one(config):
    assert " 1 layer, " in config(layers=1).shape and " 2 layers, " in config(layers=2).shape
