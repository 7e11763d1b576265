"""Lesson: one step of a recurrent cell with numbers that can be followed by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn

from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.layers import cell, linear, tensor
from regard.lessons.engine.lesson import Value
from regard.models.base import parameters

value = Page.value

INPUTS = (
    Input("U", [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], "weights of what is read", ("unit", "input")),
    Input(
        "V", [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], "weights of what is remembered", ("unit", "before")
    ),
    Input("W", [[1.0, 0.0, -1.0]], "weights of the output, a row for each number", ("output", "unit")),
    Input("h", [1.0, 0.0, 0.0], "what the cell remembers", ("before",), "h_{t-1}"),
    Input("x", [1.0, 0.0], "what it reads now", ("input",), "x_t"),
    Input("b", [0.0, 0.0, 0.0], "bias of the units", ("unit",), "b_h"),
    Input("f", "relu", "how the sum is bent", choices=("relu", "tanh")),
    Input("b_o", [0.0], "bias of the output", ("output",)),
    Input("g", "identity", "how the output is bent", choices=("identity", "softmax", "tanh", "relu")),
)


BENT: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "identity": nn.Identity(),
    "relu": torch.relu,
    "softmax": nn.Softmax(0),
    "tanh": torch.tanh,
}


def _work(given: Mapping[str, Value]) -> Work:
    """h_t = f(V h_{t-1} + U x_t + b_h), o_t = g(W h_t + b_o), by the package's layer."""
    page = Page(given)
    U, V, W, h, x, b = (tensor(given[name]) for name in "UVWhxb")
    layer, readout = cell(given["f"].data, U, V, b), linear(W, tensor(given["b_o"]))
    _memory_and_input(page, h, x, V, U)
    hidden, _ = layer.step(x[None], (h[None],))
    page.step(
        "The new state",
        "Both are added, with the bias, and the sum is bent: ReLU cuts off what is below 0, tanh keeps everything "
        "between -1 and 1. This is the number of the layer that models here are made of.",
        r"h_t = f(V h_{t-1} + U x_t + b_h)",
        "Vh Ux b f",
        value("a", V @ h + U @ x + b, "unit", "a_t"),
        value("h_new", hidden[0], "unit", "h_t"),
    )
    _output(page, readout(hidden)[0].detach(), given["g"].data)
    _count(page, layer, len(h), len(x))
    page.agree("the formula and the package's RNN", BENT[given["f"].data](V @ h + U @ x + b), hidden[0])
    for about, expected, name in (
        ("V times the state", [0.0, 0.0, 1.0], "Vh"),
        ("U times the input", [1.0, 0.0, -1.0], "Ux"),
        ("the new state", [1.0, 0.0, 0.0], "h_new"),
        ("the output", 1.0, "o"),
    ):
        page.lecture(about, expected, name)
    return page.work()


def _memory_and_input(page: Page, h: torch.Tensor, x: torch.Tensor, V: torch.Tensor, U: torch.Tensor) -> None:
    page.step(
        "What the memory brings",
        "The state of the step before goes through V. The lecture's V moves each number up by a place, the "
        "first to the end.",
        "V h_{t-1}",
        "V h",
        value("Vh", V @ h, "unit", "V h_{t-1}"),
    )
    page.step(
        "What the input brings",
        "What is read goes through U, which has a row for each unit and a column for each number that is read.",
        "U x_t",
        "U x",
        value("Ux", U @ x, "unit", "U x_t"),
    )


def _output(page: Page, summed: torch.Tensor, g: str) -> None:
    o = BENT[g](summed)
    one = len(o) == 1  # as the lecture has it: a number, not a list of one
    page.step(
        "The output",
        "What the cell shows to the outside is another product, with a bias and a bend of its own: none where numbers "
        "are wanted, softmax where one of several things is.",
        r"o_t = g(W h_t + b_o)",
        "W h_new b_o g",
        value("Wh", summed[0] if one else summed, "" if one else "output", "W h_t + b_o"),
        value("o", o[0] if one else o, "" if one else "output", "o_t"),
    )


def _count(page: Page, layer: nn.Module, units: int, inputs: int) -> None:
    page.step(
        "How many numbers are learnt",
        "A bias, a weight from every unit to every unit, and one from every input to every unit. There is one bias; "
        f"torch.nn.RNN keeps two, which add up: {units} more.",
        r"\text{units} + \text{units}^2 + \text{units} \times \text{inputs}",
        "U V b",
        value("parameters", parameters(layer), "", r"\text{parameters}"),
    )
    page.agree("the formula and the parameters of the layer", units + units**2 + units * inputs, parameters(layer), 0)


PLAN = Plan(INPUTS, _work)
