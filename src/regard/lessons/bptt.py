"""Lesson: backpropagation through time, written out: a formula per weight, and the recursion term by term.

In the lecture's notation: a_t = b + W h_{t-1} + U x_t, h_t = tanh a_t, o_t = c + V h_t; the loss is the cross-entropy
of softmax(o_t), summed over t. Truncated: the state is passed from one window to the next, the gradient is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise, item
from regard.lessons.engine.layers import linear, max_difference, recurrent_layer
from regard.lessons.engine.reading import Reading
from regard.sequence import Padded
from regard.spaces import Classes

LETTERS = ("c", "b", "V", "W", "U")


@dataclass(frozen=True)
class Network:
    """Weights of the lecture's network; any dtype, no batch dimension."""

    U: Tensor  # (units, inputs)
    V: Tensor  # (classes, units)
    W: Tensor  # (units, units)
    b: Tensor  # (units,)
    c: Tensor  # (classes,)

    @classmethod
    def random(cls, inputs: int, units: int, classes: int, seed: int) -> Network:
        """Random weights from a seed."""
        draw = torch.Generator().manual_seed(seed)
        shapes = ((units, inputs), (classes, units), (units, units), (units,), (classes,))
        return cls(*(torch.randn(s, generator=draw, dtype=torch.float64) / 2 for s in shapes))


@dataclass(frozen=True)
class ForwardPass:
    """Inputs, targets, hidden states and predictions of a forward pass."""

    x: Tensor  # (T, inputs)
    y: Tensor  # (T,): target classes
    h: Tensor  # (T + 1, units): the initial state, then the state after each step
    p: Tensor  # (T, classes): predicted probabilities

    @property
    def losses(self) -> Tensor:
        """(T,): negative log-likelihood of the targets"""
        return -self.p.log().gather(1, self.y[:, None]).squeeze(1)


def forward(net: Network, x: Tensor, y: Tensor, h: Tensor) -> ForwardPass:
    """Forward pass over x, step by step."""
    states = [h.to(x)]
    for x_t in x:
        states.append(torch.tanh(net.b + net.W @ states[-1] + net.U @ x_t))
    h = torch.stack(states)
    return ForwardPass(x, y, h, torch.softmax(net.c + h[1:] @ net.V.T, -1))


def window_starts(steps: int, window: int) -> list[int]:
    """For each step, the first step that its gradient reaches; a window of 0 is the whole sequence.

    >>> window_starts(5, 2), window_starts(3, 0)
    ([0, 0, 2, 2, 4], [0, 0, 0])
    """
    return [t - t % window if window else 0 for t in range(steps)]


@dataclass(frozen=True)
class BPTTGradients:
    """BPTTGradients of outputs, hidden states and weights."""

    o: Tensor  # (T, classes): dL/do_t
    h: Tensor  # (T, units): dL/dh_t
    weights: Mapping[str, Tensor]  # by the letter of the weight


def formula_gradients(net: Network, seen: ForwardPass, window: int = 0) -> BPTTGradients:
    """Gradients of the summed loss by the formulas: of o_t, of h_t from the last to the first, then of each weight."""
    steps, before, after = len(seen.x), seen.h[:-1], seen.h[1:]
    first = window_starts(steps, window)
    grad_o = seen.p - torch.nn.functional.one_hot(seen.y, seen.p.shape[1])
    grad_h = torch.zeros_like(after)
    for t in reversed(range(steps)):
        grad_h[t] = net.V.T @ grad_o[t]
        if t + 1 < steps and first[t + 1] <= t:  # step t + 1 is in the same window
            grad_h[t] += net.W.T @ torch.diag(1 - after[t + 1] ** 2) @ grad_h[t + 1]
    grad_a = torch.stack([torch.diag(1 - after[t] ** 2) @ grad_h[t] for t in range(steps)])
    weights = {
        "c": grad_o.sum(0),
        "b": grad_a.sum(0),
        "V": sum(torch.outer(grad_o[t], after[t]) for t in range(steps)),
        "W": sum(torch.outer(grad_a[t], before[t]) for t in range(steps)),
        "U": sum(torch.outer(grad_a[t], seen.x[t]) for t in range(steps)),
    }
    return BPTTGradients(grad_o, grad_h, weights)  # type: ignore[arg-type]


