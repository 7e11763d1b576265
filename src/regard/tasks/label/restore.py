"""Restoring case, accents and punctuation: pairs that need no labels, since any text tells what it looked like.

What is read is a sentence as one types it in a hurry: lower case, no accents, no signs. What is wanted at each of its
characters is how that place was really written. Together the wanted forms spell the sentence, exactly.
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

from regard.data.download.index import Progress
from regard.data.lines import read_lines
from regard.data.splits import SPLITS, apart
from regard.data.tatoeba import Tatoeba, clean, read
from regard.errors import ConfigError, DataError
from regard.tasks.label.sources import Sentence

LIGATURES = {"œ": "oe", "æ": "ae", "ß": "ss", "ø": "o", "ł": "l", "đ": "d"}
"""letters that are typed as others, and that Unicode does not take apart"""
APOSTROPHES = frozenset("'’ʼ")
"""signs that leave no space behind when they go: "c'est" is typed "cest\""""


@functools.lru_cache(maxsize=1 << 16)
def plain(character: str) -> str:
    """A character in lower case, without accents, its ligature undone; nothing if it is no letter and no digit.

    >>> [plain(c) for c in ("É", "œ", "7", "!")]
    ['e', 'oe', '7', '']
    """
    lower = "".join(LIGATURES.get(c, c) for c in character.lower())
    return "".join(c for c in unicodedata.normalize("NFKD", lower) if c.isalnum())


def cut(text: str) -> tuple[list[str], list[int]]:
    """What is read of a text, character by character, and where the form of each ends: the next one begins there.

    Signs between two letters belong to the space that is read there; apostrophes, and the signs at both ends, to a
    letter beside them.

    >>> cut("C'est ça.")
    (['c', 'e', 's', 't', ' ', 'c', 'a'], [2, 3, 4, 5, 6, 7, 9])
    """
    read: list[str] = []
    ends: list[int] = []
    for at, character in enumerate(text):
        letters = plain(character)
        if not letters:
            continue
        if read and ends[-1] < at:
            if APOSTROPHES.issuperset(text[ends[-1] : at]):
                ends[-1] = at
            else:
                read.append(" ")
                ends.append(at)
        for letter in letters:  # of a ligature the first one gets the form, the others none
            read.append(letter)
            ends.append(at + 1)
    if read:
        ends[-1] = len(text)
    return read, ends


def forms(text: str) -> tuple[list[str], list[str]]:
    """What is read of a text, and how each place was written; put together, the forms are the text.

    >>> forms("Où va-t-il ?")[1]
    ['O', 'ù', ' ', 'v', 'a', '-', 't', '-', 'i', 'l ?']
    """
    read, ends = cut(text)
    return read, [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def bare(text: str) -> str:
    """What is read of a text.

    >>> bare("« Ça va ? »")
    'ca va'
    """
    return "".join(cut(text)[0])


@dataclass(frozen=True, kw_only=True)
class Restore:
    """Sentences without their case, accents and punctuation, and as they were: French ones of Tatoeba, or your own.

    >>> Restore().splits()
    ('train', 'valid', 'test')
    """

    kind: Literal["restore"] = "restore"
    """text without case, accents and punctuation, and as it was"""
    train: str | None = None
    """a text file of your own, one sentence a line; none: French sentences of Tatoeba, fetched from a registry"""
    limit: int | None = None
    """learn from so many sentences, drawn at random; valid and test stay whole"""
    held_out: float = 0.02
    """the share of the sentences that goes to valid, and again to test"""
    seed: int = 1
    """another seed draws another limited part"""

    def __post_init__(self) -> None:
        if not 0 < self.held_out < 0.5:
            raise ConfigError(f"held_out: expected a share between 0 and 0.5, got {self.held_out}")
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"limit: expected a number from 1 on, got {self.limit}")

    @property
    def unit(self) -> Literal["character"]:
        return "character"

    @property
    def answer(self) -> Literal["text"]:
        return "text"

    def splits(self) -> tuple[str, ...]:
        """train, valid and test: no sentence is in two of them, up to what is not read."""
        return SPLITS

    def fetch(self, progress: Progress | None = None) -> Path:
        """The file with the sentences: your own, else the one in the cache, else from a registry."""
        return Path(self.train) if self.train is not None else Tatoeba().fetch(progress)

    def attribution(self) -> str:
        """Whom to credit, and under which licence."""
        if self.train is None:
            return Tatoeba().attribution()
        return f"{self.kind}: {self.train}; its licence is for whoever gave it to tell"

    def scored_on(self, path: Path) -> RestoredFile:
        """The sentences of another file."""
        return RestoredFile(path)

    def sentences(self, split: str) -> Iterator[Sentence]:
        """The sentences of a split; each comes once."""
        if split not in SPLITS:
            raise ConfigError(f'there is no split "{split}" (splits: {", ".join(SPLITS)})')
        chosen = self._drawn(split) if split == "train" and self.limit is not None else None
        number, kept = -1, 0
        for sentence in self._split(split):
            number += 1
            if chosen is None or number in chosen:
                kept += 1
                yield sentence
        if not kept:
            raise DataError(
                f"{self.fetch()}: no sentence falls to {split} when a share of {self.held_out} is kept apart; give "
                "more text, or change data.held_out"
            )

    def _drawn(self, split: str) -> frozenset[int]:
        whole = sum(1 for _ in self._split(split))
        assert self.limit is not None
        return frozenset(random.Random(self.seed).sample(range(whole), min(self.limit, whole)))

    def _split(self, split: str) -> Iterator[Sentence]:
        path, seen = self.fetch(), set[bytes]()
        for number, text in enumerate(self._texts(path), 1):
            key, sentence = blake2b(text.encode(), digest_size=8).digest(), restorable(text, str(path), number)
            if sentence.words and key not in seen and split_of("".join(sentence.words), self.held_out) == split:
                seen.add(key)
                yield sentence

    def _texts(self, path: Path) -> Iterator[str]:
        if self.train is None:
            return (french for _, french in read(path))
        return (clean(line) for line in read_lines(path))


def restorable(text: str, path: str, line: int) -> Sentence:
    """A text as what is read of it and what is wanted.

    >>> restorable("Où ?", "a.txt", 1).tags
    ('O', 'ù ?')
    """
    read, written = forms(text)
    return Sentence(tuple(read), tuple(written), path, (line,) * len(read))


def split_of(sentence: str, held_out: float) -> str:
    """The split of a sentence: by what is read of it, so that two that read alike are never in two.

    >>> split_of("ou va t il", 0.02)
    'train'
    """
    if apart(sentence, held_out):
        return "test"
    return "valid" if apart(sentence, 2 * held_out) else "train"


@dataclass(frozen=True)
class RestoredFile:
    """The sentences of one file, to be scored on.

    >>> RestoredFile(Path("mine.txt")).splits()
    ('test',)
    """

    path: Path

    def splits(self) -> tuple[str, ...]:
        return ("test",)

    def sentences(self, split: str) -> Iterator[Sentence]:
        """All lines that hold something to read."""
        number = 0
        for number, line in enumerate(read_lines(self.path), 1):
            sentence = restorable(clean(line), str(self.path), number)
            if sentence.words:
                yield sentence
        if not number:
            raise DataError(f"{self.path} is empty; expected one sentence a line")
