"""Laws of streams: text that is read window after window is read as if it were read at once."""

import numpy as np
import pytest
import torch
from torch.utils._pytree import tree_leaves

from regard.models.rnnlm import RNNLMConfig
from regard.objective import Batch, Continue, Objective, Stream
from regard.sequence import Tokens
from regard.spaces import Words
from regard.tasks.generate.prepare import StreamFeed
from regard.train.config import TrainConfig
from regard.train.schedule import Constant
from regard.train.trainer import train
from zoo import ZOO, V, build

WHOLE = torch.tensor([[4, 5, 6, 7, 5, 4, 6], [7, 7, 5, 4, 4, 6, 5], [5, 6, 5, 6, 7, 7, 4]])


def windows(size):
    """Each window reads `size` places; its last one is the next one's first."""
    return [Tokens.full(WHOLE[:, at : at + size + 1]) for at in range(0, WHOLE.shape[1] - 1, size)]


def read(name, targets, begins=()):
    """Features of windows that go on from one another."""
    model, task, carry, found = build(name), Stream(Words(V)), None, []
    for i, target in enumerate(targets):
        batch = Batch(ZOO[name].source(), target, begins=i in begins)
        features, carry = task.features(model, batch, carry)
        found.append(features["next"])
    return torch.cat(found, 1), carry


def handed_on(name):
    model = build(name)
    return model.decoder.carry(model.start(ZOO[name].source())) is not None


@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("name", ZOO)
def test_windows_that_carry_on_equal_one_reading_and_others_are_read_alone(name, size):
    found, carry = read(name, windows(size))
    if handed_on(name):
        wanted, _ = read(name, [Tokens.full(WHOLE)])
        assert carry is not None
    else:
        wanted = torch.cat([build(name)(ZOO[name].source(), target.shifted()[0]) for target in windows(size)], 1)
        assert carry is None
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in ZOO if handed_on(name)])
def test_a_batch_that_begins_forgets_what_was_before(name):
    found, _ = read(name, windows(2), begins=(1,))
    alone = build(name)(ZOO[name].source(), windows(2)[1].shifted()[0])
    torch.testing.assert_close(found[:, 2:4], alone, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in ZOO if handed_on(name)])
def test_gradients_do_not_go_back_into_the_window_before(name):
    objective = Objective(build(name), Stream(Words(V)))
    _, carry = objective(Batch(ZOO[name].source(), windows(3)[0]))
    assert not any(t.requires_grad for t in tree_leaves(carry) if torch.is_tensor(t))


def test_the_zoo_has_both_kinds():
    assert len({handed_on(name) for name in ZOO}) == 2


def test_what_lies_before_a_window_is_of_use(tmp_path):
    """After a 4 comes what the word before the 4 says: often it lies in the window before."""
    text = np.array([4, 5, 4, 6, 4, 7] * 100, np.uint16)
    feed, losses = StreamFeed(text, text, window=2, rows=16), {}
    for task in (Stream(Words(V)), Continue(Words(V))):
        torch.manual_seed(0)
        model = RNNLMConfig(layers=1, width=16, dropout=0.0).build(Words(V), Words(V))
        config = TrainConfig(steps=150, every=150, schedule=Constant(lr=0.02))
        report = train(Objective(model, task), feed, config, tmp_path / type(task).__name__)
        losses[type(task).__name__] = report.best["loss"]
    assert losses["Continue"] > 0.2  # a third of all places are a guess among three, half of the time
    assert losses["Stream"] < 0.1, losses
