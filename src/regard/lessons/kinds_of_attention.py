"""Lesson: self-attention, masked self-attention and cross-attention."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from regard.lessons.engine.builder import Input, LessonBuilder, Value, value
from regard.lessons.engine.exercises import Exercise, item
from regard.lessons.engine.layers import max_difference, trace_attention
from regard.lessons.engine.reading import Reading

SOURCE, TARGET = ["je", "suis", "étudiant"], ["<SOS>", "I", "am", "a"]

INPUTS = (
    Input(
        "X", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "source words", ("source", "in"),
        labels={"source": SOURCE},
    ),
    Input(
        "Y",
        [[0.0, 0.0, 0.5], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 1.0]],
        "target words so far",
        ("target", "in"),
        labels={"target": TARGET},
    ),
    Input("WQ", [[2.0, 0.0, 1.0], [0.0, 2.0, 1.0]], "query weights", ("width", "in"), "W_Q"),
    Input("WK", [[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]], "key weights", ("width", "in"), "W_K"),
    Input("WV", [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]], "value weights", ("out", "in"), "W_V"),
    Input("later", [1.0, 1.0, -1.0], "another last word of Y: which results change?", ("in",), "y'"),
)  # fmt: skip
Weights = tuple[Tensor, Tensor, Tensor]


def compute(page: LessonBuilder) -> None:
    """The same three matrices three times; only the origin of queries and keys, and the mask, differ."""
    X, Y, WQ, WK, WV = page.tensors("X Y WQ WK WV")
    weights = WQ, WK, WV
    source, target = (_words(page[name]) for name in ("X", "Y"))
    own = _self_attention(page, X, weights, source)
    masked = _masked_attention(page, Y, weights, target)
    _cross_attention(page, _attend(Y, X, weights), source, target)
    _change_last(page, Y, page.tensor("later"), weights, target)
    formula = torch.softmax((X @ WQ.T) @ (X @ WK.T).T / math.sqrt(len(WQ)), 1) @ X @ WV.T
    page.compare("self: the formula and the package's attention", formula, own)
    prefixes = [_attend(Y[: i + 1], Y[: i + 1], weights)["context"][-1] for i in range(len(Y))]
    page.compare("masked: each word as if the sentence ended with it", torch.stack(prefixes), masked)
    moved = max(page.data("moved_masked")[:-1], default=0.0)
    page.compare("masked: a later word changes no earlier result", 0.0, moved, 0)
    page.expect("the words that the second target word attends to", [1, 1, 0, 0], "second", 0)


def _words(one: Value) -> list[str]:
    return list(next(iter(one.labels.values()), [])) or [str(i + 1) for i in range(len(one.data))]


def _attend(queries: Tensor, keys: Tensor, weights: Weights, causal: bool = False) -> dict[str, Tensor]:
    WQ, WK, WV = weights
    mask = "causal" if causal else "full"
    found = trace_attention((queries @ WQ.T)[None], (keys @ WK.T)[None], (keys @ WV.T)[None], mask)  # type: ignore[arg-type]
    return {name: seen[0] for name, seen in found.items()}


def _self_attention(page: LessonBuilder, X: Tensor, weights: Weights, words: list[str]) -> Tensor:
    seen = _attend(X, X, weights)
    page.step(
        "Self: the encoder",
        "Queries, keys and values come from the same sentence; every word attends to all words, also to later ones.",
        r"Q = X W_Q^\top \quad K = X W_K^\top \quad A = \softmax(\frac{Q K^\top}{\sqrt{d}})",
        "X WQ WK",
        value("A_self", seen["weights"], "query key", "A", {"query": words, "key": words}, "weights"),
    )
    page.step(
        "Self: the result",
        "One vector per word: each a weighted sum of the values of all words.",
        r"Z = A X W_V^\top",
        "A_self X WV",
        value("Z_self", seen["context"], "source out", "Z", {"source": words}),
    )
    return seen["context"]


def _masked_attention(page: LessonBuilder, Y: Tensor, weights: Weights, words: list[str]) -> Tensor:
    seen, labels = _attend(Y, Y, weights, causal=True), {"query": words, "key": words}
    mask = torch.ones(len(Y), len(Y), dtype=torch.long).tril()
    page.step(
        "Masked: the causal mask",
        "During generation, later words do not exist yet. In training they do, so they are hidden: a word attends to "
        "itself and to earlier words (1), not to later ones (0).",
        r"m_{ij} = 1 \text{ where } j \le i",
        "Y",
        value("mask", mask, "query key", "m", labels),
        value("second", mask[min(1, len(Y) - 1)], "key", r"\text{row 2}", {"key": words}),
    )
    page.step(
        "Masked: the decoder",
        "Scores of hidden words become minus infinity before the softmax: their weights are 0, and the others still "
        "sum to 1.",
        r"A = \softmax(\frac{Q K^\top}{\sqrt{d}} \text{ where } m = 1, \text{ else } -\infty)",
        "Y WQ WK mask",
        value("scores", seen["scores"], "query key", r"\text{scores}", labels),
        value("A_masked", seen["weights"], "query key", "A", labels, "weights"),
    )
    page.step(
        "Masked: the result",
        "The first word attends only to itself.",
        r"Z = A Y W_V^\top",
        "A_masked Y WV",
        value("Z_masked", seen["context"], "target out", "Z", {"target": words}),
    )
    return seen["context"]


def _cross_attention(page: LessonBuilder, seen: dict[str, Tensor], source: list[str], target: list[str]) -> None:
    page.step(
        "Cross: the target attends to the source",
        "Queries come from the target, keys and values from the source: one row per target word, one column per source "
        "word. Nothing is masked, since the whole source is known.",
        r"Q = Y W_Q^\top \quad K = X W_K^\top \quad V = X W_V^\top \quad A = \softmax(\frac{Q K^\top}{\sqrt{d}})",
        "X Y WQ WK",
        value("A_cross", seen["weights"], "target source", "A", {"target": target, "source": source}, "weights"),
    )
    page.step(
        "Cross: the result",
        "One vector per target word, computed from the source.",
        r"Z = A X W_V^\top",
        "A_cross X WV",
        value("Z_cross", seen["context"], "target out", "Z", {"target": target}),
    )


def _change_last(page: LessonBuilder, Y: Tensor, later: Tensor, weights: Weights, words: list[str]) -> None:
    other = torch.cat([Y[:-1], later[None]])
    moved = []
    for causal in (False, True):
        before, after = (_attend(one, one, weights, causal)["context"] for one in (Y, other))
        moved.append([max_difference(a, b) for a, b in zip(before, after)])
    page.step(
        "Another last word: which results change?",
        "The change of each result. Without the mask all of them change: a model would learn to copy the answer. With "
        "the mask only the last one does.",
        r"\max |Z - Z'|",
        "Y later WQ WK WV",
        value("moved_self", moved[0], "target", r"\text{unmasked}", {"target": words}),
        value("moved_masked", moved[1], "target", r"\text{masked}", {"target": words}),
    )


FIGURE = "X > A_self > Z_self; Y > A_masked > Z_masked; mask > A_masked; Y > A_cross; X > A_cross > Z_cross"
EXERCISES = (
    Exercise(
        "In masked self-attention, what are the weights of the first target word? Four numbers.",
        item("A_masked", 0),
        hint="it may only attend to itself",
    ),
    Exercise(
        "With later = [0, 0, 0] as the last word, by how much does the masked result of the first word change?",
        item("moved_masked", 0),
        {"later": [0, 0, 0]},
        hint="no query sees a later key",
    ),
)
READING = Reading(
    "Self, masked and cross attention",
    ("self-attention", "causal mask", "cross-attention (encoder-decoder attention)"),
    ("Vaswani et al. 2017, Attention is all you need, section 3.2.3",),
)
