"""The model contract, tested on every model of real-valued sequences of the zoo."""

from dataclasses import replace

import pytest
import torch

from regard.loss import chunked_loss
from regard.sequence import Tokens
from regard.spaces import Gaussian
from regard.trace import record
from zoo import REAL, SERIES, build, empty_source, single_row

close = {"atol": 1e-5, "rtol": 1e-5}
space = Gaussian(2)


@pytest.fixture(params=REAL)
def animal(request):
    return build(request.param), REAL[request.param].source()


@torch.no_grad()
def test_one_step_at_a_time_equals_all_at_once(animal):
    model, source = animal
    whole = Tokens.full(SERIES.data)
    state, steps = model.start(source, max_tokens=5), []
    for values in whole.data.split(1, dim=1):
        features, state = model.decoder(Tokens.full(values), state)
        steps.append(features)
    torch.testing.assert_close(torch.cat(steps, 1), model(source, whole), **close)


@torch.no_grad()
def test_no_position_sees_the_future(animal):
    model, source = animal
    whole, changed = Tokens.full(SERIES.data), SERIES.data.clone()
    changed[:, 3:] = 9.0
    a, b = model(source, whole), model(source, Tokens.full(changed))
    torch.testing.assert_close(a[:, :3], b[:, :3])
    assert not torch.allclose(a[:, 3:], b[:, 3:])


@torch.no_grad()
def test_padding_and_other_rows_change_nothing(animal):
    model, source = animal
    batched = model(source, SERIES)
    for i in range(3):
        one = model(single_row(source, i), single_row(SERIES, i))[0]
        torch.testing.assert_close(one, batched[i, : len(one)], **close)
    loud = replace(SERIES, data=torch.where(SERIES.mask[..., None], SERIES.data, 7.0))
    torch.testing.assert_close(model(source, loud)[SERIES.mask], batched[SERIES.mask], rtol=0, atol=0)


def test_every_parameter_learns(animal):
    model, source = animal
    read, targets, real = SERIES.shift()
    chunked_loss(model.readout, space.loss, model.train()(source, read)[real], targets[real]).backward()
    assert [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []


@torch.no_grad()
def test_recording_changes_nothing(animal):
    model, source = animal
    plain = model(source, SERIES)
    with record(model, replace={"*": lambda t: t.clone()}) as trace:
        watched = model(source, SERIES)
    torch.testing.assert_close(plain[SERIES.mask], watched[SERIES.mask], **close)
    assert trace.find("*.hidden")


@torch.no_grad()
def test_a_rollout_feeds_predictions_back_for_any_length(animal):
    model, _ = animal
    state, value, predicted = model.start(empty_source(1)), SERIES.data[:1, :1], []
    for _ in range(6):
        features, state = model.decoder(Tokens.full(value), state)
        value = space.mode(model.readout(features))
        predicted.append(value)
    again = model(empty_source(1), Tokens.full(torch.cat([SERIES.data[:1, :1], *predicted[:-1]], 1)))
    torch.testing.assert_close(space.mode(model.readout(again)), torch.cat(predicted, 1), **close)


@pytest.mark.parametrize("name", REAL)
def test_every_model_runs_on_the_meta_device(name):
    with torch.device("meta"):
        model, target = build(name), Tokens.full(torch.zeros(3, 5, 2))
    features, _ = model.decoder(target, model.start(empty_source().to("meta"), max_tokens=8))
    assert model.readout(features).is_meta and model.readout(features).shape == (3, 5, 4)
