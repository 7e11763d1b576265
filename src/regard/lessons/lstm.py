"""Lesson: one step of an LSTM, gate by gate, and what the cell state keeps over many steps."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise, item
from regard.lessons.engine.layers import max_difference, recurrent_layer, torch_output
from regard.lessons.engine.reading import Reading
from regard.nn.recurrent import LayerState, Recurrent
from regard.trace import record

LATER = 10
ROWS = [f"{gate}{unit}" for gate in ("i", "f", "g", "o") for unit in (1, 2)]
U = [[6.0, 0.0], [0.0, 6.0], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
V = [[0.0, 0.0]] * 4 + [[0.0, 1.0], [1.0, 0.0]] + [[0.0, 0.0]] * 2

INPUTS = (
    Input("U", U, "input weights of i, f, g and o of each unit", ("row", "input"), labels={"row": ROWS}),
    Input("V", V, "recurrent weights of the same", ("row", "unit"), labels={"row": ROWS}),
    Input("b", [-3.0, -3.0, 4.0, 4.0, 0.0, 0.0, 0.0, 0.0], "biases", ("row",), labels={"row": ROWS}),
    Input("h", [0.0, 0.0], "previous hidden state", ("unit",), "h_{t-1}"),
    Input("c", [0.5, -0.5], "previous cell state", ("unit",), "c_{t-1}"),
    Input("x", [1.0, 0.0], "current input", ("input",), "x_t"),
)
GATES = {
    "i": ("The input gate", "How much of the candidate is written.", r"\sigma"),
    "f": ("The forget gate", "How much of the old cell state is kept; a bias of 4 keeps nearly all of it.", r"\sigma"),
    "g": ("The candidate", "What would be written: the only one of the four that can be negative.", r"\tanh"),
    "o": ("The output gate", "How much of the cell state is output.", r"\sigma"),
}


def compute(page: LessonBuilder) -> None:
    """Gates, cell state and hidden state of the package's LSTM."""
    input_weight, state_weight, bias, h, c, x = page.tensors("U V b h c x")
    units = len(c)
    if len(bias) != 4 * units:
        raise ConfigError(f"b: expected 4 rows for each of {units} units, {4 * units} in all, got {len(bias)}")
    layer = recurrent_layer("lstm", input_weight, state_weight, bias)
    with record(layer) as trace:
        hidden, (_, cell) = layer.step(x[None], (h[None], c[None]))
    page.step(
        "All pre-activations",
        "Four numbers per unit, as in four recurrent cells with the same inputs: one per gate, and one for the "
        "candidate.",
        "a = U x_t + V h_{t-1} + b",
        "U x V h b",
        value("a", (layer.project(x) + state_weight @ h).detach(), "row", labels=page.labels("b")),
    )
    for (letter, (title, text, activation)), gate in zip(GATES.items(), trace.find("gates")[0].data[0]):
        page.step(title, text, rf"{letter} = {activation}(a_{letter})", "a", value(letter, gate, "unit"))
    page.step(
        "The cell state",
        "The part that is kept, plus what is written. No matrix lies between the old and the new cell state: the "
        "gradient on its way back is multiplied by f, and f may be 1.",
        r"c_t = f \odot c_{t-1} + i \odot g",
        "f c i g",
        value("c_new", cell[0], "unit", "c_t"),
    )
    page.step(
        "The hidden state",
        "The part of the cell state that the rest of the network sees.",
        r"h_t = o \odot \tanh(c_t)",
        "o c_new",
        value("h_new", hidden[0], "unit", "h_t"),
    )
    _zero_input_steps(page, layer, h, c, len(x))
    i, f, g, o = (input_weight @ x + state_weight @ h + bias).chunk(4)
    formula = o.sigmoid() * torch.tanh(f.sigmoid() * c + i.sigmoid() * g.tanh())
    page.compare("the formulas and the package's LSTM", 0.0, max_difference(formula, hidden[0]))
    difference = max_difference(torch_output(layer, x, h, c), hidden[0])
    page.compare("the package's LSTM and torch.nn.LSTM", 0.0, difference)


def _zero_input_steps(page: LessonBuilder, layer: Recurrent, h: Tensor, c: Tensor, inputs: int) -> None:
    zeros, cells = torch.zeros(1, inputs, dtype=torch.float64), [c]
    state: LayerState = (h[None], c[None])
    for _ in range(LATER):
        _, state = layer.step(zeros, state)
        cells.append(state[1][0])
    page.step(
        f"{LATER} steps with zero input",
        "What remains of the previous cell state when the inputs are zeros: with f near 1 and i near 0 it decays "
        "slowly. Try a smaller bias of f.",
        r"c_{t+1}, c_{t+2}, \ldots",
        "U V b h c",
        value("left", torch.stack(cells).T[:, ::2], "unit later", "c", {"later": [f"+{n}" for n in range(0, 11, 2)]}),
    )


FIGURE = "x > a; h > a; a > i > c_new; a > f > c_new; a > g > c_new; a > o > h_new; c > c_new > h_new"
EXERCISES = (
    Exercise(
        "With c = [0, 0], what is the new cell state? Two numbers.",
        "c_new",
        {"c": [0, 0]},
        hint="the forget gate has nothing to keep: input gate times candidate",
    ),
    Exercise(
        "With all weights U and V at 0 and all biases at 0, what is each gate?",
        item("f", 0),
        {"U": [[0, 0]] * 8, "V": [[0, 0]] * 8, "b": [0] * 8},
        hint="the logistic function of 0",
    ),
)
READING = Reading(
    "RNN, LSTM, GRU: gates, cell and hidden states; stacked; equal to torch.nn",
    ("long short-term memory", "cell state", "input, forget and output gate", "candidate"),
    (
        "Hochreiter and Schmidhuber 1997, Long short-term memory",
        "Gers, Schmidhuber and Cummins 2000, Learning to forget",
    ),
)
