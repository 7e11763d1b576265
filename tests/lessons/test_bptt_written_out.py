"""Backpropagation through time by the formulas and by the recursion, against autograd through the package's RNN."""

import pytest
import torch

from regard.lessons.bptt import (
    LETTERS,
    Network,
    autograd_gradients,
    formula_gradients,
    forward,
    recursion_gradient,
    recursion_terms,
    window_starts,
)


def example(seed, inputs=3, units=4, classes=5, steps=7):
    net, draw = Network.random(inputs, units, classes, seed), torch.Generator().manual_seed(seed + 100)
    x = torch.randn(steps, inputs, generator=draw, dtype=torch.float64)
    y = torch.randint(0, classes, (steps,), generator=draw)
    return net, x, y, torch.randn(units, generator=draw, dtype=torch.float64)


@pytest.mark.parametrize("window", [0, 1, 2, 3, 7, 50])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_formulas_equal_autograd_full_and_truncated(seed, window):
    net, x, y, h = example(seed)
    found, expected = formula_gradients(net, forward(net, x, y, h), window), autograd_gradients(net, x, y, h, window)
    for letter in LETTERS:
        torch.testing.assert_close(found.weights[letter], expected[letter], atol=1e-12, rtol=0)


@pytest.mark.parametrize("window", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("letter", ["W", "U", "b"])
def test_the_recursion_equals_autograd_full_and_truncated(letter, window):
    net, x, y, h = example(3)
    found = recursion_gradient(net, forward(net, x, y, h), letter, window)
    torch.testing.assert_close(found, autograd_gradients(net, x, y, h, window)[letter], atol=1e-12, rtol=0)


@pytest.mark.parametrize("letter", ["W", "U", "b"])
def test_the_terms_of_a_step_add_up_to_its_jacobian(letter):
    net, x, y, h = example(4)
    weight = getattr(net, letter)

    def last_state(changed):
        return forward(Network(**{**vars(net), letter: changed}), x, y, h).h[-1]

    expected = torch.autograd.functional.jacobian(last_state, weight)
    terms = [term for term in recursion_terms(net, forward(net, x, y, h), letter) if term.t == len(x)]
    assert [term.i for term in terms] == [7, 6, 5, 4, 3, 2, 1]
    torch.testing.assert_close(sum(term.propagated_jacobian for term in terms), expected, atol=1e-12, rtol=0)


def test_gradients_of_hidden_states_equal_autograd():
    net, x, y, h = example(5)
    states, total = [h], 0.0
    for x_t, y_t in zip(x, y):
        states.append(torch.tanh(net.b + net.W @ states[-1] + net.U @ x_t).requires_grad_())
        total = total - torch.log_softmax(net.c + net.V @ states[-1], 0)[y_t]
    expected = torch.autograd.grad(total, states[1:])
    torch.testing.assert_close(
        formula_gradients(net, forward(net, x, y, h)).h, torch.stack(expected), atol=1e-12, rtol=0
    )


def test_one_input_and_one_unit_keep_their_axes():
    net, x, y, h = example(6, inputs=1, units=1, classes=2, steps=3)
    for letter in ("W", "U", "b"):
        found = recursion_gradient(net, forward(net, x, y, h), letter)
        torch.testing.assert_close(found, autograd_gradients(net, x, y, h)[letter], atol=1e-12, rtol=0)


def test_a_window_of_one_step_has_one_term_per_step():
    net, x, y, h = example(7)
    assert window_starts(5, 2) == [0, 0, 2, 2, 4]
    assert all(term.t == term.i for term in recursion_terms(net, forward(net, x, y, h), "W", 1))
