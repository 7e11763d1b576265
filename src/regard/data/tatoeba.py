"""Tatoeba's sentence pairs, French-English and Spanish-English, split so that no sentence of either side is in two."""

from __future__ import annotations

import functools
import random
import unicodedata
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from regard.data.download.datasets import Dataset, fetch, find
from regard.data.download.index import Progress
from regard.data.lines import read_lines
from regard.data.splits import SPLITS, partition
from regard.errors import ConfigError, DataError


@dataclass(frozen=True, kw_only=True)
class Tatoeba:
    """Everyday sentences by the contributors of Tatoeba, fetched once and kept in the cache.

    >>> Tatoeba(direction="en-es").dataset().title
    'Tatoeba Spanish-English, 124,547 pairs'
    """

    kind: Literal["tatoeba"] = "tatoeba"
    """sentences of everyday life, fetched from a registry"""
    direction: Literal["fr-en", "en-fr", "es-en", "en-es"] = "fr-en"
    """from which language into which"""
    path: str | None = None
    """a file of your own instead of the fetched one: English, the other language, a credit, with tabs between"""
    longest_words: int | None = None
    """leave out pairs whose English side has more words than this, from every split"""
    limit: int | None = None
    """take so many pairs of train, drawn at random; valid and test stay whole"""
    held_out: float = 0.02
    """the share of the sentences that goes to valid, and again to test"""
    seed: int = 1
    """another seed draws other splits"""

    def __post_init__(self) -> None:
        if not 0 < self.held_out < 0.5:
            raise ConfigError(f"held_out: expected a share between 0 and 0.5, got {self.held_out}")
        for name, value in (("longest_words", self.longest_words), ("limit", self.limit)):
            if value is not None and value < 1:
                raise ConfigError(f"{name}: expected a number from 1 on, got {value}")

    def splits(self) -> tuple[str, ...]:
        """The names of the splits.

        >>> Tatoeba().splits()
        ('train', 'valid', 'test')
        """
        return SPLITS

    def dataset(self) -> Dataset:
        """The entry of the catalogue that these pairs come from.

        >>> Tatoeba(direction="en-fr").dataset().name
        'tatoeba-fr-en'
        """
        return find("tatoeba-es-en" if "es" in self.direction else "tatoeba-fr-en")

    def attribution(self) -> str:
        """Whom to credit, and under which licence; each line of the file credits its own authors.

        >>> Tatoeba().attribution()
        'Sentences by the contributors of Tatoeba (tatoeba.org), selected by manythings.org/anki. Licence: CC BY 2.0 FR'
        """
        return f"{self.dataset().attribution}. Licence: {self.dataset().licence}"

    def fetch(self, progress: Progress | None = None) -> Path:
        """The file with the pairs: your own, else the one in the cache, else from a registry."""
        return fetch(self.dataset(), progress=progress) if self.path is None else Path(self.path)

    def pairs(self, split: str) -> Iterator[tuple[str, str]]:
        """The pairs of a split, source first, in the order of the file (short sentences first)."""
        if split not in SPLITS:
            raise ConfigError(f"no split is called {split!r}; there are: {', '.join(SPLITS)}")
        path = self.fetch()
        places = self._places(path, split)
        if not places:
            raise DataError(
                f"{path}: no pair is left for {split}; allow longer sentences, or hold out more than {self.held_out}"
            )
        wanted = iter(places)
        following = next(wanted)
        for place, (english, other) in enumerate(read(path)):
            if place == following:
                yield (english, other) if self.direction.startswith("en") else (other, english)
                following = next(wanted, -1)

    def _places(self, path: Path, split: str) -> list[int]:
        """Which lines belong to a split; `limit` draws among them, since the file is sorted by length."""
        labels, words = _survey(path, path.stat().st_mtime_ns if path.exists() else 0, self.held_out, self.seed)
        wanted, longest = SPLITS.index(split), self.longest_words or max(words, default=0)
        places = [i for i, (label, length) in enumerate(zip(labels, words)) if label == wanted and length <= longest]
        if split == "train" and self.limit is not None and self.limit < len(places):
            places = sorted(random.Random(self.seed).sample(places, self.limit))
        return places


def read(path: Path) -> Iterator[tuple[str, str]]:
    """The English and the other sentence of each line of a file of Tatoeba's.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "fra.txt")
    ...     _ = file.write_text("Go.\\tVa\u202f!\\tby two people\\n", encoding="utf-8")
    ...     list(read(file))
    [('Go.', 'Va !')]
    """
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split("\t")
        if len(columns) < 2:
            raise DataError(
                f"{path}, line {number}: expected English, the other language and a credit with tabs between, "
                f"found {len(columns)} column"
            )
        yield clean(columns[0]), clean(columns[1])


def clean(sentence: str) -> str:
    """A sentence in NFC with plain single spaces: French has four kinds before its punctuation.

    >>> clean("Cafe\u0301\u00a0? Oui\u202f!")
    'Café ? Oui !'
    """
    return unicodedata.normalize("NFC", " ".join(sentence.split()))


@functools.lru_cache(maxsize=4)
def _survey(path: Path, changed: int, held_out: float, seed: int) -> tuple[array[int], array[int]]:
    """For each line the number of its split and its English words; 9 where a line repeats one or has an empty side.

    Only these two bytes a line are kept: the text is read again for each split.
    """
    places: dict[tuple[str, str], int] = {}
    words = array("H")
    for place, pair in enumerate(read(path)):
        words.append(min(len(pair[0].split()), 65535))
        if all(pair):
            places.setdefault(pair, place)
    labels = array("B", [9]) * len(words)
    pairs = list(places)
    for pair, split in zip(pairs, partition(pairs, held_out, held_out, seed)):
        labels[places[pair]] = SPLITS.index(split)
    return labels, words
