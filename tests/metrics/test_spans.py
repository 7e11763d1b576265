"""Spans as the scorer of the CoNLL shared tasks counts them."""

from __future__ import annotations

import itertools
import random

import pytest
import seqeval.metrics
from seqeval.metrics.sequence_labeling import get_entities

from regard.errors import DataError
from regard.metrics.spans import (
    Span,
    accuracy_score,
    can_end,
    can_follow,
    is_span_tag,
    mean_error,
    repair_tags,
    span_scores,
    spans,
)

BIO = ["O", "B-X", "I-X", "B-Y", "I-Y"]
BIOES = [*BIO, "E-X", "S-X", "E-Y", "S-Y"]


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("O O O", []),
        ("B-X I-X O B-X", [Span(0, 2, "X"), Span(3, 4, "X")]),
        ("B-X B-X", [Span(0, 1, "X"), Span(1, 2, "X")]),
        ("I-X I-X O", [Span(0, 2, "X")]),  # forgiven: it does not begin with B
        ("B-X I-Y", [Span(0, 1, "X"), Span(1, 2, "Y")]),  # another kind begins another span
        ("O I-Y B-Y", [Span(1, 2, "Y"), Span(2, 3, "Y")]),
        ("B-X I-X E-X S-Y", [Span(0, 3, "X"), Span(3, 4, "Y")]),
        ("E-X E-X", [Span(0, 1, "X"), Span(1, 2, "X")]),
        ("S-X I-X", [Span(0, 1, "X"), Span(1, 2, "X")]),
        ("B-A-B I-A-B", [Span(0, 2, "A-B")]),  # only the first hyphen separates letter and kind
    ],
)
def test_spans_of_cases_made_by_hand(tags: str, found: list[Span]) -> None:
    assert spans(tags.split()) == found


@pytest.mark.parametrize("tags", [BIO, BIOES], ids=["bio", "bioes"])
def test_spans_of_every_short_sentence_are_those_of_seqeval(tags: list[str]) -> None:
    for length in range(1, 6 if tags is BIO else 5):
        for sentence in itertools.product(tags, repeat=length):
            theirs = [Span(start, end + 1, kind) for kind, start, end in get_entities(list(sentence))]
            assert spans(sentence) == theirs, sentence


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_f1_precision_and_recall_are_those_of_seqeval() -> None:
    draw = random.Random(1)
    for tags in (BIO, BIOES):
        for _ in range(20):
            lengths = [draw.randint(1, 9) for _ in range(12)]
            ours, theirs = ([[draw.choice(tags) for _ in range(n)] for n in lengths] for _ in range(2))
            f1, precision, recall = span_scores(ours, theirs)
            assert f1.value == pytest.approx(100 * seqeval.metrics.f1_score(theirs, ours))
            assert precision.value == pytest.approx(100 * seqeval.metrics.precision_score(theirs, ours))
            assert recall.value == pytest.approx(100 * seqeval.metrics.recall_score(theirs, ours))
            assert f1.low <= f1.value <= f1.high


def test_the_numbers_of_a_worked_example() -> None:
    targets = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "O"]]
    predicted = [["B-NP", "I-NP", "O", "B-NP"], ["O", "B-NP"]]
    f1, precision, recall = span_scores(predicted, targets)
    assert (precision.value, recall.value, f1.value) == (100 / 3, 100 / 3, 100 / 3)
    assert f1.signature == "spans:conlleval|bs:1000|seed:12345"


def test_without_any_span_f1_is_zero_and_no_error() -> None:
    assert [score.value for score in span_scores([["O"]], [["O"]])] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("scheme", ["bio", "bioes"])
def test_repaired_tags_have_the_same_spans_and_only_steps_that_the_scheme_allows(scheme: str) -> None:
    tags = BIO if scheme == "bio" else BIOES
    for length in range(5):
        for sentence in itertools.product(tags, repeat=length):
            whole, changed = repair_tags(sentence, scheme)  # type: ignore[arg-type]
            assert spans(whole) == spans(sentence)
            assert [i for i in range(length) if whole[i] != sentence[i]] == changed
            allowed = _allowed(sentence, scheme)
            assert _allowed(whole, scheme)
            assert not (allowed and changed), sentence


def _allowed(tags: list[str], scheme: str) -> bool:
    steps = zip([None, *tags[:-1]], tags, strict=True) if tags else ()
    return all(can_follow(tag, before, scheme) for before, tag in steps) and (not tags or can_end(tags[-1], scheme))  # type: ignore[arg-type]


def test_other_tags_are_no_span_tags() -> None:
    assert not any(is_span_tag(tag, "bioes") for tag in ("NOUN", "B", "B-", "X-NP", "", "BI-NP"))


def test_accuracy_and_error_are_per_token_and_their_intervals_over_sentences() -> None:
    accuracy = accuracy_score("accuracy", [3, 0, 5], [4, 1, 5], "unit:word")
    assert (accuracy.value, accuracy.n) == (80.0, 3)
    assert accuracy.low < 80 < accuracy.high
    assert mean_error("mae", [[1.0], [], [2.0, 3.0]], "unit:degree").value == 2.0
    with pytest.raises(DataError) as caught:
        accuracy_score("accuracy", [], [], "unit:word")
    assert str(caught.value) == "there is nothing to score: no sentence has a token"
