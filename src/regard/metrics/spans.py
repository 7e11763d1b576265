"""Span metrics of sequence labeling (named entities, chunks) as the CoNLL scorer counts them, and accuracy.

A span is a run of words of one kind. BIO writes it B-X I-X I-X, BIOES B-X I-X E-X, or S-X for one word. The scorer of
the CoNLL shared tasks (conlleval) accepts a span that does not start with B: an I-X after O, or after another kind,
starts one. A span counts only if its kind, its start and its end are all right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from regard.errors import DataError
from regard.metrics.bootstrap import RESAMPLES, SEED, bootstrap_scores, mean_of_sums, percentile_interval
from regard.metrics.score import Score

Scheme = Literal["bio", "bioes"]
Tags = Sequence[str]
OUTSIDE = "O"
STARTS = frozenset({"BB", "IB", "OB", "EB", "SB", "OI", "EI", "SI", "OE", "EE", "SE", "OS", "BS", "IS", "ES", "SS"})
"""prefixes of two adjacent tags between which a span starts, whatever their kinds"""


@dataclass(frozen=True, order=True)
class Span:
    """A span of words from `start` to before `end`, of some kind."""

    start: int
    end: int
    kind: str


def split_tag(tag: str) -> tuple[str, str]:
    """Prefix and kind of a tag; the kind may be empty.

    >>> split_tag("B-NP"), split_tag("O"), split_tag("I")
    (('B', 'NP'), ('O', ''), ('I', ''))
    """
    if tag == OUTSIDE:
        return OUTSIDE, ""
    letter, _, kind = tag.partition("-")
    return letter, kind


def is_span_tag(tag: str, scheme: Scheme) -> bool:
    """Whether a tag is valid in a scheme.

    >>> is_span_tag("E-NP", "bio"), is_span_tag("E-NP", "bioes"), is_span_tag("NOUN", "bio")
    (False, True, False)
    """
    letter, kind = split_tag(tag)
    return tag == OUTSIDE or (letter in {"bio": "BI", "bioes": "BIES"}[scheme] and len(letter) == 1 and kind != "")


def spans(tags: Tags) -> list[Span]:
    """The spans of a sentence's tags, by the rules of the CoNLL scorer.

    >>> spans(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
    [Span(start=0, end=2, kind='PER'), Span(start=3, end=4, kind='LOC'), Span(start=4, end=5, kind='LOC')]
    """
    found, begun = [], -1
    cut = [(OUTSIDE, ""), *map(split_tag, tags), (OUTSIDE, "")]
    for i, ((before, old), (letter, kind)) in enumerate(pairwise(cut)):
        other = before + letter in STARTS or kind != old
        if begun >= 0 and (letter == OUTSIDE or other):
            found.append(Span(begun, i, old))
            begun = -1
        if letter != OUTSIDE and other:
            begun = i
    return found


def repair_tags(tags: Tags, scheme: Scheme) -> tuple[list[str], list[int]]:
    """Rewrite tags so that all spans follow the scheme; returns the tags and the changed indices.

    >>> repair_tags(["O", "I-PER", "I-PER"], "bio")
    (['O', 'B-PER', 'I-PER'], [1])
    """
    whole = [OUTSIDE] * len(tags)
    for span in spans(tags):
        whole[span.start : span.end] = _span_tags(span, scheme)
    return whole, [i for i, (old, new) in enumerate(zip(tags, whole)) if old != new]


def _span_tags(span: Span, scheme: Scheme) -> list[str]:
    length, kind = span.end - span.start, span.kind
    letters = "B" + "I" * (length - 1)
    if scheme == "bioes":
        letters = "S" if length == 1 else "B" + "I" * (length - 2) + "E"
    return [f"{letter}-{kind}" for letter in letters]


def can_follow(tag: str, before: str | None, scheme: Scheme) -> bool:
    """Whether a tag may follow another in a scheme; None is the start of the sentence.

    >>> can_follow("I-PER", "B-PER", "bio"), can_follow("I-PER", "O", "bio"), can_follow("I-PER", None, "bio")
    (True, False, False)
    """
    letter, kind = split_tag(tag)
    old, old_kind = (OUTSIDE, "") if before is None else split_tag(before)
    inside = letter in ("I", "E")
    if scheme == "bio":
        return not inside or (old in ("B", "I") and kind == old_kind)
    return inside == (old in ("B", "I")) and (not inside or kind == old_kind)


def can_end(tag: str, scheme: Scheme) -> bool:
    """Whether a sentence may end with a tag.

    >>> can_end("I-PER", "bio"), can_end("I-PER", "bioes")
    (True, False)
    """
    return scheme == "bio" or split_tag(tag)[0] not in ("B", "I")


def span_scores(outputs: Sequence[Tags], references: Sequence[Tags]) -> list[Score]:
    """Micro-averaged F1, precision and recall of spans in %, as conlleval prints them.

    >>> for score in span_scores([["B-A", "O", "B-B"]], [["B-A", "O", "B-A"]]):
    ...     print(score.name, score.value)
    f1 50.0
    precision 50.0
    recall 50.0
    """
    check_lengths(outputs, references)
    import numpy

    counts = [span_counts(output, reference) for output, reference in zip(outputs, references, strict=True)]
    stats_N3 = numpy.array(counts, numpy.float64)
    total, drawn = stats_N3.sum(0).tolist(), len(counts)
    scores = []
    for name, measure in (("f1", f1), ("precision", precision), ("recall", recall)):
        low, high = percentile_interval(bootstrap_scores(stats_N3, measure))
        scores.append(Score(name, measure(total), low, high, f"spans:conlleval|bs:{RESAMPLES}|seed:{SEED}", drawn))
    return scores


def span_counts(output: Tags, reference: Tags) -> tuple[int, int, int]:
    """Number of correct, predicted and gold spans of one sentence.

    >>> span_counts(["B-A", "O", "B-B"], ["B-A", "O", "B-A"])
    (1, 2, 2)
    """
    predicted, gold = set(spans(output)), set(spans(reference))
    return len(predicted & gold), len(predicted), len(gold)


def precision(sums: list[float]) -> float:
    """Precision in %, from correct, predicted and gold counts.

    >>> precision([1, 4, 2])
    25.0
    """
    return 100 * sums[0] / sums[1] if sums[1] else 0.0


def recall(sums: list[float]) -> float:
    """Recall in %, from correct, predicted and gold counts.

    >>> recall([1, 4, 2])
    50.0
    """
    return 100 * sums[0] / sums[2] if sums[2] else 0.0


def f1(sums: list[float]) -> float:
    """F1 in %, from correct, predicted and gold counts.

    >>> round(f1([1, 4, 2]), 2)
    33.33
    """
    return 200 * sums[0] / (sums[1] + sums[2]) if sums[1] + sums[2] else 0.0


def accuracy_score(name: str, right: Sequence[int], total: Sequence[int], signature: str) -> Score:
    """Accuracy in %, from the counts of each sentence; interval by resampling sentences.

    >>> accuracy_score("accuracy", [3, 1], [4, 1], "unit:word").value
    80.0
    """
    if not sum(total):
        raise DataError("there is nothing to score: no sentence has a token")
    import numpy

    low, high = percentile_interval(bootstrap_scores(numpy.array([right, total], numpy.float64).T, _share))
    signature = f"{signature}|bs:{RESAMPLES}|seed:{SEED}"
    return Score(name, _share([sum(right), sum(total)]), low, high, signature, len(total))


def mean_error(name: str, errors: Sequence[Sequence[float]], signature: str) -> Score:
    """Mean error, from the errors of each sentence; interval by resampling sentences.

    >>> mean_error("mae", [[1.0, 2.0], [6.0]], "unit:degree").value
    3.0
    """
    if not sum(map(len, errors)):
        raise DataError("there is nothing to score: no sentence has a token")
    import numpy

    stats = numpy.array([[math.fsum(row), len(row)] for row in errors])
    low, high = percentile_interval(bootstrap_scores(stats, mean_of_sums))
    return Score(
        name, mean_of_sums(stats.sum(0).tolist()), low, high, f"{signature}|bs:{RESAMPLES}|seed:{SEED}", len(errors)
    )


def correct_tags(outputs: Sequence[Tags], references: Sequence[Tags]) -> Iterator[list[bool]]:
    """For each sentence, which of its tags are right.

    >>> list(correct_tags([["A", "B"]], [["A", "A"]]))
    [[True, False]]
    """
    check_lengths(outputs, references)
    for output, reference in zip(outputs, references, strict=True):
        yield [a == b for a, b in zip(output, reference, strict=True)]


def check_lengths(outputs: Sequence[Tags], references: Sequence[Tags]) -> None:
    """Check that every sentence has a reference, and every word a tag.

    >>> check_lengths([["A"]], [["A", "B"]])
    Traceback (most recent call last):
    regard.errors.DataError: sentence 1 has 1 tags and its reference 2; each word needs both
    """
    if len(outputs) != len(references):
        raise DataError(f"there are {len(outputs)} tagged sentences and {len(references)} references; each needs one")
    for number, (output, reference) in enumerate(zip(outputs, references, strict=True), 1):
        if len(output) != len(reference):
            raise DataError(
                f"sentence {number} has {len(output)} tags and its reference {len(reference)}; each word needs both"
            )


def _share(sums: list[float]) -> float:
    return 100 * mean_of_sums(sums)
