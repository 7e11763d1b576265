"""Lesson: scaled dot-product attention with numbers that can be followed by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.layers import tensor
from regard.lessons.engine.lesson import Value
from regard.nn.attention import KeysValues, attend
from regard.trace import record

value = Page.value

INPUTS = (
    Input("X", [[1.0, 0, 0, 0], [0, 1.0, 0, 0], [1.0, 0, 0, 0]], "three things to look at", ("key", "in")),
    Input("y", [1.0, -1.0, 0.0], "what looks at them", ("from",)),
    Input("WQ", [[0.0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, -1]], "makes the query", ("width", "from"), "W_Q"),
    Input(
        "WK",
        [[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
        "makes keys; here it changes nothing",
        ("width", "in"),
        "W_K",
    ),
    Input("WV", [[1.0, 0, 0, 0], [0, 1, 1, 0]], "makes values", ("out", "in"), "W_V"),
    Input("products", [112.0, 96.0], "two larger products, to see why they are divided", ("word",), r"q \cdot k'"),
    Input("d", 64, "the width that made them", bounds=(1, 65536)),
)


def _work(given: Mapping[str, Value]) -> Work:
    """A = softmax(Q K^T / sqrt(d)), Z = A V, by the package's `attend`."""
    page = Page(given)
    X, y, WQ, WK, WV = (tensor(given[name]) for name in ("X", "y", "WQ", "WK", "WV"))
    query, keys, values = WQ @ y, X @ WK.T, X @ WV.T
    seen = attended(query, keys, values)
    _three_roles(page, query, keys, values)
    _weighed(page, seen, query, keys)
    _larger(page, tensor(given["products"]), given["d"].data)
    by_hand = torch.softmax(keys @ query / math.sqrt(len(query)), 0) @ values
    page.agree("the formula and the package's attention", by_hand, seen["context"])
    for about, expected, name in (
        ("the query", [-1.0, 1.0, 0.0, 1.0], "q"),
        ("query times keys", [-1.0, 1.0, -1.0], "qk"),
        ("the weights", [0.2119, 0.5761, 0.2119], "weights"),
        ("the result", [0.4239, 0.5761], "z"),
    ):
        page.lecture(about, expected, name, 1e-4)
    page.lecture("112 and 96, divided by 8", [0.88, 0.12], "shares", 5e-3)
    return page.work()


def attended(query: Tensor, keys: Tensor, values: Tensor) -> dict[str, Tensor]:
    """What the package's attention shows while it works: scores, weights, context.

    >>> attended(torch.ones(1), torch.zeros(2, 1), torch.tensor([[1.0], [3.0]]))["context"]
    tensor([2.])
    """
    layer = nn.Identity()
    with record(layer) as trace:
        attend(layer, query[None, None, None], KeysValues(keys[None, None], values[None, None]), "all", "query key")
    return {seen.name: seen.data[0, 0, 0] for seen in trace.records}


def _three_roles(page: Page, query: Tensor, keys: Tensor, values: Tensor) -> None:
    page.step(
        "A query",
        "What looks becomes a query: the question it asks.",
        "q = W_Q y",
        "WQ y",
        value("q", query, "width"),
    )
    page.step(
        "Keys",
        "Each thing becomes a key: what it answers to. Its width is that of the query.",
        r"K = X W_K^\top",
        "X WK",
        value("K", keys, "key width"),
    )
    page.step(
        "Values",
        "Each thing also becomes a value: what it gives. Its width is free.",
        r"V = X W_V^\top",
        "X WV",
        value("V", values, "key out"),
    )


def _weighed(page: Page, seen: Mapping[str, Tensor], query: Tensor, keys: Tensor) -> None:
    page.step(
        "Query meets keys",
        "One product for each key: how well does it answer the question?",
        r"q K^\top",
        "q K",
        value("qk", keys @ query, "key", r"q K^\top"),
    )
    page.step(
        "Divided by the root of the width",
        "Sums of many products grow with the width; the root keeps them in a range where the softmax still moves.",
        r"\frac{q K^\top}{\sqrt{d}}",
        "qk",
        value("scores", seen["scores"], "key", r"\text{scores}"),
    )
    page.step(
        "Weights",
        "The softmax makes shares of them that add up to 1. Things that are the same get the same, as the first "
        "and the third of the lecture: without positions, attention does not see order.",
        r"\alpha = \softmax(\text{scores})",
        "scores",
        value("weights", seen["weights"], "key", r"\alpha", look="weights"),
    )
    page.step(
        "The result",
        "The values, each as much as its weight says.",
        r"z = \alpha V",
        "weights V",
        value("z", seen["context"], "out"),
    )


def _larger(page: Page, products: Tensor, width: int) -> None:
    scaled = products / math.sqrt(width)
    page.step(
        "Why they are divided",
        "Two products of vectors of width d. Divided by the root of d they are still apart, but both are heard.",
        r"\frac{q \cdot k'}{\sqrt{d}}",
        "products d",
        value("scaled", scaled, "word", r"\text{scaled}"),
    )
    page.step(
        "With and without",
        "The softmax of what was divided, beside that of the products themselves: there the winner takes all, and "
        "nothing is learnt from the other.",
        r"\softmax(\text{scaled}) \quad \softmax(q \cdot k')",
        "scaled products",
        value("shares", scaled.softmax(0), "word", r"\text{divided}"),
        value("winner", products.softmax(0), "word", r"\text{undivided}"),
    )


PLAN = Plan(INPUTS, _work)
