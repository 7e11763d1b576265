"""Contextual vectors: what each layer of a model holds at a word, which depends on the sentence around it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.device import module_device
from regard.errors import ConfigError, DataError
from regard.look.lens_layers import layer_outputs
from regard.look.tokens import make_visible
from regard.sequence import Tokens

Offsets = Sequence[tuple[int, int]]
"""first and last + 1 character of each position; (0, 0) at special tokens"""
SHOWN = 60
"""characters of a text in a message"""


@dataclass(frozen=True, eq=False)
class ContextualText:
    """A text with the output of every layer at every position.

    >>> found = ContextualText("a bank", [(0, 1), (2, 6)], {"layer 1": torch.tensor([[1.0], [2.0]])})
    >>> found.word_vectors("bank")
    {'layer 1': tensor([2.], dtype=torch.float64)}
    """

    text: str
    offsets: Offsets
    layers: Mapping[str, Tensor]
    """(L, D) of each layer, the lowest first"""

    def occurrences(self, word: str) -> list[list[int]]:
        """The positions of each occurrence of a word in the text, upper and lower case alike."""
        whole = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
        spans = [match.span() for match in whole.finditer(self.text)]
        found = [
            [i for i, (first, last) in enumerate(self.offsets) if first < end and last > start] for start, end in spans
        ]
        return [positions for positions in found if positions]

    def word_vectors(self, word: str, occurrence: int = 0) -> dict[str, Tensor]:
        """(D,) of each layer: the mean over the positions of an occurrence of the word, which may be several pieces."""
        if not word.strip():
            raise DataError("the word is empty; name a word of both sentences")
        places = self.occurrences(word.strip())
        if occurrence >= len(places):
            shown = make_visible(self.text[:SHOWN]) + ("..." if len(self.text) > SHOWN else "")
            times = "" if not occurrence else f" {occurrence + 1} times"
            raise DataError(
                f'the word "{make_visible(word)}" is not{times} in "{shown}"; each sentence must contain it as a '
                "whole word"
            )
        return {name: layer_LD[places[occurrence]].double().mean(0) for name, layer_LD in self.layers.items()}


@dataclass(frozen=True)
class WordComparison:
    """A word in two sentences: the cosine of its vectors in each layer."""

    word: str
    first: str
    second: str
    cosines: Mapping[str, float]
    """of each layer, the lowest first"""
    mean: float | None
    """cosine of the means of all layers; None if the layers differ in width"""


def compare_word(model: Any, word: str, first: str, second: str | None = None) -> WordComparison:
    """Compare the vectors of a word in two sentences; without a second, of its first two occurrences in the first.

    `model` is a trained model: `regard.load(run)`.
    """
    one = model.contextual_layers(first)
    other = one if second is None else model.contextual_layers(second)
    ours, theirs = one.word_vectors(word), other.word_vectors(word, occurrence=int(second is None))
    cosines = {name: cosine(vector, theirs[name]) for name, vector in ours.items()}
    same_width = len({len(vector) for vector in ours.values()}) == 1
    means = (torch.stack(list(found.values())).mean(0) for found in (ours, theirs))
    mean = cosine(*means) if same_width else None
    return WordComparison(word.strip(), first, first if second is None else second, cosines, mean)


def cosine(a_D: Tensor, b_D: Tensor) -> float:
    """Cosine similarity of two vectors, 0 if one of them is zero."""
    return float(torch.nn.functional.cosine_similarity(a_D, b_D, dim=0, eps=1e-12).clamp(-1, 1))


def require_text(text: str) -> str:
    """The text, unless it is empty."""
    if not text.strip():
        raise DataError("the text is empty; there is no word in it")
    return text


@torch.no_grad()
def encoder_layers(model: Any, encoder: nn.Module, source: Tokens) -> dict[str, Tensor]:
    """(L, D) of each layer of an encoder over one row: the embedding, "layer 1" and so on."""
    if model.recipe.model.receptive_field == "position":
        raise ConfigError(
            f'model.kind = "{model.recipe.model.kind}" reads each word alone, so its vectors do not depend on the '
            "sentence; use an encoder such as elmo, bert or recurrent"
        )
    memory: Any = encoder(source.to(module_device(encoder)))
    layers = memory.layers or (memory.states.data,)
    first = int(not memory.layers)
    return {f"layer {i}" if i else "embedding": layer[0].cpu() for i, layer in enumerate(layers, first)}


def decoder_layers(model: Any, text: str) -> dict[str, Tensor]:
    """(L, D) of each layer of a language model over one text; a layer sees only what is to the left."""
    with model.record() as recording:
        model.run_for_trace(text)
    outputs = layer_outputs(recording.condense().records, "decoder")
    if not outputs:
        raise ConfigError(
            f'model.kind = "{model.recipe.model.kind}" records no outputs of layers; there are no vectors to compare'
        )
    numbers = (layer.title.removeprefix("layer ") for layer in outputs)
    names = [f"layer {int(number) + 1}" if number.isdigit() else "embedding" for number in numbers]
    return {name: layer.states.cpu() for name, layer in zip(names, outputs, strict=True)}
