"""Lesson: backpropagation through time, written out: a formula for each weight, and the recursion term by term.

In the letters of the lecture: a_t = b + W h_{t-1} + U x_t, h_t = tanh a_t, o_t = c + V h_t, the loss is that of a
softmax over o_t, summed over t. Truncated: the state goes on from one window to the next, the gradient does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.layers import apart, cell, linear, tensor
from regard.lessons.engine.lesson import Value
from regard.sequence import Padded
from regard.spaces import Classes

LETTERS = ("c", "b", "V", "W", "U")


@dataclass(frozen=True)
class Network:
    """The weights of the lecture's network; any dtype, no batch.

    >>> Network.random(inputs=2, units=3, classes=2, seed=0).W.shape
    torch.Size([3, 3])
    """

    U: Tensor
    """(units, inputs)"""
    V: Tensor
    """(classes, units)"""
    W: Tensor
    """(units, units)"""
    b: Tensor
    """(units,)"""
    c: Tensor
    """(classes,)"""

    @classmethod
    def random(cls, inputs: int, units: int, classes: int, seed: int) -> Network:
        """Weights drawn by a seed."""
        draw = torch.Generator().manual_seed(seed)
        shapes = ((units, inputs), (classes, units), (units, units), (units,), (classes,))
        return cls(*(torch.randn(s, generator=draw, dtype=torch.float64) / 2 for s in shapes))


@dataclass(frozen=True)
class Pass:
    """What happened on the way forward.

    >>> forward(Network.random(2, 3, 2, 0), torch.ones(4, 2).double(), torch.zeros(4).long(), torch.zeros(3)).h.shape
    torch.Size([5, 3])
    """

    x: Tensor
    """(T, inputs)"""
    y: Tensor
    """(T,) the right classes"""
    h: Tensor
    """(T + 1, units): the state before the first step, then after each"""
    p: Tensor
    """(T, classes) what the softmax says"""

    @property
    def losses(self) -> Tensor:
        """(T,)"""
        return -self.p.log().gather(1, self.y[:, None]).squeeze(1)


def forward(net: Network, x: Tensor, y: Tensor, h: Tensor) -> Pass:
    """Read x step by step.

    >>> step = forward(Network.random(2, 3, 2, 0), torch.ones(1, 2).double(), torch.tensor([0]), torch.zeros(3))
    >>> step.p.sum().item()
    1.0
    """
    states = [h.to(x)]
    for x_t in x:
        states.append(torch.tanh(net.b + net.W @ states[-1] + net.U @ x_t))
    h = torch.stack(states)
    return Pass(x, y, h, torch.softmax(net.c + h[1:] @ net.V.T, -1))


def starts(steps: int, window: int) -> list[int]:
    """For each step, the first step that its gradient reaches back to; a window of 0 is as long as the sequence.

    >>> starts(5, 2), starts(3, 0)
    ([0, 0, 2, 2, 4], [0, 0, 0])
    """
    return [t - t % window if window else 0 for t in range(steps)]


@dataclass(frozen=True)
class Gradients:
    """What the formulas give: on the way back, and for each weight.

    >>> Gradients(torch.zeros(1, 2), torch.zeros(1, 3), {"c": torch.zeros(2)}).of["c"]
    tensor([0., 0.])
    """

    o: Tensor
    """(T, classes): dL/do_t"""
    h: Tensor
    """(T, units): dL/dh_t"""
    of: Mapping[str, Tensor]
    """by the letter of the weight"""


def formulas(net: Network, seen: Pass, window: int = 0) -> Gradients:
    """The gradients of the summed loss: of o_t, then of h_t from the last to the first, then of each weight.

    >>> net = Network.random(2, 3, 2, 0)
    >>> seen = forward(net, torch.ones(3, 2).double(), torch.zeros(3).long(), torch.zeros(3))
    >>> formulas(net, seen).of["U"].shape
    torch.Size([3, 2])
    """
    steps, before, after = len(seen.x), seen.h[:-1], seen.h[1:]
    first = starts(steps, window)
    of_o = seen.p - torch.nn.functional.one_hot(seen.y, seen.p.shape[1])
    of_h = torch.zeros_like(after)
    for t in reversed(range(steps)):
        of_h[t] = net.V.T @ of_o[t]
        if t + 1 < steps and first[t + 1] <= t:  # the next step reaches back to this one
            of_h[t] += net.W.T @ torch.diag(1 - after[t + 1] ** 2) @ of_h[t + 1]
    of_a = torch.stack([torch.diag(1 - after[t] ** 2) @ of_h[t] for t in range(steps)])
    of = {
        "c": of_o.sum(0),
        "b": of_a.sum(0),
        "V": sum(torch.outer(of_o[t], after[t]) for t in range(steps)),
        "W": sum(torch.outer(of_a[t], before[t]) for t in range(steps)),
        "U": sum(torch.outer(of_a[t], seen.x[t]) for t in range(steps)),
    }
    return Gradients(of_o, of_h, of)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Term:
    """One term of dh_t/dw: how step i moves h_i, carried on to step t.

    >>> Term(2, 1, torch.eye(2), torch.ones(2, 3)).carried.shape
    torch.Size([2, 3])
    """

    t: int
    i: int
    """the step at which the weight is used, from 1 on as t is"""
    product: Tensor
    """(units, units): the product over j from i + 1 to t of df_j/dh_{j-1}"""
    direct: Tensor
    """(units, *weight): df_i/dw, with h_{i-1} held fast"""

    @property
    def carried(self) -> Tensor:
        """(units, *weight): product times direct."""
        return torch.tensordot(self.product, self.direct, 1)


def recursion(net: Network, seen: Pass, letter: str, window: int = 0) -> Iterator[Term]:
    """All terms of dh_t/dw for t = 1, 2, ..., each from the direct one (i = t) back to the first of its window.

    >>> net = Network.random(2, 3, 2, 0)
    >>> seen = forward(net, torch.ones(3, 2).double(), torch.zeros(3).long(), torch.zeros(3))
    >>> [(term.t, term.i) for term in recursion(net, seen, "W")]
    [(1, 1), (2, 2), (2, 1), (3, 3), (3, 2), (3, 1)]
    """
    slope = 1 - seen.h[1:] ** 2
    units = net.W.shape[0]
    for t, first in enumerate(starts(len(seen.x), window)):
        product = torch.eye(units, dtype=net.W.dtype)
        for i in range(t, first - 1, -1):
            rows = torch.diag(slope[i])  # unit k depends on row k of the weight alone
            used = {"W": seen.h[i], "U": seen.x[i]}.get(letter)  # a bias is multiplied by nothing
            yield Term(t + 1, i + 1, product, rows if used is None else torch.tensordot(rows, used, 0))
            product = product @ torch.diag(slope[i]) @ net.W


def by_recursion(net: Network, seen: Pass, letter: str, window: int = 0) -> Tensor:
    """dL/dw = the sum over t of dL_t/dh_t times dh_t/dw, dh_t/dw being the sum of its terms.

    >>> net = Network.random(2, 3, 2, 0)
    >>> seen = forward(net, torch.ones(3, 2).double(), torch.zeros(3).long(), torch.zeros(3))
    >>> torch.allclose(by_recursion(net, seen, "W", 2), formulas(net, seen, 2).of["W"])
    True
    """
    of_o = seen.p - torch.nn.functional.one_hot(seen.y, seen.p.shape[1])
    direct = of_o @ net.V  # (T, units): what L_t itself wants of h_t
    found = [torch.tensordot(direct[term.t - 1], term.carried, 1) for term in recursion(net, seen, letter, window)]
    return torch.stack(found).sum(0)


def by_autograd(net: Network, x: Tensor, y: Tensor, h: Tensor, window: int = 0) -> dict[str, Tensor]:
    """The same gradients by the package's RNN, its loss and torch.autograd; between windows the state is detached.

    >>> net = Network.random(2, 3, 2, 0)
    >>> sorted(by_autograd(net, torch.ones(3, 2).double(), torch.zeros(3).long(), torch.zeros(3)))
    ['U', 'V', 'W', 'b', 'c']
    """
    layer, readout = cell("tanh", net.U, net.W, net.b), linear(net.V, net.c)
    space, total, state = Classes(len(net.c)), torch.zeros((), dtype=torch.float64), (h.double()[None],)
    for part_x, part_y in zip(x.double().split(window or len(x)), y.split(window or len(y))):
        lengths = torch.tensor([len(part_x)])
        out, state = layer(Padded(part_x[None], lengths, ragged=False), tuple(part.detach() for part in state))
        total = total + space.loss(readout(out[0]), part_y)
    total.backward()
    found = {"U": layer.rnn.weight_ih_l0, "W": layer.rnn.weight_hh_l0, "b": layer.rnn.bias_ih_l0}
    found |= {"V": readout.weight, "c": readout.bias}
    return {letter: weight.grad for letter, weight in found.items()}  # type: ignore[misc]


value = Page.value

INPUTS = (
    Input(
        "x", [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]], "what is read, a row a step", ("step", "input"), "x_t"
    ),
    Input("y", [1, 2, 1, 2], "the right class at each step, from 1 on", ("step",), "y_t", bounds=(1, 64)),
    Input("h", [0.0, 0.0], "the state before the first step", ("unit",), "h_0"),
    Input("U", [[0.5, -0.3], [0.2, 0.4]], "from input to state", ("unit", "input")),
    Input("W", [[0.6, -0.2], [0.3, 0.5]], "from state to state", ("unit", "before")),
    Input("b", [0.1, 0.0], "bias of the state", ("unit",)),
    Input("V", [[1.0, -1.0], [-0.5, 0.5]], "from state to output", ("class", "unit")),
    Input("c", [0.0, 0.2], "bias of the output", ("class",)),
    Input("weight", [1, 2], "row and column of the weight w of W to follow", ("index",), "w", bounds=(1, 64)),
    Input("window", 2, "steps that a truncated gradient reaches over", bounds=(1, 4096)),
)


def _work(given: Mapping[str, Value]) -> Work:
    """Forward, back by the formulas, back by the recursion, and autograd beside them."""
    page = Page(given)
    net = Network(*(tensor(given[letter]) for letter in "UVWbc"))
    x, y, h = tensor(given["x"]), torch.tensor(given["y"].data) - 1, tensor(given["h"])
    _check_places(given)
    seen, window = forward(net, x, y, h), given["window"].data
    full, cut = formulas(net, seen), formulas(net, seen, window)
    _onward(page, net, seen)
    _back(page, full)
    _weights(page, full)
    _terms(page, net, seen, given["weight"].data)
    page.step(
        "Truncated",
        "Long sequences are trained in windows: the state goes on from one to the next, the gradient stops at the "
        "window's beginning. What lies further back is lost from the sum.",
        r"\frac{\partial L}{\partial W} \text{ with } i \text{ in the window of } t",
        "h_all grad_h W window grad_W",
        value("truncated_W", cut.of["W"], "unit before", r"\text{truncated}"),
        value("lost", apart(full.of["W"], cut.of["W"]), "", r"\text{lost at most}"),
    )
    for name, size, found in (("full", 0, full), (f"in windows of {window}", window, cut)):
        auto = by_autograd(net, x, y, h, size)
        wrong = max(apart(auto[letter], found.of[letter]) for letter in LETTERS)
        page.agree(f"the formulas and autograd, {name}", 0.0, wrong)
        wrong = max(apart(auto[letter], by_recursion(net, seen, letter, size)) for letter in "WUb")
        page.agree(f"the recursion and autograd, {name}", 0.0, wrong)
    return page.work()


def _check_places(given: Mapping[str, Value]) -> None:
    classes, units = len(given["c"].data), len(given["b"].data)
    if max(given["y"].data) > classes:
        raise ConfigError(f"y: expected classes from 1 to {classes} (c and V have as many), got {max(given['y'].data)}")
    if len(given["weight"].data) != 2 or max(given["weight"].data) > units:
        raise ConfigError(f"weight: expected a row and a column of W, each from 1 to {units}")
    if len(given["W"].data[0]) != units:
        raise ConfigError(f"W: expected {units} x {units} numbers, got {units} x {len(given['W'].data[0])}")


def _onward(page: Page, net: Network, seen: Pass) -> None:
    page.step(
        "Forward",
        "The same W, U and b at every step; each state is made of the one before it.",
        r"h_t = \tanh(b + W h_{t-1} + U x_t)",
        "x h U W b",
        value("h_all", seen.h[1:], "step unit", "h_t"),
    )
    page.step(
        "What it says",
        "A softmax over the outputs, and how surprising the right class was.",
        r"p_t = \softmax(c + V h_t) \quad L = -\sum_t \log p_{t, y_t}",
        "h_all V c y",
        value("p", seen.p, "step class", "p_t", look="weights"),
        value("L", seen.losses.sum()),
    )


def _back(page: Page, full: Gradients) -> None:
    page.step(
        "Back through the softmax",
        "What was said, less what should have been said.",
        r"\frac{\partial L}{\partial o_t} = p_t - 1_{y_t}",
        "p y",
        value("grad_o", full.o, "step class", r"\frac{\partial L}{\partial o_t}"),
    )
    page.step(
        "Back through time",
        "From the last step to the first. A state is wanted by its own output and, through W, by the next state; tanh "
        "lets through 1 - h² of it.",
        r"\frac{\partial L}{\partial h_t} = W^\top \diag(1 - h_{t+1}^2) \frac{\partial L}{\partial h_{t+1}} "
        r"+ V^\top \frac{\partial L}{\partial o_t}",
        "grad_o h_all W V",
        value("grad_h", full.h, "step unit", r"\frac{\partial L}{\partial h_t}"),
    )


def _weights(page: Page, full: Gradients) -> None:
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
            "It was used at every step, so it is a sum over the steps.",
            rf"\frac{{\partial L}}{{\partial {letter}}} = {formula}",
            using,
            value(f"grad_{letter}", full.of[letter], axes, rf"\frac{{\partial L}}{{\partial {letter}}}"),
        )


def _terms(page: Page, net: Network, seen: Pass, weight: list[int]) -> None:
    row, column = (place - 1 for place in weight)
    last = [term for term in recursion(net, seen, "W") if term.t == len(seen.x)]
    terms = torch.stack([term.carried[:, row, column] for term in last])
    page.step(
        "The same by the recursion",
        "How the last state moves with one weight w: by its use in the last step, plus its use in the step before, "
        "carried on by one Jacobian, and so on. A row for each step i of which it is the use.",
        r"\frac{\partial h_t}{\partial w} = \frac{\partial f_t}{\partial w} + \sum_{i<t} "
        r"(\prod_{j=i+1}^{t} \frac{\partial f_j}{\partial h_{j-1}}) \frac{\partial f_i}{\partial w}",
        "h_all h W weight",
        value("terms", terms, "step unit", r"\text{terms}", {"step": [f"i = {term.i}" for term in last]}),
        value("dh_dw", terms.sum(0), "unit", r"\frac{\partial h_T}{\partial w}"),
    )
    page.step(
        "And so to the loss",
        "Each step's own wish for its state, times how the state moves with w; summed over the steps it is the entry "
        "of the gradient of W that the formula gave.",
        r"\frac{\partial L}{\partial w} = \sum_t \frac{\partial L_t}{\partial h_t} "
        r"\frac{\partial h_t}{\partial w}",
        "grad_o V h_all h W weight",
        value("dL_dw", by_recursion(net, seen, "W")[row, column], "", r"\frac{\partial L}{\partial w}"),
    )


PLAN = Plan(INPUTS, _work)
