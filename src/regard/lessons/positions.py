"""Lesson: attention ignores order; positional encodings add it, summed or concatenated; a counter made of waves."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise, item
from regard.lessons.engine.layers import max_difference, trace_attention
from regard.lessons.engine.reading import Reading
from regard.nn.positions import Sinusoids

TEN_DIGITS = 4
"""binary digits of ten: a shorter counter does not reach it"""
SINUSOIDS = r"P_{t,2i} = \sin(\frac{t}{10000^{2i/d}}) \quad P_{t,2i+1} = \cos(\frac{t}{10000^{2i/d}})"

INPUTS = (
    Input("words", ["dog", "bites", "man"], "a sentence", ("place",)),
    Input(
        "X", [[1.0, 0.0, 0.5, 0.0], [0.0, 1.0, 0.0, 0.5], [0.5, 0.0, 1.0, 0.0]], "its word vectors", ("place", "width")
    ),
    Input("order", [3, 2, 1], "another order of the words, from 1", ("place",)),
    Input("digits", 4, "binary digits of the counter, and pairs of waves", bounds=(1, 8)),
    Input("places", 60, "rows of the picture", bounds=(1, 512)),
    Input("wide", 32, "its columns", symbol="d", bounds=(2, 128)),
)


def compute(page: LessonBuilder) -> None:
    """Attention over two orders, without positions and with; the counter; the picture of the paper."""
    X, order = page.tensor("X"), [index - 1 for index in page.data("order")]
    if sorted(order) != list(range(len(X))):
        raise ConfigError(f"order: expected each of 1 to {len(X)} once, got {page.data('order')}")
    _without_positions(page, X, order)
    P = sinusoids(len(X), X.shape[1])
    _add_positions(page, X, P, order)
    _concatenate_positions(page, X, P, order)
    _counter(page, page.data("digits"))
    places, width = page.data("places"), page.data("wide")
    page.step(
        "The picture",
        "One row per position, one column per component: fast waves at the left, slow ones at the right.",
        SINUSOIDS,
        "places wide",
        value("picture", sinusoids(places, width), "place column", "P", {"place": [str(i) for i in range(places)]},
              "signed"),
        value("size", [places, width], "side", r"\text{size}"),
    )  # fmt: skip
    page.compare("without positions: another order, the same results in that order", 0.0, page.data("apart_without"))
    even, odd = (f(torch.tensor(1 / 10_000 ** (2 / X.shape[1])).double()) for f in (torch.sin, torch.cos))
    formula = torch.stack([torch.tensor(math.sin(1)).double(), torch.tensor(math.cos(1)).double(), even, odd])
    if len(X) > 1 and X.shape[1] >= 4:
        page.compare("the formula at position 1, and the package's positions", formula, P[1, :4])
    page.expect("the first position", [0.0, 1.0, 0.0, 1.0], "first")
    page.expect("the picture: positions and width", [60, 32], "size", 0)
    if page.data("digits") >= TEN_DIGITS:
        page.expect("ten in binary", ["1", "0", "1", "0"], "ten")


def sinusoids(places: int, width: int) -> Tensor:
    """The package's sinusoidal encoding of the first positions, in double precision.

    >>> sinusoids(1, 4).tolist()
    [[0.0, 1.0, 0.0, 1.0]]
    """
    return Sinusoids(width)(torch.arange(places, dtype=torch.float64)[None])[0]


def _self_attention(X: Tensor) -> Tensor:
    """Self-attention without learned weights."""
    return trace_attention(X[None], X[None], X[None])["context"][0]


def _without_positions(page: LessonBuilder, X: Tensor, order: list[int]) -> None:
    words = page.data("words")
    shuffled = [words[i] for i in order]
    first, second = _self_attention(X), _self_attention(X[order])
    page.step(
        "Without positions",
        "The result of a word is a weighted sum over all words, and the weights depend only on the words: a sum does "
        "not depend on the order.",
        r"Z = \softmax(\frac{X X^\top}{\sqrt{d}}) X",
        "words X",
        value("Z", first, "place width", labels={"place": words}),
    )
    page.step(
        "The same words in another order",
        "The same rows in that order: nothing else has changed. For attention both are the same bag of words.",
        r"Z' = \softmax(\frac{X' X'^\top}{\sqrt{d}}) X'",
        "words X order",
        value("other", shuffled, "place", r"\text{other}"),
        value("Z_other", second, "place width", "Z'", {"place": shuffled}),
        value("apart_without", max_difference(first[order], second), "", r"\text{difference}"),
    )


def _add_positions(page: LessonBuilder, X: Tensor, P: Tensor, order: list[int]) -> None:
    page.step(
        "A vector per position",
        "Pairs of sine and cosine with decreasing frequency from left to right. It depends only on the position.",
        SINUSOIDS,
        "X",
        value("P", P, "place width", labels={"place": [str(i) for i in range(len(P))]}),
        value("first", P[0], "width", "P_0"),
    )
    first, second = _self_attention(X + P), _self_attention(X[order] + P)
    page.step(
        "Added",
        "As in the paper: word vector plus position vector. Now the same word has another vector at another position, "
        "and its result changes.",
        r"Z = \softmax(\frac{(X + P)(X + P)^\top}{\sqrt{d}}) (X + P)",
        "words X P order",
        value("Z_added", first, "place width", "Z", {"place": page.data("words")}),
        value("apart_added", max_difference(first[order], second), "", r"\text{difference}"),
    )


def _concatenate_positions(page: LessonBuilder, X: Tensor, P: Tensor, order: list[int]) -> None:
    joined, other = torch.cat([X, P], 1), torch.cat([X[order], P], 1)
    first, second = _self_attention(joined), _self_attention(other)
    page.step(
        "Or concatenated",
        "As in one lecture: the position vector after the word vector. It is twice as wide, and nothing is mixed.",
        r"Z = \softmax(\frac{[X; P] [X; P]^\top}{\sqrt{2 d}}) [X; P]",
        "words X P order",
        value("joined", joined, "place both", "[X; P]", {"place": page.data("words")}),
        value("apart_beside", max_difference(first[order], second), "", r"\text{difference}"),
    )
    both = torch.cat([torch.eye(X.shape[1]), torch.eye(X.shape[1])], 1).double()
    page.compare("the matrix [I I] times both is the sum: adding is one way to mix", joined @ both.T, X + P)


def _counter(page: LessonBuilder, digits: int) -> None:
    count = 2**digits  # all that the digits can count: further rows would repeat the first
    labels = {"place": [str(i) for i in range(count)]}
    bits = [list(f"{i:0{digits}b}") for i in range(count)]
    waves = sinusoids(count, 2 * digits)
    page.step(
        "A binary counter",
        "The last digit changes at every position, the one before it at every second, and so on: every position has "
        f"its own pattern, with few digits. {digits} of them count from 0 to {count - 1}.",
        r"\text{digit}_i \text{ changes every } 2^i \text{ places}",
        "digits",
        value("bits", bits, "place digit", r"\text{digits}", labels),
        *([value("ten", bits[10], "digit", r"\text{ten}")] if digits >= TEN_DIGITS else []),
    )
    lengths = [2 * math.pi * 10_000 ** (2 * i / (2 * digits)) for i in range(digits)]
    page.step(
        "The same with waves",
        "Sines and cosines are continuous digits: the first pair has the highest frequency, the last hardly changes. "
        "Unlike digits they take intermediate values, and a shift is a rotation, the same at every position.",
        r"\text{wave } i \text{ repeats after } 2 \pi \cdot 10000^{2i/d} \text{ places}",
        "digits",
        value("waves", waves, "place width", "P", labels, "signed"),
        value("lengths", lengths, "wave", r"\text{repeats after}"),
    )
    page.compare("a shift by one is the same rotation at every position", waves[1:], _rotate(waves[:-1]))


def _rotate(waves: Tensor) -> Tensor:
    """Positions shifted by one: each pair of waves rotated by its own angle."""
    width = waves.shape[1]
    angle = 1 / 10_000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    sine, cosine = waves[:, 0::2], waves[:, 1::2]
    moved = sine * angle.cos() + cosine * angle.sin(), cosine * angle.cos() - sine * angle.sin()
    return torch.stack(moved, -1).flatten(-2)


FIGURE = "X > Z; order > other > Z_other; P > Z_added; X > Z_added; P > joined; X > joined"
EXERCISES = (
    Exercise(
        "Write position 5 with three binary digits, the largest first. Three numbers.",
        item("bits", 5),
        {"digits": 3, "places": 8},
        hint="4 + 1",
    ),
    Exercise(
        "What is the positional encoding of position 0, with a width of 4? Four numbers.",
        item("P", 0),
        hint="sines of 0 and cosines of 0 in turn",
    ),
)
READING = Reading(
    "Positional encodings added or concatenated; the binary counter",
    ("positional encoding", "sinusoids", "permutation equivariance"),
    (
        "Vaswani et al. 2017, Attention is all you need, section 3.5",
        "Gehring et al. 2017, Convolutional sequence to sequence learning, section 3.1",
    ),
)
