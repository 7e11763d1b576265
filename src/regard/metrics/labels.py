"""How labels are judged: place by place, span by span, word by word, or by how far off a number or an angle is.

Each measure counts what adds up over sentences, so that validation can sum it over processes, and gives the scores of
an evaluation beside those of a baseline: what one would say who knows no context.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from regard.metrics.score import Score
from regard.metrics.spans import check_places, f1, mean_error, right_places, share_right, span_counts, span_scores

Sayings = Sequence[Sequence[str]]
"""What is said at each place of each sentence."""


class Measure(ABC):
    """How good what is said at each place is.

    >>> places = Places()
    >>> places.metrics(places.tally(["je", "suis"], ["PRON", "VERB"], ["PRON", "AUX"]))
    {'accuracy': 50.0}
    """

    @abstractmethod
    def tally(self, words: Sequence[str], said: Sequence[str], wanted: Sequence[str]) -> dict[str, float]:
        """Of one sentence, what adds up."""

    @abstractmethod
    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        """The scores of validation, from what added up."""

    @abstractmethod
    def part(self, tally: Mapping[str, float]) -> tuple[float, int]:
        """Of what one sentence counts, its part of the first score: a total, and of how many."""

    @abstractmethod
    def scores(self, words: Sayings, said: Sayings, wanted: Sayings, usual: Sayings) -> list[Score]:
        """The scores of an evaluation, and the baseline's: of `usual`, what one says who knows no context."""


@dataclass(frozen=True)
class Places(Measure):
    """How many places are right.

    >>> [score.name for score in Places().scores([["a"]], [["X"]], [["X"]], [["Y"]])]
    ['accuracy', 'baseline']
    """

    unit: str = "word"
    """what a place is, for signatures"""

    def tally(self, words: Sequence[str], said: Sequence[str], wanted: Sequence[str]) -> dict[str, float]:
        return {"places": len(wanted), "right": sum(a == b for a, b in zip(said, wanted, strict=True))}

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {"accuracy": 100 * sums["right"] / max(1, sums["places"])}

    def part(self, tally: Mapping[str, float]) -> tuple[float, int]:
        return 100 * tally["right"], int(tally["places"])

    def scores(self, words: Sayings, said: Sayings, wanted: Sayings, usual: Sayings) -> list[Score]:
        often = f"unit:{self.unit}|accuracy of the most frequent tag"
        return [
            _right("accuracy", said, wanted, f"unit:{self.unit}"),
            _right("baseline", usual, wanted, often),
        ]


@dataclass(frozen=True)
class Phrases(Measure):
    """How many spans were found, as conlleval counts them, and how many places are right.

    >>> tally = Phrases().tally(["Ada"], ["B-PER"], ["B-PER"])
    >>> Phrases().metrics(tally)
    {'accuracy': 100.0, 'f1': 100.0}
    """

    places: Places = Places()

    def tally(self, words: Sequence[str], said: Sequence[str], wanted: Sequence[str]) -> dict[str, float]:
        both, ours, theirs = span_counts(said, wanted)
        return {**self.places.tally(words, said, wanted), "spans": both, "spans said": ours, "spans there": theirs}

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        spans = [sums["spans"], sums["spans said"], sums["spans there"]]
        return {**self.places.metrics(sums), "f1": f1(spans)}

    def part(self, tally: Mapping[str, float]) -> tuple[float, int]:
        return 200 * tally["spans"], int(tally["spans said"] + tally["spans there"])

    def scores(self, words: Sayings, said: Sayings, wanted: Sayings, usual: Sayings) -> list[Score]:
        found, often = span_scores(said, wanted), span_scores(usual, wanted)[0]
        signature = f"F1 of the most frequent tag|{often.signature}"
        baseline = Score("baseline", often.value, often.low, often.high, signature, often.n)
        return [*found, self.places.scores(words, said, wanted, usual)[0], baseline]


@dataclass(frozen=True)
class Spelt(Measure):
    """How many characters are right, and how many words are as a whole; a word is what stands between two spaces.

    >>> tally = Spelt().tally("tu es", ["T", "u", " ", "é", "s"], ["T", "u", " ", "e", "s"])
    >>> Spelt().metrics(tally)
    {'accuracy': 80.0, 'words': 50.0}
    """

    def tally(self, words: Sequence[str], said: Sequence[str], wanted: Sequence[str]) -> dict[str, float]:
        whole = whole_words(words, said, wanted)
        return {**Places().tally(words, said, wanted), "words": len(whole), "whole": sum(whole)}

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {**Places().metrics(sums), "words": 100 * sums["whole"] / max(1, sums["words"])}

    def part(self, tally: Mapping[str, float]) -> tuple[float, int]:
        return Places().part(tally)

    def scores(self, words: Sayings, said: Sayings, wanted: Sayings, usual: Sayings) -> list[Score]:
        scores = [_right("accuracy", said, wanted, "unit:character")]
        for name, outputs, how in (("words", said, ""), ("baseline", usual, "|words in their most frequent form")):
            check_places(outputs, wanted)
            whole = [whole_words(*rows) for rows in zip(words, outputs, wanted, strict=True)]
            counts = [len(row) for row in whole]
            scores.append(share_right(name, [sum(row) for row in whole], counts, f"unit:word{how}"))
        return scores


@dataclass(frozen=True)
class Errors(Measure):
    """How far off numbers are, or angles in degrees: those the short way round.

    >>> Errors("degree").metrics(Errors("degree").tally(["a"], ["359"], ["1"]))
    {'mae': 2.0}
    """

    unit: Literal["1", "degree"] = "1"

    def tally(self, words: Sequence[str], said: Sequence[str], wanted: Sequence[str]) -> dict[str, float]:
        return {"places": len(wanted), "error": sum(self.distances(said, wanted))}

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {"mae": sums["error"] / max(1, sums["places"])}

    def part(self, tally: Mapping[str, float]) -> tuple[float, int]:
        return tally["error"], int(tally["places"])

    def scores(self, words: Sayings, said: Sayings, wanted: Sayings, usual: Sayings) -> list[Score]:
        scores = []
        for name, outputs, how in (("mae", said, ""), ("baseline", usual, "|error of the mean")):
            check_places(outputs, wanted)
            errors = [self.distances(*rows) for rows in zip(outputs, wanted, strict=True)]
            scores.append(mean_error(name, errors, f"unit:{self.unit}{how}"))
        return scores

    def distances(self, said: Sequence[str], wanted: Sequence[str]) -> list[float]:
        """How far off each place is."""
        apart = [abs(float(a) - float(b)) for a, b in zip(said, wanted, strict=True)]
        return apart if self.unit == "1" else [min(gap % 360, 360 - gap % 360) for gap in apart]


def whole_words(read: Sequence[str], said: Sequence[str], wanted: Sequence[str]) -> list[bool]:
    """Of each word, whether all of its letters are right, and the sign after it.

    >>> whole_words("tu es", ["T", "u", " ", "é", "s"], ["T", "u", " ", "e", "s"])
    [True, False]
    """
    found = [True] if read else []
    for i, character in enumerate(read):
        found[-1] &= said[i] == wanted[i]
        if character == " ":
            found.append(True)
    return found


def _right(name: str, said: Sayings, wanted: Sayings, signature: str) -> Score:
    right = [sum(row) for row in right_places(said, wanted)]
    return share_right(name, right, [len(row) for row in wanted], signature)
