"""Lesson: "Thinking Machines" through eight heads of attention, put together again by one more matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.layers import linear, looked, tensor
from regard.lessons.engine.lesson import Value
from regard.nn.attention import split

value = Page.value
WORDS = ["Thinking", "Machines"]
ITSELF, OTHER, NOTHING = [[1, 0, 0, 0], [0, 1, 0, 0]], [[0, 1, 0, 0], [1, 0, 0, 0]], [[0, 0, 0, 0], [0, 0, 0, 0]]
FIRST, SECOND, EITHER = [[1, 0, 0, 0], [0, 0, 0, 0]], [[0, 1, 0, 0], [0, 0, 0, 0]], [[1, 1, 0, 0], [0, 0, 0, 0]]


def _times(factor: float, rows: list[list[int]]) -> list[list[float]]:
    return [[float(factor * number) for number in row] for row in rows]


ASKED = [(3, ITSELF), (3, ITSELF), (0, NOTHING), (2, EITHER), (2, EITHER), (1, ITSELF), (2, FIRST), (2, SECOND)]
ANSWERED = [ITSELF, OTHER, ITSELF, FIRST, SECOND, ITSELF, SECOND, FIRST]
"""What each head asks for, and what a word answers to: two rows a head."""

INPUTS = (
    Input("X", [[1.0, 0.0, 0.5, 1.0], [0.0, 1.0, 1.0, 0.5]], "two words", ("word", "in"), labels={"word": WORDS}),
    Input("heads", 8, "the rows of the matrices are shared out among so many", bounds=(1, 64)),
    Input(
        "WQ",
        [row for factor, rows in ASKED for row in _times(factor, rows)],
        "makes the queries of all heads, one head under the other",
        ("row", "in"),
        "W^Q",
    ),
    Input("WK", [row for rows in ANSWERED for row in _times(1, rows)], "makes all keys", ("row", "in"), "W^K"),
    Input(
        "WV",
        [[1.0 if column == row % 4 else 0.0 for column in range(4)] for row in range(16)],
        "makes all values",
        ("row", "in"),
        "W^V",
    ),
    Input(
        "WO",
        [[0.5 if row % 4 == column else 0.0 for row in range(16)] for column in range(4)],
        "puts the heads together",
        ("out", "row"),
        "W^O",
    ),
    Input(
        "products", [112.0, 96.0], "of a query of width 64 with two keys", ("word",), r"q_1 \cdot k", {"word": WORDS}
    ),
    Input("d", 64, "that width", bounds=(1, 65536)),
)


def _work(given: Mapping[str, Value]) -> Work:
    """Eight times attend, side by side, through W^O; and the same as a sum over heads."""
    page = Page(given)
    X, WQ, WK, WV, WO = (tensor(given[name]) for name in ("X", "WQ", "WK", "WV", "WO"))
    heads, along = given["heads"].data, dict(given["X"].labels)
    if len(WQ) % heads:
        raise ConfigError(f"heads: expected a number that divides the {len(WQ)} rows of WQ, got {heads}")
    words = along.get("word") or [str(i + 1) for i in range(len(X))]
    _worked(page, tensor(given["products"]), given["d"].data, dict(given["products"].labels))
    queries, keys, values = (split((X @ W.T)[None], heads)[0] for W in (WQ, WK, WV))
    seen = looked(queries, keys, values)
    _first(page, words, queries, keys, values, seen)
    _all(page, words, seen)
    _together(page, words, seen["context"], WO)
    by_hand = [torch.softmax(q @ k.T / math.sqrt(q.shape[1]), 1) @ v for q, k, v in zip(queries, keys, values)]
    page.agree("each head by the formula, and the package's attention", torch.stack(by_hand), seen["context"])
    parts = sum(z @ part.T for z, part in zip(seen["context"], WO.split(queries.shape[2], 1)))
    page.agree("side by side through one matrix, and each head through its own part, summed", parts, tensor(page["Z"]))
    page.lecture("112 and 96, divided by 8", [0.88, 0.12], "shares", 5e-3)
    page.lecture("rows and columns of Z, whatever the number of heads: words and width", [2, 4], "size", 0)
    return page.work()


def _worked(page: Page, products: Tensor, width: int, along: Mapping[str, list[str]]) -> None:
    scaled = products / math.sqrt(width)
    page.step(
        "One head of the paper, for one word",
        'The query of "Thinking" has met the keys of both words. Its width is 64, so the products are divided by 8, '
        "and the softmax makes shares of them.",
        r"\softmax(\frac{q_1 \cdot k}{\sqrt{d}})",
        "products d",
        value("scaled", scaled, "word", r"\text{scaled}", along),
        value("shares", scaled.softmax(0), "word", r"\text{shares}", along, "weights"),
    )


def _first(
    page: Page, words: list[str], queries: Tensor, keys: Tensor, values: Tensor, seen: Mapping[str, Tensor]
) -> None:
    along = {"word": words}
    page.step(
        "The first head: its own queries, keys and values",
        "Small vectors, so that they can be followed: the first rows of the three matrices belong to this head.",
        r"Q_1 = X W_1^{Q\top} \quad K_1 = X W_1^{K\top} \quad V_1 = X W_1^{V\top}",
        "X WQ WK WV heads",
        value("Q1", queries[0], "word unit", "Q_1", along),
        value("K1", keys[0], "word unit", "K_1", along),
        value("V1", values[0], "word unit", "V_1", along),
    )
    page.step(
        "The first head looks",
        "A row for each word that looks, a column for each that is looked at.",
        r"A_1 = \softmax(\frac{Q_1 K_1^\top}{\sqrt{d}}) \quad Z_1 = A_1 V_1",
        "Q1 K1 V1",
        value("A1", seen["weights"][0], "query key", "A_1", {"query": words, "key": words}, "weights"),
        value("Z1", seen["context"][0], "word unit", "Z_1", along),
    )


def _all(page: Page, words: list[str], seen: Mapping[str, Tensor]) -> None:
    heads = len(seen["weights"])
    rows = [f"head {head + 1}, {word}" for head in range(heads) for word in words]
    page.step(
        "All heads look, each in its own way",
        "The lesson's heads: itself; the other word; both alike; always the first; always the second; a little more at "
        "itself; two in which only one word asks for anything. One softmax could only be one of them at a time.",
        r"A_h = \softmax(\frac{Q_h K_h^\top}{\sqrt{d}})",
        "X WQ WK heads",
        value("A", seen["weights"].flatten(0, 1), "query key", "A_h", {"query": rows, "key": words}, "weights"),
    )


def _together(page: Page, words: list[str], context: Tensor, WO: Tensor) -> None:
    joined = context.transpose(0, 1).flatten(1)
    result = linear(WO)(joined).detach()
    page.step(
        "Side by side",
        "What the heads found is written one after the other: as wide as all heads together.",
        r"[Z_1; Z_2; \ldots]",
        "A X WV heads",
        value("joined", joined, "word row", "[Z_1; \\ldots]", {"word": words}),
    )
    page.step(
        "Through one more matrix",
        "It mixes what the heads found, and brings it back to the width that the next layer expects.",
        r"Z = [Z_1; Z_2; \ldots] W^{O\top}",
        "joined WO",
        value("Z", result, "word out", labels={"word": words}),
        value("size", list(result.shape), "side", r"\text{size of Z}"),
    )


PLAN = Plan(INPUTS, _work)
