"""The four proverbs of the lecture in Spanish and English, and a word-level vocabulary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regard.sequence import EOS, PAD, SOS, UNK

SPANISH = ["Como un cordero al matadero", "Donde hay humo, hay fuego", "Nunca es tarde para aprender", "Que sera, sera"]
ENGLISH = [
    "Like a lamb to the slaughter",
    "Where there's smoke, there's fire",
    "It's never too late to learn",
    "Whatever will be, will be",
]
SPECIAL = {PAD: "<PAD>", UNK: "<UNK>", SOS: "<SOS>", EOS: "<EOS>"}


@dataclass(frozen=True)
class WordList:
    """Vocabulary of words split at spaces; ids from 4, in order of first occurrence.

    >>> words = WordList.of(SPANISH)
    >>> words.ids("Que sera, sera"), words.words([19, 0])
    ([18, 19, 20], ['sera,', '<PAD>'])
    """

    known: tuple[str, ...]

    @classmethod
    def of(cls, sentences: Iterable[str]) -> WordList:
        """Vocabulary of some sentences."""
        return cls(tuple(dict.fromkeys(word for sentence in sentences for word in sentence.split())))

    @property
    def size(self) -> int:
        """Vocabulary size, special tokens included."""
        return len(self.known) + len(SPECIAL)

    def ids(self, sentence: str) -> list[int]:
        """Ids of a sentence; unknown words are <UNK>."""
        index = {word: i + len(SPECIAL) for i, word in enumerate(self.known)}
        return [index.get(word, UNK) for word in sentence.split()]

    def words(self, ids: Sequence[int]) -> list[str]:
        """Words of some ids."""
        return [SPECIAL[i] if i in SPECIAL else self.known[i - len(SPECIAL)] for i in ids]
