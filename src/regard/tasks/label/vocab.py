"""Word and character vocabulary of a tagger, and splitting of plain text into words."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from regard.errors import ModelError
from regard.files import parse_json, write_text_atomically
from regard.manifest import read_kept
from regard.nn.spelling import CHARACTERS, spell_text
from regard.sequence import PAD, UNK, Tokens
from regard.text.token_rows import TokenStrings

FILE = "vocab.json"
FIRST = 2
"""Id of the first word and of the first character; before them are padding and the unknown."""


@dataclass(frozen=True)
class WordVocab:
    """Vocabulary of words and of characters; an unknown word still has its characters.

    >>> vocab = WordVocab.count(Counter({"Paris": 3, "is": 2, "Rome": 1}), min_count=2)
    >>> vocab.encode("Paris"), vocab.encode("Rome")[0], vocab.encode("is")
    ([2, 2, 4, 9, 6, 10], 1, [3, 6, 10])
    """

    words: tuple[str, ...]
    chars: tuple[str, ...]
    """all characters of the training words; none: words are read without characters"""
    max_chars: int = 24
    """characters of a word that are read: of a longer word the first and the last half of them"""
    lowercase: bool = False
    """whether word ids ignore case; character ids never do"""
    spelled: bool = False
    """whether character ids are those of spellings (nn/spelling.py), which every word has"""

    @classmethod
    def count(
        cls,
        counts: Mapping[str, int],
        min_count: int = 1,
        lowercase: bool = False,
        with_chars: bool = True,
        spelled: bool = False,
    ) -> WordVocab:
        """The words that occur `min_count` times or more, the most frequent first, ties in alphabetical order."""
        merged: Counter[str] = Counter()
        for word, count in counts.items():
            merged[word.lower() if lowercase else word] += count
        words = sorted((word for word, count in merged.items() if count >= min_count), key=lambda w: (-merged[w], w))
        chars = sorted({char for word in counts for char in word}) if with_chars and not spelled else []
        return cls(tuple(words), tuple(chars), lowercase=lowercase, spelled=spelled)

    @property
    def size(self) -> int:
        """Number of word ids."""
        return FIRST + len(self.words)

    @property
    def char_size(self) -> int:
        """Number of character ids."""
        return CHARACTERS if self.spelled else FIRST + len(self.chars)

    def encode(self, word: str) -> list[int]:
        """The id of a word, then those of its characters."""
        first = self._words.get(word.lower() if self.lowercase else word, UNK)
        if self.spelled:
            return [first, *spell_text(word)]
        if not self.chars:
            return [first]
        half = self.max_chars // 2
        read = word if len(word) <= self.max_chars else word[:half] + word[len(word) - (self.max_chars - half) :]
        return [first, *(self._chars.get(char, UNK) for char in read)]

    def __contains__(self, word: str) -> bool:
        return (word.lower() if self.lowercase else word) in self._words

    def word(self, index: int) -> str:
        """The word of an id."""
        return {PAD: "<PAD>", UNK: "<UNK>"}.get(index) or self.words[index - FIRST]

    @cached_property
    def _words(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words, FIRST)}

    @cached_property
    def _chars(self) -> dict[str, int]:
        return {char: i for i, char in enumerate(self.chars, FIRST)}

    def token_strings(self) -> tuple[TokenStrings, TokenStrings]:
        """Words and characters in the form in which vocabularies are compared."""
        special = ("<PAD>", "<UNK>")
        chars = map(str, range(CHARACTERS)) if self.spelled else (*special, *self.chars)
        return TokenStrings([*special, *(f" {word}" for word in self.words)]), TokenStrings(list(chars))

    def save(self, path: Path) -> None:
        """Write a JSON file."""
        write_text_atomically(path, json.dumps(asdict(self), ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> WordVocab:
        """Read the file that `save` wrote."""
        try:
            found = parse_json(read_kept(path))
            words, chars = (tuple(map(str, found[name])) for name in ("words", "chars"))
            spelled = bool(found.get("spelled", False))  # files of earlier versions do not have it
            return cls(words, chars, int(found["max_chars"]), bool(found["lowercase"]), spelled)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise ModelError(f"{path} cannot be read: expected the word vocabulary of a model") from None


CHUNK = re.compile(r"\S+")
LONGEST = 100
"""Characters of the longest word that is looked up: no vocabulary has a longer one."""
APOSTROPHES = "'’"


def split_words(text: str, vocab: WordVocab) -> list[tuple[int, int]]:
    """Offsets of the words and punctuation marks of a plain text.

    Punctuation at both ends of a word is split off, unless the vocabulary has the word with it ("etc."). A word is
    split at an apostrophe if both parts are in the vocabulary: "don't" is "do" and "n't" for a model trained on these.

    >>> vocab = WordVocab.count(Counter(["do", "n't", "etc.", "stop"]))
    >>> text = "(don't stop, etc.)"
    >>> [text[start:end] for start, end in split_words(text, vocab)]
    ['(', 'do', "n't", 'stop', ',', 'etc.', ')']
    """
    found: list[tuple[int, int]] = []
    for chunk in CHUNK.finditer(text):
        start, end = chunk.span()
        after: list[tuple[int, int]] = []
        while end - start > 1 and not (end - start <= LONGEST and text[start:end] in vocab):
            if _is_punctuation(text[start]):
                found.append((start, start + 1))
                start += 1
            elif _is_punctuation(text[end - 1]):
                end -= 1
                after.append((end, end + 1))
            else:
                break
        found += _split_at_apostrophe(text, start, end, vocab)
        found += reversed(after)
    return found


def _split_at_apostrophe(text: str, start: int, end: int, vocab: WordVocab) -> Iterable[tuple[int, int]]:
    """A word, or its two parts around an apostrophe if both are in the vocabulary."""
    if end - start <= LONGEST and text[start:end] not in vocab:
        for at in range(start + 1, end - 1):
            if text[at] in APOSTROPHES:
                for cut in (at, at - 1, at + 1):  # John 's, do n't, l' ami
                    if start < cut < end and text[start:cut] in vocab and text[cut:end] in vocab:
                        return [(start, cut), (cut, end)]
    return [(start, end)]


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


class WordEncoder(Protocol):
    """What turns a word into ids: a `WordVocab`, or a `SubwordEncoder`."""

    def encode(self, word: str) -> list[int]: ...


@dataclass(frozen=True, eq=False)
class WordTypes:
    """Distinct words, each as a row of ids: the word's, then its characters'; or its pieces'; then padding."""

    table_TC: np.ndarray

    @classmethod
    def encode(cls, words: Iterable[str], encoder: WordEncoder) -> WordTypes:
        """The rows of words."""
        return cls.from_rows([np.array(encoder.encode(word)) for word in words])

    @classmethod
    def from_rows(cls, rows: Sequence[np.ndarray]) -> WordTypes:
        """Rows of ids as one padded table."""
        return cls(Tokens.pad(rows).data.numpy())

    def collate(self, sentences: Sequence[np.ndarray]) -> Tokens:
        """Sentences of row numbers as a batch: (B, L, 1 + C) ids, or (B, L) without characters."""
        numbers = Tokens.pad(sentences)
        numbers_BL, real_BL = numbers.data.numpy(), numbers.mask.numpy()
        if self.table_TC.shape[1] < 2:
            ids_BL = self.table_TC[:, 0][numbers_BL] if len(self.table_TC) else numbers_BL
            data = np.where(real_BL, ids_BL, PAD)
        else:
            longest = int(self._char_counts[numbers_BL].max(initial=0))
            data = np.where(real_BL[..., None], self.table_TC[:, : 1 + longest][numbers_BL], PAD)
        return replace(numbers, data=torch.from_numpy(data))

    @cached_property
    def _char_counts(self) -> np.ndarray:
        return (self.table_TC[:, 1:] != PAD).sum(1)
