"""torch.compile is an option of training: it changes the speed, not the result, and not what is traced."""

import subprocess
import sys

import pytest
import torch

from regard.models.base import Layer
from regard.models.transformer import TransformerConfig
from regard.objective import NextToken, Objective
from regard.sequence import Tokens
from regard.spaces import Words
from regard.tasks.copying import CopyTask
from regard.trace import record
from regard.train.config import TrainConfig
from regard.train.events import Stepped
from regard.train.schedule import Constant
from regard.train.trainer import train
from zoo import RAGGED, V, text

# torch's own doing: its compiler imports what it has deprecated, and asks tensors for a gradient to see if there is one
pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"),
]


@pytest.fixture(autouse=True)
def forget_what_was_compiled():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def small_transformer():
    """One layer of each kind, since each is compiled, forward and backward; without dropout."""
    torch.manual_seed(0)
    return TransformerConfig(layers=1, width=16, heads=2, ffn_width=32, dropout=0.0).build(Words(V), Words(V)).eval()


def losses(model, run, compile):
    stepped = []
    config = TrainConfig(steps=3, compile=compile, schedule=Constant(lr=1e-2))
    train(Objective(model, NextToken(Words(V, 0.1))), CopyTask(), config, run, listeners=[stepped.append])
    return [event.loss for event in stepped if isinstance(event, Stepped)]


@pytest.mark.slow
def test_without_a_compiler_training_is_refused(tmp_path):
    """In a process without a compiler and without a compile cache."""
    code = (
        "import torch\nfrom regard.train.compile import compile_layers\n"
        "from regard.errors import ConfigError\n"
        "try:\n    compile_layers(torch.nn.Linear(1, 1))\nexcept ConfigError as error:\n    print(error)\n"
    )
    environment = {"PATH": str(tmp_path), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("train.compile = true needs a C++ compiler that works, and torch has found none (")
    assert done.stdout.endswith("); install g++, or name one in CXX, or leave train.compile out\n")


@pytest.mark.slow
def test_compiled_layers_train_like_plain_ones(tmp_path):
    plain, compiled = small_transformer(), small_transformer()
    expected = losses(plain, tmp_path / "plain", compile=False)
    found = losses(compiled, tmp_path / "compiled", compile=True)
    layers = [module for module in compiled.modules() if isinstance(module, Layer)]
    assert len(layers) == 2 and all(layer._compiled_call_impl is not None for layer in layers)
    assert found == pytest.approx(expected, abs=1e-4)
    assert expected[0] - expected[-1] > 1e-3  # weights moved: so the later losses depend on the gradients


@pytest.mark.slow
@torch.no_grad()
def test_a_model_with_compiled_layers_is_traced_correctly():
    plain, compiled = small_transformer(), small_transformer()
    for module in compiled.modules():
        if isinstance(module, Layer):
            module.compile(dynamic=True)
    source = text()
    before = compiled(source, RAGGED)  # compiled here
    with record(plain) as expected:
        plain(source, RAGGED)
    with record(compiled) as found:
        compiled(source, RAGGED)
    assert [r.name for r in found.records] == [r.name for r in expected.records]
    assert len(found.find("*.weights")) == 3
    for a, b in zip(found.records, expected.records, strict=True):
        torch.testing.assert_close(a.data, b.data, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(compiled(source, RAGGED), before)  # and looking has not changed it
    other = Tokens.pad([[4, 5]]), Tokens.pad([[2, 6, 7]])
    torch.testing.assert_close(compiled(*other), plain(*other))
