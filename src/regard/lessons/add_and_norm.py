"""Lesson: residual connection and layer normalization, "Add & Norm", number by number."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise, item
from regard.lessons.engine.reading import Reading
from regard.models.transformer import PostNorm, PreNorm

EPSILON = 1e-5

INPUTS = (
    Input("X", [[1.0, 2.0, 3.0, 4.0], [2.0, 0.0, 1.0, -1.0]], "two words, a vector each", ("word", "width")),
    Input(
        "W",
        [[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, -1.0], [0.0, 0.0, 1.0, 0.0]],
        "weights of a sublayer; it stands for attention or the feed-forward network",
        ("out", "width"),
    ),
    Input("gain", [1.0, 1.0, 1.0, 1.0], "learned gain", ("width",), r"\gamma"),
    Input("shift", [0.0, 0.0, 0.0, 0.0], "learned shift", ("width",), r"\beta"),
    Input("layers", 12, "layers on top of each other", bounds=(1, 100)),
)


def compute(page: LessonBuilder) -> None:
    """LayerNorm(x + Sublayer(x)) by the formula and by the package's layers; then many layers."""
    X, W, gain, shift = page.tensors("X W gain shift")
    if W.shape[0] != W.shape[1]:
        raise page.error(f"W: expected as many rows as columns, since its result is added to x; got {tuple(W.shape)}")
    branch = X @ W.T
    page.step(
        "The sublayer",
        "Attention or a feed-forward network computes something from x. Here a matrix stands for it.",
        r"\text{Sublayer}(x) = W x",
        "X W",
        value("S", branch, "word width", r"\text{Sublayer}(x)"),
    )
    page.step(
        "Add: the residual connection",
        "The input is added to the output. A sublayer thus computes what to change; with W = 0 it changes nothing, and "
        "the gradient reaches x directly.",
        r"x + \text{Sublayer}(x)",
        "X S",
        value("R", X + branch, "word width", r"x + \text{Sublayer}(x)"),
    )
    normed = _normalize(page, X + branch)
    post, pre = (layer(kind, gain, shift) for kind in (PostNorm, PreNorm))
    with torch.no_grad():
        package = post.residual(X[None], branch[None])[0]
        before = pre.residual(X[None], (pre.pre(X[None]) @ W.T))[0]
    page.step(
        "Pre-norm: the other order",
        "The paper, and the lecture, normalize after the addition (post-norm). Most later models normalize the "
        "sublayer's input instead and leave the sum as it is: nothing on the path from the first to the last layer "
        "is ever divided.",
        r"x + \text{Sublayer}(\text{LayerNorm}(x))",
        "X W gain shift",
        value("pre", before, "word width", r"\text{pre-norm}"),
    )
    _depth(page, X, W, gain, shift)
    page.compare("the formula and the package's post-norm", package, normed)
    page.expect("mean of the first sum, (3, 3, -1, 7)", 3.0, "first_mean")


def _normalize(page: LessonBuilder, sums: Tensor) -> Tensor:
    gain, shift = page.tensors("gain shift")
    mean, deviation = sums.mean(1), (sums.var(1, correction=0) + EPSILON).sqrt()
    page.step(
        "Norm: mean and deviation of each word",
        "Over the numbers of one vector, not over the batch: a word is normalized alone, in training as in use, "
        "whatever stands beside it. A tiny number keeps the root above 0.",
        r"\mu = \frac{1}{d} \sum_i r_i \quad \sigma = \sqrt{\frac{1}{d} \sum_i (r_i - \mu)^2 + \epsilon}",
        "R",
        value("mean", mean, "word", r"\mu"),
        value("deviation", deviation, "word", r"\sigma"),
        value("first_mean", mean[0], "", r"\mu_1"),
    )
    normed = gain * (sums - mean[:, None]) / deviation[:, None] + shift
    page.step(
        "Norm: the result",
        "Each vector gets mean 0 and deviation 1; then learned numbers scale and shift its components.",
        r"z = \gamma \frac{r - \mu}{\sigma} + \beta",
        "R mean deviation gain shift",
        value("z", normed, "word width"),
    )
    return normed


def layer(kind: type[PostNorm] | type[PreNorm], gain: Tensor, shift: Tensor) -> PostNorm | PreNorm:
    """The package's layer with a given gain and shift, in double precision."""
    module = kind(len(gain), 0.0).double()
    with torch.no_grad():
        module.norm.weight.copy_(gain)
        module.norm.bias.copy_(shift)
    return module


def _depth(page: LessonBuilder, X: Tensor, W: Tensor, gain: Tensor, shift: Tensor) -> None:
    lengths: dict[str, list[float]] = {"no norm": [], "post-norm": [], "pre-norm": []}
    post, pre = (layer(kind, gain, shift) for kind in (PostNorm, PreNorm))
    plain = after = before = X[None]
    with torch.no_grad():
        for _ in range(page.data("layers")):
            plain = plain + plain @ W.T
            after = post.residual(after, after @ W.T)
            before = pre.residual(before, pre.pre(before) @ W.T)
            for row, x in zip(lengths.values(), (plain, after, before)):
                row.append(float(x[0, 0].norm()))
    ticks = {"model": list(lengths), "layer": [str(i + 1) for i in range(page.data("layers"))]}
    page.step(
        "Many layers",
        "The length of the first word's vector after each layer, with the same weights in all of them. Without a norm "
        "it may grow like a power; post-norm brings it back each time; pre-norm lets it grow by a bounded step.",
        r"\| x_\text{layer} \|",
        "X W gain shift layers",
        value("lengths", list(lengths.values()), "model layer", r"\text{length}", ticks, "log"),
    )


FIGURE = "X > S > R > mean > z; X > R > deviation > z; W > S; gain > z; shift > z"
EXERCISES = (
    Exercise(
        "If the sublayer's weights are all 0, what is the mean of the first word's sum?",
        item("mean", 0),
        {"W": [[0.0] * 4] * 4},
        hint="x + 0, and x = (1, 2, 3, 4)",
    ),
    Exercise(
        "The vector (2, 0, 2, 0) alone is normalized (W = 0, gain 1, shift 0). Which four numbers come out?",
        item("z", 1),
        {"X": [[1.0, 2.0, 3.0, 4.0], [2.0, 0.0, 2.0, 0.0]], "W": [[0.0] * 4] * 4},
        hint="mean 1, deviation 1",
    ),
)
READING = Reading(
    "Add & norm: residual connections and layer normalization",
    ("residual connection (skip connection)", "layer normalization", "post-norm and pre-norm", "residual stream"),
    (
        "Ba, Kiros and Hinton 2016, Layer normalization, section 3",
        "Vaswani et al. 2017, Attention is all you need, section 3.1",
        "Xiong et al. 2020, On layer normalization in the Transformer architecture",
    ),
)
