"""A network trained by the tape follows the same network in torch, step by step, and learns XOR."""

import numpy as np
import pytest
import torch

from regard.origins.mlp import MLPWeights, hidden_states, predict, train_mlp, update
from regard.origins.perceptron import LOGIC_POINTS, LOGIC_TARGETS, Perceptron, train_perceptron

XOR = np.array(LOGIC_TARGETS["xor"], dtype=np.float64)


def torch_losses(weights, points, targets, epochs, rate):
    hidden, output = torch.nn.Linear(2, len(weights.hidden)).double(), torch.nn.Linear(len(weights.hidden), 1).double()
    with torch.no_grad():
        hidden.weight.copy_(torch.tensor(weights.hidden[:, :-1]))
        hidden.bias.copy_(torch.tensor(weights.hidden[:, -1]))
        output.weight.copy_(torch.tensor(weights.output[None, :-1]))
        output.bias.copy_(torch.tensor(weights.output[-1:]))
    optimizer = torch.optim.SGD([*hidden.parameters(), *output.parameters()], lr=rate)
    x, t = torch.tensor(points), torch.tensor(targets)
    for _ in range(epochs):
        loss = 0.5 * ((torch.sigmoid(output(torch.sigmoid(hidden(x))))[:, 0] - t) ** 2).sum()
        yield float(loss.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test_the_loss_is_that_of_torch_at_every_step():
    start = MLPWeights.random(2, 3, seed=1)
    found = [step.loss for step in train_mlp(LOGIC_POINTS, XOR, start, 300, rate=4.0)]
    expected = list(torch_losses(start, LOGIC_POINTS, XOR, 300, rate=4.0))
    assert found == pytest.approx(expected, abs=1e-6)
    assert found[-1] < 0.01 < found[0]


def test_xor_is_learned_and_the_hidden_states_can_be_separated_by_a_line():
    *_, last = train_mlp(LOGIC_POINTS, XOR, MLPWeights.random(2, 3, seed=1), 400, rate=4.0)
    assert (predict(last.after, LOGIC_POINTS) > 0.5).tolist() == [False, True, True, False]
    states = hidden_states(last.after, LOGIC_POINTS)
    start = Perceptron.random(3, seed=1)
    *_, epoch = train_perceptron(start, states, XOR.astype(int), 10_000)
    assert epoch.accuracy == 1.0


def test_an_update_with_a_small_rate_lowers_the_loss():
    for seed in range(5):
        step = update(MLPWeights.random(2, 4, seed), LOGIC_POINTS, XOR, rate=0.01)
        assert update(step.after, LOGIC_POINTS, XOR, rate=0.01).loss < step.loss
