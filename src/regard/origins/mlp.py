"""A multi-layer perceptron trained by the tape: Rumelhart, Hinton and Williams 1986, "Learning representations by ..."

New against the perceptron: a layer of hidden units between input and output, with a smooth activation function, so that
the error has a gradient with respect to every weight. Units that no example names learn useful features: with two of
them the network computes XOR. The gradient is that of Linnainmaa's walk, number by number. Different here: plain
gradient descent over all examples, without the paper's momentum. `models/mlp.py` is the same network with tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from regard.origins.tape import Tape, TapeNumber, gradients


@dataclass(frozen=True)
class MLPWeights:
    """Weights of one hidden layer and one output; the last column of each is the bias."""

    hidden: np.ndarray
    """(units, inputs + 1)"""
    output: np.ndarray
    """(units + 1,)"""

    @classmethod
    def random(cls, inputs: int, units: int, seed: int, scale: float = 1.0) -> MLPWeights:
        """Weights drawn uniformly from -scale to scale."""
        draw = np.random.default_rng(seed)
        return cls(draw.uniform(-scale, scale, (units, inputs + 1)), draw.uniform(-scale, scale, units + 1))


def forward(point: Sequence[float], hidden: Sequence[Sequence[TapeNumber]], output: Sequence[TapeNumber]) -> TapeNumber:
    """Output of the network for one point, recorded on the tape of the weights."""
    states = [weighted_sum(weights, point).sigmoid() for weights in hidden]
    return weighted_sum(output, states).sigmoid()


def weighted_sum(weights: Sequence[TapeNumber], inputs: Sequence[TapeNumber | float]) -> TapeNumber:
    """w1 x1 + w2 x2 + ... + b."""
    *rest, total = weights
    for weight, x in zip(rest, inputs, strict=True):
        total = total + weight * x
    return total


def predict(weights: MLPWeights, points: np.ndarray) -> np.ndarray:
    """Outputs of the network for many points, without a tape.

    >>> predict(MLPWeights(np.zeros((2, 3)), np.zeros(3)), np.ones((1, 2))).tolist()
    [0.5]
    """
    return _sigmoid(hidden_states(weights, points) @ weights.output[:-1] + weights.output[-1])


def hidden_states(weights: MLPWeights, points: np.ndarray) -> np.ndarray:
    """States of the hidden units for many points."""
    return _sigmoid(points @ weights.hidden[:, :-1].T + weights.hidden[:, -1])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))


@dataclass(frozen=True)
class MLPStep:
    """One update: the loss before it and the gradient that made it."""

    before: MLPWeights
    loss: float
    """half the sum of squared errors over all examples"""
    gradient: MLPWeights
    after: MLPWeights
    instructions: int
    """length of the tape"""


def update(weights: MLPWeights, points: np.ndarray, targets: np.ndarray, rate: float) -> MLPStep:
    """One step of gradient descent on all examples; the gradient comes from one walk over the tape."""
    tape = Tape()
    hidden = [[tape.variable(float(w)) for w in row] for row in weights.hidden]
    output = [tape.variable(float(w)) for w in weights.output]
    loss = tape.variable(0.0)
    for point, target in zip(points.tolist(), targets.tolist(), strict=True):
        error = forward(point, hidden, output) - target
        loss = loss + error * error * 0.5
    C = gradients(tape, loss)
    gradient = MLPWeights(np.array([[C[w.cell] for w in row] for row in hidden]), np.array([C[w.cell] for w in output]))
    after = MLPWeights(weights.hidden - rate * gradient.hidden, weights.output - rate * gradient.output)
    return MLPStep(weights, loss.value, gradient, after, len(tape.I))


def train_mlp(
    points: np.ndarray, targets: np.ndarray, weights: MLPWeights, epochs: int, rate: float
) -> Iterator[MLPStep]:
    """Gradient descent on all examples, one update per epoch."""
    for _ in range(epochs):
        step = update(weights, points, targets, rate)
        weights = step.after
        yield step
