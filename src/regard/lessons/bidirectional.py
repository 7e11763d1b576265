"""Lesson: a word that is read from both sides knows what follows it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import torch
from torch import Tensor

from regard.errors import ConfigError
from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import LARGEST, Input, Plan, Work
from regard.lessons.engine.layers import apart
from regard.lessons.engine.lesson import Value
from regard.nn.recurrent import Bidirectional
from regard.sequence import Padded

value = Page.value
WIDTH = 4

INPUTS = (
    Input("first", "the bank of the river", "a sentence"),
    Input("second", "the bank of the city", "one that begins in the same way"),
    Input("word", "bank", "a word of both"),
    Input("seed", 1, "the weights are drawn by it", bounds=(0, LARGEST)),
)


def _work(given: Mapping[str, Value]) -> Work:
    """A bidirectional GRU over two sentences; nobody trained it, so this is what a state can know, not what it does."""
    page = Page(given)
    sentences, word = [given[name].data.split() for name in ("first", "second")], given["word"].data
    for name, words in zip(("first", "second"), sentences):
        if word not in words:
            raise ConfigError(f'word: expected a word of both sentences, and "{word}" is not in {name}')
    layer, vectors = _drawn(sorted(set(sentences[0] + sentences[1])), given["seed"].data)
    outs = [_read(layer, vectors, words) for words in sentences]
    places = [words.index(word) for words in sentences]
    onward = [out[place, :WIDTH] for out, place in zip(outs, places)]
    back = [out[place, WIDTH:] for out, place in zip(outs, places)]
    for name, words, out, prime in zip(("first", "second"), sentences, outs, ("", "'")):
        page.step(
            f"The {name} sentence, from the left",
            "Each word's state holds the word and what came before it.",
            r"\overrightarrow{h}_t = f(\overrightarrow{h}_{t-1}, x_t)",
            f"{name} seed",
            value(f"onward_{name}", out[:, :WIDTH], "word unit", rf"\overrightarrow{{h}}{prime}", {"word": words}),
        )
        page.step(
            f"The {name} sentence, from the right",
            "The same words read backwards by a second layer: each state holds the word and what follows it.",
            r"\overleftarrow{h}_t = f(\overleftarrow{h}_{t+1}, x_t)",
            f"{name} seed",
            value(f"back_{name}", out[:, WIDTH:], "word unit", rf"\overleftarrow{{h}}{prime}", {"word": words}),
        )
    _compared(page, word, onward, back)
    page.lecture("the left context is the same, so is the state from the left", 0.0, "from_left", 0)
    same = sentences[0][: places[0]] == sentences[1][: places[1]]
    page.agree("equal words before it, equal states from the left", same, apart(*onward) == 0, 0)
    alone, _ = layer.onward(_padded(vectors, sentences[0]), layer.onward.zeros(torch.zeros(1, 1).double()))
    page.agree("the left half of both is a layer of its own", alone[0], outs[0][:, :WIDTH])
    return page.work()


def _compared(page: Page, word: str, onward: list[Tensor], back: list[Tensor]) -> None:
    page.step(
        f'"{word}" from the left',
        "How far its two states are apart: nothing, as long as the sentences begin alike.",
        r"\max |\overrightarrow{h} - \overrightarrow{h}'|",
        "onward_first onward_second word",
        value("from_left", apart(*onward), "", r"\text{difference}"),
    )
    page.step(
        f'"{word}" from the right',
        "What follows is another word, so the state is another one. A bidirectional layer puts both halves side by "
        "side: the same word has another vector in another context.",
        r"\max |\overleftarrow{h} - \overleftarrow{h}'|",
        "back_first back_second word",
        value("from_right", apart(*back), "", r"\text{difference}"),
    )


def _drawn(words: list[str], seed: int) -> tuple[Bidirectional, dict[str, Tensor]]:
    """The layer, and a vector for each word that depends on the word and the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = Bidirectional("gru", WIDTH, WIDTH).double().requires_grad_(False)
    vectors = {}
    for word in words:
        number = int.from_bytes(blake2b(f"{seed} {word}".encode(), digest_size=6).digest())
        draw = torch.Generator().manual_seed(number)
        vectors[word] = torch.randn(WIDTH, generator=draw, dtype=torch.float64)
    return layer, vectors


def _padded(vectors: Mapping[str, Tensor], words: list[str]) -> Padded:
    return Padded(torch.stack([vectors[word] for word in words])[None], torch.tensor([len(words)]), ragged=False)


def _read(layer: Bidirectional, vectors: Mapping[str, Tensor], words: list[str]) -> Tensor:
    return layer(_padded(vectors, words))[0][0]


PLAN = Plan(INPUTS, _work)
