"""The built-in corpus: French-English pairs made by rules of our own, for tests and for machines without a network."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from regard.data.phrases import descriptions, numerals, sentences
from regard.data.splits import SPLITS, partition
from regard.errors import ConfigError

MOST = 500_000
HELD_OUT = 0.025
ALWAYS = (
    ("je suis étudiant", "I am a student"),
    ("je suis étudiante", "I am a student"),
    ("tu es étudiant", "you are a student"),
    ("il est étudiant", "he is a student"),
    ("elle est étudiante", "she is a student"),
    ("nous sommes étudiants", "we are students"),
)
"""Pairs that are in train whatever the seed: the sentence that every course on attention begins with."""
PATTERNS: tuple[tuple[sentences.Pattern, int], ...] = (
    (sentences.transitive, 20),
    (sentences.liking, 4),
    (sentences.intransitive, 5),
    (sentences.manner, 2),
    (sentences.giving, 5),
    (sentences.moving, 7),
    (sentences.abroad, 4),
    (sentences.modal, 7),
    (sentences.feeling, 5),
    (sentences.looks, 5),
    (sentences.profession, 7),
    (sentences.having, 5),
    (descriptions.naming, 4),
    (numerals.numbers, 3),
    (numerals.dates, 4),
    (numerals.times, 4),
    (descriptions.being_there, 4),
    (descriptions.there_is, 4),
    (descriptions.possession, 4),
    (descriptions.comparison, 4),
    (descriptions.relative, 4),
    (descriptions.opinion, 4),
    (descriptions.command, 4),
    (descriptions.speaking, 2),
    (descriptions.pointing, 4),
    (descriptions.quantity, 3),
    (descriptions.asking, 5),
    (descriptions.meeting, 3),
    (descriptions.weather, 1),
)
"""How a sentence can be made, and how often."""


@dataclass(frozen=True, kw_only=True)
class Phrases:
    """French-English pairs made on the spot: the same count and seed give the same pairs.

    >>> french, english = next(Phrases(count=100).pairs("train"))
    >>> french, english
    ('je suis étudiant', 'I am a student')
    """

    kind: Literal["phrases"] = "phrases"
    """pairs made on the spot"""
    direction: Literal["fr-en", "en-fr"] = "fr-en"
    """from which language into which"""
    count: int = 40_000
    """how many distinct pairs to make, all splits together"""
    seed: int = 1
    """another seed makes other pairs and other splits"""

    def __post_init__(self) -> None:
        if not 100 <= self.count <= MOST:
            raise ConfigError(f"count: expected 100 to {MOST:,} phrases, got {self.count:,}")

    def splits(self) -> tuple[str, ...]:
        """The names of the splits.

        >>> Phrases().splits()
        ('train', 'valid', 'test')
        """
        return SPLITS

    def attribution(self) -> str:
        """Whom to credit.

        >>> Phrases().attribution()
        'Made by the rules of regard. Licence: MIT'
        """
        return "Made by the rules of regard. Licence: MIT"

    def pairs(self, split: str) -> Iterator[tuple[str, str]]:
        """The pairs of a split, source first, in the order they were drawn.

        >>> [english for english, _ in Phrases(count=200, direction="en-fr").pairs("train")][:2]
        ['I am a student', 'I am a student']
        """
        if split not in SPLITS:
            raise ConfigError(f"no split is called {split!r}; there are: {', '.join(SPLITS)}")
        for (french, english), where in zip(*_divided(self.count, self.seed)):
            if where == split:
                yield (french, english) if self.direction == "fr-en" else (english, french)


def compose(seed: int) -> Iterator[tuple[str, str]]:
    """Distinct pairs without end: first those that are always there, then drawn ones.

    >>> from itertools import islice
    >>> len(set(islice(compose(3), 500)))
    500
    """
    yield from ALWAYS
    seen = set(ALWAYS)
    draw = random.Random(seed)
    patterns, weights = zip(*PATTERNS)
    while True:
        pair = draw.choices(patterns, weights)[0](draw)
        if pair not in seen:
            seen.add(pair)
            yield pair


@functools.lru_cache(maxsize=2)
def _divided(count: int, seed: int) -> tuple[list[tuple[str, str]], list[str]]:
    """All the pairs, and the split of each."""
    pairs = [pair for pair, _ in zip(compose(seed), range(count))]
    return pairs, partition(pairs, HELD_OUT, HELD_OUT, seed, keep=[french for french, _ in ALWAYS])
