"""Lesson: attention does not see order; positions bring it in, added or beside; a counter whose digits are waves."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.layers import apart, looked, tensor
from regard.lessons.engine.lesson import Value
from regard.nn.positions import Sinusoids

value = Page.value
COUNTED = 16
"""places of the counter"""

INPUTS = (
    Input("words", ["dog", "bites", "man"], "a sentence", ("place",)),
    Input(
        "X",
        [[1.0, 0.0, 0.5, 0.0], [0.0, 1.0, 0.0, 0.5], [0.5, 0.0, 1.0, 0.0]],
        "its words as vectors",
        ("place", "width"),
    ),
    Input("order", [3, 2, 1], "the same words in another order, from 1 on", ("place",)),
    Input("digits", 4, "binary digits to count with, and pairs of waves beside them", bounds=(1, 8)),
    Input("places", 60, "rows of the picture", bounds=(1, 512)),
    Input("wide", 32, "its columns", symbol="d", bounds=(2, 128)),
)


def _work(given: Mapping[str, Value]) -> Work:
    """Attention over two orders, without positions and with; the counter; the picture of the paper."""
    page = Page(given)
    words, X = given["words"].data, tensor(given["X"])
    order = [place - 1 for place in given["order"].data]
    if sorted(order) != list(range(len(X))):
        raise ConfigError(f"order: expected each of 1 to {len(X)} once, got {given['order'].data}")
    _lost(page, X, words, order)
    P = sinusoids(len(X), X.shape[1])
    _added(page, X, P, words, order)
    _beside(page, X, P, words, order)
    _counter(page, given["digits"].data)
    _picture(page, given["places"].data, given["wide"].data)
    page.agree("without positions: another order, the same results in that order", 0.0, page["apart_without"].data)
    even, odd = (f(torch.tensor(1 / 10_000 ** (2 / X.shape[1])).double()) for f in (torch.sin, torch.cos))
    wanted = torch.stack([torch.tensor(math.sin(1)).double(), torch.tensor(math.cos(1)).double(), even, odd])
    if len(X) > 1 and X.shape[1] >= 4:
        page.agree("the formula at place 1, and the package's positions", wanted, P[1, :4])
    page.lecture("the first place", [0.0, 1.0, 0.0, 1.0], "first")
    page.lecture("the picture: places and width", [60, 32], "size", 0)
    page.lecture("ten, counted in twos", ["1", "0", "1", "0"], "ten")
    return page.work()


def sinusoids(places: int, width: int) -> Tensor:
    """The package's positions for the first places, in double precision.

    >>> sinusoids(1, 4).tolist()
    [[0.0, 1.0, 0.0, 1.0]]
    """
    return Sinusoids(width)(torch.arange(places, dtype=torch.float64)[None])[0]


def _found(X: Tensor) -> Tensor:
    """Attention of a sentence to itself, with nothing learnt in between."""
    return looked(X[None], X[None], X[None])["context"][0]


def _lost(page: Page, X: Tensor, words: list[str], order: list[int]) -> None:
    shuffled = [words[i] for i in order]
    first, second = _found(X), _found(X[order])
    page.step(
        "Without positions",
        "A word's result is a sum over all words, weighed by what they are: a sum does not know who came first.",
        r"Z = \softmax(\frac{X X^\top}{\sqrt{d}}) X",
        "words X",
        value("Z", first, "place width", labels={"place": words}),
    )
    page.step(
        "The same words in another order",
        "The same rows, only in that order: nothing has moved but the words. For attention both sentences are one bag "
        "of words.",
        r"Z' = \softmax(\frac{X' X'^\top}{\sqrt{d}}) X'",
        "words X order",
        value("other", shuffled, "place", r"\text{other}"),
        value("Z_other", second, "place width", "Z'", {"place": shuffled}),
        value("apart_without", apart(first[order], second), "", r"\text{moved}"),
    )


def _added(page: Page, X: Tensor, P: Tensor, words: list[str], order: list[int]) -> None:
    page.step(
        "A vector for each place",
        "Pairs of sine and cosine, slower and slower from left to right. It depends on the place alone.",
        r"P_{t,2i} = \sin(\frac{t}{10000^{2i/d}}) \quad P_{t,2i+1} = \cos(\frac{t}{10000^{2i/d}})",
        "X",
        value("P", P, "place width", labels={"place": [str(i) for i in range(len(P))]}),
        value("first", P[0], "width", "P_0"),
    )
    first, second = _found(X + P), _found(X[order] + P)
    page.step(
        "Added",
        "As the paper does it: the word's vector plus the place's. Now the same word is another vector in another "
        "place, and what comes out for it is not the same any more.",
        r"Z = \softmax(\frac{(X + P)(X + P)^\top}{\sqrt{d}}) (X + P)",
        "words X P order",
        value("Z_added", first, "place width", "Z", {"place": words}),
        value("apart_added", apart(first[order], second), "", r"\text{moved}"),
    )


def _beside(page: Page, X: Tensor, P: Tensor, words: list[str], order: list[int]) -> None:
    joined, other = torch.cat([X, P], 1), torch.cat([X[order], P], 1)
    first, second = _found(joined), _found(other)
    page.step(
        "Or beside one another",
        "As one lecture draws it: the place's vector behind the word's. It is twice as wide, and nothing is mixed.",
        r"Z = \softmax(\frac{[X; P] [X; P]^\top}{\sqrt{2 d}}) [X; P]",
        "words X P order",
        value("joined", joined, "place both", "[X; P]", {"place": words}),
        value("apart_beside", apart(first[order], second), "", r"\text{moved}"),
    )
    both = torch.cat([torch.eye(X.shape[1]), torch.eye(X.shape[1])], 1).double()
    page.agree("a matrix [I I] over both makes the sum: adding is one way to mix", joined @ both.T, X + P)


def _counter(page: Page, digits: int) -> None:
    places = [str(i) for i in range(COUNTED)]
    bits = [list(f"{i % 2**digits:0{digits}b}") for i in range(COUNTED)]
    waves = sinusoids(COUNTED, 2 * digits)
    page.step(
        "A counter in twos",
        "The last digit changes at every place, the one before it at every second, and so on: every place has a "
        "pattern of its own, with few digits.",
        r"\text{digit}_i \text{ changes every } 2^i \text{ places}",
        "digits",
        value("bits", bits, "place digit", r"\text{digits}", {"place": places}),
        value("ten", bits[10], "digit", r"\text{ten}"),
    )
    lengths = [2 * math.pi * 10_000 ** (2 * i / (2 * digits)) for i in range(digits)]
    page.step(
        "The same with waves",
        "Sines and cosines are such digits, made round: the first pair turns fast, the last hardly at all. Unlike "
        "digits they take values between, and a step to the side is a rotation, the same at every place.",
        r"\text{wave } i \text{ repeats after } 2 \pi \cdot 10000^{2i/d} \text{ places}",
        "digits",
        value("waves", waves, "place width", "P", {"place": places}, "signed"),
        value("lengths", lengths, "wave", r"\text{repeats after}"),
    )
    turned = _turned(waves)
    page.agree("a step to the right is the same rotation at every place", waves[1:], turned)


def _turned(waves: Tensor) -> Tensor:
    """Each place but the last, turned by one step: pair by pair, by the pair's own angle."""
    width = waves.shape[1]
    angle = 1 / 10_000 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    sine, cosine = waves[:-1, 0::2], waves[:-1, 1::2]
    moved = sine * angle.cos() + cosine * angle.sin(), cosine * angle.cos() - sine * angle.sin()
    return torch.stack(moved, -1).flatten(-2)


def _picture(page: Page, places: int, width: int) -> None:
    P = sinusoids(places, width)
    page.step(
        "The picture",
        "A row for each place, a column for each number: fast waves at the left, slow ones at the right.",
        r"P_{t,2i} = \sin(\frac{t}{10000^{2i/d}}) \quad P_{t,2i+1} = \cos(\frac{t}{10000^{2i/d}})",
        "places wide",
        value("picture", P, "place column", "P", {"place": [str(i) for i in range(places)]}, "signed"),
        value("size", [places, width], "side", r"\text{size}"),
    )


PLAN = Plan(INPUTS, _work)
