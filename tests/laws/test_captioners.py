"""The model contract with an encoder of images: training, prompts, steps and beams agree."""

from __future__ import annotations

import pytest
import torch

from regard.decode import Beam, DecodeConfig, search
from regard.objective import Batch, NextToken, Objective
from regard.sequence import Tokens
from regard.trace import record
from zoo import CAPTIONERS, RAGGED, TARGET, build, sharpen, single_row, words

close = {"atol": 1e-5, "rtol": 1e-5}


@pytest.fixture(params=CAPTIONERS)
def captioner(request):
    return build(request.param), CAPTIONERS[request.param].source()


@torch.no_grad()
def test_one_step_at_a_time_equals_all_at_once(captioner):
    model, source = captioner
    state, steps = model.start(source, max_tokens=5), []
    for ids in TARGET.data.split(1, dim=1):
        features, state = model.decoder(Tokens.full(ids), state)
        steps.append(features)
    torch.testing.assert_close(torch.cat(steps, 1), model(source, TARGET), **close)


@torch.no_grad()
def test_other_images_of_a_batch_change_nothing(captioner):
    model, source = captioner
    batched = model(source, RAGGED)
    for i in range(3):
        one = model(single_row(source, i), single_row(RAGGED, i))[0]
        torch.testing.assert_close(one, batched[i, : len(one)], **close)


@torch.no_grad()
def test_the_image_matters(captioner):
    model, source = captioner
    other = source.select(torch.tensor([1, 2, 0]))
    assert not torch.allclose(model(source, TARGET), model(other, TARGET), atol=1e-4)


@torch.no_grad()
def test_recording_changes_nothing_and_weights_over_the_cells_sum_to_one(captioner, request):
    model, source = captioner
    with record(model, replace={"*": lambda t: t.clone()}) as trace:
        watched = model(source, RAGGED)
    torch.testing.assert_close(model(source, RAGGED)[RAGGED.mask], watched[RAGGED.mask], **close)
    assert trace.find("encoder.image")[0].data.equal(source.pixels)
    found = trace.find("decoder*cross.weights")
    assert bool(found) == CAPTIONERS[request.node.callspec.params["captioner"]].attends
    for one in found:
        torch.testing.assert_close(one.data.sum(-1), torch.ones(one.data.shape[:-1]))


def test_a_beam_over_a_batch_finds_what_it_finds_for_each_image_alone(captioner):
    model, source = captioner
    sharpen(model)
    prompt, limits = Tokens.full(torch.full((3, 1), 2)), torch.tensor([6, 6, 6])
    strategy = DecodeConfig(beam=3, n_best=2).strategy()
    together = search(model, source, prompt, strategy, limits)
    for i in range(3):
        [alone] = search(model, single_row(source, i), single_row(prompt, i), strategy, limits[:1])
        assert [h.tokens for h in alone] == [h.tokens for h in together[i]]
    assert isinstance(strategy, Beam)


def test_every_parameter_gets_a_gradient(captioner):
    model, source = captioner
    loss, _ = Objective(model.train(), NextToken(words))(Batch(source, TARGET))
    sum(loss.totals.values()).backward()
    unused = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum()}
    assert not unused
