"""Lesson: the perceptron fails on XOR, and a network with a hidden layer, trained by the tape, succeeds."""

from __future__ import annotations

import numpy as np

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.plane import plane_value
from regard.lessons.engine.reading import Reading
from regard.origins.mlp import MLPStep, MLPWeights, hidden_states, predict, train_mlp
from regard.origins.perceptron import LOGIC_POINTS, LOGIC_TARGETS, Perceptron, train_perceptron

INPUTS = (
    Input("targets", list(LOGIC_TARGETS["xor"]), "outputs for 00, 01, 10, 11", ("example",), "t", bounds=(0, 1)),
    Input("passes", 50, "epochs of the perceptron", bounds=(1, 200)),
    Input("units", 3, "hidden units of the network", bounds=(1, 8)),
    Input("epochs", 400, "updates of the network", bounds=(1, 2000)),
    Input("rate", 4.0, "learning rate of the network", bounds=(0.001, 100), symbol=r"\eta"),
    Input("seed", 1, "random initial weights", bounds=(0, 1_000_000)),
    Input("epoch", 60, "the update after which the network's plane is also drawn", bounds=(1, 2000)),
)


def compute(page: LessonBuilder) -> None:
    """The perceptron's best try, then a hidden layer, epoch by epoch."""
    targets = np.array(page.data("targets"))
    _perceptron(page, targets)
    start = MLPWeights.random(2, page.data("units"), page.data("seed"))
    steps = list(train_mlp(LOGIC_POINTS, targets, start, page.data("epochs"), page.data("rate")))
    _network(page, steps)
    _hidden(page, steps[-1].after, targets)
    page.expect("the best that a perceptron reaches", 0.75, "best")
    page.expect("outputs of the network, rounded", [0, 1, 1, 0], "rounded")


def _perceptron(page: LessonBuilder, targets: np.ndarray) -> None:
    start = Perceptron.random(2, page.data("seed"))
    epochs = list(train_perceptron(start, LOGIC_POINTS, targets, page.data("passes"), 1.0, page.data("seed")))
    best = max(epochs, key=lambda one: one.accuracy)
    page.step(
        "One unit",
        "A perceptron draws one straight line. The points 01 and 10 lie on one diagonal and 00 and 11 on the other: no "
        "line has the first two on one side and the others on the other. At best three of four are right.",
        "",
        "targets passes seed",
        value("accuracies", [one.accuracy for one in epochs], "epoch", r"\text{accuracy}", look="line"),
        value("best", best.accuracy, "", r"\text{best}"),
        plane_value("line", best.perceptron.score, "w x + b"),
    )


def _network(page: LessonBuilder, steps: list[MLPStep]) -> None:
    at = min(page.data("epoch"), len(steps))
    page.step(
        "A hidden layer",
        "Each hidden unit draws a line of its own, and the output unit combines them. The weights of all units are "
        "learned by gradient descent on the squared error; the gradient is computed by walking the tape backwards.",
        r"w \leftarrow w - \eta \frac{\partial E}{\partial w}",
        "targets units epochs rate seed",
        value("losses", [one.loss for one in steps], "epoch", "E", look="line"),
    )
    page.step(
        f"The plane after update {at}, and at the end",
        "Output of the network minus one half: positive where it answers 1. The boundary is curved until each diagonal "
        "is on its own side.",
        r"y - \frac{1}{2}",
        "targets units epochs rate seed epoch",
        plane_value("early", lambda points: predict(steps[at - 1].after, points) - 0.5, r"\text{early}"),
        plane_value("late", lambda points: predict(steps[-1].after, points) - 0.5, r"\text{late}"),
    )


def _hidden(page: LessonBuilder, weights: MLPWeights, targets: np.ndarray) -> None:
    states = hidden_states(weights, LOGIC_POINTS)
    outputs = predict(weights, LOGIC_POINTS)
    labels = {"example": ["00", "01", "10", "11"]}
    page.step(
        "What the hidden units learned",
        "The four points as the output unit sees them: the states of the hidden units. In these coordinates one "
        "straight line is enough.",
        "h = \\sigma(W x + b)",
        "targets units epochs rate seed",
        value("states", states.tolist(), "example unit", "h", labels, "weights"),
        value("outputs", outputs.tolist(), "example", "y", labels),
        value("rounded", (outputs > 0.5).astype(int).tolist(), "example", r"\text{answer}"),
    )
    by_hand = 1 / (1 + np.exp(-(states @ weights.output[:-1] + weights.output[-1])))
    page.compare("the output from the hidden states and the network", by_hand.tolist(), outputs.tolist(), 1e-12)


FIGURE = "targets > accuracies > best; targets > losses > outputs > rounded"
EXERCISES = (
    Exercise(
        "What is the best accuracy that a single unit reaches on XOR?",
        "best",
        hint="a line can be right on three of the four points",
    ),
    Exercise(
        "What does the trained network answer, rounded, for the four points? Four numbers.",
        "rounded",
        hint="it has learned the targets",
    ),
)
READING = Reading(
    "XOR: at most 75 % for a perceptron, learned with a hidden layer",
    ("hidden layer", "linear separability", "multi-layer perceptron"),
    (
        "Minsky and Papert 1969, Perceptrons",
        "Rumelhart, Hinton and Williams 1986, Learning representations by back-propagating errors",
    ),
)
