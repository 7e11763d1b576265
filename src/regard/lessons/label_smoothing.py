"""Lesson: label smoothing, and its effect on loss and gradient."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.reading import Reading
from regard.sequence import PAD
from regard.spaces import Words

MAX_SCORE, POINTS = 12.0, 61
"""largest score of the correct word on the curve, and points of the curve"""

INPUTS = (
    Input("vocabulary", ["<PAD>", "a", "am", "i", "thanks", "student", "<eos>"], "the vocabulary; <PAD> comes first",
          ("word",)),
    Input("word", "am", "the correct word"),
    Input("scores", [0.0, 0.0, 4.0, 1.0, -1.0, 0.0, 0.5], "scores of the model", ("word",), "z"),
    Input("smoothing", 0.1, "probability that is spread over all words", symbol=r"\epsilon", bounds=(0, 0.99)),
)  # fmt: skip


def compute(page: LessonBuilder) -> None:
    """Target, loss, gradient, and the minimum of the loss, by the package's loss and by the formula."""
    words, right, share = (page.data(name) for name in ("vocabulary", "word", "smoothing"))
    if right not in words[1:]:
        raise ConfigError(f'word: expected one of {", ".join(words[1:])}, got "{right}"')
    if len(words) < 3:
        raise ConfigError(f"vocabulary: expected <PAD> and two words or more, got {len(words)}")
    number = words.index(right, 1)
    targets = {name: smooth_target(len(words), number, amount) for name, amount in (("hard", 0.0), ("soft", share))}
    _targets(page, words, targets)
    _losses(page, words, number, targets, share)
    _curve(page, words, number, share)
    if share > 0 and len(words) > 2:
        _minimum(page, len(words), number, targets["soft"], share)
    page.expect("the probability of the correct word", 0.9 + 0.1 / 6, "right_share", 1e-9)
    page.expect("<PAD> is never correct, so it gets no probability", 0.0, "pad_share", 0)
    page.compare("the sum of the probabilities and 1", 1.0, targets["soft"].sum())


def smooth_target(size: int, right: int, share: float) -> Tensor:
    """1 - share on the correct word, and the share spread over all words but <PAD>, the correct one included.

    >>> smooth_target(3, 1, 0.2).tolist()
    [0.0, 0.9, 0.1]
    """
    target = torch.full((size,), share / (size - 1), dtype=torch.float64)
    target[PAD] = 0.0
    target[right] += 1 - share
    return target


def _targets(page: LessonBuilder, words: list[str], targets: Mapping[str, Tensor]) -> None:
    labels = {"word": words}
    page.step(
        "The one-hot target",
        "All probability on the correct word, none on the others.",
        r"y_i = 1 \text{ if } i \text{ is the word, else } 0",
        "vocabulary word",
        value("hard", targets["hard"], "word", "y", labels, "weights"),
    )
    page.step(
        "The smoothed target",
        "A small part is moved from the correct word to all words that can be generated. It keeps the model from "
        "becoming overconfident: a sentence often has several correct translations.",
        r"q_i = (1 - \epsilon) y_i + \frac{\epsilon}{K}",
        "hard smoothing",
        value("soft", targets["soft"], "word", "q", labels, "weights"),
        value("right_share", targets["soft"].max(), "", r"\text{the correct word}"),
        value("pad_share", targets["soft"][PAD], "", r"\text{<PAD>}"),
    )


