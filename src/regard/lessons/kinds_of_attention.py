"""Lesson: attention of a sentence to itself, to what was said so far, and to another sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.layers import apart, looked, tensor
from regard.lessons.engine.lesson import Value

value = Page.value
READ, SAID = ["je", "suis", "étudiant"], ["<SOS>", "I", "am", "a"]

INPUTS = (
    Input(
        "X", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], "what was read", ("source", "in"),
        labels={"source": READ},
    ),
    Input(
        "Y",
        [[0.0, 0.0, 0.5], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 1.0]],
        "what was said so far",
        ("target", "in"),
        labels={"target": SAID},
    ),
    Input("WQ", [[2.0, 0.0, 1.0], [0.0, 2.0, 1.0]], "makes queries", ("width", "in"), "W_Q"),
    Input("WK", [[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]], "makes keys", ("width", "in"), "W_K"),
    Input("WV", [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]], "makes values", ("out", "in"), "W_V"),
    Input("later", [1.0, 1.0, -1.0], "another last word of Y: who notices?", ("in",), "y'"),
)  # fmt: skip


def _work(given: Mapping[str, Value]) -> Work:
    """The same three matrices three times; only where queries and keys come from, and who may be seen, differs."""
    page = Page(given)
    X, Y, WQ, WK, WV = (tensor(given[name]) for name in ("X", "Y", "WQ", "WK", "WV"))
    read, said = (_words(given[name]) for name in ("X", "Y"))
    alone = _self(page, X, (WQ, WK, WV), read)
    masked = _masked(page, Y, (WQ, WK, WV), said)
    _crossed(page, X, Y, (WQ, WK, WV), (read, said))
    _noticed(page, Y, tensor(given["later"]), (WQ, WK, WV), said)
    by_hand = torch.softmax((X @ WQ.T) @ (X @ WK.T).T / math.sqrt(len(WQ)), 1) @ X @ WV.T
    page.agree("self: the formula and the package's attention", by_hand, alone)
    page.agree("masked: each word as if the sentence ended with it", _one_by_one(Y, (WQ, WK, WV)), masked)
    page.agree("masked: a later word moves no earlier one", 0.0, max(page["moved_masked"].data[:-1], default=0.0), 0)
    page.lecture("who is seen by the second word that was said", [1, 1, 0, 0], "second", 0)
    return page.work()


def _words(given: Value) -> list[str]:
    return list(next(iter(given.labels.values()), [])) or [str(i + 1) for i in range(len(given.data))]


Weights = tuple[Tensor, Tensor, Tensor]


def _seen(asking: Tensor, answering: Tensor, weights: Weights, past: bool = False) -> dict[str, Tensor]:
    WQ, WK, WV = weights
    found = looked((asking @ WQ.T)[None], (answering @ WK.T)[None], (answering @ WV.T)[None], "past" if past else "all")
    return {name: seen[0] for name, seen in found.items()}


def _self(page: Page, X: Tensor, weights: Weights, words: list[str]) -> Tensor:
    seen = _seen(X, X, weights)
    both = {"query": words, "key": words}
    page.step(
        "Self: the encoder reads",
        "Queries, keys and values are made from the same sentence; every word sees all others, also those that follow.",
        r"Q = X W_Q^\top \quad K = X W_K^\top \quad A = \softmax(\frac{Q K^\top}{\sqrt{d}})",
        "X WQ WK",
        value("A_self", seen["weights"], "query key", "A", both, "weights"),
    )
    page.step(
        "What each word has become",
        "As many vectors as there were words: each a mixture of the values of all.",
        r"Z = A X W_V^\top",
        "A_self X WV",
        value("Z_self", seen["context"], "source out", "Z", {"source": words}),
    )
    return seen["context"]


def _masked(page: Page, Y: Tensor, weights: Weights, words: list[str]) -> Tensor:
    seen, both = _seen(Y, Y, weights, past=True), {"query": words, "key": words}
    mask = torch.ones(len(Y), len(Y), dtype=torch.long).tril()
    page.step(
        "Masked: who may be seen",
        "What is said later is not there yet when a model speaks. In training it is there, so it is hidden: a word "
        "sees itself and those before it (1), and no later one (0).",
        r"m_{ij} = 1 \text{ where } j \le i",
        "Y",
        value("mask", mask, "query key", "m", both),
        value("second", mask[min(1, len(Y) - 1)], "key", r"\text{row 2}", {"key": words}),
    )
    page.step(
        "Masked: the decoder reads what was said",
        "Scores of hidden words become minus infinity before the softmax: their weights are 0, and the rest still add "
        "up to 1.",
        r"A = \softmax(\frac{Q K^\top}{\sqrt{d}} \text{ where } m = 1, \text{ else } -\infty)",
        "Y WQ WK mask",
        value("scores", seen["scores"], "query key", r"\text{scores}", both),
        value("A_masked", seen["weights"], "query key", "A", both, "weights"),
    )
    page.step(
        "What each word that was said has become",
        "The first sees only itself.",
        r"Z = A Y W_V^\top",
        "A_masked Y WV",
        value("Z_masked", seen["context"], "target out", "Z", {"target": words}),
    )
    return seen["context"]


def _crossed(page: Page, X: Tensor, Y: Tensor, weights: Weights, words: tuple[list[str], list[str]]) -> None:
    seen, (read, said) = _seen(Y, X, weights), words
    page.step(
        "Cross: what was said asks what was read",
        "Queries come from one sentence, keys and values from the other: as many rows as words were said, as many "
        "columns as were read. Nothing is hidden, since all of it has been read.",
        r"Q = Y W_Q^\top \quad K = X W_K^\top \quad V = X W_V^\top \quad A = \softmax(\frac{Q K^\top}{\sqrt{d}})",
        "X Y WQ WK",
        value("A_cross", seen["weights"], "target source", "A", {"target": said, "source": read}, "weights"),
    )
    page.step(
        "What the decoder learns of the source",
        "One vector for each word that was said, made of what was read.",
        r"Z = A X W_V^\top",
        "A_cross X WV",
        value("Z_cross", seen["context"], "target out", "Z", {"target": said}),
    )


def _noticed(page: Page, Y: Tensor, later: Tensor, weights: Weights, words: list[str]) -> None:
    other = torch.cat([Y[:-1], later[None]])
    moved = []
    for past in (False, True):
        before, after = (_seen(one, one, weights, past)["context"] for one in (Y, other))
        moved.append([apart(a, b) for a, b in zip(before, after)])
    page.step(
        "Another last word: who notices?",
        "How far each result moves. Without the mask all of them do: a model would learn to look at the answer. With "
        "it only the last one does.",
        r"\max |Z - Z'|",
        "Y later WQ WK WV",
        value("moved_self", moved[0], "target", r"\text{all seen}", {"target": words}),
        value("moved_masked", moved[1], "target", r"\text{masked}", {"target": words}),
    )


def _one_by_one(Y: Tensor, weights: Weights) -> Tensor:
    return torch.stack([_seen(Y[: i + 1], Y[: i + 1], weights)["context"][-1] for i in range(len(Y))])


PLAN = Plan(INPUTS, _work)
