"""Lesson: the position-wise feed-forward network of a Transformer layer."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise, item
from regard.lessons.engine.reading import Reading
from regard.models.base import parameters
from regard.nn.attention import SelfAttention
from regard.nn.feedforward import FeedForward

INPUTS = (
    Input("X", [[1.0, 0.0, -1.0], [0.0, 2.0, 1.0]], "two words, a vector each", ("word", "width")),
    Input(
        "W1",
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [1.0, -1.0, 0.0], [0.0, 1.0, 1.0]],
        "first layer, one row per inner unit",
        ("inner", "width"),
        "W_1",
    ),
    Input("b1", [0.0, 0.0, 0.0, 0.0, 0.0, -1.0], "its bias", ("inner",), "b_1"),
    Input(
        "W2",
        [[1.0, 0.0, 0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0, 0.5]],
        "second layer, one row per output",
        ("width", "inner"),
        "W_2",
    ),
    Input("b2", [0.0, 0.0, 0.0], "its bias", ("width",), "b_2"),
    Input("d", 512, "width of a real model", bounds=(1, 65536)),
    Input("d_ff", 2048, "its inner width", bounds=(1, 262144), symbol=r"d_{ff}"),
)


def compute(page: LessonBuilder) -> None:
    """FFN(x) = W2 max(0, W1 x + b1) + b2, by the package's layer."""
    X, W1, b1, W2, b2 = page.tensors("X W1 b1 W2 b2")
    up = X @ W1.T + b1
    page.step(
        "Up: to a wider layer",
        "Each word by itself, with the same weights: a row of the first layer is a pattern that the vector is compared "
        "with. The paper's inner layer is four times as wide as the model.",
        r"W_1 x + b_1",
        "X W1 b1",
        value("up", up, "word inner", r"W_1 x + b_1"),
    )
    page.step(
        "ReLU",
        "What is below 0 becomes 0: a unit is off unless its pattern is there. Without this step both layers would be "
        "one matrix.",
        r"\max(0, W_1 x + b_1)",
        "up",
        value("active", up.relu(), "word inner", r"\max(0, W_1 x + b_1)", look="signed"),
        value("share", float((up > 0).double().mean()), "", r"\text{share of units that are on}"),
    )
    down = up.relu() @ W2.T + b2
    page.step(
        "Down: back to the width",
        "Each active unit adds its column of the second layer to the result. Such a pair of row and column has been "
        "read as a key and a value of a memory.",
        r"\text{FFN}(x) = W_2 \max(0, W_1 x + b_1) + b_2",
        "active W2 b2",
        value("out", down, "word width", r"\text{FFN}(x)"),
    )
    _each_word(page, X, W1, b1, W2, b2)
    _count(page)
    page.compare("the formula and the package's layer", feed_forward(W1, b1, W2, b2)(X[None])[0].detach(), down)


def feed_forward(W1: Tensor, b1: Tensor, W2: Tensor, b2: Tensor) -> FeedForward:
    """The package's layer with given weights, in double precision."""
    layer = FeedForward(W1.shape[1], W1.shape[0]).double()
    with torch.no_grad():
        for linear, weight, bias in ((layer.up, W1, b1), (layer.down, W2, b2)):
            linear.weight.copy_(weight)
            linear.bias.copy_(bias)
    return layer


def _each_word(page: LessonBuilder, X: Tensor, W1: Tensor, b1: Tensor, W2: Tensor, b2: Tensor) -> None:
    layer = feed_forward(W1, b1, W2, b2)
    with torch.no_grad():
        together = layer(X[None])[0]
        swapped = layer(X.flip(0)[None])[0].flip(0)
    page.step(
        "Position-wise",
        "The words in the opposite order: each gets the same result as before. Only attention moves anything from one "
        "word to another; the feed-forward network works on what is there.",
        r"\max |\text{FFN}(X) - \text{FFN}(X')|",
        "X W1 b1 W2 b2",
        value("moved", float((together - swapped).abs().max()), "", r"\text{difference}"),
        value("one_by_one", together, "word width", r"\text{FFN}(x), \text{package}"),
    )
    page.compare("a word alone and beside others", together, swapped)


def _count(page: LessonBuilder) -> None:
    d, inner = page.data("d"), page.data("d_ff")
    with torch.device("meta"):
        ffn = parameters(FeedForward(d, inner))
        attention = parameters(SelfAttention(d, 1, "query key"))
    page.step(
        "Where the parameters are",
        "Of a layer of a real model, in its feed-forward network and in its self-attention. With an inner width of "
        "four times the width two thirds of a layer are here.",
        r"2 d \, d_{ff} + d_{ff} + d",
        "d d_ff",
        value("ffn_parameters", ffn, "", r"\text{feed-forward}"),
        value("attention_parameters", attention, "", r"\text{attention}"),
        value("part", ffn / (ffn + attention), "", r"\text{share of the feed-forward network}"),
    )
    page.compare("the formula and the parameters of the layer", 2 * d * inner + inner + d, ffn, 0)


FIGURE = "X > up > active > out; W1 > up; b1 > up; W2 > out; b2 > out"
EXERCISES = (
    Exercise(
        "If the first word is (-1, 0, 0), which six inner numbers are left after the ReLU?",
        item("active", 0),
        {"X": [[-1.0, 0.0, 0.0], [0.0, 2.0, 1.0]]},
        hint="only the fourth row of W_1 points in its direction",
    ),
    Exercise(
        "How many parameters has the feed-forward network of the big model, d = 1024 and d_ff = 4096?",
        "ffn_parameters",
        {"d": 1024, "d_ff": 4096},
        hint="2 d d_ff + d_ff + d",
        tolerance=0.5,
    ),
)
READING = Reading(
    "The feed-forward network of a Transformer layer",
    ("position-wise feed-forward network", "multi-layer perceptron (MLP)", "inner width", "ReLU"),
    (
        "Vaswani et al. 2017, Attention is all you need, section 3.3",
        "Geva et al. 2021, Transformer feed-forward layers are key-value memories",
    ),
)
