"""Words as points: which lie near one another, king - man + woman, and a map of them by principal components.

Nearness is the cosine of the angle between two vectors. An analogy adds and subtracts vectors of length 1, and is
answered by none of the words that were asked with (Mikolov, Yih and Zweig 2013).
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
from regard.text.word_vectors import numbered

SIGNS = {"+": 1, "-": -1, "\u2212": -1, "\u2013": -1}
"""Plus, minus, and what word processors make of a minus."""
SHOWN, INSIDE = "\u2423", "##"
"""A blank as it is shown; and, as WordPiece writes it, a piece inside of words."""
BLANKS = (" ", "\u2581", SHOWN)
"""How pieces of words are marked that begin one: a blank, as SentencePiece writes it, as it is shown."""
TINY = 1e-6
"""a sum of vectors of length 1 that is smaller is nothing but rounding"""
PLACED = 40
"""words of a map if none are named"""
CHUNK = 1 << 22
"""similarities that are held at once while many words are asked for"""


class Near(NamedTuple):
    """A word, and the cosine of the angle between its vector and what was asked for.

    >>> Near("queen", 0.86).word
    'queen'
    """

    word: str
    cosine: float


@dataclass(frozen=True, eq=False)
class WordMap:
    """Words on a plane: their vectors seen from where they differ most.

    >>> WordMap(("a", "b"), np.array([[1.0, 0.0], [-1.0, 0.0]]), (1.0, 0.0)).shares
    (1.0, 0.0)
    """

    words: tuple[str, ...]
    points: np.ndarray
    """(N, 2)"""
    shares: tuple[float, float]
    """how much of all that differs between the vectors each of the two directions shows"""


@dataclass(frozen=True, eq=False)
class WordTable:
    """Words with a vector each.

    >>> people = ["king", "man", "woman", "queen", "child"]
    >>> table = WordTable(tuple(people), np.array([[1, 1], [0.1, 1], [0.1, -1], [1, -1], [-1, 0.1]], np.float32))
    >>> table.calculate("king - man + woman", 1)[0].word
    'queen'
    """

    words: tuple[str, ...]
    numbers: np.ndarray
    """(V, D)"""

    def __post_init__(self) -> None:
        if len(self.words) != len(self.numbers):
            raise ValueError(f"{len(self.words)} words, {len(self.numbers)} vectors")

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each word stands; of a word that stands there twice, the first."""
        return {word: i for i, word in reversed(list(enumerate(self.words)))}

    @cached_property
    def directions(self) -> np.ndarray:
        """(V, D): the vectors, each of length 1; what is zero stays zero."""
        largest = np.abs(self.numbers).max(1, keepdims=True)  # first to 1: the square of a large number is too large
        scaled = self.numbers / np.where(largest > 0, largest, 1)
        lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
        made: np.ndarray = scaled / np.where(lengths > 0, lengths, 1)
        return made

    @cached_property
    def pieces(self) -> bool:
        """Whether some words are marked as beginning with a blank: then the others are pieces of words."""
        return any(word.startswith(BLANKS) and len(word) > 1 for word in self.words)

    @cached_property
    def whole(self) -> list[int]:
        """Where the words stand that are letters and nothing else, and not one alone; of pieces, such as begin a word.

        >>> WordTable(("the", ".", "sea", "x", "42"), np.eye(5)).whole, WordTable(("ing", " sea"), np.eye(2)).whole
        ([0, 2], [1])
        """
        begun = [i for i, word in enumerate(self.words) if not self.pieces or word.startswith(BLANKS)]
        return [i for i in begun if len(plain := self.words[i].lstrip("".join(BLANKS))) > 1 and plain.isalpha()]

    def find(self, word: str) -> int | None:
        """Where a word stands: as it is written, else in lower case; of pieces, the one that is a whole word first.

        A blank in front may be written as it is shown, ␣; with ## in front, a piece inside of words is meant.

        >>> table = WordTable((" sea", "sea", " sky"), np.eye(3))
        >>> table.find("sea"), table.find("␣sea"), table.find("Sky"), table.find("##sea"), table.find("land")
        (0, 0, 2, 1, None)
        """
        if self.pieces and word.startswith(INSIDE) and word.removeprefix(INSIDE) in self.places:
            return self.places[word.removeprefix(INSIDE)]
        plain = word.removeprefix(SHOWN).removeprefix(" ")
        starts = (*BLANKS, "") if self.pieces else ("",)
        forms = dict.fromkeys([word, *(f(plain) for f in (str, _nfc, _nfd, str.lower))])
        found = (self.places[start + form] for form in forms for start in starts if start + form in self.places)
        return next(found, None)

    def spelled(self, at: int) -> str:
        """A word so that it is found again: of pieces, " sea" is all of a word, and ##sea stands inside of words.

        >>> table = WordTable(("\u2581sea", "sea"), np.eye(2))
        >>> table.spelled(0), table.spelled(1), table.find(table.spelled(1))
        (' sea', '##sea', 1)
        """
        word = self.words[at]
        if not self.pieces:
            return word
        return f" {word[1:]}" if word.startswith(BLANKS) and len(word) > 1 else INSIDE + word

    def place(self, word: str) -> int:
        """The same; of a word that is not there, an error that says what is like it."""
        found = self.find(word)
        if found is None:
            close = difflib.get_close_matches(word.lower(), [w.strip() for w in self.words[:50_000]], n=3)
            guess = f"; did you mean {', '.join(dict.fromkeys(close))}?" if close else ""
            raise DataError(f'"{word}" is none of the {len(self):,} words{guess}')
        return found

    def neighbours(self, word: str, count: int = 10) -> list[Near]:
        """The words that point most nearly the same way.

        >>> numbers = np.array([[1, 0], [1, 0.1], [-1, 0]], np.float32)
        >>> near = WordTable(("good", "great", "bad"), numbers).neighbours("good")
        >>> [(word, round(cosine, 3)) for word, cosine in near]
        [('great', 0.995), ('bad', -1.0)]
        """
        at = self.place(word)
        return self.nearest(self.directions[at], [at], count)

    def calculate(self, sum_of_words: str, count: int = 10) -> list[Near]:
        """The words nearest to a sum such as "king - man + woman"; the words of the sum are no answers."""
        terms = [(sign, self.place(word)) for sign, word in parsed(sum_of_words)]
        wanted_D = sum((sign * self.directions[at] for sign, at in terms), np.zeros(self.numbers.shape[1]))
        if np.abs(wanted_D).max() < TINY:
            raise ConfigError(f'"{sum_of_words}" is zero, and points nowhere')
        return self.nearest(wanted_D, [at for _, at in terms], count)

    def nearest(self, wanted_D: np.ndarray, without: Sequence[int], count: int) -> list[Near]:
        """The words that point most nearly the way of a vector, best first."""
        if count < 1:
            raise ConfigError(f"{count} words: at least 1 must be asked for")
        length = float(np.linalg.norm(wanted_D))
        cosines_V = self.directions @ (wanted_D / (length or 1.0))
        cosines_V[list(without)] = -np.inf
        best = np.argsort(-cosines_V, kind="stable")[: min(count, len(self) - len(set(without)))]
        return [Near(self.spelled(i), float(cosines_V[i])) for i in best]

    def answers(self, questions: Sequence[Sequence[int]], told: Callable[[int], None] = lambda done: None) -> list[int]:
        """Of questions a : b = c : ?, as places of words, the place that b - a + c is nearest to."""
        found = list[int]()
        for start in range(0, len(questions), rows := max(1, CHUNK // len(self))):
            asked_Q3 = np.array([question[:3] for question in questions[start : start + rows]])
            a_QD, b_QD, c_QD = (self.directions[asked_Q3[:, i]] for i in range(3))
            cosines_QV = (b_QD - a_QD + c_QD) @ self.directions.T
            cosines_QV[np.arange(len(asked_Q3))[:, None], asked_Q3] = -np.inf
            found += cosines_QV.argmax(1).tolist()
            told(len(found))
        return found

    def map(self, words: Sequence[str] = ()) -> WordMap:
        """Words on a plane, by the two principal components of their vectors; none named: the first forty with letters.

        >>> numbers = np.array([[2, 0, 0], [-2, 0, 0], [0, 1, 0], [0, -1, 0]], np.float32)
        >>> found = WordTable(("a", "b", "c", "d"), numbers).map(["a", "b", "c", "d"])
        >>> np.abs(found.points).round(3).tolist(), [round(share, 3) for share in found.shares]
        ([[2.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [0.8, 0.2])
        """
        some = self.whole[:PLACED] if len(self.whole) > 2 else range(min(PLACED, len(self)))
        chosen = list(dict.fromkeys(self.place(word) for word in words)) or list(some)
        if len(chosen) < 3:
            raise ConfigError(f"a map needs at least 3 words, got {len(chosen)}")
        centred = self.numbers[chosen].astype(np.float64)
        centred -= centred.mean(0)
        left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
        left, sizes = (np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, max(0, 2 - len(sizes)))]) for x in (left, sizes))
        points = left[:, :2] * sizes[:2]
        points *= np.where(points[np.abs(points).argmax(0), range(2)] < 0, -1, 1)  # a direction has two ends: choose
        total = float(np.square(sizes).sum()) or 1.0
        first, second = (float(size) ** 2 / total for size in sizes[:2])
        return WordMap(tuple(map(self.spelled, chosen)), points, (first, second))

    def lines(self) -> Iterator[str]:
        """The table as word2vec writes it: how many words and how wide, then a word and its numbers; a blank is ␣.

        >>> list(WordTable(("a", "b"), np.array([[0.5, 1.0], [0.25, -2.0]], np.float32)).lines())
        ['2 2', 'a 0.5 1.0', 'b 0.25 -2.0']
        """
        yield f"{len(self)} {self.numbers.shape[1]}"
        for word, numbers in zip(self.words, self.numbers, strict=True):
            yield " ".join([word.replace(" ", SHOWN), *map(str, numbers)])


