"""Lesson: a recurrent network beside a feed-forward network, on the same inputs."""

from __future__ import annotations

import torch

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise, item
from regard.lessons.engine.layers import linear, recurrent_layer
from regard.lessons.engine.reading import Reading
from regard.models.base import parameters
from regard.sequence import Padded

INPUTS = (
    Input(
        "X",
        [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]],
        "inputs, one row per step; the third is the first again",
        ("step", "input"),
    ),
    Input("U", [[0.8, -0.4], [0.3, 0.9]], "input weights of both networks", ("unit", "input")),
    Input("V", [[0.5, 0.2], [-0.3, 0.6]], "recurrent weights", ("unit", "before")),
    Input("b", [0.1, -0.1], "bias of both", ("unit",)),
)


def compute(page: LessonBuilder) -> None:
    """The same inputs through tanh(U x + b) and through tanh(V h + U x + b); then in reverse order."""
    X, U, V, b = page.tensors("X U V b")
    if V.shape[0] != V.shape[1]:
        raise page.error(f"V: expected {len(b)} x {len(b)} numbers, a weight from every unit to every unit")
    layer, plain = recurrent_layer("tanh", U, V, b), linear(U, b)
    with torch.no_grad():
        forward = torch.tanh(plain(X))
        states = _states(layer, X)
        backward = _states(layer, X.flip(0)).flip(0)
        swapped = torch.tanh(plain(X.flip(0))).flip(0)
    page.step(
        "Feed-forward: each input for itself",
        "One layer, applied to each input. Equal inputs give equal outputs, wherever they stand.",
        r"y_t = \tanh(U x_t + b)",
        "X U b",
        value("y", forward, "step unit", "y_t", look="signed"),
    )
    page.step(
        "Recurrent: the state comes back",
        "The same layer with one more product: the previous state. An output now depends on all inputs before it, "
        "through a state of fixed size.",
        r"h_t = \tanh(V h_{t-1} + U x_t + b) \quad h_0 = 0",
        "X U V b",
        value("h", states, "step unit", "h_t", look="signed"),
    )
    page.step(
        "The same input twice",
        "How far the last output is from the first: 0 for the feed-forward network if both inputs are equal. Only the "
        "recurrent network can tell them apart.",
        r"\max | y_T - y_1 | \quad \max | h_T - h_1 |",
        "y h",
        value("apart_plain", float((forward[-1] - forward[0]).abs().max()), "", r"\text{feed-forward}"),
        value("apart_recurrent", float((states[-1] - states[0]).abs().max()), "", r"\text{recurrent}"),
    )
    page.step(
        "Another order",
        "The inputs from last to first, and the largest change of the output at any input: order is information, and "
        "only one of the two networks sees it.",
        "",
        "X U V b",
        value("order_plain", float((forward - swapped).abs().max()), "", r"\text{feed-forward}"),
        value("order_recurrent", float((states - backward).abs().max()), "", r"\text{recurrent}"),
    )
    _count(page, plain, layer)
    written = [torch.zeros_like(b)]
    for x in X:
        written.append(torch.tanh(V @ written[-1] + U @ x + b))
    page.compare("the formula and the package's RNN", torch.stack(written[1:]), states)
    page.compare("the first step of both networks", forward[0], states[0])


def _count(page: LessonBuilder, plain: torch.nn.Module, layer: torch.nn.Module) -> None:
    page.step(
        "Parameters",
        "Memory costs units times units more weights, however long the sequence is: the same weights are used at every "
        "step.",
        r"\text{units} + \text{units} \times \text{inputs} \quad + \text{units}^2",
        "U V b",
        value("parameters_plain", parameters(plain), "", r"\text{feed-forward}"),
        value("parameters_recurrent", parameters(layer), "", r"\text{recurrent}"),
    )


def _states(layer: torch.nn.Module, X: torch.Tensor) -> torch.Tensor:
    padded = Padded(X[None], torch.tensor([len(X)]), ragged=False)
    return layer(padded, layer.zeros(padded.data))[0][0]  # type: ignore[operator]


FIGURE = "X > U > tanh > y; X > U#2 > add > tanh#2 > h; V > add; b > add; b > tanh"
EXERCISES = (
    Exercise(
        "With V = 0, how far is the last state of the recurrent network from the first?",
        "apart_recurrent",
        {"V": [[0.0, 0.0], [0.0, 0.0]]},
        hint="without V nothing comes back, and the two inputs are equal",
    ),
    Exercise(
        "With b = (0, 0), what is the first number of the first state? Two decimals.",
        item("h", 0, 0),
        {"b": [0.0, 0.0]},
        hint="tanh of 0.8: there is no state before it",
    ),
)
READING = Reading(
    "A recurrent network beside a feed-forward network",
    ("feed-forward network", "recurrent network", "hidden state", "parameter sharing over time"),
    (
        "Elman 1990, Finding structure in time",
        "Goodfellow, Bengio and Courville 2016, Deep learning, chapter 10",
    ),
)
