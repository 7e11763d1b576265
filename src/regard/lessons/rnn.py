"""Lesson: one step of a recurrent cell, small enough to follow by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.layers import linear, recurrent_layer
from regard.lessons.engine.reading import Reading
from regard.models.base import parameters

INPUTS = (
    Input("U", [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], "input weights", ("unit", "input")),
    Input("V", [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], "recurrent weights", ("unit", "before")),
    Input("W", [[1.0, 0.0, -1.0]], "output weights, one row per output", ("output", "unit")),
    Input("h", [1.0, 0.0, 0.0], "previous hidden state", ("before",), "h_{t-1}"),
    Input("x", [1.0, 0.0], "current input", ("input",), "x_t"),
    Input("b", [0.0, 0.0, 0.0], "bias of the units", ("unit",), "b_h"),
    Input("f", "relu", "activation of the hidden state", choices=("relu", "tanh")),
    Input("b_o", [0.0], "bias of the output", ("output",)),
    Input("g", "identity", "activation of the output", choices=("identity", "softmax", "tanh", "relu")),
)
ACTIVATIONS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "identity": nn.Identity(),
    "relu": torch.relu,
    "softmax": nn.Softmax(0),
    "tanh": torch.tanh,
}


def compute(page: LessonBuilder) -> None:
    """h_t = f(V h_{t-1} + U x_t + b_h), o_t = g(W h_t + b_o), by the package's layer."""
    U, V, W, h, x, b, b_o = page.tensors("U V W h x b b_o")
    layer = recurrent_layer(page.data("f"), U, V, b)
    page.step(
        "The recurrent part",
        "The previous hidden state is multiplied by V. The lecture's V moves each number up by one position, the "
        "first to the end.",
        "V h_{t-1}",
        "V h",
        value("Vh", V @ h, "unit", "V h_{t-1}"),
    )
    page.step(
        "The input part",
        "The input is multiplied by U, which has a row per unit and a column per input number.",
        "U x_t",
        "U x",
        value("Ux", U @ x, "unit", "U x_t"),
    )
    hidden, _ = layer.step(x[None], (h[None],))
    page.step(
        "The new hidden state",
        "Both are added, with the bias, and passed through the activation function: ReLU cuts off numbers below 0, "
        "tanh maps to the range from -1 to 1. Computed by the layer that this package's models use.",
        r"h_t = f(V h_{t-1} + U x_t + b_h)",
        "Vh Ux b f",
        value("a", V @ h + U @ x + b, "unit", "a_t"),
        value("h_new", hidden[0], "unit", "h_t"),
    )
    _output(page, linear(W, b_o)(hidden)[0].detach())
    _count(page, layer, len(h), len(x))
    page.compare("the formula and the package's RNN", ACTIVATIONS[page.data("f")](V @ h + U @ x + b), hidden[0])
    page.expect("V times the state", [0.0, 0.0, 1.0], "Vh")
    page.expect("U times the input", [1.0, 0.0, -1.0], "Ux")
    page.expect("the new state", [1.0, 0.0, 0.0], "h_new")
    page.expect("the output", 1.0, "o")


def _output(page: LessonBuilder, logits: torch.Tensor) -> None:
    o = ACTIVATIONS[page.data("g")](logits)
    one = len(o) == 1  # as in the lecture: a number, not a list of one
    page.step(
        "The output",
        "The output is another product, with its own bias and activation: identity for regression, softmax for "
        "classification.",
        r"o_t = g(W h_t + b_o)",
        "W h_new b_o g",
        value("Wh", logits[0] if one else logits, "" if one else "output", "W h_t + b_o"),
        value("o", o[0] if one else o, "" if one else "output", "o_t"),
    )


def _count(page: LessonBuilder, layer: nn.Module, units: int, inputs: int) -> None:
    page.step(
        "Number of parameters",
        "A bias per unit, a weight from every unit to every unit, and one from every input to every unit. There is one "
        f"bias vector; torch.nn.RNN has two, which are added: {units} more.",
        r"\text{units} + \text{units}^2 + \text{units} \times \text{inputs}",
        "U V b",
        value("parameters", parameters(layer), "", r"\text{parameters}"),
    )
    count = units + units**2 + units * inputs
    page.compare("the formula and the parameters of the layer", count, parameters(layer), 0)


FIGURE = "h > Vh > a; x > Ux > a; b > a; a > h_new > Wh > o"
EXERCISES = (
    Exercise(
        "With x = [0, 1] instead, what is the new hidden state h_t? Three numbers.",
        "h_new",
        {"x": [0, 1]},
        hint="U x is the second column of U; ReLU cuts off what is below 0",
    ),
    Exercise(
        "How many parameters does a layer have whose input has 3 numbers instead of 2?",
        "parameters",
        {"x": [1, 0, 1], "U": [[1, 0, 0], [0, 1, 0], [-1, 0, 0]]},
        hint="units + units squared + units times inputs",
        tolerance=0.5,
    ),
)
READING = Reading(
    "The worked RNN cell, with tanh, ReLU and an output",
    ("recurrent neural network (Elman network)", "hidden state", "recurrent weights", "activation function"),
    ("Elman 1990, Finding structure in time",),
)
