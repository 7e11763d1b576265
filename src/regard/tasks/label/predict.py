"""Labelling with a trained model: text in, a label for each of its places out, in the order it came."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from regard.metrics.spans import spans
from regard.tasks.label.letters import Types
from regard.tasks.label.restore import cut
from regard.tasks.label.sources import Kind, Unit
from regard.tasks.label.targets import Answers, Said
from regard.text.kinds import check_characters
from regard.text.word_vocab import Spelling, words_of
from regard.trace import scene, tap, tracing

MARGIN = 32
"""places at the ends of a window that another window sees more of: what it says there is not taken"""


@dataclass(frozen=True)
class Place:
    """Something that is read, and where in the text it stands.

    >>> Place("Paris", 3, 8).read
    'Paris'
    """

    read: str
    start: int
    end: int


@dataclass(frozen=True)
class Token:
    """A place of a text, and what is said there.

    >>> Token("Paris", 3, 8, "B-LOC", 0.98).tag
    'B-LOC'
    """

    text: str
    """what was read"""
    start: int
    """its first character in the text"""
    end: int
    """its last character + 1"""
    tag: str
    """a tag, a number, or how the place is written"""
    probability: float | None
    """how likely the model holds it; a number has none"""


@dataclass(frozen=True)
class Found:
    """A span of a text, such as a name.

    >>> Found("LOC", "New York", 3, 11).kind
    'LOC'
    """

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Labelled:
    """What a model makes of one text.

    >>> Labelled("in Rome", (), "in/O Rome/B-LOC", ()).output
    'in/O Rome/B-LOC'
    """

    text: str
    """as it was given"""
    tokens: tuple[Token, ...]
    output: str
    """the text with its tags, or, where labels say how places are written, as they say"""
    spans: tuple[Found, ...] = ()
    """names, phrases, if the tags write such"""


@dataclass(frozen=True)
class Labeller:
    """A model with its vocabulary and what it may say.

    >>> from regard.models.base import Tagger
    >>> from regard.models.mlp import MLPConfig
    >>> from regard.spaces import Words
    >>> from regard.tasks.label.targets import Tags
    >>> tags = Tags(("A", "B"))
    >>> model = Tagger(MLPConfig(width=4).build_encoder(Words(3)), tags.space(), 4)
    >>> labeller = Labeller(model, Spelling(("oui",), ()), tags)
    >>> found = labeller.label(["oui, non", ""])
    >>> [token.text for token in found[0].tokens], found[1].output
    (['oui', ',', 'non'], '')
    """

    model: Any
    """a Tagger or a ChainTagger"""
    spelling: Spelling
    answers: Answers
    unit: Unit = "word"
    kind: Kind = "tags"
    phrases: bool = False
    """whether tags write spans"""
    window: int = 512
    """places of the longest text that is read at once; a longer one is read in windows that overlap"""
    tokens: int = 8192
    """places that are read together, padding included"""

    def label(self, texts: Sequence[str], first_line: int = 1) -> list[Labelled]:
        """Each text with its labels; `first_line` is the number of the first, for messages."""
        for number, text in enumerate(texts, first_line):
            check_characters(text, f"line {number}")
        places = [self.places(text) for text in texts]
        said = self.say([[place.read for place in row] for row in places])
        return [self._labelled(*rows) for rows in zip(texts, places, said, strict=True)]

    def places(self, text: str) -> list[Place]:
        """What is read of a text, one thing after the other."""
        if self.kind == "text":
            read, ends = cut(text)
            return [Place(letter, *between) for letter, between in zip(read, pairwise([0, *ends]), strict=True)]
        if self.unit == "character":
            return [Place(character, at, at + 1) for at, character in enumerate(text) if not character.isspace()]
        return [Place(text[start:end], start, end) for start, end in words_of(text, self.spelling)]

    @torch.no_grad()
    def say(self, sentences: Sequence[Sequence[str]]) -> list[list[Said]]:
        """What the model says at each word of sentences that are cut already."""
        found: list[list[Said]] = [[] for _ in sentences]
        numbers: dict[str, int] = {}
        rows = [np.array([numbers.setdefault(word, len(numbers)) for word in words], np.int64) for words in sentences]
        types, said = Types.of(numbers, self.spelling), dict[Window, list[Said]]()
        windows = [window for i, row in enumerate(rows) for window in self._windows(i, len(row))]
        for group in self._grouped(windows):
            given = [rows[w.row][w.start : w.end] for w in group]
            words = [list(sentences[w.row][w.start : w.end]) for w in group] if tracing() else []
            with scene(source=words):
                source = types.tokens(given)
                out_BLC = self.model.readout(self.model(source))
                out_BLC = tap(self.model, "logits", out_BLC, "batch position:source label")
                said |= zip(group, self.answers.said(source.like(out_BLC), self.model), strict=True)
        for window in windows:
            found[window.row] += said[window][window.first - window.start : window.last - window.start]
        return found

    def _windows(self, row: int, length: int) -> Iterator[Window]:
        """A text whole, or parts of it that overlap; of each, the part that is taken."""
        if length <= self.window:
            if length:
                yield Window(row, 0, length, 0, length)
            return
        margin = min(MARGIN, self.window // 4)
        step = self.window - 2 * margin
        for first in range(0, length, step):
            last = min(first + step, length)
            yield Window(row, max(0, first - margin), min(length, last + margin), first, last)

    def _grouped(self, windows: Sequence[Window]) -> Iterator[list[Window]]:
        """Windows of like length together."""
        ordered = sorted(windows, key=lambda window: -window.length)
        at = 0
        while at < len(ordered):
            count = max(1, self.tokens // ordered[at].length)
            yield ordered[at : at + count]
            at += count

    def _labelled(self, text: str, places: Sequence[Place], said: Sequence[Said]) -> Labelled:
        tokens = []
        for place, answer in zip(places, said, strict=True):
            # a letter that was never seen stays as it is
            kept = self.kind == "text" and not self.spelling.knows(place.read)
            label = text[place.start : place.end] if kept else answer.label
            tokens.append(Token(place.read, place.start, place.end, label, answer.probability))
        if self.kind == "text":
            output = "".join(token.tag for token in tokens) if tokens else text
        else:
            output = " ".join(f"{token.text}/{token.tag}" for token in tokens)
        return Labelled(text, tuple(tokens), output, self._spans(text, tokens))

    def _spans(self, text: str, tokens: Sequence[Token]) -> tuple[Found, ...]:
        if not self.phrases:
            return ()
        return tuple(
            Found(span.kind, text[start:end], start, end)
            for span in spans([token.tag for token in tokens])
            for start, end in [(tokens[span.start].start, tokens[span.end - 1].end)]
        )


@dataclass(frozen=True)
class Window:
    """Part of a sentence that is read at once, and the part of it whose labels are taken.

    >>> Window(0, 96, 512, 128, 480).length
    416
    """

    row: int
    start: int
    end: int
    first: int
    last: int

    @property
    def length(self) -> int:
        """Places that are read."""
        return self.end - self.start
