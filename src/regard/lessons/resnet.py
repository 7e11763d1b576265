"""Lesson: batch normalization in training and in use, and a residual block that learns what to add."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise, item
from regard.lessons.engine.reading import Reading
from regard.models.presets import PRESETS

EPSILON, MOMENTUM, PARAMETERS = 1e-5, 0.1, 25_557_032

INPUTS = (
    Input("x", [2.0, 4.0, 4.0, 6.0], "one channel of four images, one number each", ("image",)),
    Input("gain", 1.0, "gain of the normalization", symbol=r"\gamma"),
    Input("shift", 0.0, "shift of the normalization", symbol=r"\beta"),
    Input("h", [1.0, 2.0], "input of a block", ("unit",)),
    Input("W1", [[0.5, -0.25], [0.25, 0.5]], "first layer of the block", ("inner", "unit"), "W_1"),
    Input("W2", [[0.5, 0.25], [-0.25, 0.5]], "second layer of the block", ("unit", "inner"), "W_2"),
    Input("blocks", 10, "blocks on top of each other", bounds=(1, 100)),
)


def compute(page: LessonBuilder) -> None:
    """Batch normalization twice, one residual block, and the gradient through many."""
    _normalize_batch(page)
    _normalize_alone(page)
    _block(page)
    _gradients(page)
    page.compare("ResNet-50 with 1,000 classes: parameters", PARAMETERS, PRESETS["resnet-50"].parameters, 0)


def batch_norm(page: LessonBuilder) -> nn.BatchNorm1d:
    """torch's layer with the gain and the shift of the lesson."""
    norm = nn.BatchNorm1d(1, eps=EPSILON, momentum=MOMENTUM).double()
    with torch.no_grad():
        norm.weight.fill_(page.data("gain"))
        norm.bias.fill_(page.data("shift"))
    return norm


def _normalize_batch(page: LessonBuilder) -> None:
    x, gain, shift = page.tensors("x gain shift")
    if len(x) < 2:
        raise page.error("x: expected at least 2 numbers, the variance of one is 0")
    mean, variance = x.mean(), x.var(correction=0)
    y = gain * (x - mean) / (variance + EPSILON).sqrt() + shift
    page.step(
        "Batch normalization in training",
        "Ioffe and Szegedy, 2015: each channel is brought to mean 0 and variance 1 over the images of the batch (and "
        "all places of the map), then scaled and shifted by learned numbers. An image is thus normalized by its "
        "neighbors.",
        r"y = \gamma \frac{x - m}{\sqrt{v + \epsilon}} + \beta",
        "x gain shift",
        value("mean", mean, "", r"m"),
        value("variance", variance, "", r"v"),
        value("y", y, "image", "y"),
    )
    page.compare("the formula and torch's batch normalization, training", batch_norm(page)(x[:, None])[:, 0], y)
    page.expect("mean of 2, 4, 4, 6", 4.0, "mean")


def _normalize_alone(page: LessonBuilder) -> None:
    x, gain, shift, mean = page.tensors("x gain shift mean")
    running_mean = MOMENTUM * mean
    running_variance = (1 - MOMENTUM) + MOMENTUM * x.var()
    y = gain * (x - running_mean) / (running_variance + EPSILON).sqrt() + shift
    page.step(
        "Batch normalization in use",
        "A single image has no neighbors. During training a running mean and variance are kept, which begin at 0 and 1 "
        "and move by a tenth toward those of each batch (the variance divided by n - 1); in use they take the place of "
        "the batch's. After one batch they are still far from it.",
        r"\hat{m} = 0.9 \cdot 0 + 0.1 m, \quad \hat{v} = 0.9 \cdot 1 + 0.1 \frac{n}{n - 1} v",
        "x gain shift mean variance",
        value("running_mean", running_mean, "", r"\hat{m}"),
        value("running_variance", running_variance, "", r"\hat{v}"),
        value("alone", y, "image", r"y_{\text{use}}"),
    )
    norm = batch_norm(page)
    norm(x[:, None])
    page.compare("the formula and torch's batch normalization, use", norm.eval()(x[:, None])[:, 0].detach(), y)


def _block(page: LessonBuilder) -> None:
    h, W1, W2 = page.tensors("h W1 W2")
    branch = W2 @ (W1 @ h).relu()
    page.step(
        "A residual block",
        "He et al., 2015: the block computes what to add to its input. If its weights are 0 it passes its input on, so "
        "a deeper network can do at least what a shallower one does; a plain layer of zeros would lose everything. "
        "(Here two matrices stand for the two convolutions, without normalization.)",
        r"F(h) = W_2 \relu(W_1 h), \quad h' = \relu(h + F(h))",
        "h W1 W2",
        value("F", branch, "unit", "F(h)"),
        value("out", (h + branch).relu(), "unit", "h'"),
        value("plain", branch.relu(), "unit", r"\relu(F(h))"),
    )


def _gradients(page: LessonBuilder) -> None:
    h, W1, W2 = page.tensors("h W1 W2")
    curves = {
        name: gradient_norms(h, W1, W2, page.data("blocks"), name == "residual") for name in ("plain", "residual")
    }
    page.step(
        "The gradient through many blocks",
        "The derivative of h + F(h) is 1 + F'(h): the gradient has a path that no weight touches. Through plain blocks "
        "it is multiplied by F' each time. Norm of the derivative of the last block's output with respect to h, after "
        "1, 2, ... blocks with the same weights.",
        r"\frac{\partial h'}{\partial h} = I + \frac{\partial F}{\partial h}",
        "h W1 W2 blocks",
        value("plain_norms", curves["plain"], "blocks", r"\text{plain}", look="line"),
        value("residual_norms", curves["residual"], "blocks", r"\text{residual}", look="line"),
    )


def gradient_norms(h: Tensor, W1: Tensor, W2: Tensor, blocks: int, residual: bool) -> list[float]:
    """Norms of the Jacobian with respect to the input after each block, by autograd."""
    found = []

    def run(start: Tensor, count: int) -> Tensor:
        for _ in range(count):
            branch = W2 @ (W1 @ start).relu()
            start = start + branch if residual else branch
        return start

    for count in range(1, blocks + 1):
        jacobian = torch.autograd.functional.jacobian(lambda start, n=count: run(start, n), h)
        found.append(float(torch.linalg.matrix_norm(jacobian)))
    return found


FIGURE = "h > W1 > relu > W2 > F > out; h > out; x > mean > y; x > variance > y"
EXERCISES = (
    Exercise(
        "A batch is normalized in training: x = [2, 4, 4, 6], gain 1, shift 0. What is the first number of y?",
        item("y", 0),
        hint="mean 4, variance 2",
    ),
    Exercise(
        "With h = [1, 2] and W_2 = 0, what does the block pass on? Two numbers.",
        "out",
        {"W2": [[0, 0], [0, 0]]},
        hint="F(h) is 0; what is left of h + F(h)?",
    ),
)
READING = Reading(
    "Batch normalization in training and evaluation, equal to torch's",
    ("residual connection (skip connection)", "batch normalization", "identity mapping", "degradation problem"),
    (
        "He et al. 2016, Deep residual learning for image recognition",
        "Ioffe and Szegedy 2015, Batch normalization",
    ),
)
