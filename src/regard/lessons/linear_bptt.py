"""Lesson: backpropagation through time of a linear recurrent network, with the mean of the losses (1/T)."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise, item
from regard.lessons.engine.layers import max_difference
from regard.lessons.engine.reading import Reading

INPUTS = (
    Input("x", [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 1.0]], "inputs, one row per step", ("step", "input"), "x_t"),
    Input("y", [[1.0], [0.0], [1.0], [0.0]], "targets", ("step", "output"), "y_t"),
    Input("Whx", [[0.5, 0.1], [-0.2, 0.4]], "input weights", ("unit", "input"), "W_{hx}"),
    Input("Whh", [[0.6, 0.2], [-0.1, 0.5]], "recurrent weights", ("unit", "before"), "W_{hh}"),
    Input("Wqh", [[1.0, -0.5]], "output weights", ("output", "unit"), "W_{qh}"),
)


def compute(page: LessonBuilder) -> None:
    """No bias and no activation: h_t = W_hx x_t + W_hh h_{t-1}, o_t = W_qh h_t, L = 1/T sum of l(o_t, y_t)."""
    x, y, Whx, Whh, Wqh = page.tensors("x y Whx Whh Wqh")
    if Whh.shape[0] != Whh.shape[1]:
        raise page.error(f"Whh: expected {len(Whh)} x {len(Whh)} numbers, a weight from every unit to every unit")
    h, o, loss = forward(x, y, Whx, Whh, Wqh)
    steps = len(x)
    page.step(
        "Forward",
        "Without bias and activation, so that every derivative is a matrix: a state is the sum of all inputs so far, "
        "each multiplied by a power of the recurrent weights.",
        r"h_t = W_{hx} x_t + W_{hh} h_{t-1} \quad o_t = W_{qh} h_t",
        "x Whx Whh Wqh",
        value("h", h, "step unit", "h_t"),
        value("o", o, "step output", "o_t"),
    )
    page.step(
        "The loss: a mean over time",
        "The losses of all steps, here half the squared error, divided by their number T.",
        r"L = \frac{1}{T} \sum_t l(o_t, y_t) \quad l = \frac{1}{2} \| o_t - y_t \|^2",
        "o y",
        value("L", loss),
        value("T", steps),
    )
    grad_o = (o - y) / steps
    page.step(
        "Back to the outputs",
        "The 1/T of the mean stands before the derivative of every step.",
        r"\frac{\partial L}{\partial o_t} = \frac{1}{T} \frac{\partial l(o_t, y_t)}{\partial o_t}",
        "o y T",
        value("grad_o", grad_o, "step output", r"\frac{\partial L}{\partial o_t}"),
    )
    grad_h, powers = _states(page, grad_o, Whh, Wqh)
    sums = _weights(page, grad_o, grad_h)
    weights = {name: page.tensor(name).requires_grad_() for name in sums}
    forward(x, y, **weights)[2].backward()
    wrong = max(max_difference(weights[name].grad, found) for name, found in sums.items())  # type: ignore[arg-type]
    page.compare("the formulas and autograd", 0.0, wrong)
    page.compare("the recursion and the sum of powers", powers, grad_h)


def _weights(page: LessonBuilder, grad_o: Tensor, grad_h: Tensor) -> dict[str, Tensor]:
    """Gradients of the weights: sums over time."""
    x, h = page.tensors("x h")
    before = torch.cat([torch.zeros_like(h[:1]), h[:-1]])
    sums = {"Wqh": grad_o.T @ h, "Whx": grad_h.T @ x, "Whh": grad_h.T @ before}
    page.step(
        "Back to the weights",
        "The same weights are used at every step: their gradient is a sum over time. Powers of the recurrent weights "
        "stand inside: below 1 they vanish, above 1 they explode.",
        r"\frac{\partial L}{\partial W_{qh}} = \sum_t \frac{\partial L}{\partial o_t} h_t^\top \quad "
        r"\frac{\partial L}{\partial W_{hx}} = \sum_t \frac{\partial L}{\partial h_t} x_t^\top \quad "
        r"\frac{\partial L}{\partial W_{hh}} = \sum_t \frac{\partial L}{\partial h_t} h_{t-1}^\top",
        "grad_o grad_h h x",
        value("grad_Wqh", sums["Wqh"], "output unit", r"\frac{\partial L}{\partial W_{qh}}"),
        value("grad_Whx", sums["Whx"], "unit input", r"\frac{\partial L}{\partial W_{hx}}"),
        value("grad_Whh", sums["Whh"], "unit before", r"\frac{\partial L}{\partial W_{hh}}"),
    )
    return sums


def forward(x: Tensor, y: Tensor, Whx: Tensor, Whh: Tensor, Wqh: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """States, outputs, and the mean of the losses."""
    states = [torch.zeros(len(Whx), dtype=x.dtype)]
    for x_t in x:
        states.append(Whx @ x_t + Whh @ states[-1])
    h = torch.stack(states[1:])
    o = h @ Wqh.T
    return h, o, ((o - y) ** 2).sum() / 2 / len(x)


def _states(page: LessonBuilder, grad_o: Tensor, Whh: Tensor, Wqh: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the states by the recursion, and by the sum of powers."""
    steps = len(grad_o)
    grad_h = torch.zeros(steps, len(Whh), dtype=grad_o.dtype)
    for t in reversed(range(steps)):
        grad_h[t] = Wqh.T @ grad_o[t] + (Whh.T @ grad_h[t + 1] if t + 1 < steps else 0)
    page.step(
        "Back through the states: the recursion",
        "The last state gets gradient from its own output only; every other one also from the state after it.",
        r"\frac{\partial L}{\partial h_T} = W_{qh}^\top \frac{\partial L}{\partial o_T} \quad "
        r"\frac{\partial L}{\partial h_t} = W_{hh}^\top \frac{\partial L}{\partial h_{t+1}} + W_{qh}^\top "
        r"\frac{\partial L}{\partial o_t}",
        "grad_o Whh Wqh",
        value("grad_h", grad_h, "step unit", r"\frac{\partial L}{\partial h_t}"),
    )
    powers, norms = torch.zeros_like(grad_h), []
    power = torch.eye(len(Whh), dtype=grad_o.dtype)
    for distance in range(steps):
        for t in range(steps - distance):
            powers[t] += power @ Wqh.T @ grad_o[t + distance]
        norms.append(float(torch.linalg.matrix_norm(power, 2)))
        power = power @ Whh.T
    page.step(
        "The same written out",
        "Expanded, the recursion is a sum over all later outputs, each behind a power of the transposed recurrent "
        "weights. The curve: the largest factor by which such a power can multiply a gradient, by distance.",
        r"\frac{\partial L}{\partial h_t} = \sum_{i=t}^{T} (W_{hh}^\top)^{T-i} W_{qh}^\top \frac{\partial "
        r"L}{\partial o_{T+t-i}}",
        "grad_o Whh Wqh",
        value("written_out", powers, "step unit", r"\frac{\partial L}{\partial h_t}"),
        value("factors", norms, "distance", r"\| (W_{hh}^\top)^n \|", look="log"),
    )
    return grad_h, powers


FIGURE = (
    "x > h > o > L > grad_o > grad_h > grad_Whh; y > L; T > grad_o; Whh > grad_h; h > grad_Whh; "
    "grad_o > grad_Wqh; h > grad_Wqh"
)
EXERCISES = (
    Exercise(
        "With W_hh = 0, what is the gradient of the last state, first unit? Two decimals.",
        item("grad_h", 3, 0),
        {"Whh": [[0.0, 0.0], [0.0, 0.0]]},
        hint="W_qh transposed, times (o_4 - y_4) / 4, and o_4 is W_qh W_hx x_4",
    ),
    Exercise(
        "With W_qh = 0 all outputs are 0. What is the loss, with the targets 1, 0, 1, 0?",
        "L",
        {"Wqh": [[0.0, 0.0]]},
        hint="half of each squared error, summed, divided by 4",
    ),
)
READING = Reading(
    "Backpropagation through time of the linear example, with its 1/T",
    (
        "backpropagation through time (BPTT)",
        "linear recurrent network",
        "matrix power",
        "vanishing and exploding gradients",
    ),
    (
        "Zhang, Lipton, Li and Smola 2023, Dive into deep learning, section 9.7",
        "Werbos 1990, Backpropagation through time: what it does and how to do it",
    ),
)
