"""Lesson: read in both directions, a word's state also depends on the words after it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import MAX_NUMBER, Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.layers import max_difference
from regard.lessons.engine.reading import Reading
from regard.nn.recurrent import Bidirectional
from regard.sequence import Padded

WIDTH = 4
NAMES = ("first", "second")

INPUTS = (
    Input("first", "the bank of the river", "a sentence"),
    Input("second", "the bank of the city", "a sentence with the same beginning"),
    Input("word", "bank", "a word of both"),
    Input("seed", 1, "random seed of the weights", bounds=(0, MAX_NUMBER)),
)


def compute(page: LessonBuilder) -> None:
    """An untrained bidirectional GRU over two sentences: which words a state can depend on."""
    sentences, word = [page.data(name).split() for name in NAMES], page.data("word")
    for name, words in zip(NAMES, sentences):
        if word not in words:
            raise ConfigError(f'word: expected a word of both sentences, and "{word}" is not in {name}')
    layer, vectors = _random_layer(sorted(set(sentences[0] + sentences[1])), page.data("seed"))
    outs = [layer(_pad_words(vectors, words))[0][0] for words in sentences]
    places = [words.index(word) for words in sentences]
    onward = [out[place, :WIDTH] for out, place in zip(outs, places)]
    back = [out[place, WIDTH:] for out, place in zip(outs, places)]
    for name, words, out, prime in zip(NAMES, sentences, outs, ("", "'")):
        page.step(
            f"The {name} sentence, left to right",
            "Each state depends on its word and the words before it.",
            r"\overrightarrow{h}_t = f(\overrightarrow{h}_{t-1}, x_t)",
            f"{name} seed",
            value(f"onward_{name}", out[:, :WIDTH], "word unit", rf"\overrightarrow{{h}}{prime}", {"word": words}),
        )
        page.step(
            f"The {name} sentence, right to left",
            "The same words in reverse order through a second layer: each state depends on its word and the words "
            "after it.",
            r"\overleftarrow{h}_t = f(\overleftarrow{h}_{t+1}, x_t)",
            f"{name} seed",
            value(f"back_{name}", out[:, WIDTH:], "word unit", rf"\overleftarrow{{h}}{prime}", {"word": words}),
        )
    _compare(page, word, onward, back)
    page.expect("the left context is the same, so is the left-to-right state", 0.0, "from_left", 0)
    same = sentences[0][: places[0]] == sentences[1][: places[1]]
    page.compare("equal words before it, equal left-to-right states", same, max_difference(*onward) == 0, 0)
    forward_only = layer.forward_layer
    alone, _ = forward_only(_pad_words(vectors, sentences[0]), forward_only.zeros(torch.zeros(1, 1).double()))
    page.compare("the left half equals a unidirectional layer", alone[0], outs[0][:, :WIDTH])


def _compare(page: LessonBuilder, word: str, onward: list[Tensor], back: list[Tensor]) -> None:
    page.step(
        f'"{word}", left to right',
        "The difference of its two states: zero, as long as the sentences begin with the same words.",
        r"\max |\overrightarrow{h} - \overrightarrow{h}'|",
        "onward_first onward_second word",
        value("from_left", max_difference(*onward), "", r"\text{difference}"),
    )
    page.step(
        f'"{word}", right to left',
        "A different word follows, so the state differs. A bidirectional layer concatenates both halves: the same word "
        "has another vector in another context.",
        r"\max |\overleftarrow{h} - \overleftarrow{h}'|",
        "back_first back_second word",
        value("from_right", max_difference(*back), "", r"\text{difference}"),
    )


def _random_layer(words: list[str], seed: int) -> tuple[Bidirectional, dict[str, Tensor]]:
    """The layer, and a vector per word that depends only on the word and the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = Bidirectional("gru", WIDTH, WIDTH).double().requires_grad_(False)
    vectors = {}
    for word in words:
        number = int.from_bytes(blake2b(f"{seed} {word}".encode(), digest_size=6).digest())
        draw = torch.Generator().manual_seed(number)
        vectors[word] = torch.randn(WIDTH, generator=draw, dtype=torch.float64)
    return layer, vectors


def _pad_words(vectors: Mapping[str, Tensor], words: list[str]) -> Padded:
    return Padded(torch.stack([vectors[word] for word in words])[None], torch.tensor([len(words)]), ragged=False)


FIGURE = (
    "first > onward_first > from_left; second > onward_second > from_left; first > back_first > "
    "from_right; second > back_second > from_right"
)
EXERCISES = (
    Exercise(
        "How far apart are the left-to-right states of bank in the lesson's two sentences?",
        "from_left",
        hint="the words before it are the same",
    ),
    Exercise(
        "If both sentences are the first one, how far apart are the right-to-left states?",
        "from_right",
        {"second": "the bank of the river"},
        hint="the same words on both sides",
    ),
)
READING = Reading(
    "Bidirectional RNN: the same word in another context",
    ("bidirectional RNN", "forward and backward states", "contextual representation"),
    ("Schuster and Paliwal 1997, Bidirectional recurrent neural networks",),
)
