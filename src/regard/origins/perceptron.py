"""The perceptron: Rosenblatt 1957, "The Perceptron: A Perceiving and Recognizing Automaton"; Psychological Review 1958.

New against the McCulloch-Pitts neuron: the weights are learned. Each example that is answered wrongly moves the
boundary: its input is added to the weights if the neuron should have fired, and subtracted if it should not. If a line
(a plane) separates the classes, the rule finds one after finitely many corrections (Novikoff 1962). If none does, as
for XOR, it never ends: Minsky and Papert 1969, "Perceptrons". Different here: one unit that reads the numbers
themselves, without Rosenblatt's layer of fixed random association cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

LOGIC_POINTS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.float64)
"""the four inputs of a logical function of two arguments"""
LOGIC_TARGETS = {"and": (0, 0, 0, 1), "or": (0, 1, 1, 1), "xor": (0, 1, 1, 0)}


@dataclass(frozen=True)
class Perceptron:
    """A unit that fires if w . x + b > 0.

    >>> Perceptron(np.array([1.0, 1.0]), -1.5).predict(LOGIC_POINTS).tolist()
    [0, 0, 0, 1]
    """

    weights: np.ndarray
    bias: float

    @classmethod
    def random(cls, inputs: int, seed: int) -> Perceptron:
        """Small random weights and a bias of 0."""
        return cls(np.random.default_rng(seed).normal(size=inputs), 0.0)

    def score(self, points: np.ndarray) -> np.ndarray:
        """w . x + b for each row of `points`; 0 is the boundary."""
        return points @ self.weights + self.bias

    def predict(self, points: np.ndarray) -> np.ndarray:
        """1 or 0 for each row of `points`."""
        return (self.score(points) > 0).astype(np.int64)

    def correct(self, point: np.ndarray, error: int, rate: float) -> Perceptron:
        """The learning rule; `error` is the target minus the prediction: 1, 0 or -1."""
        return Perceptron(self.weights + rate * error * point, self.bias + rate * error)

    def boundary(self) -> tuple[float, float] | None:
        """Slope and intercept of the boundary in the plane, x2 = slope x1 + intercept; None: it is vertical."""
        w1, w2 = self.weights
        return None if w2 == 0 else (float(-w1 / w2), float(-self.bias / w2))


@dataclass(frozen=True)
class PerceptronEpoch:
    """The perceptron after one pass over the examples."""

    perceptron: Perceptron
    corrections: int
    """examples of this pass that were answered wrongly, each followed by a correction"""
    accuracy: float
    """share of the examples that the perceptron answers correctly after the pass"""


def train_perceptron(
    perceptron: Perceptron, points: np.ndarray, targets: np.ndarray, epochs: int, rate: float = 1.0, seed: int = 1
) -> Iterator[PerceptronEpoch]:
    """Train by the perceptron rule, in an order that is shuffled in each epoch; ends after an epoch without errors.

    >>> *_, last = train_perceptron(Perceptron.random(2, 1), LOGIC_POINTS, np.array(LOGIC_TARGETS["and"]), 100)
    >>> last.accuracy, last.corrections
    (1.0, 0)
    """
    order = np.random.default_rng(seed)
    for _ in range(epochs):
        corrections = 0
        for row in order.permutation(len(points)):
            error = int(targets[row]) - int(perceptron.predict(points[row : row + 1])[0])
            if error:
                perceptron, corrections = perceptron.correct(points[row], error, rate), corrections + 1
        yield PerceptronEpoch(perceptron, corrections, float((perceptron.predict(points) == targets).mean()))
        if not corrections:
            return
