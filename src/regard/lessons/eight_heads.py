"""Lesson: "Thinking Machines" through eight attention heads and the output projection."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise, item
from regard.lessons.engine.layers import linear, trace_attention
from regard.lessons.engine.reading import Reading
from regard.nn.attention import split

WORDS = ["Thinking", "Machines"]
ITSELF, OTHER, NOTHING = [[1, 0, 0, 0], [0, 1, 0, 0]], [[0, 1, 0, 0], [1, 0, 0, 0]], [[0, 0, 0, 0], [0, 0, 0, 0]]
FIRST, SECOND, EITHER = [[1, 0, 0, 0], [0, 0, 0, 0]], [[0, 1, 0, 0], [0, 0, 0, 0]], [[1, 1, 0, 0], [0, 0, 0, 0]]
QUERIES = [(3, ITSELF), (3, ITSELF), (0, NOTHING), (2, EITHER), (2, EITHER), (1, ITSELF), (2, FIRST), (2, SECOND)]
KEYS = [ITSELF, OTHER, ITSELF, FIRST, SECOND, ITSELF, SECOND, FIRST]
"""query weights (with a factor) and key weights of each head: two rows per head"""


def _times(factor: float, rows: list[list[int]]) -> list[list[float]]:
    return [[float(factor * number) for number in row] for row in rows]


INPUTS = (
    Input("X", [[1.0, 0.0, 0.5, 1.0], [0.0, 1.0, 1.0, 0.5]], "two words", ("word", "in"), labels={"word": WORDS}),
    Input("heads", 8, "number of heads that share the rows of the matrices", bounds=(1, 64)),
    Input(
        "WQ",
        [row for factor, rows in QUERIES for row in _times(factor, rows)],
        "query weights of all heads, one head below the other",
        ("row", "in"),
        "W^Q",
    ),
    Input("WK", [row for rows in KEYS for row in _times(1, rows)], "key weights of all heads", ("row", "in"), "W^K"),
    Input(
        "WV",
        [[1.0 if column == row % 4 else 0.0 for column in range(4)] for row in range(16)],
        "value weights of all heads",
        ("row", "in"),
        "W^V",
    ),
    Input(
        "WO",
        [[0.5 if row % 4 == column else 0.0 for row in range(16)] for column in range(4)],
        "output projection",
        ("out", "row"),
        "W^O",
    ),
    Input(
        "products", [112.0, 96.0], "of a query of width 64 with two keys", ("word",), r"q_1 \cdot k", {"word": WORDS}
    ),
    Input("d", 64, "that width", bounds=(1, 65536)),
)


def compute(page: LessonBuilder) -> None:
    """Eight heads of attention, concatenated and projected by W^O; and the same as a sum over heads."""
    X, WQ, WK, WV, WO = page.tensors("X WQ WK WV WO")
    heads = page.data("heads")
    if len(WQ) % heads:
        raise ConfigError(f"heads: expected a number that divides the {len(WQ)} rows of WQ, got {heads}")
    words = page.labels("X").get("word") or [str(i + 1) for i in range(len(X))]
    _scaling(page)
    queries, keys, values = (split((X @ W.T)[None], heads)[0] for W in (WQ, WK, WV))
    seen = trace_attention(queries, keys, values)
    _first_head(page, words, queries, keys, values, seen)
    rows = [f"head {head + 1}, {word}" for head in range(heads) for word in words]
    page.step(
        "All heads, each with its own pattern",
        "The lesson's heads attend to: itself; the other word; both equally; always the first; always the second; "
        "slightly more to itself; and two in which only one word has a preference. A single head has only one of these "
        "patterns.",
        r"A_h = \softmax(\frac{Q_h K_h^\top}{\sqrt{d}})",
        "X WQ WK heads",
        value("A", seen["weights"].flatten(0, 1), "query key", "A_h", {"query": rows, "key": words}, "weights"),
    )
    _project(page, words, seen["context"], WO)
    formula = [torch.softmax(q @ k.T / math.sqrt(q.shape[1]), 1) @ v for q, k, v in zip(queries, keys, values)]
    page.compare("each head by the formula, and the package's attention", torch.stack(formula), seen["context"])
    parts = sum(z @ part.T for z, part in zip(seen["context"], WO.split(queries.shape[2], 1)))
    page.compare("concatenated through one matrix, and each head through its part, summed", parts, page.tensor("Z"))
    page.expect("112 and 96, divided by 8", [0.88, 0.12], "shares", 5e-3)
    page.expect("rows and columns of Z, for any number of heads: words and width", [2, 4], "size", 0)


def _scaling(page: LessonBuilder) -> None:
    labels, scaled = page.labels("products"), page.tensor("products") / math.sqrt(page.data("d"))
    page.step(
        "One head of the paper, for one word",
        'Dot products of the query of "Thinking" with the keys of both words. The width is 64, so the products are '
        "divided by 8, and the softmax turns them into weights.",
        r"\softmax(\frac{q_1 \cdot k}{\sqrt{d}})",
        "products d",
        value("scaled", scaled, "word", r"\text{scaled}", labels),
        value("shares", scaled.softmax(0), "word", r"\text{shares}", labels, "weights"),
    )


def _first_head(
    page: LessonBuilder, words: list[str], queries: Tensor, keys: Tensor, values: Tensor, seen: Mapping[str, Tensor]
) -> None:
    labels = {"word": words}
    page.step(
        "The first head: its queries, keys and values",
        "Small vectors, easy to follow: the first rows of the three matrices belong to this head.",
        r"Q_1 = X W_1^{Q\top} \quad K_1 = X W_1^{K\top} \quad V_1 = X W_1^{V\top}",
        "X WQ WK WV heads",
        value("Q1", queries[0], "word unit", "Q_1", labels),
        value("K1", keys[0], "word unit", "K_1", labels),
        value("V1", values[0], "word unit", "V_1", labels),
    )
    page.step(
        "The first head: weights and result",
        "One row per query word, one column per key word.",
        r"A_1 = \softmax(\frac{Q_1 K_1^\top}{\sqrt{d}}) \quad Z_1 = A_1 V_1",
        "Q1 K1 V1",
        value("A1", seen["weights"][0], "query key", "A_1", {"query": words, "key": words}, "weights"),
        value("Z1", seen["context"][0], "word unit", "Z_1", labels),
    )


def _project(page: LessonBuilder, words: list[str], context: Tensor, WO: Tensor) -> None:
    joined = context.transpose(0, 1).flatten(1)
    result = linear(WO)(joined).detach()
    page.step(
        "Concatenated",
        "The results of the heads are concatenated: as wide as all heads together.",
        r"[Z_1; Z_2; \ldots]",
        "A X WV heads",
        value("joined", joined, "word row", "[Z_1; \\ldots]", {"word": words}),
    )
    page.step(
        "The output projection",
        "It mixes the results of the heads, and restores the width that the next layer expects.",
        r"Z = [Z_1; Z_2; \ldots] W^{O\top}",
        "joined WO",
        value("Z", result, "word out", labels={"word": words}),
        value("size", list(result.shape), "side", r"\text{size of Z}"),
    )


FIGURE = "X > Q1 > A1; X > K1 > A1; X > V1 > Z1; A1 > Z1 > joined > Z; WO > Z"
EXERCISES = (
    Exercise(
        "With 4 heads instead of 8, how wide is each head, if all heads together have 16 numbers?",
        lambda lesson: len(lesson.value("Q1").data[0]),
        {"heads": 4},
        hint="16 divided by the heads",
    ),
    Exercise(
        "The products 100 and 100, divided by 8: which weight has each?",
        item("shares", 0),
        {"products": [100, 100]},
        hint="equal scores",
    ),
)
READING = Reading(
    "Thinking Machines through eight heads and W^O",
    ("multi-head attention", "head", "output projection"),
    ("Vaswani et al. 2017, Attention is all you need, section 3.2.2",),
)
