"""Lesson: one step of an LSTM, gate by gate, and what a cell keeps over many steps."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.layers import apart, cell, tensor
from regard.lessons.engine.lesson import Value
from regard.nn.recurrent import LayerState, Recurrent
from regard.trace import record

value = Page.value
LATER = 10
ROWS = [f"{gate}{unit}" for gate in ("i", "f", "g", "o") for unit in (1, 2)]
U = [[6.0, 0.0], [0.0, 6.0], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
V = [[0.0, 0.0]] * 4 + [[0.0, 1.0], [1.0, 0.0]] + [[0.0, 0.0]] * 2

INPUTS = (
    Input("U", U, "what is read, to the gates i, f, g, o of each unit", ("row", "input"), labels={"row": ROWS}),
    Input("V", V, "the state before, to the same", ("row", "unit"), labels={"row": ROWS}),
    Input("b", [-3.0, -3.0, 4.0, 4.0, 0.0, 0.0, 0.0, 0.0], "biases", ("row",), labels={"row": ROWS}),
    Input("h", [0.0, 0.0], "what was shown before", ("unit",), "h_{t-1}"),
    Input("c", [0.5, -0.5], "what the cell holds", ("unit",), "c_{t-1}"),
    Input("x", [1.0, 0.0], "what is read now", ("input",), "x_t"),
)


def _work(given: Mapping[str, Value]) -> Work:
    """Gates, cell and hidden state as the package's LSTM shows them."""
    page = Page(given)
    of_input, of_state, bias, h, c, x = (tensor(given[name]) for name in "UVbhcx")
    units = len(c)
    if len(bias) != 4 * units:
        raise ConfigError(f"b: expected 4 rows for each of {units} units, {4 * units} in all, got {len(bias)}")
    layer = cell("lstm", of_input, of_state, bias)
    with record(layer) as trace:
        hidden, (_, kept) = layer.step(x[None], (h[None], c[None]))
    a = (layer.project(x) + of_state @ h).detach()
    page.step(
        "Everything at once",
        "Four numbers for each unit, as in four recurrent cells that see the same: one for each gate, and one for what "
        "might be written.",
        "a = U x_t + V h_{t-1} + b",
        "U x V h b",
        value("a", a, "row", labels=dict(given["b"].labels)),
    )
    i, f, g, o = trace.find("gates")[0].data[0]
    _gates(page, {"i": i, "f": f, "g": g, "o": o})
    _cell(page, kept[0], hidden[0])
    _later(page, layer, h, c, len(x))
    by_hand = _by_hand(of_input @ x + of_state @ h + bias, c)
    theirs = _torch(layer, x, h, c)
    page.agree("the formulas and the package's LSTM", 0.0, apart(by_hand, hidden[0]))
    page.agree("the package's LSTM and torch.nn.LSTM", 0.0, apart(theirs, hidden[0]))
    return page.work()


def _gates(page: Page, gates: Mapping[str, Tensor]) -> None:
    told = {
        "i": ("The input gate", "How much of what is new is written.", r"\sigma"),
        "f": ("The forget gate", "How much of the old cell is kept; a bias of 4 keeps nearly all of it.", r"\sigma"),
        "g": ("The candidate", "What would be written: the only one of the four that can be negative.", r"\tanh"),
        "o": ("The output gate", "How much of the cell is shown.", r"\sigma"),
    }
    for letter, (title, text, bend) in told.items():
        page.step(
            title,
            text,
            rf"{letter} = {bend}(a_{letter})",
            "a",
            value(letter, gates[letter], "unit"),
        )


def _cell(page: Page, kept: Tensor, hidden: Tensor) -> None:
    page.step(
        "The cell",
        "Kept from before, plus what is written. No matrix stands between the old cell and the new one: the gradient "
        "that goes back is multiplied by f, and f may be 1.",
        r"c_t = f \odot c_{t-1} + i \odot g",
        "f c i g",
        value("c_new", kept, "unit", "c_t"),
    )
    page.step(
        "The state",
        "What the rest of the network sees of it.",
        r"h_t = o \odot \tanh(c_t)",
        "o c_new",
        value("h_new", hidden, "unit", "h_t"),
    )


def _later(page: Page, layer: Recurrent, h: Tensor, c: Tensor, inputs: int) -> None:
    """From the same start, reading nothing: what is left."""
    nothing, left = torch.zeros(1, inputs, dtype=torch.float64), [c]
    state: LayerState = (h[None], c[None])
    for _ in range(LATER):
        _, state = layer.step(nothing, state)
        left.append(state[1][0])
    page.step(
        f"{LATER} steps that read nothing",
        "What the cell of before still holds when zeros are read: with f near 1 and i near 0 it fades slowly. Try a "
        "smaller bias of f.",
        r"c_{t+1}, c_{t+2}, \ldots",
        "U V b h c",
        value("left", torch.stack(left).T[:, ::2], "unit later", "c", {"later": [f"+{n}" for n in range(0, 11, 2)]}),
    )


def _by_hand(a: Tensor, c: Tensor) -> Tensor:
    i, f, g, o = a.chunk(4)
    return o.sigmoid() * torch.tanh(f.sigmoid() * c + i.sigmoid() * g.tanh())


def _torch(layer: Recurrent, x: Tensor, h: Tensor, c: Tensor) -> Tensor:
    theirs = nn.LSTM(len(x), len(h), batch_first=True, dtype=torch.float64)
    theirs.load_state_dict(layer.rnn.state_dict())
    with torch.no_grad():
        return theirs(x[None, None], (h[None, None], c[None, None]))[0][0, 0]


PLAN = Plan(INPUTS, _work)
