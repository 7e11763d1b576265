"""Words and the letters they are made of, as numbers; and how plain text is cut into words, with their offsets."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from regard.errors import ModelError, OutputError
from regard.sequence import PAD, UNK

FIRST = 2
"""the id of the first word, and of the first letter: before it are padding and the unknown"""


@dataclass(frozen=True)
class Spelling:
    """A vocabulary of words and one of letters. What is not in it is unknown, a word then still has its letters.

    >>> spelling = Spelling.of(Counter({"Paris": 3, "is": 2, "Rome": 1}), least=2)
    >>> spelling.row("Paris"), spelling.row("Rome")[0], spelling.row("is")
    ([2, 2, 4, 9, 6, 10], 1, [3, 6, 10])
    """

    words: tuple[str, ...]
    letters: tuple[str, ...]
    """all that the words of training are made of; none: words have no letters here"""
    longest: int = 24
    """letters of a word that are read: of a longer one the first half of them, and the last"""
    lowercase: bool = False
    """whether a word's own vector forgets capitals; its letters do not"""

    @classmethod
    def of(
        cls, counts: Mapping[str, int], least: int = 1, longest: int = 24, lowercase: bool = False, spelled: bool = True
    ) -> Spelling:
        """The vocabulary of words that came `least` times or more, the most frequent first; equals by their letters."""
        merged: Counter[str] = Counter()
        for word, count in counts.items():
            merged[word.lower() if lowercase else word] += count
        words = sorted((word for word, count in merged.items() if count >= least), key=lambda w: (-merged[w], w))
        letters = sorted({letter for word in counts for letter in word}) if spelled else []
        return cls(tuple(words), tuple(letters), longest, lowercase)

    @property
    def size(self) -> int:
        """How many ids words have."""
        return FIRST + len(self.words)

    @property
    def letter_size(self) -> int:
        """How many ids letters have."""
        return FIRST + len(self.letters)

    @property
    def places(self) -> int:
        """How many ids a word takes: its own, and those of its letters."""
        return 1 + self.longest if self.letters else 1

    def row(self, word: str) -> list[int]:
        """The id of a word, then those of its letters."""
        first = self._words.get(word.lower() if self.lowercase else word, UNK)
        if not self.letters:
            return [first]
        half = self.longest // 2
        read = word if len(word) <= self.longest else word[:half] + word[len(word) - (self.longest - half) :]
        return [first, *(self._letters.get(letter, UNK) for letter in read)]

    def knows(self, word: str) -> bool:
        """Whether a word has a vector of its own."""
        return (word.lower() if self.lowercase else word) in self._words

    def spelled(self, number: int) -> str:
        """The word of an id."""
        return {PAD: "<PAD>", UNK: "<UNK>"}.get(number) or self.words[number - FIRST]

    @cached_property
    def _words(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words, FIRST)}

    @cached_property
    def _letters(self) -> dict[str, int]:
        return {letter: i for i, letter in enumerate(self.letters, FIRST)}

    def save(self, path: Path) -> None:
        """Write a JSON file."""
        table = {"words": self.words, "letters": self.letters, "longest": self.longest, "lowercase": self.lowercase}
        try:
            path.write_text(json.dumps(table, ensure_ascii=False) + "\n", encoding="utf-8")
        except OSError as error:
            raise OutputError(f"{path}: cannot be written ({error.strerror})") from None

    @classmethod
    def load(cls, path: Path) -> Spelling:
        """What `save` wrote."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return cls(tuple(found["words"]), tuple(found["letters"]), int(found["longest"]), bool(found["lowercase"]))
        except (OSError, ValueError, KeyError, TypeError):
            raise ModelError(f"{path} cannot be read: expected the words and letters that a model knows") from None


CHUNK = re.compile(r"\S+")
LONGEST = 100
"""characters of the longest word that is looked up: no vocabulary has a longer one"""
APOSTROPHES = "'’"


def words_of(text: str, spelling: Spelling) -> list[tuple[int, int]]:
    """Where the words and signs of a plain text begin and end.

    Signs at both ends of a word stand alone, unless the vocabulary has the word with them ("etc."). So does what an
    apostrophe parts, if both parts were seen in training: "don't" is "do" and "n't" for a model that learnt them so.

    >>> spelling = Spelling.of(Counter(["do", "n't", "etc.", "stop"]))
    >>> text = "(don't stop, etc.)"
    >>> [text[start:end] for start, end in words_of(text, spelling)]
    ['(', 'do', "n't", 'stop', ',', 'etc.', ')']
    """
    found: list[tuple[int, int]] = []
    for chunk in CHUNK.finditer(text):
        start, end = chunk.span()
        after: list[tuple[int, int]] = []
        while end - start > 1 and not _known(text, start, end, spelling):
            if _is_sign(text[start]):
                found.append((start, start + 1))
                start += 1
            elif _is_sign(text[end - 1]):
                end -= 1
                after.append((end, end + 1))
            else:
                break
        found += _parted(text, start, end, spelling)
        found += reversed(after)
    return found


def _parted(text: str, start: int, end: int, spelling: Spelling) -> Iterable[tuple[int, int]]:
    """A word, or its two parts around an apostrophe if both are known."""
    if end - start <= LONGEST and not spelling.knows(text[start:end]):
        for at in range(start + 1, end - 1):
            if text[at] in APOSTROPHES:
                for cut in (at, at - 1, at + 1):  # John 's, do n't, l' ami
                    if start < cut < end and spelling.knows(text[start:cut]) and spelling.knows(text[cut:end]):
                        return [(start, cut), (cut, end)]
    return [(start, end)]


def _known(text: str, start: int, end: int, spelling: Spelling) -> bool:
    return end - start <= LONGEST and spelling.knows(text[start:end])


def _is_sign(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"
