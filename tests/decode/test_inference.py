"""A prepared model is the same model, sooner."""

import pytest
import torch

from regard.decode import Beam, Ensemble, search, wu
from regard.nn.inference import ReadyLinear, prepare
from regard.sequence import SOS, Tokens
from regard.trace import record
from zoo import RAGGED, ZOO, build, sharpen


@pytest.fixture(params=ZOO)
def pair(request):
    model = build(request.param)
    sharpen(model)
    return model, prepare(model), ZOO[request.param].source()


def answers(model, source, strategy):
    prompt = Tokens.full(torch.full((3, 1), SOS))
    return search(model, source, prompt, strategy, torch.full((3,), 20))


def test_a_prepared_model_says_the_same(pair):
    model, ready, source = pair
    for strategy in (Beam(1), Beam(3, wu(0.6), n_best=2)):
        for found, wanted in zip(answers(ready, source, strategy), answers(model, source, strategy), strict=True):
            assert [h.tokens for h in found] == [h.tokens for h in wanted]
            assert all(abs(a.score - b.score) < 1e-4 for a, b in zip(found, wanted, strict=True))


@torch.no_grad()
def test_preparing_leaves_the_model_as_it_was(pair):
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
def test_a_prepared_model_shows_what_the_model_shows(pair):
    model, ready, source = pair
    seen = []
    for one in (model, ready):
        with record(one) as trace:
            one(source, RAGGED)
        seen.append([r.name for r in trace.records])
    assert seen[0] == seen[1] != []


def test_a_prepared_model_works_with_gradients_on_and_after_a_search(pair):
    _, ready, source = pair
    answers(ready, source, Beam(1))
    assert not ready(source, RAGGED).requires_grad


def test_models_in_training_are_prepared_for_use():
    model = build("transformer").train()
    ready = prepare(model)
    assert model.training and not any(module.training for module in ready.modules())


def test_only_float32_weights_are_laid_out_anew():
    ready = prepare(build("transformer").double())
    assert not [module for module in ready.modules() if isinstance(module, ReadyLinear)]


def test_an_ensemble_can_be_prepared():
    models = [build("transformer"), build("seq2seq")]
    ready, source = prepare(Ensemble(models)), ZOO["transformer"].source()
    for found, wanted in zip(
        answers(ready, source, Beam(2)), answers(Ensemble(models).eval(), source, Beam(2)), strict=True
    ):
        assert [h.tokens for h in found] == [h.tokens for h in wanted]
