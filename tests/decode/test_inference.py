"""optimize_for_inference gives the same model, faster; and the private torch operators that it uses exist."""

import pytest
import torch

from regard.decode import Beam, Ensemble, search, wu_penalty
from regard.nn import inference, int8_argmax
from regard.nn.inference import InferenceLinear, optimize_for_inference
from regard.sequence import SOS, Tokens
from regard.trace import record
from zoo import RAGGED, ZOO, build, sharpen


@pytest.fixture(params=ZOO)
def pair(request):
    model = build(request.param)
    sharpen(model)
    return model, optimize_for_inference(model), ZOO[request.param].source()


def answers(model, source, strategy):
    prompt = Tokens.full(torch.full((3, 1), SOS))
    return search(model, source, prompt, strategy, torch.full((3,), 20))


def test_an_optimized_model_gives_the_same_output(pair):
    model, ready, source = pair
    for strategy in (Beam(1), Beam(3, wu_penalty(0.6), n_best=2)):
        for found, expected in zip(answers(ready, source, strategy), answers(model, source, strategy), strict=True):
            assert [h.tokens for h in found] == [h.tokens for h in expected]
            assert all(abs(a.score - b.score) < 1e-4 for a, b in zip(found, expected, strict=True))


@torch.no_grad()
def test_optimizing_leaves_the_model_unchanged(pair):
    model, ready, source = pair
    before = {name: id(module) for name, module in model.named_modules()}
    weights = {name: id(p) for name, p in model.named_parameters()}
    torch.testing.assert_close(
        ready(source, RAGGED)[RAGGED.mask], model(source, RAGGED)[RAGGED.mask], atol=1e-5, rtol=1e-4
    )
    assert before == {name: id(module) for name, module in model.named_modules()}
    assert weights == {name: id(p) for name, p in model.named_parameters()}
    assert all(p.requires_grad for p in model.parameters()) and not any(p.requires_grad for p in ready.parameters())


@torch.no_grad()
def test_an_optimized_model_has_the_same_taps(pair):
    model, ready, source = pair
    calls = []
    for one in (model, ready):
        with record(one) as trace:
            one(source, RAGGED)
        calls.append([r.name for r in trace.records])
    assert calls[0] == calls[1] != []


def test_an_optimized_model_works_with_gradients_on_and_after_a_search(pair):
    _, ready, source = pair
    answers(ready, source, Beam(1))
    assert not ready(source, RAGGED).requires_grad


def test_models_in_training_are_optimized_in_eval_mode():
    model = build("transformer").train()
    ready = optimize_for_inference(model)
    assert model.training and not any(module.training for module in ready.modules())


def test_only_float32_weights_are_repacked():
    ready = optimize_for_inference(build("transformer").double())
    assert not [module for module in ready.modules() if isinstance(module, InferenceLinear)]


def test_an_ensemble_can_be_optimized():
    models = [build("transformer"), build("seq2seq")]
    ready, source = optimize_for_inference(Ensemble(models)), ZOO["transformer"].source()
    for found, expected in zip(
        answers(ready, source, Beam(2)), answers(Ensemble(models).eval(), source, Beam(2)), strict=True
    ):
        assert [h.tokens for h in found] == [h.tokens for h in expected]


@pytest.mark.parametrize("name", ["_reorder_linear_weight", "_linear_pointwise"])
def test_torch_has_the_private_operator_of_prepacked_weights(name):
    """A torch without it takes the plain path silently: this test is to fail loudly then."""
    assert hasattr(torch.ops.mkldnn, name) and inference.PREPACKS


@pytest.mark.parametrize("name", [*int8_argmax.OPERATORS])
def test_torch_has_the_private_operator_of_int8_argmax(name):
    assert hasattr(torch.ops.quantized, name)
    assert hasattr(torch, "_make_per_channel_quantized_tensor")


def test_without_private_operators_the_plain_path_gives_the_same(monkeypatch):
    linear, x = torch.nn.Linear(512, 1024, bias=False), torch.randn(3, 512)
    monkeypatch.setattr(inference, "PREPACKS", False)
    monkeypatch.setattr(int8_argmax, "OPERATORS", ("no_such_operator",))
    plain = InferenceLinear(linear)
    torch.testing.assert_close(plain(x), linear(x), atol=1e-5, rtol=1e-4)
    assert plain.packed is None
    assert not int8_argmax.Int8Argmax.is_supported(torch.zeros(2048, 1024))
