"""Lesson: one step of a GRU, and the two places where its reset gate has been put."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.layers import apart, cell, tensor
from regard.lessons.engine.lesson import Value
from regard.models.rnnsearch import GatedUnit
from regard.nn.recurrent import Recurrent
from regard.trace import record

value = Page.value
ROWS = [f"{gate}{unit}" for gate in ("r", "z", "n") for unit in (1, 2)]
U = [[1.0, -1.0], [-1.0, 1.0], [-2.0, 0.0], [0.0, -2.0], [1.0, 0.0], [0.0, 1.0]]
V = [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 2.0], [-2.0, 0.0]]

INPUTS = (
    Input("U", U, "what is read, to r, z and n of each unit", ("row", "input"), labels={"row": ROWS}),
    Input("V", V, "the state before, to the same", ("row", "unit"), labels={"row": ROWS}),
    Input("b", [0.0] * 6, "biases", ("row",), labels={"row": ROWS}),
    Input("h", [0.5, 1.0], "the state before", ("unit",), "h_{t-1}"),
    Input("x", [1.0, 0.0], "what is read now", ("input",), "x_t"),
)


def _work(given: Mapping[str, Value]) -> Work:
    """Gates and state as the package's GRU shows them, beside the unit of RNNsearch, which resets before."""
    page = Page(given)
    of_input, of_state, bias, h, x = (tensor(given[name]) for name in "UVbhx")
    if len(bias) != 3 * len(h):
        raise ConfigError(f"b: expected 3 rows for each of {len(h)} units, {3 * len(h)} in all, got {len(bias)}")
    layer = cell("gru", of_input, of_state, bias)
    with record(layer) as trace:
        after, _ = layer.step(x[None], (h[None],))
    (r, z), n = trace.find("gates")[0].data[0], trace.find("candidate")[0].data[0]
    labels = dict(given["b"].labels)
    page.step(
        "What is read and what is remembered",
        "Three numbers for each unit from either side: for the two gates and for the proposal.",
        r"u = U x_t + b \quad v = V h_{t-1}",
        "U x b V h",
        value("u", layer.project(x), "row", labels=labels),
        value("v", of_state @ h, "row", labels=labels),
    )
    _gates(page, r, z)
    page.step(
        "The proposal, as libraries have it",
        "torch, cuDNN and the layer of this package multiply first and reset the product: it can be fused.",
        r"n = \tanh(u_n + r \odot v_n)",
        "u r v",
        value("n", n, "unit"),
    )
    page.step(
        "The new state",
        "Between the proposal and the old state; where z is 1, nothing changes and the gradient passes untouched.",
        r"h_t = (1 - z) \odot n + z \odot h_{t-1}",
        "z n h",
        value("h_new", after[0], "unit", "h_t"),
    )
    before = _reset_before(page, of_input, of_state, bias, h, x)
    by_hand = _by_hand(of_input @ x + bias, of_state, h)
    page.agree("the formulas and the package's GRU", 0.0, apart(by_hand[0], after[0]))
    page.agree("the package's GRU and torch.nn.GRU", 0.0, apart(_torch(layer, x, h), after[0]))
    page.agree("the paper's formulas and RNNsearch's unit", 0.0, apart(by_hand[1], before))
    return page.work()


def _gates(page: Page, r: Tensor, z: Tensor) -> None:
    for letter, title, text, gate in (
        ("r", "The reset gate", "How much of the old state a new proposal may see.", r),
        ("z", "The update gate", "How much of the old state is kept as it is.", z),
    ):
        page.step(
            title,
            text,
            rf"{letter} = \sigma(u_{letter} + v_{letter})",
            "u v",
            value(letter, gate, "unit"),
        )


def _reset_before(page: Page, of_input: Tensor, of_state: Tensor, bias: Tensor, h: Tensor, x: Tensor) -> Tensor:
    """The same weights in the unit of RNNsearch. Its z is what is new, not what is kept: so it gets -z."""
    units = len(h)
    unit = GatedUnit(units).double()
    turned = torch.cat([torch.ones(units), -torch.ones(units)]).double()
    with torch.no_grad():
        unit.gates.weight.copy_(of_state[: 2 * units] * turned[:, None])
        unit.candidate.weight.copy_(of_state[2 * units :])
    told = of_input @ x + bias
    with record(unit) as trace:
        hidden = unit(torch.cat([told[: 2 * units] * turned, told[2 * units :]])[None], h[None])
    proposal = trace.find("candidate")[0].data[0]
    page.step(
        "The proposal, as the paper has it",
        "Cho et al. 2014, and so the decoder of RNNsearch here, reset the state first and multiply then. The same "
        "weights, another number, unless r is the same in all units or V is diagonal.",
        r"n' = \tanh(u_n + V_n (r \odot h_{t-1}))",
        "u V r h",
        value("n_paper", proposal, "unit", "n'"),
    )
    page.step(
        "And its new state",
        "(Bahdanau et al. write z where Cho et al. and torch write 1 - z; here z is what is kept.)",
        r"h'_t = (1 - z) \odot n' + z \odot h_{t-1}",
        "z n_paper h h_new",
        value("h_paper", hidden[0], "unit", "h'_t"),
    )
    return hidden[0]


def _by_hand(told: Tensor, of_state: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """(reset after the product, reset before it)."""
    x_r, x_z, x_n = told.chunk(3)
    h_r, h_z, h_n = (of_state @ h).chunk(3)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    proposals = torch.tanh(x_n + r * h_n), torch.tanh(x_n + of_state.chunk(3)[2] @ (r * h))
    after, before = ((1 - z) * n + z * h for n in proposals)
    return after, before


def _torch(layer: Recurrent, x: Tensor, h: Tensor) -> Tensor:
    theirs = nn.GRU(len(x), len(h), batch_first=True, dtype=torch.float64)
    theirs.load_state_dict(layer.rnn.state_dict())
    with torch.no_grad():
        return theirs(x[None, None], h[None, None])[0][0, 0]


PLAN = Plan(INPUTS, _work)
