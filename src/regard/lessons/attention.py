"""Lesson: scaled dot-product attention, small enough to follow by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.layers import trace_attention
from regard.lessons.engine.reading import Reading

INPUTS = (
    Input("X", [[1.0, 0, 0, 0], [0, 1.0, 0, 0], [1.0, 0, 0, 0]], "three items to attend to", ("key", "in")),
    Input("y", [1.0, -1.0, 0.0], "the item that attends to them", ("from",)),
    Input("WQ", [[0.0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, -1]], "query weights", ("width", "from"), "W_Q"),
    Input(
        "WK",
        [[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
        "key weights; here the identity",
        ("width", "in"),
        "W_K",
    ),
    Input("WV", [[1.0, 0, 0, 0], [0, 1, 1, 0]], "value weights", ("out", "in"), "W_V"),
    Input("products", [112.0, 96.0], "two larger products, to show the effect of scaling", ("word",), r"q \cdot k'"),
    Input("d", 64, "width of their vectors", bounds=(1, 65536)),
)


def compute(page: LessonBuilder) -> None:
    """A = softmax(Q K^T / sqrt(d)), Z = A V, by the package's `attend`."""
    X, y, WQ, WK, WV = page.tensors("X y WQ WK WV")
    query, keys, values = WQ @ y, X @ WK.T, X @ WV.T
    seen = single_query_attention(query, keys, values)
    page.step("The query", "The item that attends becomes a query.", "q = W_Q y", "WQ y", value("q", query, "width"))
    page.step(
        "Keys",
        "Each item becomes a key, which is compared with the query. It has the width of the query.",
        r"K = X W_K^\top",
        "X WK",
        value("K", keys, "key width"),
    )
    page.step(
        "Values",
        "Each item also becomes a value: its contribution to the result. Its width is free.",
        r"V = X W_V^\top",
        "X WV",
        value("V", values, "key out"),
    )
    _weights(page, seen, query, keys)
    _scaling(page, page.tensor("products"), page.data("d"))
    formula = torch.softmax(keys @ query / math.sqrt(len(query)), 0) @ values
    page.compare("the formula and the package's attention", formula, seen["context"])
    page.expect("the query", [-1.0, 1.0, 0.0, 1.0], "q", 1e-4)
    page.expect("query times keys", [-1.0, 1.0, -1.0], "qk", 1e-4)
    page.expect("the weights", [0.2119, 0.5761, 0.2119], "weights", 1e-4)
    page.expect("the result", [0.4239, 0.5761], "z", 1e-4)
    page.expect("112 and 96, divided by 8", [0.88, 0.12], "shares", 5e-3)


def single_query_attention(query: Tensor, keys: Tensor, values: Tensor) -> dict[str, Tensor]:
    """Scores, weights and context of the package's attention for one query.

    >>> single_query_attention(torch.ones(1), torch.zeros(2, 1), torch.tensor([[1.0], [3.0]]))["context"]
    tensor([2.])
    """
    return {name: x[0, 0] for name, x in trace_attention(query[None, None], keys[None], values[None]).items()}


def _weights(page: LessonBuilder, seen: Mapping[str, Tensor], query: Tensor, keys: Tensor) -> None:
    page.step(
        "Query times keys",
        "One dot product per key: how similar is it to the query?",
        r"q K^\top",
        "q K",
        value("qk", keys @ query, "key", r"q K^\top"),
    )
    page.step(
        "Divided by the square root of the width",
        "Sums of many products grow with the width; the square root keeps them in a range where the softmax has a "
        "useful gradient.",
        r"\frac{q K^\top}{\sqrt{d}}",
        "qk",
        value("scores", seen["scores"], "key", r"\text{scores}"),
    )
    page.step(
        "Attention weights",
        "The softmax turns the scores into weights that sum to 1. Equal items get equal weights, as the first and the "
        "third here: without positions, attention ignores order.",
        r"\alpha = \softmax(\text{scores})",
        "scores",
        value("weights", seen["weights"], "key", r"\alpha", look="weights"),
    )
    page.step(
        "The result",
        "The sum of the values, weighted by the attention weights.",
        r"z = \alpha V",
        "weights V",
        value("z", seen["context"], "out"),
    )


def _scaling(page: LessonBuilder, products: Tensor, width: int) -> None:
    scaled = products / math.sqrt(width)
    page.step(
        "Why the products are scaled",
        "Two dot products of vectors of width d. Divided by the square root of d they still differ, but both keep a "
        "noticeable weight.",
        r"\frac{q \cdot k'}{\sqrt{d}}",
        "products d",
        value("scaled", scaled, "word", r"\text{scaled}"),
    )
    page.step(
        "With and without scaling",
        "The softmax of the scaled products, and of the products themselves: there one weight is nearly everything, "
        "and no gradient reaches the other.",
        r"\softmax(\text{scaled}) \quad \softmax(q \cdot k')",
        "scaled products",
        value("shares", scaled.softmax(0), "word", r"\text{divided}"),
        value("winner", products.softmax(0), "word", r"\text{undivided}"),
    )


FIGURE = "y > q > qk > scores > weights > z; X > K > qk; X > V > z"
EXERCISES = (
    Exercise(
        "With y = [1, 0, 0], what are the three products of the query with the keys? Three numbers.",
        "qk",
        {"y": [1, 0, 0]},
        hint="the query is the first column of W_Q; the keys are unit vectors",
    ),
    Exercise(
        "With y = [0, 0, 1], what are the weights? Three numbers.",
        "weights",
        {"y": [0, 0, 1]},
        hint="all products are equal",
    ),
)
READING = Reading(
    "Scaled dot-product attention, worked numbers; 112 and 96",
    ("query, key, value", "scaled dot-product attention", "softmax", "attention weights"),
    ("Vaswani et al. 2017, Attention is all you need, section 3.2.1",),
)
