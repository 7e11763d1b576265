"""Scores of labels: equal to their definitions, with intervals that hold them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from regard.errors import DataError
from regard.metrics import check_minimum
from regard.metrics.bootstrap import interval, resampled
from regard.metrics.classification import Judged, macro_f1, micro_f1


def judged(wanted, said, size=3, sure=0.8) -> Judged:
    """Answers that are all as sure as one another."""
    share = np.full((len(wanted), size), (1 - sure) / (size - 1))
    share[np.arange(len(wanted)), said] = sure
    return Judged(tuple("abc"[:size]), np.array(wanted), share)


WANTED, SAID = [0, 0, 0, 1, 1, 2, 2, 2, 2, 2], [0, 0, 1, 1, 2, 2, 2, 2, 0, 2]


def f1(label: int) -> float:
    """As it is defined: the harmonic mean of precision and recall."""
    both = sum(w == s == label for w, s in zip(WANTED, SAID, strict=True))
    precision, recall = both / SAID.count(label), both / WANTED.count(label)
    return 2 * precision * recall / (precision + recall)


def test_accuracy_and_f1_are_what_they_are_defined_as() -> None:
    scores = {score.name: score.value for score in judged(WANTED, SAID).scores()}
    assert scores["accuracy"] == pytest.approx(70.0)
    assert scores["macro_f1"] == pytest.approx(100 * (f1(0) + f1(1) + f1(2)) / 3)
    assert scores["micro_f1"] == pytest.approx(scores["accuracy"])  # one label a text


def test_a_label_that_nobody_wants_or_says_counts_nothing_and_one_that_is_missed_counts_zero() -> None:
    assert macro_f1(np.array([[3, 0, 0], [0, 2, 0], [0, 0, 0]])) == 100.0
    assert macro_f1(np.array([[3, 0, 0], [0, 2, 0], [1, 0, 0]])) == pytest.approx((2 * 3 / 7 + 1 + 0) * 100 / 3)
    assert math.isnan(macro_f1(np.zeros((2, 2)))) and math.isnan(micro_f1(np.zeros((2, 2))))


def test_calibration_is_the_gap_between_sureness_and_accuracy() -> None:
    found = judged(WANTED, SAID, sure=0.8).calibration()
    assert found.value == pytest.approx(100 * abs(0.7 - 0.8))
    assert found.falls and found.signature == "bins:15|bs:1000|seed:12345"
    # two bins, each wrong by 0.1 in another direction: the gaps do not cancel
    share = np.array([[0.9, 0.1]] * 10 + [[0.6, 0.4]] * 10)
    wanted = np.array([0] * 8 + [1] * 2 + [0] * 7 + [1] * 3)
    assert Judged(("a", "b"), wanted, share).calibration().value == pytest.approx(10.0)


def test_a_model_that_knows_its_doubt_is_calibrated_and_one_that_boasts_is_not() -> None:
    draw = np.random.default_rng(1)
    share = draw.dirichlet((1, 1, 1), size=20_000)
    wanted = np.array([draw.choice(3, p=row) for row in share])
    assert Judged(tuple("abc"), wanted, share).calibration().value < 1.5
    boasting = share**4 / (share**4).sum(1, keepdims=True)
    assert Judged(tuple("abc"), wanted, boasting).calibration().value > 10


def test_the_loss_is_the_mean_surprise_and_certainty_of_what_is_wrong_is_no_crash() -> None:
    assert judged([0, 1], [0, 1], sure=0.5).loss().value == pytest.approx(math.log(2))
    wrong = Judged(("a", "b"), np.array([1]), np.array([[1.0, 0.0]]))
    assert math.isfinite(wrong.loss().value)


def test_intervals_hold_the_value_are_the_same_each_time_and_shrink_with_more_examples() -> None:
    few, many = judged(WANTED * 10, SAID * 10), judged(WANTED * 100, SAID * 100)
    for one, other, again in zip(few.scores(), many.scores(), few.scores(), strict=True):
        assert one == again and one.n == 100 and other.n == 1000
        assert one.low <= one.value <= one.high
        assert other.high - other.low < one.high - one.low or one.low == one.high


def test_the_same_corpora_are_drawn_as_for_every_other_score() -> None:
    found = judged(WANTED * 5, SAID * 5)
    right = np.array([[w == s, 1] for w, s in zip(WANTED * 5, SAID * 5, strict=True)], float)
    wanted = interval(resampled(right, lambda sums: 100 * sums[0] / sums[1]))
    assert (found.accuracy().low, found.accuracy().high) == pytest.approx(wanted)


def test_the_confusion_matrix_counts_every_answer_and_each_cell_has_its_interval() -> None:
    found = judged(WANTED * 10, SAID * 10).confusion()
    assert found.counts.tolist() == [[20, 10, 0], [0, 10, 10], [10, 0, 40]]
    assert (found.low <= found.counts).all() and (found.counts <= found.high).all()
    assert found.low[0, 0] < 20 < found.high[0, 0] and found.high[0, 2] == 0
    assert found.told()[0].split() == ["wanted", "said", "a", "b", "c"]
    assert found.told()[1].startswith("a  ") and " 20 (" in found.told()[1]
    assert found.to_dict()["counts"] == found.counts.tolist()


def test_of_many_labels_the_commonest_are_told() -> None:
    size = 40
    wanted = np.repeat(np.arange(size), np.arange(size) + 1)
    found = Judged(tuple(f"label number {i}" for i in range(size)), wanted, np.eye(size)[wanted]).confusion()
    told = found.told()
    assert len(told) == 1 + 12 + 1 and told[-1] == "and 28 labels more"
    assert told[1].startswith("label number 28")


@pytest.mark.parametrize(
    ("wanted", "share", "message"),
    [
        ([], np.zeros((0, 2)), "there is nothing to score: 0 examples"),
        ([0], np.zeros((1, 3)), "there are 1 x 3 probabilities for 1 x 2 answers"),
    ],
)
def test_what_cannot_be_scored_is_refused(wanted, share, message) -> None:
    with pytest.raises(DataError) as caught:
        Judged(("a", "b"), np.array(wanted, int), share)
    assert str(caught.value) == message


def test_calibration_is_a_minimum_that_is_missed_from_above() -> None:
    scores = judged(WANTED, SAID).scores()
    check_minimum(scores, ["accuracy=70", "ece=10.1"])
    with pytest.raises(Exception, match=r"ece is 10 .* above the 5 that was asked for"):
        check_minimum(scores, ["ece=5"])
