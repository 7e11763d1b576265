"""Lesson: from the decoder's last vector to a word: linear layer, softmax, choice."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise, item, largest
from regard.lessons.engine.layers import linear
from regard.lessons.engine.reading import Reading
from regard.spaces import Classes

VOCABULARY = ["a", "am", "i", "thanks", "student", "<eos>"]

INPUTS = (
    Input("x", [1.0, -0.5, 2.0], "last vector of the decoder", ("width",)),
    Input(
        "W",
        [[0.2, 0.1, 0.3], [0.9, -0.4, 1.2], [0.1, 0.8, 0.5], [-0.6, 0.2, 0.1], [0.3, -0.2, 0.6], [-0.5, 0.4, -0.8]],
        "output weights: one row per word of the vocabulary",
        ("word", "width"),
        labels={"word": VOCABULARY},
    ),
    Input("vocabulary", VOCABULARY, "the words", ("word",)),
    Input("target", "am", "the correct word"),
    Input("temperature", 1.0, "divides the logits", bounds=(0.05, 20), symbol=r"\tau"),
    Input("d", 512, "width of a real model", bounds=(1, 65536)),
    Input("words", 37000, "size of its vocabulary", bounds=(1, 1_000_000)),
)


def compute(page: LessonBuilder) -> None:
    """Logits, probabilities, word, loss and its gradient."""
    x, W = page.tensors("x W")
    words, target = page.data("vocabulary"), page.data("target")
    if target not in words:
        raise ConfigError(f'target: expected one of {", ".join(words)}, got "{target}"')
    labels, index = {"word": words}, torch.tensor(words.index(target))
    logits = linear(W)(x).detach()
    page.step(
        "Linear: one score per word",
        "The vector is multiplied by a matrix with a row for every word: a dot product each, called a logit. In the "
        "paper this matrix is the embedding table itself (tied weights).",
        "l = W x",
        "W x vocabulary",
        value("logits", logits, "word", "l", labels),
    )
    p = (logits / page.data("temperature")).softmax(0)
    page.step(
        "Softmax: probabilities",
        "Exponentials, divided by their sum. A temperature below 1 makes the largest more probable, above 1 less.",
        r"p_i = \frac{\exp(l_i / \tau)}{\sum_j \exp(l_j / \tau)}",
        "logits temperature vocabulary",
        value("exponentials", (logits / page.data("temperature")).exp(), "word", r"\exp(l / \tau)", labels),
        value("p", p, "word", "p", labels, "weights"),
    )
    page.step(
        "The word",
        "The index of the largest probability is the word that greedy decoding chooses. It is the same index as "
        "that of "
        "the largest logit: the softmax keeps the order.",
        r"\argmax_i p_i",
        "p vocabulary",
        value("chosen", int(p.argmax()), "", r"\text{index}"),
        value("word", words[int(p.argmax())], "", r"\text{word}"),
    )
    loss = _training(page, logits, index, labels)
    page.compare("the probabilities and 1", 1.0, float(p.sum()))
    page.compare("the package's loss and the formula", -logits.log_softmax(0)[index], loss)


def _training(page: LessonBuilder, logits: Tensor, index: Tensor, labels: dict[str, list[str]]) -> Tensor:
    """Loss and gradient, and the size of the matrix."""
    words = labels["word"]
    loss = Classes(len(words)).nll(logits[None], index[None])
    slope = logits.softmax(0) - torch.nn.functional.one_hot(index, len(words))
    page.step(
        "In training: loss and gradient",
        "The loss is the negative logarithm of the probability of the correct word. Its gradient is the prediction "
        "minus the one-hot target: up for the correct word, down for all others.",
        r"L = -\log p_y \quad \frac{\partial L}{\partial l} = p - 1_y",
        "logits target vocabulary",
        value("loss", loss, "", "L"),
        value("gradient", slope, "word", r"\partial L / \partial l", labels),
    )
    page.step(
        "The largest matrix",
        "With a real vocabulary this is the largest matrix of the model; tied to the embeddings it is counted once.",
        r"\text{words} \times d",
        "d words",
        value("output_parameters", page.data("d") * page.data("words"), "", r"\text{parameters}"),
    )
    return loss


FIGURE = "x > logits > exponentials > p > word; W > logits; temperature > exponentials; logits > loss; target > loss"
EXERCISES = (
    Exercise(
        "With x = (0, 0, 0), what is the probability of each of the six words? One number.",
        item("p", 0),
        {"x": [0.0, 0.0, 0.0]},
        hint="all logits are 0",
    ),
    Exercise(
        "With x = (0, 1, 0), which word is chosen?",
        largest("p"),
        {"x": [0.0, 1.0, 0.0]},
        hint="the row of W with the largest second number",
    ),
)
READING = Reading(
    "Linear and softmax: from a vector to a word",
    ("output projection (unembedding, LM head)", "logits", "softmax", "temperature", "weight tying"),
    (
        "Vaswani et al. 2017, Attention is all you need, section 3.4",
        "Press and Wolf 2017, Using the output embedding to improve language models",
    ),
)
