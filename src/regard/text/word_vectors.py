"""Word vectors of one's own, as GloVe (Pennington et al. 2014) and word2vec write them: a word and its numbers a line.

They are where the embeddings of a vocabulary's words start; what is not in the file starts at random, as wide.
"""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from regard.errors import ConfigError, DataError

FILE = "vectors.safetensors"


@dataclass(frozen=True)
class VectorsConfig:
    """Where words start from.

    >>> VectorsConfig().path is None
    True
    """

    path: str | None = None
    """a file of word vectors, such as GloVe's: a word and its numbers a line, .gz too; none: words start at random"""
    words: int = 0
    """so many of the first words of the file join the vocabulary, on top of text.size: texts may have words that
    training has not"""

    scale: float = 2.0
    """how many times as wide as words that start at random: more holds on to the vectors, less forgets them sooner"""

    def __post_init__(self) -> None:
        if self.words < 0:
            raise ConfigError(f"words = {self.words} must be at least 0")
        if not 0 < self.scale < math.inf:
            raise ConfigError(f"scale = {self.scale} must be above 0")

    def file(self) -> Path | None:
        """The file, its ~ and $VARIABLES filled in."""
        return None if self.path is None else Path(os.path.expandvars(self.path)).expanduser()


@dataclass(frozen=True, eq=False)
class WordVectors:
    """The vectors of those words of a vocabulary that a file has.

    >>> found = WordVectors(np.array([4, 6]), np.ones((2, 50), np.float32))
    >>> found.width, len(found)
    (50, 2)
    """

    ids: np.ndarray
    """(N,) numbers in the vocabulary"""
    numbers: np.ndarray
    """(N, D)"""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def width(self) -> int:
        """Numbers of a vector."""
        return self.numbers.shape[1]

    def into(self, table_VD: np.ndarray, scale: float) -> np.ndarray:
        """A table of random vectors with these in their places, so many times as wide as the random ones.

        As they come they are several times as wide: what is learnt would be small beside them, and slow.

        >>> WordVectors(np.array([1]), np.array([[5.0, -5.0]])).into(np.array([[0.1, -0.1], [0.1, 0.1]]), scale=2.0)
        array([[ 0.1, -0.1],
               [ 0.2, -0.2]])
        """
        made = table_VD.copy()
        wide = np.sqrt(np.square(self.numbers).mean())
        made[self.ids] = self.numbers * (scale * np.sqrt(np.square(made).mean()) / wide if wide else 1.0)
        return made

    def save(self, folder: Path) -> None:
        """Write a .safetensors file."""
        save_file({"ids": self.ids.astype(np.int64), "numbers": self.numbers.astype(np.float32)}, folder / FILE)

    @classmethod
    def load(cls, folder: Path) -> WordVectors:
        """What `save` wrote."""
        try:
            found = load_file(folder / FILE)
        except (OSError, SafetensorError):
            raise DataError(f"{folder / FILE} cannot be read; prepare the data again") from None
        return cls(found["ids"], found["numbers"])


def read_vectors(lines: Iterable[str], name: str | Path, words: Mapping[str, int]) -> WordVectors:
    """The vectors of the words that are asked for, among the lines of a file of many; `name` is for messages.

    >>> lines = ["the 0.1 0.2", "movie 0.5 0.25", "is 0.5 0.6"]
    >>> found = read_vectors(lines, "tiny.txt", {"movie": 4, "great": 5})
    >>> found.ids.tolist(), found.numbers.tolist()
    ([4], [[0.5, 0.25]])
    """
    found: dict[int, array[float]] = {}
    for spelled, cells, where in _split(lines, name):
        word = words.get(spelled)
        if word is not None and word not in found:
            found[word] = _numbers(cells, where)
    if not found:
        raise DataError(
            f"{name} has none of the {len(words):,} words of the vocabulary; is it of this language, and in lower case?"
        )
    return WordVectors(np.array(list(found)), np.array(list(found.values()), np.float32))


def numbered(lines: Iterable[str], name: str | Path) -> Iterator[tuple[str, array[float]]]:
    """Each word of a file of vectors with its numbers in single precision; `name` is for messages.

    >>> [(word, list(numbers)) for word, numbers in numbered(["2 2", "sea 0.5 0.25", "New York 1 0"], "tiny.txt")]
    [('sea', [0.5, 0.25]), ('New York', [1.0, 0.0])]
    """
    return ((word, _numbers(cells, where)) for word, cells, where in _split(lines, name))


def _split(lines: Iterable[str], name: str | Path) -> Iterator[tuple[str, list[str], str]]:
    """Each word with the cells of its numbers, and where it stands."""
    width, promised, found = 0, None, 0
    for number, line in enumerate(lines, 1):
        cells, where = line.rstrip().split(" "), f"{name}, line {number}"
        if number == 1 and len(cells) == 2 and all(cell.isdecimal() for cell in cells):
            promised, width = map(int, cells)  # word2vec says first how many words there are, and how wide they are
            continue
        if not line.strip():
            continue
        width = width or len(cells) - 1
        _check_cells(cells, line, width, where)
        found += 1
        yield " ".join(cells[:-width]), cells[-width:], where  # some words have spaces in them
    if promised is not None and promised != found:
        raise DataError(f"{name}: its first line says {promised:,} words, and there are {found:,}; is it cut off?")


def _check_cells(cells: list[str], line: str, width: int, where: str) -> None:
    """Refuse a line that has fewer numbers than the others, or more."""
    wanted = f"a word and {max(width, 1)} number{'s' if width > 1 else ''} with spaces between"
    if width < 1 or len(cells) < width + 1:
        tabs = ", and tabs" if "\t" in line else ""
        raise DataError(f"{where}: expected {wanted}, found {len(cells)} cell{'s' if len(cells) > 1 else ''}{tabs}")
    if len(cells) > width + 1 and _is_number(cells[-width - 1]):
        raise DataError(f"{where}: expected {wanted}, found more numbers")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def first_words(lines: Iterable[str], count: int, name: str | Path) -> Iterator[str]:
    """The words that stand first in a file of vectors: the commonest, as such files go.

    >>> list(first_words(["3 2", "the 0.1 0.2", "movie 0.5 0.25", "is 0.5 0.6"], 2, "tiny.txt"))
    ['the', 'movie']
    """
    return (word for word, _, _ in islice(_split(lines, name), count))


def _numbers(cells: list[str], where: str) -> array[float]:
    try:
        found = array("f", map(float, cells))
    except ValueError:
        wrong = next(cell for cell in cells if not _is_number(cell))
        raise DataError(f'{where}: expected {len(cells)} numbers after the word, found "{wrong[:20]}"') from None
    if not math.isfinite(sum(found)):
        raise DataError(f"{where}: expected {len(cells)} numbers after the word, found one that is not finite")
    return found
