"""Word vectors as a table: nearest neighbors, analogies (king - man + woman), and a 2-D map by PCA.

Similarity is the cosine. An analogy adds and subtracts unit vectors, and the words of the question are excluded from
its answers (Mikolov, Yih and Zweig 2013).
"""

from __future__ import annotations

import difflib
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from regard.errors import ConfigError, DataError
from regard.text.word_vectors import parse_vectors

SIGNS = {"+": 1, "-": -1, "\u2212": -1, "\u2013": -1}
"""Plus, minus, and the minus and dash that word processors write."""
SHOWN, INSIDE = "\u2423", "##"
"""Visible form of a blank; WordPiece's mark of a subword inside a word."""
BLANKS = (" ", "\u2581", SHOWN)
"""Marks of a subword that begins a word: a blank, SentencePiece's, the visible form."""
TINY = 1e-6
"""a sum of unit vectors below this is rounding error"""
MAP_WORDS = 40
"""words of a map by default"""
CHUNK = 1 << 22
"""similarities in memory at once while many analogies are solved"""


class Neighbor(NamedTuple):
    """A word and its cosine similarity to the query."""

    word: str
    cosine: float


@dataclass(frozen=True, eq=False)
class WordMap:
    """Words on a plane, by the first two principal components of their vectors."""

    words: tuple[str, ...]
    points: np.ndarray
    """(N, 2)"""
    explained_variance: tuple[float, float]
    """share of the variance that each of the two components explains"""