def _losses(page: LessonBuilder, words: list[str], number: int, targets: Mapping[str, Tensor], share: float) -> None:
    scores = page.tensor("scores").requires_grad_()
    labels, probs = {"word": words}, scores.detach().softmax(0)
    page.step(
        "The prediction",
        "The softmax turns scores into probabilities.",
        r"p = \softmax(z)",
        "scores vocabulary",
        value("p", probs, "word", labels=labels, look="weights"),
    )
    for name, symbol, amount in (("hard", "y", 0.0), ("soft", "q", share)):
        loss = Words(len(words), amount).loss(scores[None], torch.tensor([number]))
        (slope,) = torch.autograd.grad(loss, scores)
        page.step(
            f"Loss and gradient, {'one-hot' if name == 'hard' else 'smoothed'}",
            "The gradient is the prediction minus the target: scores are pushed down where it is above 0."
            if name == "hard"
            else "Where the model is more confident than the target, it is pushed back.",
            rf"L = -\sum_i {symbol}_i \log p_i \quad \frac{{\partial L}}{{\partial z}} = p - {symbol}",
            f"p {name} scores",
            value(f"loss_{name}", loss.detach(), "", "L"),
            value(f"slope_{name}", slope, "word", r"\partial L / \partial z", labels),
        )
        logs = scores.detach().log_softmax(0)
        page.compare(f"the formula and the package's loss, {name}", -(targets[name] * logs).sum(), loss.detach())
        if amount:
            page.compare("p - q, and the package's gradient", probs - targets[name], slope)


def _curve(page: LessonBuilder, words: list[str], number: int, share: float) -> None:
    """The loss as a function of the correct word's score, all other scores being 0."""
    raised = [MAX_SCORE * i / (POINTS - 1) for i in range(POINTS)]
    scores = torch.zeros(POINTS, len(words), dtype=torch.float64)
    scores[:, PAD] = -30.0
    scores[:, number] = torch.tensor(raised, dtype=torch.float64)
    target = torch.full((1,), number)
    losses = [[float(Words(len(words), amount).loss(row[None], target)) for row in scores] for amount in (0.0, share)]
    page.step(
        "How confident should a model be?",
        "The score of the correct word is raised, the other scores stay at 0. With the one-hot target the loss always "
        "falls: scores grow without bound. With the smoothed target it has a minimum, beyond which more confidence "
        "costs.",
        r"L(z) = -\sum_i q_i \log p_i",
        "vocabulary word smoothing",
        value("losses", losses, "target score", "L",
              {"target": ["one-hot", "smoothed"], "score": [f"{z:.1f}" for z in raised]}, "line"),
    )  # fmt: skip


def _minimum(page: LessonBuilder, size: int, number: int, soft: Tensor, share: float) -> None:
    least = -float((soft[soft > 0] * soft[soft > 0].log()).sum())
    gap = math.log(float(soft.max()) * (size - 1) / share)
    page.step(
        "The minimum",
        "There the prediction equals the target. The remaining loss is the entropy of the target.",
        r"z = \log \frac{\text{the correct word's } q}{\text{another word's } q} \quad L = -\sum_i q_i \log q_i",
        "soft",
        value("gap", gap, "", "z"),
        value("least", least, "", r"\text{least } L"),
    )
    at = torch.zeros(1, size, dtype=torch.float64)
    at[0, PAD], at[0, number] = -1e3, gap  # <PAD> has no target probability, so its score may be arbitrarily low
    found = float(Words(size, share).loss(at, torch.full((1,), number)))
    page.compare("the least loss, and the package's loss at that score", least, found)


FIGURE = (
    "word > hard > soft; smoothing > soft; scores > p > loss_soft; soft > loss_soft; hard > loss_hard; p > loss_hard"
)
EXERCISES = (
    Exercise(
        "With smoothing = 0.3, which share does the correct word get?",
        "right_share",
        {"smoothing": 0.3},
        hint="0.7 plus its part of 0.3, which six words share",
    ),
    Exercise(
        "Which share of the target does <PAD> get?",
        "pad_share",
        hint="it is never a target",
    ),
)
READING = Reading(
    "Label smoothing",
    ("label smoothing", "cross-entropy", "overconfidence"),
    (
        "Szegedy et al. 2016, Rethinking the Inception architecture for computer vision, section 7",
        "Vaswani et al. 2017, Attention is all you need, section 5.4",
    ),
)
