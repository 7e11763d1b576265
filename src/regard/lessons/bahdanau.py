"""Lesson: additive attention (Bahdanau et al. 2015), with numbers that can be followed by hand."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.layers import tensor
from regard.lessons.engine.lesson import Value
from regard.nn.alignment import Additive, Alignment
from regard.sequence import Padded
from regard.trace import record

value = Page.value
SOURCE = ["je", "suis", "étudiant", "<EOS>"]

INPUTS = (
    Input(
        "H",
        [[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0], [0.0, -1.0]],
        "the encoder's states, one a word",
        ("source", "unit"),
        r"\bar{h}_s",
        {"source": SOURCE},
    ),
    Input("s", [1.0, 0.0], "the decoder's state before the word that is sought", ("state",), "s_{t-1}"),
    Input("next", [0.0, 1.0], "its state after that word", ("state",), "s_t"),
    Input("W1", [[2.0, 0.0], [0.0, 2.0], [1.0, -1.0]], "weights of the decoder's state", ("inner", "state"), "W_1"),
    Input("W2", [[2.0, 0.0], [0.0, 2.0], [-1.0, 1.0]], "weights of the encoder's states", ("inner", "unit"), "W_2"),
    Input("v", [1.0, 1.0, -1.0], "makes one number of it", ("inner",)),
)


def _work(given: Mapping[str, Value]) -> Work:
    """Scores, weights and context as the package's Alignment shows them, for the state before and the state after."""
    page = Page(given)
    H, s, following, W1, W2, v = (tensor(given[name]) for name in ("H", "s", "next", "W1", "W2", "v"))
    along = dict(given["H"].labels)
    page.step(
        "What the decoder asks",
        "Once a word: the state through its own matrix.",
        r"W_1 s_{t-1}",
        "W1 s",
        value("query", W1 @ s, "inner", r"W_1 s_{t-1}"),
    )
    page.step(
        "What the source answers to",
        "Once a sentence, since it does not depend on what is said: kept for all words.",
        r"W_2 \bar{h}_s",
        "W2 H",
        value("keys", H @ W2.T, "source inner", r"W_2 \bar{h}_s", along),
    )
    seen = attended(H, s, W1, W2, v)
    page.step(
        "Scores",
        "A small network with one hidden layer: add, bend, and make one number.",
        r"e_s = v \cdot \tanh(W_1 s_{t-1} + W_2 \bar{h}_s)",
        "v query keys",
        value("scores", seen["scores"], "source", "e_s", along),
    )
    page.step(
        "Weights",
        "The softmax over the words of the source.",
        r"\alpha_s = \frac{\exp e_s}{\sum_r \exp e_r}",
        "scores",
        value("weights", seen["weights"], "source", r"\alpha_s", along, "weights"),
    )
    page.step(
        "The context",
        "The encoder's own states, each as much as its weight says. It helps to say the next word.",
        r"c_t = \sum_s \alpha_s \bar{h}_s",
        "weights H",
        value("context", seen["context"], "unit", "c_t"),
    )
    _which_state(page, attended(H, following, W1, W2, v)["weights"], along)
    by_hand = torch.softmax(torch.tanh(W1 @ s + H @ W2.T) @ v, 0) @ H
    page.agree("the formula and the package's alignment", by_hand, seen["context"])
    page.agree("the sum of the weights and 1", 1.0, seen["weights"].sum())
    return page.work()


def _which_state(page: Page, weights: Tensor, along: Mapping[str, list[str]]) -> None:
    page.step(
        "Which state asks?",
        "The paper, and RNNsearch here, ask with the state of before the word, since the context goes into the next "
        "one. The lecture, as Luong, writes the state of now: the same formula, other weights.",
        r"e_s = v \cdot \tanh(W_1 s_t + W_2 \bar{h}_s)",
        "v W1 next keys",
        value("weights_after", weights, "source", r"\alpha'_s", along, "weights"),
    )


def attended(H: Tensor, s: Tensor, W1: Tensor, W2: Tensor, v: Tensor) -> dict[str, Tensor]:
    """What the package's additive alignment shows while it works: scores, weights, context.

    >>> one = torch.ones(1, 1)
    >>> attended(torch.tensor([[1.0], [1.0]]), torch.tensor([0.0]), one, one, torch.ones(1))["weights"].tolist()
    [0.5, 0.5]
    """
    fit = Additive(W1.shape[1], W2.shape[1], W1.shape[0]).double()
    with torch.no_grad():
        fit.query.weight.copy_(W1)
        fit.key.weight.copy_(W2)
        fit.v.weight.copy_(v[None])
    alignment = Alignment(fit)
    states = Padded(H.double()[None], torch.tensor([len(H)]), ragged=False)
    with record(alignment) as trace, torch.no_grad():
        alignment(s.double()[None, None], alignment.annotate(states))
    return {seen.name: seen.data[0, 0, 0] for seen in trace.records}


PLAN = Plan(INPUTS, _work)