@dataclass(frozen=True, eq=False)
class WordTable:
    """Words with one vector each.

    >>> people = ["king", "man", "woman", "queen", "child"]
    >>> table = WordTable(tuple(people), np.array([[1, 1], [0.1, 1], [0.1, -1], [1, -1], [-1, 0.1]], np.float32))
    >>> table.analogy("king - man + woman", 1)[0].word
    'queen'
    """

    words: tuple[str, ...]
    vectors: np.ndarray
    """(V, D)"""

    def __post_init__(self) -> None:
        if len(self.words) != len(self.vectors):
            raise ValueError(f"{len(self.words)} words, {len(self.vectors)} vectors")

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def indices(self) -> dict[str, int]:
        """Index of each word; of a repeated word, the first."""
        return {word: i for i, word in reversed(list(enumerate(self.words)))}

    @cached_property
    def unit_vectors(self) -> np.ndarray:
        """(V, D): the vectors scaled to length 1; zero vectors stay zero."""
        largest = np.abs(self.vectors).max(1, keepdims=True)  # first to 1, so that squares do not overflow
        scaled = self.vectors / np.where(largest > 0, largest, 1)
        lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
        made: np.ndarray = scaled / np.where(lengths > 0, lengths, 1)
        return made

    @cached_property
    def has_subwords(self) -> bool:
        """Whether the vocabulary has subwords: some words are marked with a blank, the others continue a word."""
        return any(word.startswith(BLANKS) and len(word) > 1 for word in self.words)

    @cached_property
    def whole_words(self) -> list[int]:
        """Indices of words of two or more letters only; of subwords, those that begin a word."""
        begun = [i for i, word in enumerate(self.words) if not self.has_subwords or word.startswith(BLANKS)]
        return [i for i in begun if len(plain := self.words[i].lstrip("".join(BLANKS))) > 1 and plain.isalpha()]

    def find(self, word: str) -> int | None:
        """Index of a word as written, else in lower case, else None; of subwords, one that begins a word comes first.

        A blank in front may be written as ␣; ## in front means a subword inside a word.

        >>> table = WordTable((" sea", "sea", " sky"), np.eye(3))
        >>> table.find("sea"), table.find("␣sea"), table.find("Sky"), table.find("##sea"), table.find("land")
        (0, 0, 2, 1, None)
        """
        if self.has_subwords and word.startswith(INSIDE) and word.removeprefix(INSIDE) in self.indices:
            return self.indices[word.removeprefix(INSIDE)]
        plain = word.removeprefix(SHOWN).removeprefix(" ")
        starts = (*BLANKS, "") if self.has_subwords else ("",)
        composed = (unicodedata.normalize(form, plain) for form in ("NFC", "NFD"))
        forms = dict.fromkeys([word, plain, *composed, plain.lower()])
        found = (self.indices[start + form] for form in forms for start in starts if start + form in self.indices)
        return next(found, None)

    def display_word(self, at: int) -> str:
        """A word as `find` takes it: of subwords, " sea" begins a word, and ##sea is inside a word."""
        word = self.words[at]
        if not self.has_subwords:
            return word
        return f" {word[1:]}" if word.startswith(BLANKS) and len(word) > 1 else INSIDE + word

    def index(self, word: str) -> int:
        """Index of a word; a word that is not there is an error that suggests similar ones."""
        found = self.find(word)
        if found is None:
            close = difflib.get_close_matches(word.lower(), [w.strip() for w in self.words[:50_000]], n=3)
            guess = f"; did you mean {', '.join(dict.fromkeys(close))}?" if close else ""
            if not guess and len(word.split()) > 1:
                guess = "; neighbors of a sentence are found among the lines of a file: regard vectors search"
            raise DataError(f'"{word}" is none of the {len(self):,} words{guess}')
        return found

    def neighbors(self, word: str, count: int = 10) -> list[Neighbor]:
        """The words with the highest cosine similarity to a word."""
        at = self.index(word)
        return self.nearest(self.unit_vectors[at], [at], count)

    def analogy(self, expression: str, count: int = 10) -> list[Neighbor]:
        """The words nearest to an expression such as "king - man + woman"; its own words are excluded."""
        terms = [(sign, self.index(word)) for sign, word in parse_expression(expression)]
        wanted_D = sum((sign * self.unit_vectors[at] for sign, at in terms), np.zeros(self.vectors.shape[1]))
        if np.abs(wanted_D).max() < TINY:
            raise ConfigError(f'"{expression}" is zero, and points nowhere')
        return self.nearest(wanted_D, [at for _, at in terms], count)

    def nearest(self, wanted_D: np.ndarray, without: Sequence[int], count: int) -> list[Neighbor]:
        """The words with the highest cosine similarity to a vector, best first."""
        if count < 1:
            raise ConfigError(f"{count} words: at least 1 must be asked for")
        length = float(np.linalg.norm(wanted_D))
        cosines_V = self.unit_vectors @ (wanted_D / (length or 1.0))
        cosines_V[list(without)] = -np.inf
        best = np.argsort(-cosines_V, kind="stable")[: min(count, len(self) - len(set(without)))]
        return [Neighbor(self.display_word(i), float(cosines_V[i])) for i in best]

    def solve_analogies(
        self, questions: Sequence[Sequence[int]], progress: Callable[[int], None] = lambda done: None
    ) -> list[int]:
        """For analogies a : b = c : ?, given as indices, the index of the word nearest to b - a + c."""
        found = list[int]()
        for start in range(0, len(questions), rows := max(1, CHUNK // len(self))):
            asked_Q3 = np.array([question[:3] for question in questions[start : start + rows]])
            a_QD, b_QD, c_QD = (self.unit_vectors[asked_Q3[:, i]] for i in range(3))
            cosines_QV = (b_QD - a_QD + c_QD) @ self.unit_vectors.T
            cosines_QV[np.arange(len(asked_Q3))[:, None], asked_Q3] = -np.inf
            found += cosines_QV.argmax(1).tolist()
            progress(len(found))
        return found

    def pca_map(self, words: Sequence[str] = ()) -> WordMap:
        """Words on a plane, by the first two principal components of their vectors; default: the first forty words."""
        some = self.whole_words[:MAP_WORDS] if len(self.whole_words) > 2 else range(min(MAP_WORDS, len(self)))
        chosen = list(dict.fromkeys(self.index(word) for word in words)) or list(some)
        if len(chosen) < 3:
            raise ConfigError(f"a map needs at least 3 words, got {len(chosen)}")
        centered = self.vectors[chosen].astype(np.float64)
        centered -= centered.mean(0)
        left, sizes, _ = np.linalg.svd(centered, full_matrices=False)
        left, sizes = (np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, max(0, 2 - len(sizes)))]) for x in (left, sizes))
        points = left[:, :2] * sizes[:2]
        # the sign of a component is arbitrary: make its largest value positive
        points *= np.where(points[np.abs(points).argmax(0), range(2)] < 0, -1, 1)
        total = float(np.square(sizes).sum()) or 1.0
        first, second = (float(size) ** 2 / total for size in sizes[:2])
        return WordMap(tuple(map(self.display_word, chosen)), points, (first, second))

    def word2vec_lines(self) -> Iterator[str]:
        """The table in word2vec's text format: a header, then a word and its numbers per line; a blank is ␣."""
        yield f"{len(self)} {self.vectors.shape[1]}"
        for word, numbers in zip(self.words, self.vectors, strict=True):
            yield " ".join([word.replace(" ", SHOWN), *map(str, numbers)])


def parse_expression(expression: str) -> list[tuple[int, str]]:
    """The words of an expression, each with its sign."""
    parts = expression.split()
    if parts and parts[0] not in SIGNS:
        parts = ["+", *parts]
    if len(parts) < 4 or len(parts) % 2 or not set(parts[::2]) <= SIGNS.keys():
        raise ConfigError(
            f'"{expression}": expected words with + and - between them, and spaces, such as "king - man + woman"'
        )
    return [(SIGNS[sign], word) for sign, word in zip(parts[::2], parts[1::2], strict=True)]


def read_word_table(lines: Iterable[str], name: str | Path, limit: int | None = None) -> WordTable:
    """A file of vectors as GloVe or word2vec writes it, or its first `limit` words; `name` is for messages."""
    words, numbers = list[str](), array("f")
    for word, row in islice(parse_vectors(lines, name), limit):
        words.append(word)
        numbers.extend(row)
    if not words:
        raise DataError(f"{name} is empty; expected a word and its numbers on each line")
    return WordTable(tuple(words), np.frombuffer(numbers, np.float32).reshape(len(words), -1))
