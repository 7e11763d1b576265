"""Lesson: vanishing and exploding gradients through time, and the effect of gates."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor

from regard.lessons.engine.builder import Input, LessonBuilder, Value, value
from regard.lessons.engine.exercises import Exercise, item
from regard.lessons.engine.layers import max_difference, recurrent_layer
from regard.lessons.engine.reading import Reading
from regard.look.decay import GradientDecay
from regard.look.gradients import gradients_through_time
from regard.look.sweeps import forget_sweep, spectral_sweep
from regard.models import ModelConfig
from regard.models.gpt import GPTConfig
from regard.models.rnnlm import RNNLMConfig
from regard.sequence import Padded, Tokens
from regard.spaces import Words
from regard.trace import record

ANGLE, VOCABULARY, WIDTH = 0.5, 16, 32
TOLERANCE = 0.01
"""distance from 1 up to which a decay rate counts as constant"""

INPUTS = (
    Input("radius", 0.9, "spectral radius of the example matrix", symbol=r"\rho", bounds=(0.05, 4)),
    Input("length", 24, "steps", bounds=(4, 200)),
    Input("radii", [0.5, 0.9, 1.1, 1.5], "spectral radii of a random network", ("network",), bounds=(0.05, 4)),
    Input("inputs", 0.001, "scale of its inputs", bounds=(0, 10)),
    Input("biases", [0.0, 1.0, 4.0], "forget biases of an LSTM", ("lstm",), bounds=(-10, 10)),
)


def compute(page: LessonBuilder) -> None:
    """A matrix power, then measured norms: by spectral radius, by forget bias, and in untrained language models."""
    _power(page, page.data("radius"), page.data("length"))
    _by_radius(page)
    _by_bias(page)
    _by_model(page, page.data("length"))
    fates = ["fades", "fades", "grows", "grows"]
    page.expect("below a radius of 1 gradients fade, above it they grow", fates, "fates")
    page.expect("an LSTM at its default fades too; the higher the forget bias, the less", "yes", "lasting")


def _power(page: LessonBuilder, radius: float, length: int) -> None:
    turn = torch.tensor([[math.cos(ANGLE), -math.sin(ANGLE)], [math.sin(ANGLE), math.cos(ANGLE)]], dtype=torch.float64)
    page.step(
        "One step back",
        "Near 0, tanh is linear, and the Jacobian of a state with respect to the previous one is W itself. This W "
        "rotates a vector and scales it by its spectral radius, the same in every direction.",
        r"\frac{\partial h_t}{\partial h_{t-1}} = \diag(1 - h_t^2) W \approx W",
        "radius",
        value("W", radius * turn, "unit before"),
    )
    norms = _gradient_norms(radius * turn, length)
    labels = {"distance": [str(d) for d in range(length)]}
    page.step(
        "Many steps back",
        "The product of as many such matrices: a power. Measured in the package's RNN with zero inputs.",
        r"\| \frac{\partial h_t}{\partial h_s} \| = \rho^{t-s}",
        "W length",
        value("fading", norms, "distance", r"\| \partial h_t / \partial h_s \|", labels, "log"),
    )
    powers = torch.tensor([radius**d for d in range(length)], dtype=torch.float64)
    wrong = max_difference(norms / powers, torch.ones(1))
    page.compare("the power of the radius and the measured norms", 0.0, wrong)


def _gradient_norms(W: Tensor, length: int) -> Tensor:
    """|dh_T/dh_s| by distance, with zero inputs."""
    layer = recurrent_layer("tanh", torch.zeros(2, 1), W, torch.zeros(2))
    x = Padded(torch.zeros(1, length, 1, dtype=torch.float64), torch.tensor([length]), ragged=False)
    with record(layer, gradients=True) as trace:
        out, _ = layer(x, layer.zeros(x.data))
    states = [seen.data for seen in trace.find("hidden")]
    found = torch.autograd.grad(out[0, -1, 0], states, materialize_grads=True)
    return torch.stack([grad.norm() for grad in reversed(found)])


def _curves(name: str, axis: str, curves: list[GradientDecay]) -> tuple[Value, Value]:
    """Norms by distance, and the factor per step."""
    labels = [curve.label for curve in curves]
    found = [dict(zip(curve.distances, curve.norms)) for curve in curves]
    distances = [distance for distance in sorted(found[0]) if all(distance in norms for norms in found)]
    norms = [[row[distance] for distance in distances] for row in found]
    ticks = {axis: labels, "distance": [str(distance) for distance in distances]}
    rates = value(f"{name}_rates", [_rate(curve) for curve in curves], axis, r"\text{per step}", {axis: labels})
    return value(name, norms, f"{axis} distance", r"\text{norms}", ticks, "log"), rates


def _rate(curve: GradientDecay) -> float:
    """Factor per step; 0 where nothing is left after the first step."""
    return 0.0 if math.isnan(curve.rate) else curve.rate


def _fate(rate: float) -> str:
    """Long-term behavior of a gradient that is multiplied by `rate` at every step."""
    if abs(rate - 1) <= TOLERANCE:
        return "stays"
    return "fades" if rate < 1 else "grows"


def _by_radius(page: LessonBuilder) -> None:
    view = spectral_sweep(tuple(page.data("radii")), 32, page.data("length"), page.data("inputs"))
    fates = [_fate(_rate(curve)) for curve in view.curves]
    page.step(
        "A network by its spectral radius",
        "The same random matrix of 32 units, scaled to each radius. One curve each, on a logarithmic axis, and the "
        f"factor per step; within {100 * TOLERANCE:g} % of 1 the gradient stays. With strong inputs (inputs=1) units "
        "saturate, and all gradients fade.",
        r"\| \frac{\partial L_t}{\partial h_s} \| \text{ against } t - s",
        "radii inputs length",
        *_curves("by_radius", "network", list(view.curves)),
        value("fates", fates, "network", r"\text{fate}"),
    )


def _by_bias(page: LessonBuilder) -> None:
    biases = page.data("biases")
    view = forget_sweep(tuple(biases), 32, page.data("length"))
    rates = [rate for _, rate in sorted((bias, _rate(curve)) for bias, curve in zip(biases, view.curves))]
    page.step(
        "An LSTM by its forget bias",
        "Untrained. With a bias of 0 the forget gate is about one half, so the gradient fades as with a small spectral "
        "radius; a bias of 1 or more, or training, preserves it much longer.",
        r"\| \frac{\partial L_t}{\partial h_s} \| \text{ against } t - s",
        "biases length",
        *_curves("by_bias", "lstm", list(view.curves)),
        value("lasting", "yes" if rates == sorted(rates) and rates[0] < 1 else "no", "", r"\text{in this order}"),
    )


def _by_model(page: LessonBuilder, length: int) -> None:
    configs: dict[str, ModelConfig] = {
        "RNN": RNNLMConfig(cell="tanh", layers=1, width=WIDTH, dropout=0.0),
        "GRU": RNNLMConfig(cell="gru", layers=1, width=WIDTH, dropout=0.0),
        "LSTM": RNNLMConfig(cell="lstm", layers=1, width=WIDTH, dropout=0.0),
        "LSTM, bias 4": RNNLMConfig(cell="lstm", layers=1, width=WIDTH, dropout=0.0, forget_bias=4.0),
        "Transformer": GPTConfig(layers=1, width=WIDTH, heads=4, max_positions=256),
    }
    curves = [_decay(name, config, length) for name, config in configs.items()]
    page.step(
        "Models compared",
        "Untrained language models with one layer, on the same random words. In a Transformer every word is one step "
        "away from every other, so distance costs nothing but a share of the attention.",
        r"\| \frac{\partial L_t}{\partial h_s} \| \text{ against } t - s",
        "length",
        *_curves("by_model", "model", curves),
    )


@cache
def _decay(name: str, config: ModelConfig, length: int) -> GradientDecay:
    words = Words(VOCABULARY)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = config.build(words, words).double().eval()
        target = Tokens.full(torch.randint(4, VOCABULARY, (4, length + 1)))
    return gradients_through_time(model, Tokens.pad([[]] * 4), target, words).decay(name)


FIGURE = "radius > W > fading; length > fading; radii > by_radius > fates; biases > by_bias"
EXERCISES = (
    Exercise(
        "With the radius of 0.9, what is the norm of the gradient after 10 steps? Two decimals.",
        item("fading", 10),
        hint="0.9 to the power of 10",
    ),
    Exercise(
        "What becomes of the gradient of the network with spectral radius 1.5: fades, stays or grows?",
        item("fates", 3),
        hint="a number above 1, multiplied many times",
    ),
)
READING = Reading(
    "Vanishing and exploding gradients: spectral radius, forget bias",
    ("vanishing gradient", "exploding gradient", "spectral radius", "forget gate bias", "gradient clipping"),
    (
        "Hochreiter 1991, Untersuchungen zu dynamischen neuronalen Netzen",
        "Bengio, Simard and Frasconi 1994, Learning long-term dependencies with gradient descent is difficult",
        "Pascanu, Mikolov and Bengio 2013, On the difficulty of training recurrent neural networks",
    ),
)
