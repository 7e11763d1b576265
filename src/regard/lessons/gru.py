"""Lesson: one step of a GRU, and the two places where its reset gate is applied."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.layers import max_difference, recurrent_layer, torch_output
from regard.lessons.engine.reading import Reading
from regard.models.rnnsearch import GatedUnit
from regard.trace import record

ROWS = [f"{gate}{unit}" for gate in ("r", "z", "n") for unit in (1, 2)]
U = [[1.0, -1.0], [-1.0, 1.0], [-2.0, 0.0], [0.0, -2.0], [1.0, 0.0], [0.0, 1.0]]
V = [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 2.0], [-2.0, 0.0]]

INPUTS = (
    Input("U", U, "input weights of r, z and n of each unit", ("row", "input"), labels={"row": ROWS}),
    Input("V", V, "recurrent weights of the same", ("row", "unit"), labels={"row": ROWS}),
    Input("b", [0.0] * 6, "biases", ("row",), labels={"row": ROWS}),
    Input("h", [0.5, 1.0], "previous hidden state", ("unit",), "h_{t-1}"),
    Input("x", [1.0, 0.0], "current input", ("input",), "x_t"),
)


def compute(page: LessonBuilder) -> None:
    """Gates and state of the package's GRU, compared with the RNNsearch unit, which resets before the product."""
    input_weight, state_weight, bias, h, x = page.tensors("U V b h x")
    if len(bias) != 3 * len(h):
        raise ConfigError(f"b: expected 3 rows for each of {len(h)} units, {3 * len(h)} in all, got {len(bias)}")
    layer = recurrent_layer("gru", input_weight, state_weight, bias)
    with record(layer) as trace:
        after, _ = layer.step(x[None], (h[None],))
    (r, z), n = trace.find("gates")[0].data[0], trace.find("candidate")[0].data[0]
    labels = page.labels("b")
    page.step(
        "Input part and recurrent part",
        "Three numbers per unit from either side: for the two gates and for the candidate.",
        r"u = U x_t + b \quad v = V h_{t-1}",
        "U x b V h",
        value("u", layer.project(x), "row", labels=labels),
        value("v", state_weight @ h, "row", labels=labels),
    )
    for letter, title, text, gate in (
        ("r", "The reset gate", "How much of the old state the candidate may use.", r),
        ("z", "The update gate", "How much of the old state is kept.", z),
    ):
        page.step(title, text, rf"{letter} = \sigma(u_{letter} + v_{letter})", "u v", value(letter, gate, "unit"))
    page.step(
        "The candidate, as in libraries",
        "torch, cuDNN and this package's layer multiply first and reset the product: this can be fused.",
        r"n = \tanh(u_n + r \odot v_n)",
        "u r v",
        value("n", n, "unit"),
    )
    page.step(
        "The new hidden state",
        "Interpolated between the candidate and the old state; where z is 1, the state does not change and the "
        "gradient passes unchanged.",
        r"h_t = (1 - z) \odot n + z \odot h_{t-1}",
        "z n h",
        value("h_new", after[0], "unit", "h_t"),
    )
    before = _reset_before(page, input_weight @ x + bias, state_weight, h)
    formulas = _by_formula(input_weight @ x + bias, state_weight, h)
    page.compare("the formulas and the package's GRU", 0.0, max_difference(formulas[0], after[0]))
    page.compare("the package's GRU and torch.nn.GRU", 0.0, max_difference(torch_output(layer, x, h), after[0]))
    page.compare("the paper's formulas and RNNsearch's unit", 0.0, max_difference(formulas[1], before))


def _reset_before(page: LessonBuilder, u: Tensor, state_weight: Tensor, h: Tensor) -> Tensor:
    """The same weights in the RNNsearch unit. Its update gate is 1 - z, so it gets the negated pre-activation."""
    units = len(h)
    unit = GatedUnit(units).double()
    signs = torch.cat([torch.ones(units), -torch.ones(units)]).double()
    with torch.no_grad():
        unit.gates.weight.copy_(state_weight[: 2 * units] * signs[:, None])
        unit.candidate.weight.copy_(state_weight[2 * units :])
    with record(unit) as trace:
        hidden = unit(torch.cat([u[: 2 * units] * signs, u[2 * units :]])[None], h[None])
    page.step(
        "The candidate, as in the paper",
        "Cho et al. 2014, and so the decoder of RNNsearch here, reset the state first and multiply then. The same "
        "weights give another number, unless r is the same in all units or V is diagonal.",
        r"n' = \tanh(u_n + V_n (r \odot h_{t-1}))",
        "u V r h",
        value("n_paper", trace.find("candidate")[0].data[0], "unit", "n'"),
    )
    page.step(
        "And its new hidden state",
        "(Bahdanau et al. write z where Cho et al. and torch write 1 - z; here z is the part that is kept.)",
        r"h'_t = (1 - z) \odot n' + z \odot h_{t-1}",
        "z n_paper h h_new",
        value("h_paper", hidden[0], "unit", "h'_t"),
    )
    return hidden[0]


def _by_formula(u: Tensor, state_weight: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """(reset after the product, reset before it)."""
    x_r, x_z, x_n = u.chunk(3)
    h_r, h_z, h_n = (state_weight @ h).chunk(3)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    candidates = torch.tanh(x_n + r * h_n), torch.tanh(x_n + state_weight.chunk(3)[2] @ (r * h))
    after, before = ((1 - z) * n + z * h for n in candidates)
    return after, before


FIGURE = "x > u > r; h > v > r; u > z; v > z; r > n; u > n; n > h_new; z > h_new; h > h_new"
EXERCISES = (
    Exercise(
        "With all weights and biases at 0 and h = [1, 0], what is the new hidden state? Two numbers.",
        "h_new",
        {"U": [[0, 0]] * 6, "V": [[0, 0]] * 6, "b": [0] * 6, "h": [1, 0]},
        hint="the update gate is one half, the candidate 0",
    ),
    Exercise(
        "With h = [0, 0], what is the difference between the candidate of the libraries and of the paper, first unit?",
        lambda lesson: lesson.value("n").data[0] - lesson.value("n_paper").data[0],
        {"h": [0, 0]},
        hint="the reset gate multiplies a state of zeros, or its product with V",
    ),
)
READING = Reading(
    "RNN, LSTM, GRU: gates, cell and hidden states; stacked; equal to torch.nn",
    ("gated recurrent unit", "reset gate", "update gate"),
    (
        "Cho et al. 2014, Learning phrase representations using RNN encoder-decoder for statistical "
        "machine translation, section 2.3",
    ),
)
