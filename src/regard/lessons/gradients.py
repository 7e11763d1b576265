"""Lesson: how a gradient fades or grows on its way back through time, and what gates do about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import torch
from torch import Tensor

from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.layers import apart, cell
from regard.lessons.engine.lesson import Value
from regard.look.decay import Decay
from regard.look.gradients import gradients_through_time
from regard.look.sweeps import forget_sweep, spectral_sweep
from regard.models import ModelConfig
from regard.models.gpt import GPTConfig
from regard.models.rnnlm import RNNLMConfig
from regard.sequence import Padded, Tokens
from regard.spaces import Words
from regard.trace import record

value = Page.value
ANGLE, VOCABULARY, WIDTH = 0.5, 16, 32
LEVEL = 0.01
"""how far from 1 a rate may be that neither fades nor grows"""

INPUTS = (
    Input("radius", 0.9, "spectral radius of the worked matrix", symbol=r"\rho", bounds=(0.05, 4)),
    Input("length", 24, "steps", bounds=(4, 200)),
    Input("radii", [0.5, 0.9, 1.1, 1.5], "spectral radii of the swept network", ("network",), bounds=(0.05, 4)),
    Input("inputs", 0.001, "how strong what it reads is", bounds=(0, 10)),
    Input("biases", [0.0, 1.0, 4.0], "forget biases of an LSTM", ("lstm",), bounds=(-10, 10)),
)


def _work(given: Mapping[str, Value]) -> Work:
    """A power worked out, then measured: by radius, by forget bias, and in language models that nobody trained."""
    page = Page(given)
    radius, length = given["radius"].data, given["length"].data
    _power(page, radius, length)
    _by_radius(page, given)
    _by_bias(page, given)
    _by_model(page, length)
    page.lecture(
        "below a radius of 1 gradients fade, above it they grow", ["fades", "fades", "grows", "grows"], "fates"
    )
    page.lecture("an LSTM at its default fades too; the higher the forget bias, the less", "yes", "lasting")
    return page.work()


def _power(page: Page, radius: float, length: int) -> None:
    turn = torch.tensor([[math.cos(ANGLE), -math.sin(ANGLE)], [math.sin(ANGLE), math.cos(ANGLE)]], dtype=torch.float64)
    page.step(
        "One step back",
        "Near 0, tanh is a straight line, and how a state moves with the one before it is W itself. This W turns a "
        "vector and stretches it by its spectral radius, in every direction alike.",
        r"\frac{\partial h_t}{\partial h_{t-1}} = \diag(1 - h_t^2) W \approx W",
        "radius",
        value("W", radius * turn, "unit before"),
    )
    measured = _measured(radius * turn, length)
    places = {"distance": [str(d) for d in range(length)]}
    page.step(
        "Many steps back",
        "The product of as many such matrices: a power. Measured in the package's RNN, which reads zeros.",
        r"\| \frac{\partial h_t}{\partial h_s} \| = \rho^{t-s}",
        "W length",
        value("fading", measured, "distance", r"\| \partial h_t / \partial h_s \|", places, "log"),
    )
    powers = torch.tensor([radius**d for d in range(length)], dtype=torch.float64)
    page.agree("the power of the radius and the measured norms", 0.0, apart(measured / powers, torch.ones(1)))


def _measured(W: Tensor, length: int) -> Tensor:
    """|dh_T/dh_s| by distance, in a layer that reads zeros."""
    layer = cell("tanh", torch.zeros(2, 1), W, torch.zeros(2))
    x = Padded(torch.zeros(1, length, 1, dtype=torch.float64), torch.tensor([length]), ragged=False)
    with record(layer, gradients=True) as trace:
        out, _ = layer(x, layer.zeros(x.data))
    states = [seen.data for seen in trace.find("hidden")]
    found = torch.autograd.grad(out[0, -1, 0], states, materialize_grads=True)
    return torch.stack([grad.norm() for grad in reversed(found)])


def _curves(name: str, axis: str, curves: list[Decay]) -> tuple[Value, Value]:
    """The norms by distance, and what each word of distance multiplies them by."""
    labels = [curve.label for curve in curves]
    found = [dict(zip(curve.distances, curve.norms)) for curve in curves]
    there = [distance for distance in sorted(found[0]) if all(distance in norms for norms in found)]
    places, norms = [str(distance) for distance in there], [[row[distance] for distance in there] for row in found]
    drawn = value(name, norms, f"{axis} distance", r"\text{norms}", {axis: labels, "distance": places}, "log")
    rates = value(f"{name}_rates", [_rate(curve) for curve in curves], axis, r"\text{a step}", {axis: labels})
    return drawn, rates


def _rate(curve: Decay) -> float:
    """What one more step multiplies by; 0 where nothing is left after the first."""
    return 0.0 if math.isnan(curve.rate) else curve.rate


def _fate(rate: float) -> str:
    """What becomes of a gradient that every step multiplies by `rate`."""
    if abs(rate - 1) <= LEVEL:
        return "stays"
    return "fades" if rate < 1 else "grows"


def _by_radius(page: Page, given: Mapping[str, Value]) -> None:
    view = spectral_sweep(tuple(given["radii"].data), 32, given["length"].data, given["inputs"].data)
    fates = [_fate(_rate(curve)) for curve in view.curves]
    page.step(
        "A network by its spectral radius",
        "The same random matrix of 32 units, scaled to each radius. A curve each, on a logarithmic axis, and what one "
        f"more step multiplies by; within {100 * LEVEL:g} % of 1 it stays. With strong inputs (inputs=1) units "
        "saturate, and all of them fade.",
        r"\| \frac{\partial L_t}{\partial h_s} \| \text{ against } t - s",
        "radii inputs length",
        *_curves("by_radius", "network", list(view.curves)),
        value("fates", fates, "network", r"\text{fate}"),
    )


def _by_bias(page: Page, given: Mapping[str, Value]) -> None:
    biases = given["biases"].data
    view = forget_sweep(tuple(biases), 32, given["length"].data)
    rates = [rate for _, rate in sorted((bias, _rate(curve)) for bias, curve in zip(biases, view.curves))]
    page.step(
        "An LSTM by its forget bias",
        "Nobody trained it. With a bias of 0 the forget gate is about one half, and so the gradient fades like that "
        "of a small radius; a bias of 1 or more, or training, keeps it far longer.",
        r"\| \frac{\partial L_t}{\partial h_s} \| \text{ against } t - s",
        "biases length",
        *_curves("by_bias", "lstm", list(view.curves)),
        value("lasting", "yes" if rates == sorted(rates) and rates[0] < 1 else "no", "", r"\text{in this order}"),
    )


def _by_model(page: Page, length: int) -> None:
    configs: dict[str, ModelConfig] = {
        "RNN": RNNLMConfig(cell="tanh", layers=1, width=WIDTH, dropout=0.0),
        "GRU": RNNLMConfig(cell="gru", layers=1, width=WIDTH, dropout=0.0),
        "LSTM": RNNLMConfig(cell="lstm", layers=1, width=WIDTH, dropout=0.0),
        "LSTM, bias 4": RNNLMConfig(cell="lstm", layers=1, width=WIDTH, dropout=0.0, forget_bias=4.0),
        "Transformer": GPTConfig(layers=1, width=WIDTH, heads=4, longest=256),
    }
    curves = [_decay(name, config, length) for name, config in configs.items()]
    page.step(
        "Side by side",
        "Language models of one layer, as they are before training, over the same random words. In a Transformer every "
        "word is one step away from every other, so distance costs nothing but a share of the attention.",
        r"\| \frac{\partial L_t}{\partial h_s} \| \text{ against } t - s",
        "length",
        *_curves("by_model", "model", curves),
    )


@cache
def _decay(name: str, config: ModelConfig, length: int) -> Decay:
    words = Words(VOCABULARY)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = config.build(words, words).double().eval()
        target = Tokens.full(torch.randint(4, VOCABULARY, (4, length + 1)))
    return gradients_through_time(model, Tokens.of([[]] * 4), target, words).decay(name)


PLAN = Plan(INPUTS, _work)