def parsed(sum_of_words: str) -> list[tuple[int, str]]:
    """The words of a sum, each with its sign.

    >>> parsed("king - man + woman")
    [(1, 'king'), (-1, 'man'), (1, 'woman')]
    """
    parts = sum_of_words.split()
    if parts and parts[0] not in SIGNS:
        parts = ["+", *parts]
    if len(parts) < 4 or len(parts) % 2 or not set(parts[::2]) <= SIGNS.keys():
        raise ConfigError(
            f'"{sum_of_words}": expected words with + and - between them, and spaces, such as "king - man + woman"'
        )
    return [(SIGNS[sign], word) for sign, word in zip(parts[::2], parts[1::2], strict=True)]


def read_table(lines: Iterable[str], name: str | Path, limit: int | None = None) -> WordTable:
    """A file of vectors as GloVe or word2vec writes it, or its first `limit` words; `name` is for messages.

    >>> read_table(["2 3", "sea 0.5 0.25 1", "sky 1 0 2"], "tiny.txt").numbers.shape
    (2, 3)
    """
    words, numbers = list[str](), array("f")
    for word, row in islice(numbered(lines, name), limit):
        words.append(word)
        numbers.extend(row)
    if not words:
        raise DataError(f"{name} is empty; expected a word and its numbers on each line")
    return WordTable(tuple(words), np.frombuffer(numbers, np.float32).reshape(len(words), -1))


def _nfc(word: str) -> str:
    return unicodedata.normalize("NFC", word)


def _nfd(word: str) -> str:
    return unicodedata.normalize("NFD", word)
