"""Contract of stateful training: text read window by window gives the features of one long row."""

import numpy as np
import pytest
import torch
from torch.utils._pytree import tree_leaves

from regard.models.rnnlm import RNNLMConfig
from regard.objective import Batch, NextToken, Objective, StatefulNextToken
from regard.sequence import Tokens
from regard.spaces import Words
from regard.tasks.generate.loader import StreamLoader
from regard.train.config import TrainConfig
from regard.train.schedule import Constant
from regard.train.trainer import train
from zoo import ZOO, V, build

WHOLE = torch.tensor([[4, 5, 6, 7, 5, 4, 6], [7, 7, 5, 4, 4, 6, 5], [5, 6, 5, 6, 7, 7, 4]])


def windows(size):
    """Each window reads `size` positions; its last one is the first of the next."""
    return [Tokens.full(WHOLE[:, at : at + size + 1]) for at in range(0, WHOLE.shape[1] - 1, size)]


def read(name, targets, begins=()):
    """Features of consecutive stateful windows."""
    model, task, hidden_state, found = build(name), StatefulNextToken(Words(V)), None, []
    for i, target in enumerate(targets):
        batch = Batch(ZOO[name].source(), target, resets_state=i in begins)
        features, hidden_state = task.features(model, batch, hidden_state)
        found.append(features["next"])
    return torch.cat(found, 1), hidden_state


def handed_on(name):
    model = build(name)
    return model.decoder.hidden_state(model.start(ZOO[name].source())) is not None


@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("name", ZOO)
def test_stateful_windows_equal_one_long_row_and_others_are_independent(name, size):
    found, hidden_state = read(name, windows(size))
    if handed_on(name):
        expected, _ = read(name, [Tokens.full(WHOLE)])
        assert hidden_state is not None
    else:
        expected = torch.cat([build(name)(ZOO[name].source(), target.shift()[0]) for target in windows(size)], 1)
        assert hidden_state is None
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in ZOO if handed_on(name)])
def test_a_batch_that_resets_the_state_ignores_earlier_batches(name):
    found, _ = read(name, windows(2), begins=(1,))
    separate = build(name)(ZOO[name].source(), windows(2)[1].shift()[0])
    torch.testing.assert_close(found[:, 2:4], separate, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in ZOO if handed_on(name)])
def test_gradients_do_not_go_back_into_the_window_before(name):
    objective = Objective(build(name), StatefulNextToken(Words(V)))
    _, hidden_state = objective(Batch(ZOO[name].source(), windows(3)[0]))
    assert not any(t.requires_grad for t in tree_leaves(hidden_state) if torch.is_tensor(t))


def test_the_zoo_has_both_kinds():
    assert len({handed_on(name) for name in ZOO}) == 2


def test_the_state_before_a_window_helps(tmp_path):
    """After a 4 comes what the word before the 4 determines: often it lies in the previous window."""
    text = np.array([4, 5, 4, 6, 4, 7] * 100, np.uint16)
    loader, losses = StreamLoader(text, text, window=2, rows=16), {}
    for task in (StatefulNextToken(Words(V)), NextToken(Words(V))):
        torch.manual_seed(0)
        model = RNNLMConfig(layers=1, width=16, dropout=0.0).build(Words(V), Words(V))
        config = TrainConfig(steps=150, validate_every=150, schedule=Constant(lr=0.02))
        report = train(Objective(model, task), loader, config, tmp_path / type(task).__name__)
        losses[type(task).__name__] = report.best["loss"]
    assert losses["NextToken"] > 0.2  # a third of all places are a guess among three, half of the time
    assert losses["StatefulNextToken"] < 0.1, losses
