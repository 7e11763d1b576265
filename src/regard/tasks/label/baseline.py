"""Baseline of token labeling: the most frequent label of each word, regardless of context.

It is counted while the training data is read, and stored with a model in baseline.json, so that evaluations report it.
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
from regard.files import parse_json, write_text_atomically
from regard.manifest import read_kept
from regard.tasks.label.sources import TaggedSentence, TargetName
from regard.tasks.label.targets import circular_mean, parse_numbers

FILE = "baseline.json"


class TagBaseline(ABC):
    """Predicts labels from single words."""

    @abstractmethod
    def predict(self, words: Sequence[str]) -> list[str]:
        """The labels of a sentence."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Contents of baseline.json."""

    def save(self, folder: Path) -> None:
        """Write baseline.json."""
        write_text_atomically(folder / FILE, json.dumps(self.to_dict(), ensure_ascii=False) + "\n")


@dataclass(frozen=True)
class MostFrequentTag(TagBaseline):
    """The most frequent label of each word; for an unknown word, the most frequent label of all."""

    default: str
    words: Mapping[str, str]
    """the words whose most frequent label is another"""

    def predict(self, words: Sequence[str]) -> list[str]:
        return [self.words.get(word, self.default) for word in words]

    def to_dict(self) -> dict[str, Any]:
        return {"default": self.default, "words": dict(self.words)}


@dataclass(frozen=True)
class MostFrequentForm(TagBaseline):
    """The most frequent written form of each word and of the space after it; an unknown word stays as it is.

    >>> MostFrequentForm({"cest": ("C'", "e", "s", "t")}, {}).predict("cest toi")
    ["C'", 'e', 's', 't', ' ', 't', 'o', 'i']
    """

    words: Mapping[str, Sequence[str]]
    """of a word, the forms of its characters, if they are not the characters themselves"""
    after: Mapping[str, str]
    """of a word, what follows it, if it is not a space"""

    def predict(self, words: Sequence[str]) -> list[str]:
        forms: list[str] = []
        for word, last in split_spaces(words):
            forms += self.words.get(word, word)
            if not last:
                forms.append(self.after.get(word, " "))
        return forms

    def to_dict(self) -> dict[str, Any]:
        return {"words": {word: list(forms) for word, forms in self.words.items()}, "after": dict(self.after)}


def split_spaces(characters: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """The words of a sequence of characters, and whether each is the last."""
    words = "".join(characters).split(" ")
    for i, word in enumerate(words):
        yield word, i == len(words) - 1


class BaselineCounter:
    """Counts the labels of words while data is read."""

    def __init__(self, target: TargetName) -> None:
        self.target = target
        self.numbers: list[float] = []
        self._labels: dict[str, Counter[Any]] = defaultdict(Counter)
        self._after: dict[str, Counter[str]] = defaultdict(Counter)

    def update(self, sentence: TaggedSentence) -> None:
        """Count one sentence."""
        words, tags = sentence.words, sentence.tags
        if self.target in ("numbers", "angles"):
            self.numbers += parse_numbers(sentence)
        elif self.target == "tags":
            for word, tag in zip(words, tags, strict=True):
                self._labels[word][tag] += 1
        else:
            at = 0
            for word, last in split_spaces(words):
                self._labels[word][tuple(tags[at : at + len(word)])] += 1
                if not last:
                    self._after[word][tags[at + len(word)]] += 1
                at += len(word) + 1

    def baseline(self) -> TagBaseline:
        """The baseline of all sentences counted so far."""
        if self.target in ("numbers", "angles"):
            mean = circular_mean(self.numbers) if self.target == "angles" else sum(self.numbers) / len(self.numbers)
            return MostFrequentTag(f"{mean:.6g}", {})
        labels = {word: _most_frequent(counts) for word, counts in self._labels.items()}
        if self.target == "tags":
            default = _most_frequent(sum(self._labels.values(), Counter()))
            return MostFrequentTag(default, {word: tag for word, tag in labels.items() if tag != default})
        after = {word: _most_frequent(counts) for word, counts in self._after.items()}
        return MostFrequentForm(
            {word: forms for word, forms in labels.items() if forms != tuple(word)},
            {word: form for word, form in after.items() if form != " "},
        )


def _most_frequent(counts: Counter[Any]) -> Any:
    """The most frequent; of ties the first in alphabetical order, whatever the order of the data."""
    return min(counts, key=lambda label: (-counts[label], label))


def load_baseline(folder: Path, target: TargetName) -> TagBaseline:
    """Read baseline.json."""
    try:
        found = parse_json(read_kept(folder / FILE))
        if target == "text":
            return MostFrequentForm({word: tuple(forms) for word, forms in found["words"].items()}, found["after"])
        return MostFrequentTag(str(found["default"]), found["words"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ModelError(f"{folder / FILE} cannot be read: expected the most frequent labels of training") from None
