"""Linnainmaa's tape: equal to autograd, overwritten cells, and a bound that holds against exact fractions."""

import random
from fractions import Fraction

import numpy as np
import pytest
import torch

from regard.origins.tape import Tape, gradients, rounding_error_bound, walk_back

FUNCTIONS = ("tanh", "sin", "sigmoid", "exp")


def expression(draw, size, functions=FUNCTIONS):
    """A random computation on three inputs, which may be numbers on a tape, tensors or fractions."""
    plan = []
    for n in range(size):
        kind = draw.choice(["+", "-", "*", "/", *functions])
        plan.append((kind, draw.randrange(3 + n), draw.randrange(3 + n), draw.uniform(0.5, 2)))

    def compute(inputs):
        values = list(inputs)
        for kind, i, j, constant in plan:
            a, b = values[i], values[j]
            if kind in FUNCTIONS:
                found = getattr(a * 0.1 if kind == "exp" else a, kind)()
            elif kind == "/":
                found = a / (b * b + Fraction(constant) if isinstance(b, Fraction) else b * b + type_of(b)(constant))
            else:
                found = {"+": a + b, "-": a - b, "*": a * b}[kind]
            values.append(found)
        return values[-1]

    return compute


def type_of(number):
    value = getattr(number, "value", None)
    return np.float32 if isinstance(value, np.float32) else float


def test_a_thousand_random_expressions_have_the_gradients_of_autograd():
    draw, largest = random.Random(1), 0.0
    for _ in range(1000):
        compute = expression(draw, draw.randint(1, 12))
        start = [draw.uniform(-2, 2) for _ in range(3)]
        tape = Tape()
        inputs = [tape.variable(x) for x in start]
        result = compute(inputs)
        tensors = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in start]
        expected = compute(tensors)
        if expected.requires_grad:
            expected.backward()
        C = gradients(tape, result)
        assert result.value == pytest.approx(float(expected.detach()), rel=1e-12, abs=1e-12)
        for one, tensor in zip(inputs, tensors, strict=True):
            wanted = 0.0 if tensor.grad is None else float(tensor.grad)
            largest = max(largest, abs(C[one.cell] - wanted) / max(1.0, abs(wanted)))
    assert largest < 1e-10


def test_each_step_of_the_walk_moves_one_entry_of_the_table():
    tape = Tape()
    x, y = tape.variable(3.0), tape.variable(4.0)
    steps = list(walk_back(tape, (x + y) * (x - y)))
    assert [(step.p, step.coefficient) for step in steps] == [(3, 1.0), (2, 7.0), (1, -1.0)]
    assert [step.C[1:] for step in steps] == [(0, 0, -1, 7, 0), (7, -7, -1, 0, 0), (6, -8, 0, 0, 0)]


def test_a_cell_that_is_overwritten_passes_on_only_the_derivative_of_its_last_value():
    tape = Tape()
    x, y = tape.variable(2.0), tape.variable(5.0)
    square = x * x
    x_new = tape.store(x, square * y)  # from here on the cell of x holds x * x * y
    result = x_new * x_new
    C = gradients(tape, result)
    assert result.value == 400.0
    assert (C[x.cell], C[y.cell]) == (4 * 2.0**3 * 25, 2 * 2.0**4 * 5)  # of x^4 y^2


def test_an_input_that_is_the_result_has_derivative_one():
    tape = Tape()
    x, y = tape.variable(2.0), tape.variable(3.0)
    assert gradients(tape, x) == [0.0, 1.0, 0.0]
    assert y.cell == 2


def test_the_bound_holds_for_a_thousand_float32_computations_against_exact_fractions():
    draw, closest = random.Random(2), 0.0
    for _ in range(1000):
        compute = expression(draw, draw.randint(2, 12), functions=())
        start = [np.float32(draw.uniform(0.5, 2)) for _ in range(3)]
        tape = Tape()
        result = compute([tape.variable(x) for x in start])
        exact = compute([Fraction(float(x)) for x in start])
        if not np.isfinite(result.value):
            continue
        error = abs(Fraction(float(result.value)) - exact)
        bound = rounding_error_bound(tape, result)
        assert float(error) <= bound, (float(error), bound)
        closest = max(closest, float(error) / bound if bound else 0.0)
    assert closest > 0.3  # and it is not so large that it says nothing
