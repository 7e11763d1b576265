"""Metrics of sequence labeling: token accuracy, span F1, character accuracy, and absolute error of numbers and angles.

Each metric has additive counts per sentence, so that validation can sum them over processes, and the scores of an
evaluation together with those of a context-free baseline.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from regard.metrics.score import Score
from regard.metrics.spans import accuracy_score, check_lengths, correct_tags, f1, mean_error, span_counts, span_scores

TagRows = Sequence[Sequence[str]]
"""one tag per token, for each sentence"""


class LabelMetric(ABC):
    """A metric of sequence labeling.

    >>> accuracy = TokenAccuracy()
    >>> accuracy.metrics(accuracy.tally(["je", "suis"], ["PRON", "VERB"], ["PRON", "AUX"]))
    {'accuracy': 50.0}
    """

    @abstractmethod
    def tally(self, words: Sequence[str], outputs: Sequence[str], targets: Sequence[str]) -> dict[str, float]:
        """Additive counts of one sentence."""

    @abstractmethod
    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Validation metrics from the summed counts."""

    @abstractmethod
    def part(self, tally: Mapping[str, float]) -> tuple[float, int]:
        """Contribution of one sentence to the first score: a total and a count."""

    @abstractmethod
    def scores(self, words: TagRows, outputs: TagRows, targets: TagRows, baseline: TagRows) -> list[Score]:
        """Scores of an evaluation, and those of the `baseline` outputs."""


@dataclass(frozen=True)
class TokenAccuracy(LabelMetric):
    """Share of tokens with the right tag."""

    unit: str = "word"
    """what a token is, for signatures"""

    def tally(self, words: Sequence[str], outputs: Sequence[str], targets: Sequence[str]) -> dict[str, float]:
        return {"tokens": len(targets), "right": sum(a == b for a, b in zip(outputs, targets, strict=True))}

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {"accuracy": 100 * sums["right"] / max(1, sums["tokens"])}

    def part(self, tally: Mapping[str, float]) -> tuple[float, int]:
        return 100 * tally["right"], int(tally["tokens"])

    def scores(self, words: TagRows, outputs: TagRows, targets: TagRows, baseline: TagRows) -> list[Score]:
        how = f"unit:{self.unit}|accuracy of the most frequent tag"
        return [
            _accuracy("accuracy", outputs, targets, f"unit:{self.unit}"),
            _accuracy("baseline", baseline, targets, how),
        ]


@dataclass(frozen=True)
class SpanF1(LabelMetric):
    """F1 of spans, as conlleval counts them, and token accuracy.

    >>> tally = SpanF1().tally(["Ada"], ["B-PER"], ["B-PER"])
    >>> SpanF1().metrics(tally)
    {'accuracy': 100.0, 'f1': 100.0}
    """

    accuracy: TokenAccuracy = TokenAccuracy()

    def tally(self, words: Sequence[str], outputs: Sequence[str], targets: Sequence[str]) -> dict[str, float]:
        both, ours, theirs = span_counts(outputs, targets)
        return {
            **self.accuracy.tally(words, outputs, targets),
            "spans": both,
            "spans predicted": ours,
            "spans gold": theirs,
        }

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        spans = [sums["spans"], sums["spans predicted"], sums["spans gold"]]
        return {**self.accuracy.metrics(sums), "f1": f1(spans)}

    def part(self, tally: Mapping[str, float]) -> tuple[float, int]:
        return 200 * tally["spans"], int(tally["spans predicted"] + tally["spans gold"])

    def scores(self, words: TagRows, outputs: TagRows, targets: TagRows, baseline: TagRows) -> list[Score]:
        scores, frequent = span_scores(outputs, targets), span_scores(baseline, targets)[0]
        signature = f"F1 of the most frequent tag|{frequent.signature}"
        last = Score("baseline", frequent.value, frequent.low, frequent.high, signature, frequent.n)
        return [*scores, self.accuracy.scores(words, outputs, targets, baseline)[0], last]


