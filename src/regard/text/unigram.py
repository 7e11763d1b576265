"""Pieces of a unigram language model (Kudo 2018), learnt by expectation and maximisation over all segmentations.

The trainer of the tokenizers library adds up in the order of a hash table, which differs from process to process, and
so do its scores and the order of its pieces. Here every sum has one order.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST_PIECE = 16
SEEDS = 4
"""seeds a piece wanted"""
PARTS = 3_000_000
"""parts of words looked at, of the most frequent words first: the rest adds time and memory, and hardly a piece"""
SHRINK = 0.75
DIGITS = 6

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


def learn_pieces(counts: Mapping[str, int], size: int) -> list[tuple[str, float]]:
    """At most `size` pieces with their log-probabilities, the likeliest first; every character is a piece.

    >>> learn_pieces({" lamb": 9, " lambs": 9}, 7)
    [(' lamb', -0.405465), ('s', -1.098612), (' ', -20.0), ('a', -20.0), ('b', -20.0), ('l', -20.0), ('m', -20.0)]
    """
    words = sorted(counts, key=lambda word: (-counts[word], word))
    characters = Counter[str]()
    for word in words:
        for character in word:
            characters[character] += counts[word]
    words = words[: _affordable(words)]
    count = np.array([counts[word] for word in words], dtype=np.float64)
    seeds = _seeds(words, counts, SEEDS * size)
    pieces = [*sorted(characters), *seeds]
    weight = np.array([*(float(characters[c]) for c in sorted(characters)), *map(float, seeds.values())])
    kept = np.arange(len(pieces)) < len(characters)
    score = np.log(weight / weight.sum())
    text, itself = Lattice.of(words, pieces), Lattice.of(pieces, pieces)
    alive = np.ones(len(pieces), dtype=bool)
    while True:
        for _ in range(2):
            expected = text.expected(score, count)
            alive &= kept | (expected >= 0.5)
            score = _log_share(expected, alive)
            text = text.only(alive)
        if alive.sum() <= size:
            break
        # What the text would lose without a piece: its uses, each spelled by the best of the other pieces.
        at = np.flatnonzero(alive & ~kept)
        loss = expected[at] * (score[at] - itself.only(alive).others(score)[at])
        wanted = max(size, int(alive.sum() * SHRINK)) - int(kept.sum())
        alive[at[np.lexsort((at, -loss))[wanted:]]] = False
        text = text.only(alive)
    found = [(pieces[i], round(float(score[i]), DIGITS)) for i in np.flatnonzero(alive)]
    return sorted(found, key=lambda piece: (-piece[1], piece[0]))


def _affordable(words: Sequence[str]) -> int:
    """How many words, from the first on, have no more than PARTS parts together."""
    parts = np.cumsum([len(word) * min(len(word), LONGEST_PIECE) for word in words])
    return max(1, int(np.searchsorted(parts, PARTS, side="right")))


def _seeds(words: Sequence[str], counts: Mapping[str, int], most: int) -> dict[str, int]:
    """Parts of words met at least twice, those that cover the most text."""
    met: Counter[str] = Counter()
    for word in words:
        times = counts[word]
        for start in range(len(word) - 1):
            for end in range(start + 2, min(len(word), start + LONGEST_PIECE) + 1):
                met[word[start:end]] += times
    often = ((times * len(part), part) for part, times in met.items() if times > 1)
    return {part: weight for weight, part in sorted(often, key=lambda seed: (-seed[0], seed[1]))[:most]}


def _log_share(expected: Floats, alive: NDArray[np.bool_]) -> Floats:
    total = expected[alive].sum()
    return np.where(alive, np.log(np.maximum(expected / total, np.exp(-20.0))), -np.inf)


@dataclass(frozen=True)
class Lattice:
    """Every place of every word where a piece fits, as arrays.

    >>> Lattice.of(["ab"], ["a", "b", "ab"]).piece.tolist()
    [0, 2, 1]
    """

    begins: Places
    """(W,) node before the first character of each word; a word of n characters has n + 1 nodes"""
    ends: Places
    """(W,) node after its last character"""
    piece: Places
    """(C,) what fits"""
    word: Places
    """(C,) in which word"""
    start: Places
    """(C,) node before it"""
    end: Places
    """(C,) node after it"""

    @classmethod
    def of(cls, words: Sequence[str], pieces: Sequence[str]) -> Lattice:
        number = {piece: i for i, piece in enumerate(pieces)}
        fits = array("q")
        lengths = np.array([len(word) for word in words])
        begins = np.r_[0, np.cumsum(lengths + 1)[:-1]]
        for w, (word, node) in enumerate(zip(words, begins.tolist())):
            for a in range(len(word)):
                for b in range(a + 1, min(len(word), a + LONGEST_PIECE) + 1):
                    i = number.get(word[a:b])
                    if i is not None:
                        fits.extend((i, w, node + a, node + b))
        return cls(begins, begins + lengths, *np.array(fits).reshape(-1, 4).T)._sorted()

    def _sorted(self) -> Lattice:
        """Levels one after another: what ends after the first character, after the second, and so on."""
        order = np.lexsort((self.start, self.end, self.end - self.begins[self.word]))
        return self._at(order)

    def _at(self, where: NDArray[Any]) -> Lattice:
        return Lattice(self.begins, self.ends, self.piece[where], self.word[where], self.start[where], self.end[where])

    def only(self, alive: NDArray[np.bool_]) -> Lattice:
        """The same words with fewer pieces."""
        return self._at(alive[self.piece])

    def expected(self, score: Floats, count: Floats) -> Floats:
        """How often each piece is used, over all segmentations weighted by their probability."""
        last = self.ends[-1]
        mirrored = Lattice(
            last - self.ends, last - self.begins, self.piece, self.word, last - self.end, last - self.start
        )
        before = self._paths(score)
        after = mirrored._sorted()._paths(score)[::-1]
        share = np.exp(before[self.start] + score[self.piece] + after[self.end] - before[self.ends][self.word])
        return np.bincount(self.piece, share * count[self.word], minlength=len(score)).astype(np.float64)

    def _paths(self, score: Floats) -> Floats:
        return self._ways(score[self.piece], np.logaddexp)

    def others(self, score: Floats) -> Floats:
        """The best segmentation of each word, the word itself as one piece not counted."""
        whole = (self.start == self.begins[self.word]) & (self.end == self.ends[self.word])
        return self._ways(np.where(whole, -np.inf, score[self.piece]), np.maximum)[self.ends]

    def _ways(self, value: Floats, add: np.ufunc) -> Floats:
        """For each node, the log-probabilities of all ways to it from the begin of its word, added up."""
        total = np.full(int(self.ends.max()) + 1, -np.inf)
        total[self.begins] = 0.0
        level = self.end - self.begins[self.word]
        bounds = np.flatnonzero(np.r_[True, level[1:] != level[:-1], True])
        for a, b in pairwise(bounds):
            way = total[self.start[a:b]] + value[a:b]
            first = np.flatnonzero(np.r_[True, self.end[a + 1 : b] != self.end[a : b - 1]])
            total[self.end[a:b][first]] = add.reduceat(way, first)
        return total
