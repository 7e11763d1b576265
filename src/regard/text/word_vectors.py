"""Pretrained word vectors in the text format of GloVe (Pennington et al. 2014) and word2vec.

They initialize the embeddings of a vocabulary; words that the file does not have start at random.
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
from regard.plurals import count_noun

FILE = "vectors.safetensors"


@dataclass(frozen=True)
class PretrainedVectorsConfig:
    """Pretrained word vectors that initialize the embeddings."""

    path: str | None = None
    """file of word vectors, such as GloVe's: a word and its numbers per line, also .gz; none: random initialization"""
    words: int = 0
    """this many of the first words of the file are added to the vocabulary, on top of text.vocab_size: other texts may
    have words that the training data has not"""
    scale: float = 2.0
    """scale of the vectors relative to random ones: a larger one keeps them, a smaller one forgets them sooner"""

    def __post_init__(self) -> None:
        if self.words < 0:
            raise ConfigError(f"words = {self.words} must be at least 0")
        if not 0 < self.scale < math.inf:
            raise ConfigError(f"scale = {self.scale} must be above 0")

    def file(self) -> Path | None:
        """The file, with ~ and $VARIABLES expanded."""
        return None if self.path is None else Path(os.path.expandvars(self.path)).expanduser()


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Vectors of those words of a vocabulary that a file has."""

    ids: np.ndarray
    """(N,) ids in the vocabulary"""
    vectors: np.ndarray
    """(N, D)"""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def width(self) -> int:
        """Dimension of the vectors."""
        return self.vectors.shape[1]

    def insert_into(self, table_VD: np.ndarray, scale: float) -> np.ndarray:
        """An embedding matrix with these vectors inserted, scaled to `scale` times the random ones' RMS.

        Unscaled they are several times larger: updates would be small beside them, and learning slow.
        """
        made = table_VD.copy()
        wide = np.sqrt(np.square(self.vectors).mean())
        made[self.ids] = self.vectors * (scale * np.sqrt(np.square(made).mean()) / wide if wide else 1.0)
        return made

    def save(self, folder: Path) -> None:
        """Write a .safetensors file."""
        save_file({"ids": self.ids.astype(np.int64), "numbers": self.vectors.astype(np.float32)}, folder / FILE)

    @classmethod
    def load(cls, folder: Path) -> WordVectors:
        """Read the file that `save` wrote."""
        try:
            found = load_file(folder / FILE)
        except (OSError, SafetensorError):
            raise DataError(f"{folder / FILE} cannot be read; prepare the data again") from None
        return cls(found["ids"], found["numbers"])


def read_vectors(lines: Iterable[str], name: str | Path, words: Mapping[str, int]) -> WordVectors:
    """The vectors of some words, given with their ids, out of the lines of a file; `name` is for messages."""
    found: dict[int, array[float]] = {}
    for word, cells, where in _parse_lines(lines, name):
        i = words.get(word)
        if i is not None and i not in found:
            found[i] = _parse_numbers(cells, where)
    if not found:
        raise DataError(
            f"{name} has none of the {len(words):,} words of the vocabulary; is it of this language, and in lower case?"
        )
    return WordVectors(np.array(list(found)), np.array(list(found.values()), np.float32))


def parse_vectors(lines: Iterable[str], name: str | Path) -> Iterator[tuple[str, array[float]]]:
    """Each word of a file of vectors with its numbers as float32; `name` is for messages.

    >>> [(word, list(numbers)) for word, numbers in parse_vectors(["2 2", "sea 0.5 0.25", "New York 1 0"], "tiny.txt")]
    [('sea', [0.5, 0.25]), ('New York', [1.0, 0.0])]
    """
    return ((word, _parse_numbers(cells, where)) for word, cells, where in _parse_lines(lines, name))


def _parse_lines(lines: Iterable[str], name: str | Path) -> Iterator[tuple[str, list[str], str]]:
    """Each word with its numbers as text, and its line for messages."""
    width, promised, found = 0, None, 0
    for number, line in enumerate(lines, 1):
        cells, where = line.rstrip().split(" "), f"{name}, line {number}"
        if number == 1 and len(cells) == 2 and all(cell.isdecimal() for cell in cells):
            promised, width = map(int, cells)  # word2vec's header: number of words, dimension
            continue
        if not line.strip():
            continue
        width = width or len(cells) - 1
        _check_cells(cells, line, width, where)
        found += 1
        yield " ".join(cells[:-width]), cells[-width:], where  # a word may contain spaces
    if promised is not None and promised != found:
        raise DataError(f"{name}: its first line says {promised:,} words, and there are {found:,}; is it cut off?")


def _check_cells(cells: list[str], line: str, width: int, where: str) -> None:
    """Refuse a line that has fewer numbers than the others, or more."""
    wanted = f"a word and {count_noun(max(width, 1), 'number')} separated by spaces"
    if width < 1 or len(cells) < width + 1:
        tabs = ", and tabs" if "\t" in line else ""
        raise DataError(f"{where}: expected {wanted}, found {count_noun(len(cells), 'cell')}{tabs}")
    if len(cells) > width + 1 and _is_number(cells[-width - 1]):
        raise DataError(f"{where}: expected {wanted}, found more numbers")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def first_words(lines: Iterable[str], count: int, name: str | Path) -> Iterator[str]:
    """The first words of a file of vectors: the most frequent ones, as such files are sorted."""
    return (word for word, _, _ in islice(_parse_lines(lines, name), count))


def _parse_numbers(cells: list[str], where: str) -> array[float]:
    try:
        found = array("f", map(float, cells))
    except ValueError:
        wrong = next(cell for cell in cells if not _is_number(cell))
        raise DataError(f'{where}: expected {len(cells)} numbers after the word, found "{wrong[:20]}"') from None
    if not math.isfinite(sum(found)):
        raise DataError(f"{where}: expected {len(cells)} numbers after the word, found one that is not finite")
    return found
