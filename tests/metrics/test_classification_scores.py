"""Classification metrics: equal to their definitions, with intervals that contain them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from regard.errors import DataError
from regard.metrics import check_minimum
from regard.metrics.bootstrap import bootstrap_scores, percentile_interval
from regard.metrics.classification import ClassPredictions, macro_f1, micro_f1


def predictions(targets, predicted, size=3, confidence=0.8) -> ClassPredictions:
    """Predictions of equal confidence."""
    share = np.full((len(targets), size), (1 - confidence) / (size - 1))
    share[np.arange(len(targets)), predicted] = confidence
    return ClassPredictions(tuple("abc"[:size]), np.array(targets), share)


TARGETS, PREDICTED = [0, 0, 0, 1, 1, 2, 2, 2, 2, 2], [0, 0, 1, 1, 2, 2, 2, 2, 0, 2]


def f1(label: int) -> float:
    """By definition: the harmonic mean of precision and recall."""
    both = sum(w == s == label for w, s in zip(TARGETS, PREDICTED, strict=True))
    precision, recall = both / PREDICTED.count(label), both / TARGETS.count(label)
    return 2 * precision * recall / (precision + recall)


def test_accuracy_and_f1_are_what_they_are_defined_as() -> None:
    scores = {score.name: score.value for score in predictions(TARGETS, PREDICTED).scores()}
    assert scores["accuracy"] == pytest.approx(70.0)
    assert scores["macro_f1"] == pytest.approx(100 * (f1(0) + f1(1) + f1(2)) / 3)
    assert scores["micro_f1"] == pytest.approx(scores["accuracy"])  # one label per text


def test_a_label_without_targets_and_predictions_is_left_out_and_a_missed_one_counts_zero() -> None:
    assert macro_f1(np.array([[3, 0, 0], [0, 2, 0], [0, 0, 0]])) == 100.0
    assert macro_f1(np.array([[3, 0, 0], [0, 2, 0], [1, 0, 0]])) == pytest.approx((2 * 3 / 7 + 1 + 0) * 100 / 3)
    assert math.isnan(macro_f1(np.zeros((2, 2)))) and math.isnan(micro_f1(np.zeros((2, 2))))


def test_calibration_is_the_gap_between_confidence_and_accuracy() -> None:
    found = predictions(TARGETS, PREDICTED, confidence=0.8).calibration()
    assert found.value == pytest.approx(100 * abs(0.7 - 0.8))
    assert found.lower_is_better and found.signature == "bins:15|bs:1000|seed:12345"
    # two bins, each wrong by 0.1 in another direction: the gaps do not cancel
    share = np.array([[0.9, 0.1]] * 10 + [[0.6, 0.4]] * 10)
    targets = np.array([0] * 8 + [1] * 2 + [0] * 7 + [1] * 3)
    assert ClassPredictions(("a", "b"), targets, share).calibration().value == pytest.approx(10.0)


def test_calibrated_and_overconfident_models_are_distinguished() -> None:
    draw = np.random.default_rng(1)
    share = draw.dirichlet((1, 1, 1), size=20_000)
    targets = np.array([draw.choice(3, p=row) for row in share])
    assert ClassPredictions(tuple("abc"), targets, share).calibration().value < 1.5
    boasting = share**4 / (share**4).sum(1, keepdims=True)
    assert ClassPredictions(tuple("abc"), targets, boasting).calibration().value > 10


def test_the_loss_is_the_mean_nll_and_probability_zero_does_not_crash() -> None:
    assert predictions([0, 1], [0, 1], confidence=0.5).loss().value == pytest.approx(math.log(2))
    wrong = ClassPredictions(("a", "b"), np.array([1]), np.array([[1.0, 0.0]]))
    assert math.isfinite(wrong.loss().value)


def test_intervals_contain_the_value_are_deterministic_and_shrink_with_more_examples() -> None:
    few, many = predictions(TARGETS * 10, PREDICTED * 10), predictions(TARGETS * 100, PREDICTED * 100)
    for one, other, again in zip(few.scores(), many.scores(), few.scores(), strict=True):
        assert one == again and one.n == 100 and other.n == 1000
        assert one.low <= one.value <= one.high
        assert other.high - other.low < one.high - one.low or one.low == one.high


def test_the_same_resamples_are_drawn_as_for_every_other_score() -> None:
    found = predictions(TARGETS * 5, PREDICTED * 5)
    right = np.array([[w == s, 1] for w, s in zip(TARGETS * 5, PREDICTED * 5, strict=True)], float)
    targets = percentile_interval(bootstrap_scores(right, lambda sums: 100 * sums[0] / sums[1]))
    assert (found.accuracy().low, found.accuracy().high) == pytest.approx(targets)


def test_the_confusion_matrix_counts_every_prediction_and_each_cell_has_its_interval() -> None:
    found = predictions(TARGETS * 10, PREDICTED * 10).confusion()
    assert found.counts.tolist() == [[20, 10, 0], [0, 10, 10], [10, 0, 40]]
    assert (found.low <= found.counts).all() and (found.counts <= found.high).all()
    assert found.low[0, 0] < 20 < found.high[0, 0] and found.high[0, 2] == 0
    assert found.format_lines()[0].split() == ["target", "predicted", "a", "b", "c"]
    assert found.format_lines()[1].startswith("a  ") and " 20 (" in found.format_lines()[1]
    assert found.to_dict()["counts"] == found.counts.tolist()


def test_of_many_labels_the_most_frequent_are_shown() -> None:
    size = 40
    targets = np.repeat(np.arange(size), np.arange(size) + 1)
    found = ClassPredictions(
        tuple(f"label number {i}" for i in range(size)), targets, np.eye(size)[targets]
    ).confusion()
    lines = found.format_lines()
    assert len(lines) == 1 + 12 + 1 and lines[-1] == "and 28 labels more"
    assert lines[1].startswith("label number 28")


@pytest.mark.parametrize(
    ("targets", "share", "message"),
    [
        ([], np.zeros((0, 2)), "there is nothing to score: 0 examples"),
        ([0], np.zeros((1, 3)), "there are 1 x 3 probabilities for 1 x 2 predictions"),
    ],
)
def test_what_cannot_be_scored_is_refused(targets, share, message) -> None:
    with pytest.raises(DataError) as caught:
        ClassPredictions(("a", "b"), np.array(targets, int), share)
    assert str(caught.value) == message


def test_a_calibration_threshold_is_missed_from_above() -> None:
    scores = predictions(TARGETS, PREDICTED).scores()
    check_minimum(scores, ["accuracy=70", "ece=10.1"])
    with pytest.raises(Exception, match=r"ece is 10 .* above the required 5"):
        check_minimum(scores, ["ece=5"])
