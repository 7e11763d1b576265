"""torch.compile is an option of training: it changes the speed, not what is learned, and nothing that can be seen."""

import pytest
import torch

from regard.models.base import Layer
from regard.sequence import Tokens
from regard.spaces import Words
from regard.tasks.base import Continue, Objective
from regard.tasks.copying import Copying
from regard.trace import record
from regard.train.events import Stepped
from regard.train.schedule import Constant
from regard.train.settings import TrainConfig
from regard.train.trainer import train
from zoo import RAGGED, V, build, text


@pytest.fixture(autouse=True)
def forget_what_was_compiled():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def still(name):
    model = build(name)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


def losses(model, run, compile):
    stepped = []
    config = TrainConfig(steps=3, compile=compile, schedule=Constant(lr=1e-2))
    train(Objective(model, Continue(Words(V, 0.1))), Copying(), config, run, listeners=[stepped.append])
    return [event.loss for event in stepped if isinstance(event, Stepped)]


@pytest.mark.slow
def test_compiled_layers_learn_what_plain_ones_learn(tmp_path):
    plain, compiled = still("transformer"), still("transformer")
    wanted = losses(plain, tmp_path / "plain", compile=False)
    found = losses(compiled, tmp_path / "compiled", compile=True)
    layers = [module for module in compiled.modules() if isinstance(module, Layer)]
    assert len(layers) == 4 and all(layer._compiled_call_impl is not None for layer in layers)
    assert found == pytest.approx(wanted, abs=1e-4)
    assert wanted[0] - wanted[-1] > 1e-3  # weights moved: the later losses say that the gradients agree


@pytest.mark.slow
@torch.no_grad()
def test_a_model_whose_layers_are_compiled_shows_what_it_computes():
    plain, compiled = still("transformer"), still("transformer")
    for module in compiled.modules():
        if isinstance(module, Layer):
            module.compile(dynamic=True)
    source = text()
    before = compiled(source, RAGGED)  # compiled here
    with record(plain) as wanted:
        plain(source, RAGGED)
    with record(compiled) as found:
        compiled(source, RAGGED)
    assert [r.name for r in found.records] == [r.name for r in wanted.records]
    assert len(found.find("*.weights")) == 6
    for a, b in zip(found.records, wanted.records, strict=True):
        torch.testing.assert_close(a.data, b.data, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(compiled(source, RAGGED), before)  # and looking has not changed it
    torch.testing.assert_close(
        compiled(Tokens.of([[4, 5]]), Tokens.of([[2, 6, 7]])), plain(Tokens.of([[4, 5]]), Tokens.of([[2, 6, 7]]))
    )
