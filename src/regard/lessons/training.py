"""Lesson: one-hot targets, and a falling loss: a small Transformer learns one sentence while the lesson runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import MAX_NUMBER, Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.reading import Reading
from regard.lessons.proverbs import SPECIAL, WordList
from regard.models.transformer import TransformerConfig
from regard.sequence import EOS, SOS, Tokens
from regard.spaces import Words

WIDTH, REST = 16, "others"
LOSS = r"L = -\frac{1}{T} \sum_t \log p_{t, y_t}"

INPUTS = (
    Input("vocabulary", ["a", "am", "i", "thanks", "student", "<eos>"], "output vocabulary; the last word is <EOS>",
          ("word",)),
    Input("source", "je suis étudiant", "source sentence"),
    Input("target", "i am a student", "target sentence, in words of the vocabulary"),
    Input("steps", 60, "training steps", bounds=(1, 400)),
    Input("rate", 0.01, "learning rate", bounds=(0, 1)),
    Input("seed", 1, "random seed of the initial weights", bounds=(0, MAX_NUMBER)),
)  # fmt: skip


def compute(page: LessonBuilder) -> None:
    """Targets, predictions and loss before training, the loss curve, and both after training."""
    words, target = page.data("vocabulary"), page.data("target").split()
    if len(set(words)) < len(words):
        raise ConfigError("vocabulary: expected each word once")
    for word in [*target, *([] if target else [""])]:
        if word not in words[:-1]:
            raise ConfigError(f'target: expected words of {", ".join(words[:-1])}, got "{word}"')
    page.words("source")
    labels, targets = [*target, words[-1]], [words.index(word) for word in (*target, words[-1])]
    onehot = F.one_hot(torch.tensor(targets), len(words))
    page.step(
        "The targets",
        "One word after the other, and <EOS> at the end: one row each, with a single 1.",
        r"y_{ti} = 1 \text{ if } i \text{ is word } t, \text{ else } 0",
        "vocabulary target",
        value("targets", onehot, "step word", "y", {"step": labels, "word": words}, "weights"),
        value("am", onehot[min(1, len(targets) - 1)], "word", r"\text{the second}", {"word": words}),
    )
    history = _train(page, words, targets)
    _show(page, history, words, labels)
    page.expect('"am" as a target', [0, 1, 0, 0, 0, 0], "am", 0)
    page.expect("the loss after training is below that before", "yes", "falls")
    page.expect("the trained model's predictions", ["i", "am", "a", "student", "<eos>"], "predicted")
    formula = -history.after[range(len(targets)), targets].log().mean()
    page.compare("the formula with these probabilities, and the package's loss", formula, history.losses[-1], 1e-4)


@dataclass(frozen=True)
class LossHistory:
    """Predicted probabilities before and after training, and the loss before each step and after the last."""

    before: Tensor
    after: Tensor
    losses: list[float]


def _train(page: LessonBuilder, words: list[str], targets: list[int]) -> LossHistory:
    source = WordList.of([page.data("source")])
    read = Tokens.pad([source.ids(page.data("source"))])
    # special ids come first, and <EOS> is one of them
    ids = [EOS if i == len(words) - 1 else i + len(SPECIAL) for i in range(len(words))]
    answer = torch.tensor([ids[i] for i in targets])
    inputs = Tokens.full(torch.cat([torch.tensor([SOS]), answer[:-1]])[None])
    config = TransformerConfig(layers=1, width=WIDTH, ffn_width=32, heads=2, dropout=0.0, norm="pre", tie="none")
    space = Words(len(SPECIAL) + len(words) - 1)
    losses = []
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(page.data("seed"))
        model = config.build(Words(source.size), space)
        before = _probs(model.readout(model(read, inputs))[0], ids)
        optimizer = torch.optim.Adam(model.parameters(), lr=page.data("rate"))
        for _ in range(page.data("steps")):
            loss = space.loss(model.readout(model(read, inputs))[0], answer) / len(answer)
            losses.append(float(loss.detach()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        logits = model.readout(model(read, inputs))[0]
    losses.append(float(space.loss(logits, answer).detach() / len(answer)))
    if not all(map(math.isfinite, losses)):
        raise ConfigError(f"rate: expected a smaller one than {page.data('rate'):g}; the loss is not finite")
    return LossHistory(before, _probs(logits, ids), losses)


def _probs(logits: Tensor, ids: list[int]) -> Tensor:
    """Probabilities of the vocabulary, and the sum of the other special tokens in a last column."""
    probs = logits.detach().double().softmax(-1)[:, ids]
    return torch.cat([probs, 1 - probs.sum(1, keepdim=True)], 1)


def _show(page: LessonBuilder, history: LossHistory, words: list[str], targets: list[str]) -> None:
    labels, first, last = {"step": targets, "word": [*words, REST]}, history.losses[0], history.losses[-1]
    others = [name for number, name in SPECIAL.items() if number != EOS]
    outputs = len(words) + len(others)
    page.step(
        "Before training",
        f"Predicted probabilities of a Transformer with random weights: each row sums to 1. It has {outputs} outputs: "
        f'the {len(words)} words and {", ".join(others)}, whose sum is the column "{REST}". The loss is the mean '
        f"negative log-likelihood of the target words; a uniform prediction over {outputs} outputs has log {outputs} = "
        f"{math.log(outputs):.2f}.",
        LOSS,
        "targets source vocabulary seed",
        value("before", history.before, "step word", "p", labels, "weights"),
        value("loss_before", first, "", "L"),
    )
    steps = [str(i) for i in range(len(history.losses))]
    page.step(
        "The loss falls",
        "One step: forward pass, loss, gradient, and a small update of every weight that reduces the loss.",
        r"\theta \to \theta - \text{rate} \cdot \text{Adam}(\frac{\partial L}{\partial \theta})",
        "before targets source steps rate seed vocabulary",
        value("losses", history.losses, "step", "L", {"step": steps}, "line"),
        value("falls", "yes" if last < first and math.isfinite(last) else "no", "", r"\text{it falls}"),
    )
    best = history.after[:, : len(words)].argmax(1).tolist()
    page.step(
        "After training",
        "Nearly all probability of each row is where the target has its 1. The tokens in the column "
        f'"{REST}" are never a target, so they lose theirs.',
        LOSS,
        "losses targets source vocabulary steps rate seed",
        value("after", history.after, "step word", "p", labels, "weights"),
        value("loss_after", last, "", "L"),
        value("predicted", [words[i] for i in best], "step", r"\text{most probable}"),
    )


FIGURE = "source > before > losses > after; targets > losses"
EXERCISES = (
    Exercise(
        "Which loss would a uniform guess over 6 words have, in nats? Two decimals.",
        lambda lesson: math.log(len(lesson.value("vocabulary").data)),
        hint="the logarithm of 6",
    ),
    Exercise(
        "Write the one-hot row of am in the vocabulary a, am, i, thanks, student, <eos>. Six numbers.",
        "am",
        hint="its index, counted from 0, is 1",
    ),
)
READING = Reading(
    "One-hot targets, and the falling loss",
    ("cross-entropy", "one-hot target", "gradient descent", "teacher forcing"),
    ("Vaswani et al. 2017, Attention is all you need, section 5",),
)
