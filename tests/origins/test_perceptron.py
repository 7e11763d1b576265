"""Rosenblatt's rule: separable sets are learned, XOR is not."""

import numpy as np
import pytest

from regard.origins.perceptron import LOGIC_POINTS, LOGIC_TARGETS, Perceptron, train_perceptron

SEEDS = range(20)


def accuracies(name, seed, epochs=100):
    start, targets = Perceptron.random(2, seed), np.array(LOGIC_TARGETS[name])
    return [one.accuracy for one in train_perceptron(start, LOGIC_POINTS, targets, epochs, seed=seed)]


@pytest.mark.parametrize("name", ["and", "or"])
def test_separable_functions_are_learned_completely_from_every_seed(name):
    assert {accuracies(name, seed)[-1] for seed in SEEDS} == {1.0}


def test_xor_never_passes_three_of_four():
    assert max(max(accuracies("xor", seed)) for seed in SEEDS) == 0.75


def test_any_separable_set_is_learned_within_novikoffs_bound():
    draw = np.random.default_rng(1)
    for seed in SEEDS:
        normal = draw.normal(size=4)
        points = draw.normal(size=(60, 4))
        points = points[np.abs(points @ normal) > 0.3]
        targets = (points @ normal > 0).astype(int)
        start = Perceptron(np.zeros(4), 0.0)
        epochs = list(train_perceptron(start, points, targets, 10_000, seed=seed))
        assert epochs[-1].accuracy == 1.0
        margin = np.abs(points @ normal).min() / np.linalg.norm(normal)
        radius = np.sqrt((points**2).sum(1).max() + 1)  # the bias is a weight of an input that is always 1
        assert sum(one.corrections for one in epochs) <= (radius / margin) ** 2


def test_a_correction_moves_the_score_of_its_example_in_the_right_direction():
    point, start = np.array([0.5, -2.0]), Perceptron(np.array([1.0, 1.0]), 0.0)
    assert start.predict(point[None]) == [0]
    after = start.correct(point, 1, rate=1.0)
    assert after.score(point[None])[0] - start.score(point[None])[0] == pytest.approx(point @ point + 1)


def test_the_boundary_is_where_the_score_is_zero():
    perceptron = Perceptron(np.array([2.0, -4.0]), 1.0)
    slope, intercept = perceptron.boundary()
    x1 = np.linspace(-3, 3, 7)
    assert perceptron.score(np.stack([x1, slope * x1 + intercept], 1)) == pytest.approx(np.zeros(7))
    assert Perceptron(np.array([1.0, 0.0]), 0.0).boundary() is None
