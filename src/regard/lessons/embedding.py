"""Lesson: bytes, one-hot vectors, the loss of a target word, and word analogies."""

from __future__ import annotations

from decimal import Decimal

import torch
import torch.nn.functional as F
from torch import nn

from regard.errors import ConfigError
from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise, item
from regard.lessons.engine.reading import Reading
from regard.spaces import Classes

QUEEN = [1.298, 1.422, -1.122, 0.244]
PEOPLE = ("king", "man", "woman", "queen")

INPUTS = (
    Input("text", "slaughter", "any text"),
    Input("vocabulary", ["a", "am", "i", "thanks", "student", "<eos>"], "the output vocabulary", ("word",)),
    Input("word", "am", "the target word"),
    Input("untrained", [0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "scores of an untrained model", ("word",)),
    Input("trained", [0.0, 4.0, 1.0, -1.0, 0.0, 0.5], "scores of a trained model", ("word",)),
    Input("king", [0.603, 0.198, -0.585, -0.074], "a word vector", ("component",)),
    Input("man", [0.252, -0.836, -0.294, 0.455], "another", ("component",)),
    Input("woman", [0.947, 0.388, -0.831, 0.773], "another", ("component",)),
    Input("queen", QUEEN, "the expected result", ("component",)),
)


def compute(page: LessonBuilder) -> None:
    """Bytes, the one-hot target and its loss, an embedding lookup, king - man + woman."""
    text = page.data("text")
    if not text:
        raise ConfigError("text: expected at least one character, got ''")
    codes = [f"{byte:02X}" for byte in text.encode("utf-8", errors="replace")]
    page.step(
        "A text is bytes",
        "How a computer stores a text: one byte per English letter, two or more for others. A picture is bytes too; "
        "their meaning is up to the model.",
        "",
        "text",
        value("bytes", codes, "byte", r"\text{bytes}"),
    )
    _target(page)
    _lookup(page)
    _analogy(page)
    page.expect('"slaughter" as bytes', ["73", "6C", "61", "75", "67", "68", "74", "65", "72"], "bytes")
    page.expect('"am" as a target', [0, 1, 0, 0, 0, 0], "onehot", 0)
    page.expect("king - man + woman, exactly queen", QUEEN, "exact", 0)
    page.expect("the same in floating point", QUEEN, "sum", 1e-12)


def _target(page: LessonBuilder) -> None:
    words, word = page.data("vocabulary"), page.data("word")
    if word not in words:
        raise ConfigError(f'word: expected one of {", ".join(words)}, got "{word}"')
    number, labels = words.index(word), {"word": words}
    page.step(
        "A word is an index, and an index is a vector",
        "The index of the word in the vocabulary, as a vector with a single 1: the target of the model.",
        r"y_i = 1 \text{ if } i \text{ is the word, else } 0",
        "vocabulary word",
        value("number", number, "", r"\text{number}"),
        value("onehot", F.one_hot(torch.tensor(number), len(words)), "word", "y", labels),
    )
    for name in ("untrained", "trained"):
        scores = page.tensor(name)
        loss = Classes(len(words)).loss(scores[None], torch.tensor([number]))
        page.step(
            f"The {name} model",
            "The softmax turns scores into probabilities; the loss is the negative log-likelihood of the target word.",
            r"L = -\sum_i y_i \log p_i",
            f"{name} onehot",
            value(f"p_{name}", scores.softmax(0), "word", "p", labels, look="weights"),
            value(f"loss_{name}", loss, "", "L"),
        )
        page.compare(f"the formula and the package's loss, {name}", -scores.log_softmax(0)[number], loss)


def _lookup(page: LessonBuilder) -> None:
    rows = torch.stack(page.tensors(" ".join(PEOPLE)))
    page.step(
        "A one-hot vector selects a row",
        "An embedding is a table with one row per word. A one-hot vector times the table is one of its rows, so no "
        "product is computed: the row is looked up.",
        r"e = y E",
        " ".join(PEOPLE),
        value("E", rows, "word component", labels={"word": list(PEOPLE)}),
        value("row", nn.Embedding.from_pretrained(rows)(torch.tensor(0)), "component", r"\text{the row of king}"),
    )
    page.compare("one-hot times table, and the row looked up", F.one_hot(torch.tensor(0), 4).double() @ rows, rows[0])


def _analogy(page: LessonBuilder) -> None:
    king, man, woman, queen = page.tensors(" ".join(PEOPLE))
    decimals = [[Decimal(repr(number)) for number in page.data(name)] for name in PEOPLE[:3]]
    exact = [float(k - m + w) for k, m, w in zip(*decimals)]
    computed = (king - man + woman).tolist()
    off = [found - expected for found, expected in zip(computed, exact)]
    last_digits = (
        "where the last digits are off, too little for the digits shown: the difference is printed below"
        if any(off)
        else "which here gives the same numbers to the last digit"
    )
    page.step(
        "Word analogies",
        "From king, man is subtracted and woman is added. In exact decimals, as on paper; and in binary floating "
        f"point, {last_digits}.",
        r"\text{king} - \text{man} + \text{woman}",
        "king man woman",
        value("exact", exact, "component", r"\text{on paper}"),
        value("sum", computed, "component", r"\text{computed}"),
        value("off", off, "component", r"\text{computed} - \text{on paper}"),
    )
    cosines = F.cosine_similarity((king - man + woman)[None], torch.stack([king, man, woman, queen]), dim=1)
    page.step(
        "The nearest word",
        "The word with the highest cosine similarity; the cosine is 1 for vectors in the same direction.",
        r"\cos(a, b) = \frac{a \cdot b}{\|a\| \|b\|}",
        "sum king man woman queen",
        value("cosines", cosines, "word", r"\cos", {"word": list(PEOPLE)}),
        value("nearest", PEOPLE[int(cosines.argmax())], "", r"\text{nearest}"),
    )


FIGURE = "word > number > onehot > row; E > row; king > sum; man > sum; woman > sum > cosines > nearest"
EXERCISES = (
    Exercise(
        "Write the one-hot vector of thanks in the lesson's vocabulary. Six numbers.",
        "onehot",
        {"word": "thanks"},
        hint="its index, counted from 0, is 3",
    ),
    Exercise(
        "Which is the first component of king - man + woman?",
        item("sum", 0),
        hint="0.603 - 0.252 + 0.947",
    ),
)
READING = Reading(
    "Text as bytes; king - man + woman with the lecture's numbers; one-hot words",
    ("one-hot vector", "embedding table (lookup table)", "word analogy", "cosine similarity"),
    (
        "Mikolov et al. 2013, Distributed representations of words and phrases and their compositionality",
        "Pennington, Socher and Manning 2014, GloVe",
    ),
)