@dataclass(frozen=True)
class JacobianTerm:
    """One term of dh_t/dw: the direct effect of w on h_i, propagated to step t."""

    t: int
    i: int  # step at which the weight is used, counted from 1 like t
    product: Tensor  # (units, units): the product over j from i + 1 to t of df_j/dh_{j-1}
    direct: Tensor  # (units, *weight): df_i/dw with h_{i-1} constant

    @property
    def propagated_jacobian(self) -> Tensor:
        """(units, *weight): product times direct."""
        return torch.tensordot(self.product, self.direct, 1)


def recursion_terms(net: Network, seen: ForwardPass, letter: str, window: int = 0) -> Iterator[JacobianTerm]:
    """All terms of dh_t/dw for t = 1, 2, ..., each from the direct one (i = t) back to the first of its window."""
    slope = 1 - seen.h[1:] ** 2
    units = net.W.shape[0]
    for t, first in enumerate(window_starts(len(seen.x), window)):
        product = torch.eye(units, dtype=net.W.dtype)
        for i in range(t, first - 1, -1):
            rows = torch.diag(slope[i])  # unit k depends only on row k of the weight
            used = {"W": seen.h[i], "U": seen.x[i]}.get(letter)  # none for a bias
            yield JacobianTerm(t + 1, i + 1, product, rows if used is None else torch.tensordot(rows, used, 0))
            product = product @ torch.diag(slope[i]) @ net.W


def recursion_gradient(net: Network, seen: ForwardPass, letter: str, window: int = 0) -> Tensor:
    """dL/dw as the sum over t of dL_t/dh_t times dh_t/dw, the latter as the sum of its terms."""
    grad_o = seen.p - torch.nn.functional.one_hot(seen.y, seen.p.shape[1])
    direct = grad_o @ net.V  # (T, units): dL_t/dh_t
    terms = recursion_terms(net, seen, letter, window)
    return torch.stack([torch.tensordot(direct[one.t - 1], one.propagated_jacobian, 1) for one in terms]).sum(0)


def autograd_gradients(net: Network, x: Tensor, y: Tensor, h: Tensor, window: int = 0) -> dict[str, Tensor]:
    """The same gradients by autograd through the package's RNN and loss; between windows the state is detached."""
    layer, readout = recurrent_layer("tanh", net.U, net.W, net.b), linear(net.V, net.c)
    space, total, state = Classes(len(net.c)), torch.zeros((), dtype=torch.float64), (h.double()[None],)
    for part_x, part_y in zip(x.double().split(window or len(x)), y.split(window or len(y))):
        lengths = torch.tensor([len(part_x)])
        out, state = layer(Padded(part_x[None], lengths, ragged=False), tuple(part.detach() for part in state))
        total = total + space.loss(readout(out[0]), part_y)
    total.backward()
    found = {"U": layer.rnn.weight_ih_l0, "W": layer.rnn.weight_hh_l0, "b": layer.rnn.bias_ih_l0}
    found |= {"V": readout.weight, "c": readout.bias}
    return {letter: weight.grad for letter, weight in found.items()}  # type: ignore[misc]


INPUTS = (
    Input("x", [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]], "inputs, one row per step", ("step", "input"), "x_t"),
    Input("y", [1, 2, 1, 2], "target class of each step, from 1", ("step",), "y_t", bounds=(1, 64)),
    Input("h", [0.0, 0.0], "initial hidden state", ("unit",), "h_0"),
    Input("U", [[0.5, -0.3], [0.2, 0.4]], "input weights", ("unit", "input")),
    Input("W", [[0.6, -0.2], [0.3, 0.5]], "recurrent weights", ("unit", "before")),
    Input("b", [0.1, 0.0], "bias of the hidden state", ("unit",)),
    Input("V", [[1.0, -1.0], [-0.5, 0.5]], "output weights", ("class", "unit")),
    Input("c", [0.0, 0.2], "bias of the output", ("class",)),
    Input("weight", [1, 2], "row and column of a weight w of W to follow", ("index",), "w", bounds=(1, 64)),
    Input("window", 2, "steps per window of truncated backpropagation", bounds=(1, 4096)),
)


