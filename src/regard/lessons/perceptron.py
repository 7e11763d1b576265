"""Lesson: a perceptron learns its weights; the boundary moves until it separates the two classes."""

from __future__ import annotations

import numpy as np

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.plane import plane_value
from regard.lessons.engine.reading import Reading
from regard.origins.perceptron import LOGIC_POINTS, LOGIC_TARGETS, Perceptron, PerceptronEpoch, train_perceptron

INPUTS = (
    Input("points", LOGIC_POINTS.tolist(), "inputs, one example per row", ("example", "input"), "x", bounds=(-9, 9)),
    Input("targets", list(LOGIC_TARGETS["and"]), "class of each example", ("example",), "t", bounds=(0, 1)),
    Input("epochs", 20, "passes over the examples at most", bounds=(1, 200)),
    Input("rate", 1.0, "size of a correction", bounds=(0.001, 100)),
    Input("seed", 3, "random initial weights and order of the examples", bounds=(0, 1_000_000)),
    Input("epoch", 4, "the epoch after which the plane is drawn", bounds=(1, 200)),
)


def compute(page: LessonBuilder) -> None:
    """Rosenblatt's rule at the first mistake, epoch by epoch, and as a boundary in the plane."""
    points, targets = np.array(page.data("points")), np.array(page.data("targets"))
    settings = page.data("epochs"), page.data("rate"), page.data("seed")
    start = Perceptron.random(points.shape[1], settings[2])
    epochs = list(train_perceptron(start, points, targets, *settings))
    _first_mistake(page, start, points, targets)
    _curves(page, epochs)
    at = min(page.data("epoch"), len(epochs))
    chosen = epochs[at - 1].perceptron
    if points.shape[1] == 2:
        _plane(page, chosen, at)
    last = epochs[-1]
    page.step(
        "The result",
        "If a line separates the classes, the rule ends: an epoch without a mistake is the last one. If none does, as "
        "for XOR (targets=0,1,1,0), it corrects forever.",
        "",
        "points targets epochs rate seed",
        value("predictions", last.perceptron.predict(points).tolist(), "example", "y"),
        value("accuracy", last.accuracy),
        value("mistakes", last.corrections, "", r"\text{mistakes}"),
    )
    by_hand = [
        int(sum(a * w for a, w in zip(row, last.perceptron.weights)) + last.perceptron.bias > 0) for row in points
    ]
    page.compare("the formula and the perceptron's predictions", by_hand, page.data("predictions"), 0)
    page.expect("the share of AND that is learned", 1.0, "accuracy")


def _first_mistake(page: LessonBuilder, start: Perceptron, points: np.ndarray, targets: np.ndarray) -> None:
    wrong = [row for row in range(len(points)) if start.predict(points)[row] != targets[row]]
    row = wrong[0] if wrong else 0
    score, answer = float(start.score(points)[row]), int(start.predict(points)[row])
    error = int(targets[row]) - answer
    after = start.correct(points[row], error, page.data("rate"))
    page.step(
        "The rule, at the first mistake",
        "The score is the weighted sum of the inputs plus a bias; the perceptron fires if it is above 0. At a mistake "
        "the input is added to the weights (it should have fired) or subtracted (it should not), times the rate.",
        r"w \leftarrow w + \eta (t - y) x",
        "points targets rate seed",
        value("w", start.weights.tolist(), "input"),
        value("score", score, "", "w x + b"),
        value("error", error, "", "t - y"),
        value("w_new", after.weights.tolist(), "input", "w"),
        value("b_new", after.bias, "", "b"),
    )


def _curves(page: LessonBuilder, epochs: list[PerceptronEpoch]) -> None:
    rows = [[*one.perceptron.weights.tolist(), one.perceptron.bias] for one in epochs]
    names = [*(f"w{i + 1}" for i in range(len(rows[0]) - 1)), "b"]
    labels = {"epoch": [str(number) for number in range(1, len(epochs) + 1)]}
    page.step(
        "Epoch by epoch",
        "Corrections in each pass over the examples, and the weights after it.",
        "",
        "points targets epochs rate seed",
        value("corrections", [one.corrections for one in epochs], "epoch", r"\text{corrections}", labels, "line"),
        value("history", rows, "epoch weight", r"\text{weights}", {"weight": names, **labels}),
    )


def _plane(page: LessonBuilder, perceptron: Perceptron, at: int) -> None:
    line = perceptron.boundary()
    place = "vertical" if line is None else f"x2 = {line[0]:.3g} x1 + {line[1]:.3g}"
    page.step(
        f"The plane after epoch {at}",
        "The score at each point of the plane: positive where the perceptron fires. The boundary between the signs is "
        "a straight line, whatever the weights.",
        r"w_1 x_1 + w_2 x_2 + b = 0",
        "points targets epochs rate seed epoch",
        plane_value("plane", perceptron.score, r"w x + b"),
        value("boundary", place, "", r"\text{boundary}"),
    )


FIGURE = "points > score > error > w_new; targets > error; w > score; w > w_new"
EXERCISES = (
    Exercise(
        "With the targets of OR, 0, 1, 1, 1, what share of the points is right in the end?",
        "accuracy",
        {"targets": [0, 1, 1, 1]},
        hint="can one line separate the first point from the other three?",
    ),
    Exercise(
        "And with the targets of NAND, 1, 1, 1, 0, after 20 epochs at most?",
        "accuracy",
        {"targets": [1, 1, 1, 0], "epochs": 20},
        hint="one line separates the last point from the other three",
    ),
)
READING = Reading(
    "Rosenblatt's perceptron, its rule and its boundary",
    ("perceptron", "decision boundary", "linearly separable", "perceptron learning rule"),
    ("Rosenblatt 1958, The perceptron: a probabilistic model for information storage and organization in the brain",),
)
