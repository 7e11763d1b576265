"""Scores of labels: how many are right, and of spans (names, phrases) how many were found, as the CoNLL scorer counts.

A span is a run of words of one kind. BIO writes it B-X I-X I-X, BIOES B-X I-X E-X, or S-X where it is one word. The
scorer of the CoNLL shared tasks (conlleval) forgives a span that does not begin with B: an I-X after O, or after
another kind, begins one. A span counts only if its kind, its beginning and its end are all right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from regard.errors import DataError
from regard.metrics.bootstrap import RESAMPLES, SEED, interval, resampled
from regard.metrics.score import Score

Scheme = Literal["bio", "bioes"]
Tags = Sequence[str]
OUTSIDE = "O"
BEGINS = frozenset({"BB", "IB", "OB", "EB", "SB", "OI", "EI", "SI", "OE", "EE", "SE", "OS", "BS", "IS", "ES", "SS"})
"""Letters of a word and the next between which a span begins, whatever their kinds."""


@dataclass(frozen=True, order=True)
class Span:
    """Words from `start` to before `end` that are a thing of some kind.

    >>> Span(0, 2, "PER").kind
    'PER'
    """

    start: int
    end: int
    kind: str


def parts(tag: str) -> tuple[str, str]:
    """The letter and the kind of a tag; a tag without a kind is of the kind "".

    >>> parts("B-NP"), parts("O"), parts("I")
    (('B', 'NP'), ('O', ''), ('I', ''))
    """
    if tag == OUTSIDE:
        return OUTSIDE, ""
    letter, _, kind = tag.partition("-")
    return letter, kind


def is_span_tag(tag: str, scheme: Scheme) -> bool:
    """Whether a tag can be of a scheme.

    >>> is_span_tag("E-NP", "bio"), is_span_tag("E-NP", "bioes"), is_span_tag("NOUN", "bio")
    (False, True, False)
    """
    letter, kind = parts(tag)
    return tag == OUTSIDE or (letter in {"bio": "BI", "bioes": "BIES"}[scheme] and len(letter) == 1 and kind != "")


def spans(tags: Tags) -> list[Span]:
    """The spans of a sentence's tags, by the rules of the CoNLL scorer.

    >>> spans(["B-PER", "I-PER", "O", "I-LOC", "B-LOC"])
    [Span(start=0, end=2, kind='PER'), Span(start=3, end=4, kind='LOC'), Span(start=4, end=5, kind='LOC')]
    """
    found, begun = [], -1
    cut = [(OUTSIDE, ""), *map(parts, tags), (OUTSIDE, "")]
    for place, ((before, old), (letter, kind)) in enumerate(pairwise(cut)):
        other = before + letter in BEGINS or kind != old
        if begun >= 0 and (letter == OUTSIDE or other):
            found.append(Span(begun, place, old))
            begun = -1
        if letter != OUTSIDE and other:
            begun = place
    return found


def repaired(tags: Tags, scheme: Scheme) -> tuple[list[str], list[int]]:
    """The same spans in tags of which each begins and ends as the scheme has it, and the places that were changed.

    >>> repaired(["O", "I-PER", "I-PER"], "bio")
    (['O', 'B-PER', 'I-PER'], [1])
    """
    whole = [OUTSIDE] * len(tags)
    for span in spans(tags):
        whole[span.start : span.end] = _written(span, scheme)
    return whole, [i for i, (old, new) in enumerate(zip(tags, whole)) if old != new]


def _written(span: Span, scheme: Scheme) -> list[str]:
    length, kind = span.end - span.start, span.kind
    letters = "B" + "I" * (length - 1)
    if scheme == "bioes":
        letters = "S" if length == 1 else "B" + "I" * (length - 2) + "E"
    return [f"{letter}-{kind}" for letter in letters]


def follows(tag: str, before: str | None, scheme: Scheme) -> bool:
    """Whether a tag may follow another in a scheme; None stands before the first word.

    >>> follows("I-PER", "B-PER", "bio"), follows("I-PER", "O", "bio"), follows("I-PER", None, "bio")
    (True, False, False)
    """
    letter, kind = parts(tag)
    old, old_kind = (OUTSIDE, "") if before is None else parts(before)
    inside = letter in ("I", "E")
    if scheme == "bio":
        return not inside or (old in ("B", "I") and kind == old_kind)
    return inside == (old in ("B", "I")) and (not inside or kind == old_kind)


def ends(tag: str, scheme: Scheme) -> bool:
    """Whether a sentence may end with a tag.

    >>> ends("I-PER", "bio"), ends("I-PER", "bioes")
    (True, False)
    """
    return scheme == "bio" or parts(tag)[0] not in ("B", "I")


def span_scores(outputs: Sequence[Tags], references: Sequence[Tags]) -> list[Score]:
    """F1, precision and recall of spans in %, over all of them together, as conlleval prints them.

    >>> for score in span_scores([["B-A", "O", "B-B"]], [["B-A", "O", "B-A"]]):
    ...     print(score.name, score.value)
    f1 50.0
    precision 50.0
    recall 50.0
    """
    check_places(outputs, references)
    import numpy

    counts = [span_counts(output, reference) for output, reference in zip(outputs, references, strict=True)]
    stats_N3 = numpy.array(counts, numpy.float64)
    total, drawn = stats_N3.sum(0).tolist(), len(counts)
    scores = []
    for name, measure in (("f1", f1), ("precision", precision), ("recall", recall)):
        low, high = interval(resampled(stats_N3, measure))
        scores.append(Score(name, measure(total), low, high, f"spans:conlleval|bs:{RESAMPLES}|seed:{SEED}", drawn))
    return scores


def span_counts(output: Tags, reference: Tags) -> tuple[int, int, int]:
    """Of one sentence: spans that are right, spans that were said, spans that there are.

    >>> span_counts(["B-A", "O", "B-B"], ["B-A", "O", "B-A"])
    (1, 2, 2)
    """
    said, there = set(spans(output)), set(spans(reference))
    return len(said & there), len(said), len(there)


def precision(sums: list[float]) -> float:
    """Of the spans that were said, how many are right, in %.

    >>> precision([1, 4, 2])
    25.0
    """
    return 100 * sums[0] / sums[1] if sums[1] else 0.0


def recall(sums: list[float]) -> float:
    """Of the spans that there are, how many were found, in %.

    >>> recall([1, 4, 2])
    50.0
    """
    return 100 * sums[0] / sums[2] if sums[2] else 0.0


def f1(sums: list[float]) -> float:
    """The harmonic mean of precision and recall, in %.

    >>> round(f1([1, 4, 2]), 2)
    33.33
    """
    return 200 * sums[0] / (sums[1] + sums[2]) if sums[1] + sums[2] else 0.0


def share_right(name: str, right: Sequence[int], asked: Sequence[int], signature: str) -> Score:
    """What is right of what was asked, in %, from the counts of each sentence; its interval by drawing sentences.

    >>> share_right("accuracy", [3, 1], [4, 1], "unit:word").value
    80.0
    """
    if not sum(asked):
        raise DataError("there is nothing to score: no sentence has a place")
    import numpy

    low, high = interval(resampled(numpy.array([right, asked], numpy.float64).T, _share))
    signature = f"{signature}|bs:{RESAMPLES}|seed:{SEED}"
    return Score(name, _share([sum(right), sum(asked)]), low, high, signature, len(asked))


def mean_error(name: str, errors: Sequence[Sequence[float]], signature: str) -> Score:
    """The mean of errors at places, from those of each sentence; its interval by drawing sentences.

    >>> mean_error("mae", [[1.0, 2.0], [6.0]], "unit:degree").value
    3.0
    """
    if not sum(map(len, errors)):
        raise DataError("there is nothing to score: no sentence has a place")
    import numpy

    stats = numpy.array([[math.fsum(row), len(row)] for row in errors])
    low, high = interval(resampled(stats, _mean))
    return Score(name, _mean(stats.sum(0).tolist()), low, high, f"{signature}|bs:{RESAMPLES}|seed:{SEED}", len(errors))


def right_places(outputs: Sequence[Tags], references: Sequence[Tags]) -> Iterator[list[bool]]:
    """Of each sentence, which of its tags are right.

    >>> list(right_places([["A", "B"]], [["A", "A"]]))
    [[True, False]]
    """
    check_places(outputs, references)
    for output, reference in zip(outputs, references, strict=True):
        yield [said == wanted for said, wanted in zip(output, reference, strict=True)]


def check_places(outputs: Sequence[Tags], references: Sequence[Tags]) -> None:
    """Every sentence has its reference, and every word its tag.

    >>> check_places([["A"]], [["A", "B"]])
    Traceback (most recent call last):
    regard.errors.DataError: sentence 1 has 1 tags and its reference 2; each word needs one of both
    """
    if len(outputs) != len(references):
        raise DataError(f"there are {len(outputs)} tagged sentences and {len(references)} references; each needs one")
    for number, (output, reference) in enumerate(zip(outputs, references, strict=True), 1):
        if len(output) != len(reference):
            raise DataError(
                f"sentence {number} has {len(output)} tags and its reference {len(reference)}; each word needs one of "
                "both"
            )


def _share(sums: list[float]) -> float:
    return 100 * _mean(sums)


def _mean(sums: list[float]) -> float:
    return sums[0] / sums[1] if sums[1] else math.nan
