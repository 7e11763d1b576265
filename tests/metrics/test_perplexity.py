"""Perplexity from sums of negative log-likelihood."""

import math

import pytest

from regard.errors import DataError
from regard.metrics import perplexity


def test_a_uniform_model_over_k_words_has_perplexity_k():
    found = perplexity([3 * math.log(7), 5 * math.log(7)], [3, 5])
    assert (found.value, found.low, found.high) == pytest.approx((7, 7, 7))
    assert found.name == "perplexity" and found.n == 2 and found.lower_is_better


def test_every_prediction_counts_the_same_however_long_its_sentence():
    assert perplexity([9 * math.log(2), math.log(8)], [9, 1]).value == pytest.approx(2 ** (12 / 10))


def test_the_interval_is_deterministic_and_contains_the_value():
    surprises, counts = [0.5 * (i % 9) + i % 4 for i in range(200)], [1 + i % 4 for i in range(200)]
    found = perplexity(surprises, counts)
    assert found.low < found.value < found.high < 2 * found.low
    assert found == perplexity(surprises, counts)


def test_probability_zero_of_the_target_is_a_large_number_not_a_crash():
    assert perplexity([1e6, math.inf], [1, 1]).value == pytest.approx(math.exp(700))


def test_empty_sentences_change_nothing_but_their_number():
    assert perplexity([4.0, 0.0], [2, 0]).value == pytest.approx(math.exp(2))


def test_the_unit_is_in_the_signature():
    assert perplexity([1.0], [1], unit="byte").signature == "unit:byte|bs:1000|seed:12345"


@pytest.mark.parametrize(
    ("surprises", "counts", "message"),
    [
        ([1.0, 2.0], [3], "there are 2 sums of nll and 1 counts; each sentence needs both"),
        ([], [], "there is nothing to score: 0 sentences with 0 predictions"),
        ([0.0, 0.0], [0, 0], "there is nothing to score: 2 sentences with 0 predictions"),
    ],
)
def test_what_cannot_be_scored_is_refused(surprises, counts, message):
    with pytest.raises(DataError) as caught:
        perplexity(surprises, counts)
    assert str(caught.value) == message