def compute(page: LessonBuilder) -> None:
    """Forward pass; gradients by the formulas, by the recursion and by autograd."""
    net = Network(*page.tensors("U V W b c"))
    x, y, h, window = page.tensor("x"), torch.tensor(page.data("y")) - 1, page.tensor("h"), page.data("window")
    _check_indices(page)
    seen = forward(net, x, y, h)
    full, truncated = formula_gradients(net, seen), formula_gradients(net, seen, window)
    _forward(page, seen)
    _backward(page, full)
    _terms(page, net, seen, page.data("weight"))
    page.step(
        "Truncated",
        "Long sequences are trained in windows: the hidden state is passed from one to the next, the gradient stops at "
        "the start of the window. Earlier terms are missing from the sum.",
        r"\frac{\partial L}{\partial W} \text{ with } i \text{ in the window of } t",
        "h_all grad_h W window grad_W",
        value("truncated_W", truncated.weights["W"], "unit before", r"\text{truncated}"),
        value("lost", max_difference(full.weights["W"], truncated.weights["W"]), "", r"\text{lost at most}"),
    )
    for name, size, found in (("full", 0, full), (f"in windows of {window}", window, truncated)):
        auto = autograd_gradients(net, x, y, h, size)
        wrong = max(max_difference(auto[letter], found.weights[letter]) for letter in LETTERS)
        page.compare(f"the formulas and autograd, {name}", 0.0, wrong)
        wrong = max(max_difference(auto[letter], recursion_gradient(net, seen, letter, size)) for letter in "WUb")
        page.compare(f"the recursion and autograd, {name}", 0.0, wrong)


def _check_indices(page: LessonBuilder) -> None:
    classes, units = len(page.data("c")), len(page.data("b"))
    if (largest := max(page.data("y"))) > classes:
        raise ConfigError(f"y: expected classes from 1 to {classes} (c and V have as many), got {largest}")
    if len(page.data("weight")) != 2 or max(page.data("weight")) > units:
        raise ConfigError(f"weight: expected a row and a column of W, each from 1 to {units}")
    if (columns := len(page.data("W")[0])) != units:
        raise ConfigError(f"W: expected {units} x {units} numbers, got {units} x {columns}")


def _forward(page: LessonBuilder, seen: ForwardPass) -> None:
    page.step(
        "Forward",
        "The same W, U and b at every step; each hidden state is computed from the previous one.",
        r"h_t = \tanh(b + W h_{t-1} + U x_t)",
        "x h U W b",
        value("h_all", seen.h[1:], "step unit", "h_t"),
    )
    page.step(
        "Prediction and loss",
        "A softmax over the outputs, and the negative log-likelihood of the target classes.",
        r"p_t = \softmax(c + V h_t) \quad L = -\sum_t \log p_{t, y_t}",
        "h_all V c y",
        value("p", seen.p, "step class", "p_t", look="weights"),
        value("L", seen.losses.sum()),
    )


