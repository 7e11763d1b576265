"""Lesson: additive attention (Bahdanau et al. 2015), small enough to follow by hand."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise, item
from regard.lessons.engine.reading import Reading
from regard.nn.alignment import Additive, Alignment
from regard.sequence import Padded
from regard.trace import record

SOURCE = ["je", "suis", "étudiant", "<EOS>"]

INPUTS = (
    Input(
        "H",
        [[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0], [0.0, -1.0]],
        "encoder states, one per word",
        ("source", "unit"),
        r"\bar{h}_s",
        {"source": SOURCE},
    ),
    Input("s", [1.0, 0.0], "decoder state before the next word", ("state",), "s_{t-1}"),
    Input("next", [0.0, 1.0], "decoder state after that word", ("state",), "s_t"),
    Input("W1", [[2.0, 0.0], [0.0, 2.0], [1.0, -1.0]], "weights of the decoder state", ("inner", "state"), "W_1"),
    Input("W2", [[2.0, 0.0], [0.0, 2.0], [-1.0, 1.0]], "weights of the encoder states", ("inner", "unit"), "W_2"),
    Input("v", [1.0, 1.0, -1.0], "output weights of the scoring network", ("inner",)),
)


def compute(page: LessonBuilder) -> None:
    """Scores, weights and context of the package's Alignment, for the previous and for the current decoder state."""
    H, s, following, W1, W2, v = page.tensors("H s next W1 W2 v")
    labels = page.labels("H")
    page.step(
        "The query",
        "Once per generated word: the decoder state times its matrix.",
        r"W_1 s_{t-1}",
        "W1 s",
        value("query", W1 @ s, "inner", r"W_1 s_{t-1}"),
    )
    page.step(
        "The keys",
        "Once per sentence, since they do not depend on the generated words: kept for all of them.",
        r"W_2 \bar{h}_s",
        "W2 H",
        value("keys", H @ W2.T, "source inner", r"W_2 \bar{h}_s", labels),
    )
    seen = additive_attention(H, s, W1, W2, v)
    page.step(
        "Scores",
        "A small network with one hidden layer: add, apply tanh, and reduce to one number.",
        r"e_s = v \cdot \tanh(W_1 s_{t-1} + W_2 \bar{h}_s)",
        "v query keys",
        value("scores", seen["scores"], "source", "e_s", labels),
    )
    page.step(
        "Attention weights",
        "The softmax over the source words.",
        r"\alpha_s = \frac{\exp e_s}{\sum_r \exp e_r}",
        "scores",
        value("weights", seen["weights"], "source", r"\alpha_s", labels, "weights"),
    )
    page.step(
        "The context",
        "The weighted sum of the encoder states. It is an input to the prediction of the next word.",
        r"c_t = \sum_s \alpha_s \bar{h}_s",
        "weights H",
        value("context", seen["context"], "unit", "c_t"),
    )
    _current_state(page, additive_attention(H, following, W1, W2, v)["weights"])
    formula = torch.softmax(torch.tanh(W1 @ s + H @ W2.T) @ v, 0) @ H
    page.compare("the formula and the package's alignment", formula, seen["context"])
    page.compare("the sum of the weights and 1", 1.0, seen["weights"].sum())


def _current_state(page: LessonBuilder, weights: Tensor) -> None:
    page.step(
        "Which state is the query?",
        "The paper, and RNNsearch here, use the state before the word, since the context is an input of the next "
        "state. The lecture, like Luong, uses the current state: the same formula, other weights.",
        r"e_s = v \cdot \tanh(W_1 s_t + W_2 \bar{h}_s)",
        "v W1 next keys",
        value("weights_after", weights, "source", r"\alpha'_s", page.labels("H"), "weights"),
    )


def additive_attention(H: Tensor, s: Tensor, W1: Tensor, W2: Tensor, v: Tensor) -> dict[str, Tensor]:
    """Scores, weights and context of the package's additive alignment.

    >>> one = torch.ones(1, 1)
    >>> additive_attention(torch.ones(2, 1), torch.tensor([0.0]), one, one, torch.ones(1))["weights"].tolist()
    [0.5, 0.5]
    """
    score = Additive(W1.shape[1], W2.shape[1], W1.shape[0]).double()
    with torch.no_grad():
        score.query.weight.copy_(W1)
        score.key.weight.copy_(W2)
        score.v.weight.copy_(v[None])
    alignment = Alignment(score)
    states = Padded(H.double()[None], torch.tensor([len(H)]), ragged=False)
    with record(alignment) as trace, torch.no_grad():
        alignment(s.double()[None, None], alignment.annotate(states))
    return {seen.name: seen.data[0, 0, 0] for seen in trace.records}


FIGURE = "s > query > scores; H > keys > scores; v > scores > weights > context; H > context"
EXERCISES = (
    Exercise(
        "If v = [0, 0, 0], what is the weight of each of the four encoder states?",
        item("weights", 0),
        {"v": [0, 0, 0]},
        hint="all scores are equal",
    ),
    Exercise(
        "With v = 0, what is the context? Two numbers.",
        "context",
        {"v": [0, 0, 0]},
        hint="the mean of the encoder states",
    ),
)
READING = Reading(
    "RNNsearch as in the paper's appendix",
    ("additive attention (concat attention)", "alignment model", "context vector", "annotation"),
    (
        "Bahdanau, Cho and Bengio 2015, Neural machine translation by jointly learning to align and "
        "translate, section 3.1 and appendix A",
    ),
)
