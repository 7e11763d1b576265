"""The baseline of labelling: what one says who knows each word's most frequent answer, and nothing of its neighbours.

It is counted while training data is read, and kept with a model in habits.json, so that an evaluation can state it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import ModelError
from regard.tasks.label.sources import Kind, Sentence
from regard.tasks.label.targets import circular_mean, numbers

FILE = "habits.json"


class Habits(ABC):
    """What is usually said at each place.

    >>> Usual("NOUN", {"the": "DET"}).said(["the", "cat"])
    ['DET', 'NOUN']
    """

    @abstractmethod
    def said(self, words: Sequence[str]) -> list[str]:
        """The usual answers for a sentence."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """What a file keeps of it."""

    def save(self, folder: Path) -> None:
        """Write habits.json."""
        (folder / FILE).write_text(json.dumps(self.to_dict(), ensure_ascii=False) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Usual(Habits):
    """The most frequent answer of each word; of an unknown one, the most frequent answer of all.

    >>> Usual("0.5", {}).said(["a", "b"])
    ['0.5', '0.5']
    """

    usual: str
    words: Mapping[str, str]
    """those words whose most frequent answer is another"""

    def said(self, words: Sequence[str]) -> list[str]:
        return [self.words.get(word, self.usual) for word in words]

    def to_dict(self) -> dict[str, Any]:
        return {"usual": self.usual, "words": dict(self.words)}


@dataclass(frozen=True)
class UsualForms(Habits):
    """The most frequent form of each word, and the most frequent sign after it; an unknown word stays as it is.

    >>> UsualForms({"cest": ("C'", "e", "s", "t")}, {}).said("cest toi")
    ["C'", 'e', 's', 't', ' ', 't', 'o', 'i']
    """

    words: Mapping[str, Sequence[str]]
    """of a word, the forms of its characters, where they are not the characters themselves"""
    after: Mapping[str, str]
    """of a word, the sign that follows it, where it is not a space"""

    def said(self, words: Sequence[str]) -> list[str]:
        found: list[str] = []
        for word, last in groups(words):
            found += self.words.get(word, word)
            if not last:
                found.append(self.after.get(word, " "))
        return found

    def to_dict(self) -> dict[str, Any]:
        return {"words": {word: list(forms) for word, forms in self.words.items()}, "after": dict(self.after)}


def groups(characters: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """The words of a text that was read character by character, and whether each is the last.

    >>> list(groups("tu es"))
    [('tu', False), ('es', True)]
    """
    words = "".join(characters).split(" ")
    for i, word in enumerate(words):
        yield word, i == len(words) - 1


class Watching:
    """Counts answers while data is read.

    >>> watching = Watching("tags")
    >>> for tag in ("DET", "PRON", "DET"):
    ...     watching.see(Sentence(("that",), (tag,)))
    >>> watching.habits().said(["that"])
    ['DET']
    """

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self._answers: dict[str, Counter[Any]] = defaultdict(Counter)
        self._after: dict[str, Counter[str]] = defaultdict(Counter)
        self._numbers: list[float] = []

    def see(self, sentence: Sentence) -> None:
        """Look at one more sentence."""
        words, tags = sentence.words, sentence.tags
        if self.kind in ("numbers", "angles"):
            self._numbers += numbers(sentence)
        elif self.kind == "tags":
            for word, tag in zip(words, tags, strict=True):
                self._answers[word][tag] += 1
        else:
            at = 0
            for word, last in groups(words):
                self._answers[word][tuple(tags[at : at + len(word)])] += 1
                if not last:
                    self._after[word][tags[at + len(word)]] += 1
                at += len(word) + 1

    def habits(self) -> Habits:
        """What is usual, from all that was seen."""
        if self.kind in ("numbers", "angles"):
            mean = circular_mean(self._numbers) if self.kind == "angles" else sum(self._numbers) / len(self._numbers)
            return Usual(f"{mean:.6g}", {})
        if self.kind == "tags":
            usual = _most(sum(self._answers.values(), Counter()))
            often = {word: _most(tags) for word, tags in self._answers.items()}
            return Usual(usual, {word: tag for word, tag in often.items() if tag != usual})
        forms = {word: _most(found) for word, found in self._answers.items()}
        after = {word: _most(found) for word, found in self._after.items()}
        return UsualForms(
            {word: found for word, found in forms.items() if found != tuple(word)},
            {word: sign for word, sign in after.items() if sign != " "},
        )

    @property
    def numbers(self) -> Sequence[float]:
        """The numbers that were seen, if it is numbers."""
        return self._numbers


def _most(counts: Counter[Any]) -> Any:
    """The most frequent; of equals the one that comes first in the alphabet, whatever the order of the data."""
    return min(counts, key=lambda answer: (-counts[answer], answer))


def load(folder: Path, kind: Kind) -> Habits:
    """What `save` wrote.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     UsualForms({"ete": ("é", "t", "é")}, {}).save(Path(folder))
    ...     load(Path(folder), "text").said("ete")
    ['é', 't', 'é']
    """
    try:
        found = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if kind == "text":
            return UsualForms({word: tuple(forms) for word, forms in found["words"].items()}, found["after"])
        return Usual(str(found["usual"]), found["words"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ModelError(f"{folder / FILE} cannot be read: expected the most frequent answers of training") from None
