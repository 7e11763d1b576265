"""Lesson: one-hot targets, and a loss that falls: a small Transformer learns one sentence, just now."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import LARGEST, Input, Plan, Work
from regard.lessons.engine.lesson import Value
from regard.lessons.proverbs import SPECIAL, WordList
from regard.models.transformer import TransformerConfig
from regard.sequence import EOS, SOS, Tokens
from regard.spaces import Words

value = Page.value
WIDTH, REST = 16, "others"

INPUTS = (
    Input("vocabulary", ["a", "am", "i", "thanks", "student", "<eos>"], "the words that can be said; the last ends",
          ("word",)),
    Input("source", "je suis étudiant", "what is read"),
    Input("target", "i am a student", "what should be said, in words of the vocabulary"),
    Input("steps", 60, "of training", bounds=(1, 400)),
    Input("rate", 0.01, "how far each step goes", bounds=(0, 1)),
    Input("seed", 1, "the first weights are drawn by it", bounds=(0, LARGEST)),
)  # fmt: skip


def _work(given: Mapping[str, Value]) -> Work:
    """Targets, the untrained model's shares and loss, training, and both again."""
    page = Page(given)
    words, target = given["vocabulary"].data, given["target"].data.split()
    if len(set(words)) < len(words):
        raise ConfigError("vocabulary: expected each word once")
    for word in [*target, *([] if target else [""])]:
        if word not in words[:-1]:
            raise ConfigError(f'target: expected words of {", ".join(words[:-1])}, got "{word}"')
    if not given["source"].data.split():
        raise ConfigError("source: expected some words, got none")
    wanted, along = [words.index(word) for word in (*target, words[-1])], {"word": words}
    said = [*target, words[-1]]
    onehot = F.one_hot(torch.tensor(wanted), len(words))
    page.step(
        "What should be said",
        "One word after the other, and at the end the word that ends: a row for each, with a single 1.",
        r"y_{ti} = 1 \text{ if } i \text{ is word } t, \text{ else } 0",
        "vocabulary target",
        value("wanted", onehot, "step word", "y", {"step": said, **along}, "weights"),
        value("am", onehot[min(1, len(said) - 1)], "word", r"\text{the second}", along),
    )
    learnt = _learnt(given, words, wanted)
    _shown(page, learnt, words, said)
    page.lecture('"am" as a target', [0, 1, 0, 0, 0, 0], "am", 0)
    page.lecture("the loss after training is below that of before", "yes", "falls")
    page.lecture("the trained model says it", ["i", "am", "a", "student", "<eos>"], "said")
    hand = -learnt.after[range(len(wanted)), wanted].log().mean()
    page.agree("the formula over the shown shares, and the loss of the package", hand, learnt.losses[-1], 1e-4)
    return page.work()


@dataclass(frozen=True)
class Learnt:
    """Shares of the words before and after, and the loss before each step and after the last."""

    before: Tensor
    after: Tensor
    losses: list[float]


def _learnt(given: Mapping[str, Value], words: list[str], wanted: list[int]) -> Learnt:
    source = WordList.of([given["source"].data])
    read = Tokens.of([source.ids(given["source"].data)])
    # ids of the special words come first, and the word that ends is one of them
    ids = [EOS if i == len(words) - 1 else i + len(SPECIAL) for i in range(len(words))]
    answer = torch.tensor([ids[i] for i in wanted])
    heard = Tokens.full(torch.cat([torch.tensor([SOS]), answer[:-1]])[None])
    config = TransformerConfig(layers=1, width=WIDTH, inner=32, heads=2, dropout=0.0, norm="pre", tie="none")
    space = Words(len(SPECIAL) + len(words) - 1)
    losses = []
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(given["seed"].data)
        model = config.build(Words(source.size), space)
        before = _shares(model.readout(model(read, heard))[0], ids)
        optimizer = torch.optim.Adam(model.parameters(), lr=given["rate"].data)
        for _ in range(given["steps"].data):
            loss = space.loss(model.readout(model(read, heard))[0], answer) / len(answer)
            losses.append(float(loss.detach()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        logits = model.readout(model(read, heard))[0]
    losses.append(float(space.loss(logits, answer).detach() / len(answer)))
    if not all(map(math.isfinite, losses)):
        raise ConfigError(f"rate: expected a smaller one than {given['rate'].data:g}; the loss is no number any more")
    return Learnt(before, _shares(logits, ids), losses)


def _shares(logits: Tensor, ids: list[int]) -> Tensor:
    """Of each word of the vocabulary, and of all that is none (filling, unknown, start) together."""
    shares = logits.detach().double().softmax(-1)
    words = shares[:, ids]
    return torch.cat([words, 1 - words.sum(1, keepdim=True)], 1)


def _shown(page: Page, learnt: Learnt, words: list[str], said: list[str]) -> None:
    along, first, last = {"step": said, "word": [*words, REST]}, learnt.losses[0], learnt.losses[-1]
    page.step(
        "Before training",
        "What a Transformer with random weights expects at each place: a row adds up to 1. The loss is its mean "
        "surprise at the right words; who knows nothing of 6 words has log 6 = 1.79.",
        r"L = -\frac{1}{T} \sum_t \log p_{t, y_t}",
        "wanted source vocabulary seed",
        value("before", learnt.before, "step word", "p", along, "weights"),
        value("loss_before", first, "", "L"),
    )
    steps = [str(i) for i in range(len(learnt.losses))]
    page.step(
        "The loss falls",
        "A step: read, compare, and move every weight a little in the direction that makes the loss smaller.",
        r"\theta \to \theta - \text{rate} \cdot \text{Adam}(\frac{\partial L}{\partial \theta})",
        "before wanted source steps rate seed vocabulary",
        value("losses", learnt.losses, "step", "L", {"step": steps}, "line"),
        value("falls", "yes" if last < first and math.isfinite(last) else "no", "", r"\text{it falls}"),
    )
    best = learnt.after[:, : len(words)].argmax(1).tolist()
    page.step(
        "After training",
        "Nearly all of each row is where the 1 of the target is.",
        r"L = -\frac{1}{T} \sum_t \log p_{t, y_t}",
        "losses wanted source vocabulary steps rate seed",
        value("after", learnt.after, "step word", "p", along, "weights"),
        value("loss_after", last, "", "L"),
        value("said", [words[i] for i in best], "step", r"\text{the likeliest}"),
    )


PLAN = Plan(INPUTS, _work)