@dataclass(frozen=True)
class CharacterAccuracy(LabelMetric):
    """Character accuracy, and accuracy of whole words (delimited by spaces).

    >>> tally = CharacterAccuracy().tally("tu es", ["T", "u", " ", "é", "s"], ["T", "u", " ", "e", "s"])
    >>> CharacterAccuracy().metrics(tally)
    {'accuracy': 80.0, 'words': 50.0}
    """

    def tally(self, words: Sequence[str], outputs: Sequence[str], targets: Sequence[str]) -> dict[str, float]:
        whole = whole_words(words, outputs, targets)
        return {**TokenAccuracy().tally(words, outputs, targets), "words": len(whole), "whole": sum(whole)}

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {**TokenAccuracy().metrics(sums), "words": 100 * sums["whole"] / max(1, sums["words"])}

    def part(self, tally: Mapping[str, float]) -> tuple[float, int]:
        return TokenAccuracy().part(tally)

    def scores(self, words: TagRows, outputs: TagRows, targets: TagRows, baseline: TagRows) -> list[Score]:
        scores = [_accuracy("accuracy", outputs, targets, "unit:character")]
        frequent = "|words in their most frequent form"
        for name, predicted, how in (("words", outputs, ""), ("baseline", baseline, frequent)):
            check_lengths(predicted, targets)
            whole = [whole_words(*rows) for rows in zip(words, predicted, targets, strict=True)]
            counts = [len(row) for row in whole]
            scores.append(accuracy_score(name, [sum(row) for row in whole], counts, f"unit:word{how}"))
        return scores


@dataclass(frozen=True)
class AbsoluteError(LabelMetric):
    """Absolute error of numbers, or of angles in degrees (the short way round).

    >>> AbsoluteError("degree").metrics(AbsoluteError("degree").tally(["a"], ["359"], ["1"]))
    {'mae': 2.0}
    """

    unit: Literal["1", "degree"] = "1"

    def tally(self, words: Sequence[str], outputs: Sequence[str], targets: Sequence[str]) -> dict[str, float]:
        return {"tokens": len(targets), "error": sum(self.distances(outputs, targets))}

    def metrics(self, sums: Mapping[str, float]) -> dict[str, float]:
        return {"mae": sums["error"] / max(1, sums["tokens"])}

    def part(self, tally: Mapping[str, float]) -> tuple[float, int]:
        return tally["error"], int(tally["tokens"])

    def scores(self, words: TagRows, outputs: TagRows, targets: TagRows, baseline: TagRows) -> list[Score]:
        scores = []
        for name, predicted, how in (("mae", outputs, ""), ("baseline", baseline, "|error of the mean")):
            check_lengths(predicted, targets)
            errors = [self.distances(*rows) for rows in zip(predicted, targets, strict=True)]
            scores.append(mean_error(name, errors, f"unit:{self.unit}{how}"))
        return scores

    def distances(self, outputs: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Absolute error of each token."""
        gaps = [abs(float(a) - float(b)) for a, b in zip(outputs, targets, strict=True)]
        return gaps if self.unit == "1" else [min(gap % 360, 360 - gap % 360) for gap in gaps]


def whole_words(read: Sequence[str], outputs: Sequence[str], targets: Sequence[str]) -> list[bool]:
    """For each word, whether all its characters and the one after it are right.

    >>> whole_words("tu es", ["T", "u", " ", "é", "s"], ["T", "u", " ", "e", "s"])
    [True, False]
    """
    found = [True] if read else []
    for i, character in enumerate(read):
        found[-1] &= outputs[i] == targets[i]
        if character == " ":
            found.append(True)
    return found


def _accuracy(name: str, outputs: TagRows, targets: TagRows, signature: str) -> Score:
    right = [sum(row) for row in correct_tags(outputs, targets)]
    return accuracy_score(name, right, [len(row) for row in targets], signature)
