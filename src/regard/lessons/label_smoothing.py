"""Lesson: a target that leaves a little for the other words, and what that does to loss and gradient."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.layers import tensor
from regard.lessons.engine.lesson import Value
from regard.sequence import PAD
from regard.spaces import Words

value = Page.value
HIGHEST, DRAWN = 12.0, 61
"""up to which score of the right word the curve goes, and its points"""

INPUTS = (
    Input("vocabulary", ["<PAD>", "a", "am", "i", "thanks", "student", "<eos>"], "the words; first the filling",
          ("word",)),
    Input("word", "am", "the right one"),
    Input("scores", [0.0, 0.0, 4.0, 1.0, -1.0, 0.0, 0.5], "what the model says", ("word",), "z"),
    Input("smoothing", 0.1, "what is spread over all words", symbol=r"\epsilon", bounds=(0, 0.99)),
)  # fmt: skip


def _work(given: Mapping[str, Value]) -> Work:
    """Target, loss, gradient, and where the loss is smallest: by the package's space of words, beside the formula."""
    page = Page(given)
    words, right, share = (given[name].data for name in ("vocabulary", "word", "smoothing"))
    if right not in words[1:]:
        raise ConfigError(f'word: expected one of {", ".join(words[1:])}, got "{right}"')
    if len(words) < 3:
        raise ConfigError(f"vocabulary: expected <PAD> and two words or more, got {len(words)}")
    number, scores = words.index(right, 1), tensor(given["scores"]).requires_grad_()
    targets = {name: target(len(words), number, amount) for name, amount in (("hard", 0.0), ("soft", share))}
    _targets(page, words, targets)
    _losses(page, words, scores, number, targets, share)
    _best(page, words, number, targets["soft"], share)
    page.lecture("the right word's share", 0.9 + 0.1 / 6, "right_share", 1e-9)
    page.lecture("<PAD> can never be right, so it gets nothing", 0.0, "pad_share", 0)
    page.agree("the shares and 1", 1.0, targets["soft"].sum())
    return page.work()


def target(size: int, right: int, share: float) -> Tensor:
    """1 - share on the right word, and the share spread over all words but <PAD>, the right one among them.

    >>> target(3, 1, 0.2).tolist()
    [0.0, 0.9, 0.1]
    """
    spread = torch.full((size,), share / (size - 1), dtype=torch.float64)
    spread[PAD] = 0.0
    spread[right] += 1 - share
    return spread


def _targets(page: Page, words: list[str], targets: Mapping[str, Tensor]) -> None:
    along = {"word": words}
    page.step(
        "The target of one right word",
        "One-hot: all for the right word, nothing for the others.",
        r"y_i = 1 \text{ if } i \text{ is the word, else } 0",
        "vocabulary word",
        value("hard", targets["hard"], "word", "y", along, "weights"),
    )
    page.step(
        "The same, made smooth",
        "A little is taken from the right word and spread over all words that could be said. The model is told not to "
        "be too sure: a sentence can often be translated in another way.",
        r"q_i = (1 - \epsilon) y_i + \frac{\epsilon}{K}",
        "hard smoothing",
        value("soft", targets["soft"], "word", "q", along, "weights"),
        value("right_share", targets["soft"].max(), "", r"\text{the right word}"),
        value("pad_share", targets["soft"][PAD], "", r"\text{<PAD>}"),
    )


def _losses(
    page: Page, words: list[str], scores: Tensor, number: int, targets: Mapping[str, Tensor], share: float
) -> None:
    along, shares = {"word": words}, scores.detach().softmax(0)
    page.step(
        "What the model says",
        "The softmax makes shares of its scores.",
        r"p = \softmax(z)",
        "scores vocabulary",
        value("p", shares, "word", labels=along, look="weights"),
    )
    for name, symbol, amount in (("hard", "y", 0.0), ("soft", "q", share)):
        loss = Words(len(words), amount).loss(scores[None], torch.tensor([number]))
        (slope,) = torch.autograd.grad(loss, scores)
        page.step(
            f"Loss and gradient, {'one-hot' if name == 'hard' else 'made smooth'}",
            "Scores are pushed by the difference of what is said and what is wanted: down where it is above 0."
            if name == "hard"
            else "Where the model is surer than the target, it is pushed back.",
            rf"L = -\sum_i {symbol}_i \log p_i \quad \frac{{\partial L}}{{\partial z}} = p - {symbol}",
            f"p {name} scores",
            value(f"loss_{name}", loss.detach(), "", "L"),
            value(f"slope_{name}", slope, "word", r"\partial L / \partial z", along),
        )
        logs = scores.detach().log_softmax(0)
        page.agree(f"the formula and the package's loss, {name}", -(targets[name] * logs).sum(), loss.detach())
        if amount:
            by_hand = shares - targets[name]
            page.agree("p - q, and the package's gradient", by_hand, slope)


def _best(page: Page, words: list[str], number: int, soft: Tensor, share: float) -> None:
    """The loss when the right word's score is raised, all others being 0."""
    raised = [HIGHEST * i / (DRAWN - 1) for i in range(DRAWN)]
    scores = torch.zeros(DRAWN, len(words), dtype=torch.float64)
    scores[:, PAD] = -30.0
    scores[:, number] = torch.tensor(raised, dtype=torch.float64)
    wanted = torch.full((1,), number)
    losses = [[float(Words(len(words), amount).loss(row[None], wanted)) for row in scores] for amount in (0.0, share)]
    page.step(
        "How sure should a model be?",
        "The right word's score is raised, the other words stay at 0. Against one-hot the loss falls for ever: scores "
        "grow without end. Made smooth, it has a lowest point, and beyond it being surer costs.",
        r"L(z) = -\sum_i q_i \log p_i",
        "vocabulary word smoothing",
        value("losses", losses, "target score", "L",
              {"target": ["one-hot", "made smooth"], "score": [f"{z:.1f}" for z in raised]}, "line"),
    )  # fmt: skip
    if share > 0 and len(words) > 2:
        least = -float((soft[soft > 0] * soft[soft > 0].log()).sum())
        gap = math.log(float(soft.max()) * (len(words) - 1) / share)
        page.step(
            "The lowest point",
            "There the shares are the target's own. What is left of the loss is what the target does not know itself.",
            r"z = \log \frac{\text{the right share}}{\text{another share}} \quad L = -\sum_i q_i \log q_i",
            "soft",
            value("gap", gap, "", "z"),
            value("least", least, "", r"\text{least } L"),
        )
        at = torch.zeros(1, len(words), dtype=torch.float64)
        at[0, PAD], at[0, number] = -1e3, gap
        # <PAD> has no share to lose, so its score may be as low as one likes
        found = float(Words(len(words), share).loss(at, wanted))
        page.agree("the least loss, and the package's loss at that score", least, found)


PLAN = Plan(INPUTS, _work)