def _backward(page: LessonBuilder, full: BPTTGradients) -> None:
    page.step(
        "Back through the softmax",
        "The predicted probabilities minus the one-hot target.",
        r"\frac{\partial L}{\partial o_t} = p_t - 1_{y_t}",
        "p y",
        value("grad_o", full.o, "step class", r"\frac{\partial L}{\partial o_t}"),
    )
    page.step(
        "Back through time",
        "From the last step to the first. A hidden state gets gradient from its own output and, through W, from the "
        "next state; the derivative of tanh is 1 - h².",
        r"\frac{\partial L}{\partial h_t} = W^\top \diag(1 - h_{t+1}^2) \frac{\partial L}{\partial h_{t+1}} "
        r"+ V^\top \frac{\partial L}{\partial o_t}",
        "grad_o h_all W V",
        value("grad_h", full.h, "step unit", r"\frac{\partial L}{\partial h_t}"),
    )
    sums = {
        "c": (r"\sum_t \frac{\partial L}{\partial o_t}", "grad_o", "class"),
        "b": (r"\sum_t \diag(1 - h_t^2) \frac{\partial L}{\partial h_t}", "h_all grad_h", "unit"),
        "V": (r"\sum_t \frac{\partial L}{\partial o_t} h_t^\top", "grad_o h_all", "class unit"),
        "W": (r"\sum_t \diag(1 - h_t^2) \frac{\partial L}{\partial h_t} h_{t-1}^\top", "h_all grad_h h", "unit before"),
        "U": (r"\sum_t \diag(1 - h_t^2) \frac{\partial L}{\partial h_t} x_t^\top", "h_all grad_h x", "unit input"),
    }
    for letter, (formula, using, axes) in sums.items():
        page.step(
            f"The gradient of {letter}",
            "The parameter is used at every step, so its gradient is a sum over the steps.",
            rf"\frac{{\partial L}}{{\partial {letter}}} = {formula}",
            using,
            value(f"grad_{letter}", full.weights[letter], axes, rf"\frac{{\partial L}}{{\partial {letter}}}"),
        )


def _terms(page: LessonBuilder, net: Network, seen: ForwardPass, weight: list[int]) -> None:
    row, column = (index - 1 for index in weight)
    last = [term for term in recursion_terms(net, seen, "W") if term.t == len(seen.x)]
    terms = torch.stack([term.propagated_jacobian[:, row, column] for term in last])
    page.step(
        "The same by the recursion",
        "The derivative of the last state with respect to one weight w: its use in the last step, plus its use in the "
        "step before, propagated by one Jacobian, and so on. One row per step i.",
        r"\frac{\partial h_t}{\partial w} = \frac{\partial f_t}{\partial w} + \sum_{i<t} "
        r"(\prod_{j=i+1}^{t} \frac{\partial f_j}{\partial h_{j-1}}) \frac{\partial f_i}{\partial w}",
        "h_all h W weight",
        value("terms", terms, "step unit", r"\text{terms}", {"step": [f"i = {term.i}" for term in last]}),
        value("dh_dw", terms.sum(0), "unit", r"\frac{\partial h_T}{\partial w}"),
    )
    page.step(
        "And the loss",
        "The gradient of each step's own loss with respect to its state, times the derivative of the state with "
        "respect to w; summed over the steps it is the entry of the gradient of W that the formula gave.",
        r"\frac{\partial L}{\partial w} = \sum_t \frac{\partial L_t}{\partial h_t} "
        r"\frac{\partial h_t}{\partial w}",
        "grad_o V h_all h W weight",
        value("dL_dw", recursion_gradient(net, seen, "W")[row, column], "", r"\frac{\partial L}{\partial w}"),
    )


FIGURE = "x > h_all > p > L > grad_o > grad_h > grad_W; y > L; h_all > grad_W; W > grad_h"
EXERCISES = (
    Exercise(
        "With the window of 4 steps, how much of the gradient of W is lost at most?",
        "lost",
        {"window": 4},
        hint="the sequence has 4 steps",
    ),
    Exercise(
        "What is the gradient of the loss with respect to the first output of step 1 if the target is class 2?",
        item("grad_o", 0, 0),
        {"y": [2, 2, 1, 2]},
        hint="probability minus one-hot target: the target is another class, so nothing is subtracted",
    ),
)
READING = Reading(
    "Backpropagation through time by formula and by recursion, full and truncated",
    ("backpropagation through time (BPTT)", "truncated BPTT", "Jacobian", "unrolling"),
    (
        "Werbos 1990, Backpropagation through time: what it does and how to do it",
        "Williams and Peng 1990, An efficient gradient-based algorithm for on-line training of recurrent "
        "network trajectories",
    ),
)
