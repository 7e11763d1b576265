"""Lesson: bytes, one-hot vectors, targets, and calculating with words."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import torch
import torch.nn.functional as F
from torch import nn

from regard.errors import ConfigError
from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.layers import tensor
from regard.lessons.engine.lesson import Value
from regard.spaces import Classes

value = Page.value
QUEEN = [1.298, 1.422, -1.122, 0.244]
PEOPLE = ("king", "man", "woman", "queen")

INPUTS = (
    Input("text", "slaughter", "any text"),
    Input("vocabulary", ["a", "am", "i", "thanks", "student", "<eos>"], "the words that can be said", ("word",)),
    Input("word", "am", "the word that should be said"),
    Input("untrained", [0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "scores of a model that knows nothing", ("word",)),
    Input("trained", [0.0, 4.0, 1.0, -1.0, 0.0, 0.5], "scores of one that has learnt", ("word",)),
    Input("king", [0.603, 0.198, -0.585, -0.074], "a word's vector", ("component",)),
    Input("man", [0.252, -0.836, -0.294, 0.455], "another", ("component",)),
    Input("woman", [0.947, 0.388, -0.831, 0.773], "another", ("component",)),
    Input("queen", QUEEN, "what should come out", ("component",)),
)


def _work(given: Mapping[str, Value]) -> Work:
    """Bytes, the one-hot target and its loss, the row of a table, king - man + woman."""
    page = Page(given)
    _bytes(page, given["text"].data)
    _target(page, given)
    _table(page, given)
    _analogy(page, given)
    page.lecture('"slaughter" as bytes', ["73", "6C", "61", "75", "67", "68", "74", "65", "72"], "bytes")
    page.lecture('"am" as a target', [0, 1, 0, 0, 0, 0], "onehot", 0)
    page.lecture("king - man + woman, exactly queen", QUEEN, "exact", 0)
    page.lecture("the same in floating point", QUEEN, "sum", 1e-12)
    return page.work()


def _bytes(page: Page, text: str) -> None:
    if not text:
        raise ConfigError("text: expected at least one character, got ''")
    coded = [f"{byte:02X}" for byte in text.encode("utf-8", errors="replace")]
    page.step(
        "A text is bytes",
        "What a computer keeps of a text: one byte for each letter of English, two and more for others. A picture is "
        "bytes too; what they mean is up to the model.",
        "",
        "text",
        value("bytes", coded, "byte", r"\text{bytes}"),
    )


def _target(page: Page, given: Mapping[str, Value]) -> None:
    words, word = given["vocabulary"].data, given["word"].data
    if word not in words:
        raise ConfigError(f'word: expected one of {", ".join(words)}, got "{word}"')
    number, along = words.index(word), {"word": words}
    onehot = F.one_hot(torch.tensor(number), len(words))
    page.step(
        "A word is a number, and a number is a vector",
        "The place of the word in the vocabulary, as a vector with a single 1: what the model should have said.",
        r"y_i = 1 \text{ if } i \text{ is the word, else } 0",
        "vocabulary word",
        value("number", number, "", r"\text{number}"),
        value("onehot", onehot, "word", "y", along),
    )
    losses = {}
    for name in ("untrained", "trained"):
        scores = tensor(given[name])
        losses[name] = Classes(len(words)).loss(scores[None], torch.tensor([number]))
        page.step(
            f"The {name} model",
            "The softmax makes shares of the scores; the loss is how surprised the model is by the right word.",
            r"L = -\sum_i y_i \log p_i",
            f"{name} onehot",
            value(f"p_{name}", scores.softmax(0), "word", "p", along, look="weights"),
            value(f"loss_{name}", losses[name], "", "L"),
        )
        page.agree(f"the formula and the loss of the package, {name}", -scores.log_softmax(0)[number], losses[name])


def _table(page: Page, given: Mapping[str, Value]) -> None:
    rows = torch.stack([tensor(given[name]) for name in PEOPLE])
    page.step(
        "A one-hot vector picks a row",
        "An embedding is a table with a row for each word. One-hot times table is one of its rows, so nobody "
        "multiplies: the row is looked up.",
        r"e = y E",
        " ".join(PEOPLE),
        value("E", rows, "word component", labels={"word": list(PEOPLE)}),
        value("row", nn.Embedding.from_pretrained(rows)(torch.tensor(0)), "component", r"\text{the row of king}"),
    )
    page.agree("one-hot times table, and the row looked up", F.one_hot(torch.tensor(0), 4).double() @ rows, rows[0])


def _analogy(page: Page, given: Mapping[str, Value]) -> None:
    king, man, woman, queen = (tensor(given[name]) for name in PEOPLE)
    decimals = [[Decimal(repr(number)) for number in given[name].data] for name in PEOPLE[:3]]
    exact = [float(k - m + w) for k, m, w in zip(*decimals)]
    page.step(
        "Calculating with words",
        "Taken off the king what makes a man, and added what makes a woman. In decimals, as one does it on paper; and "
        "as a computer does it, in binary, where the last digits are off.",
        r"\text{king} - \text{man} + \text{woman}",
        "king man woman",
        value("exact", exact, "component", r"\text{on paper}"),
        value("sum", king - man + woman, "component", r"\text{computed}"),
    )
    near = F.cosine_similarity((king - man + woman)[None], torch.stack([king, man, woman, queen]), dim=1)
    page.step(
        "The nearest word",
        "Which of the words points the same way? The cosine of the angle is 1 where two vectors do.",
        r"\cos(a, b) = \frac{a \cdot b}{\|a\| \|b\|}",
        "sum king man woman queen",
        value("cosines", near, "word", r"\cos", {"word": list(PEOPLE)}),
        value("nearest", PEOPLE[int(near.argmax())], "", r"\text{nearest}"),
    )


PLAN = Plan(INPUTS, _work)
