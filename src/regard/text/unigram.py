"""Unigram tokenizer training (Kudo 2018): expectation maximization over all segmentations.

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
"""seed pieces per piece of the vocabulary"""
PARTS = 3_000_000
"""most substrings considered, of the most frequent words first: the rest adds time and memory, and hardly a piece"""
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
    words = words[: _word_limit(words)]
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
            expected = text.expected_counts(score, count)
            alive &= kept | (expected >= 0.5)
            score = _log_share(expected, alive)
            text = text.restrict(alive)
        if alive.sum() <= size:
            break
        # Likelihood that the text would lose without a piece: its uses, each segmented by the best of the other pieces.
        at = np.flatnonzero(alive & ~kept)
        loss = expected[at] * (score[at] - itself.restrict(alive).best_split(score)[at])
        wanted = max(size, int(alive.sum() * SHRINK)) - int(kept.sum())
        alive[at[np.lexsort((at, -loss))[wanted:]]] = False
        text = text.restrict(alive)
    found = [(pieces[i], round(float(score[i]), DIGITS)) for i in np.flatnonzero(alive)]
    return sorted(found, key=lambda piece: (-piece[1], piece[0]))


def _word_limit(words: Sequence[str]) -> int:
    """How many of the first words have at most PARTS substrings in total."""
    parts = np.cumsum([len(word) * min(len(word), LONGEST_PIECE) for word in words])
    return max(1, int(np.searchsorted(parts, PARTS, side="right")))


def _seeds(words: Sequence[str], counts: Mapping[str, int], most: int) -> dict[str, int]:
    """Substrings that occur at least twice, those that cover the most text."""
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
    """All occurrences of pieces in words, as arrays of edges between nodes."""

    begins: Places
    """(W,) node before the first character of each word; a word of n characters has n + 1 nodes"""
    ends: Places
    """(W,) node after its last character"""
    piece: Places
    """(C,) the piece"""
    word: Places
    """(C,) the word"""
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
        return cls(begins, begins + lengths, *np.array(fits).reshape(-1, 4).T)._sort()

    def _sort(self) -> Lattice:
        """Sort by level: edges that end after the first character, after the second, and so on."""
        order = np.lexsort((self.start, self.end, self.end - self.begins[self.word]))
        return self._at(order)

    def _at(self, where: NDArray[Any]) -> Lattice:
        return Lattice(self.begins, self.ends, self.piece[where], self.word[where], self.start[where], self.end[where])

    def restrict(self, alive: NDArray[np.bool_]) -> Lattice:
        """The lattice restricted to some pieces."""
        return self._at(alive[self.piece])

    def expected_counts(self, score: Floats, count: Floats) -> Floats:
        """Expected count of each piece over all segmentations (forward-backward)."""
        last = self.ends[-1]
        mirrored = Lattice(
            last - self.ends, last - self.begins, self.piece, self.word, last - self.end, last - self.start
        )
        before = self._forward(score)
        after = mirrored._sort()._forward(score)[::-1]
        share = np.exp(before[self.start] + score[self.piece] + after[self.end] - before[self.ends][self.word])
        return np.bincount(self.piece, share * count[self.word], minlength=len(score)).astype(np.float64)

    def _forward(self, score: Floats) -> Floats:
        return self._accumulate(score[self.piece], np.logaddexp)

    def best_split(self, score: Floats) -> Floats:
        """Log-probability of the best segmentation of each word into more than one piece."""
        whole = (self.start == self.begins[self.word]) & (self.end == self.ends[self.word])
        return self._accumulate(np.where(whole, -np.inf, score[self.piece]), np.maximum)[self.ends]

    def _accumulate(self, value: Floats, add: np.ufunc) -> Floats:
        """For each node, the log-probabilities of all paths to it from the start of its word, combined by `add`."""
        total = np.full(int(self.ends.max()) + 1, -np.inf)
        total[self.begins] = 0.0
        level = self.end - self.begins[self.word]
        bounds = np.flatnonzero(np.r_[True, level[1:] != level[:-1], True])
        for a, b in pairwise(bounds):
            way = total[self.start[a:b]] + value[a:b]
            first = np.flatnonzero(np.r_[True, self.end[a + 1 : b] != self.end[a : b - 1]])
            total[self.end[a:b][first]] = add.reduceat(way, first)
        return total
