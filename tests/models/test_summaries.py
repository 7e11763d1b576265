"""One-line summaries of models."""

import pytest

from regard.models.convolution import ConvolutionConfig
from regard.models.gpt import GPTConfig
from regard.models.mlp import MLPConfig
from regard.models.recurrent import RecurrentConfig
from regard.models.rnnlm import RNNLMConfig


@pytest.mark.parametrize("config", [ConvolutionConfig, GPTConfig, MLPConfig, RecurrentConfig, RNNLMConfig])
def test_one_layer_is_singular(config):
    assert " 1 layer, " in config(layers=1).summary and " 2 layers, " in config(layers=2).summary
