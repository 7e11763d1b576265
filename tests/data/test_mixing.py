"""Sampling of several corpora by weight."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.mixing import WeightedParts

parts = st.lists(st.tuples(st.integers(1, 30), st.floats(0.05, 4)), min_size=1, max_size=4)


@settings(deadline=None, max_examples=50)
@given(parts, st.integers(0, 3), st.integers(0, 9))
def test_an_epoch_has_each_row_as_often_as_its_weight_says(drawn, seed, epoch):
    made = WeightedParts(tuple(size for size, _ in drawn), tuple(weight for _, weight in drawn), seed)
    counts = Counter(made.rows(epoch, np.arange(len(made))).tolist())
    first = 0
    for size, weight in drawn:
        times = [counts[row] for row in range(first, first + size)]
        assert sum(times) == max(1, round(weight * size))
        assert max(times) - min(times) <= 2  # two passes may meet in an epoch
        first += size
    assert sum(counts.values()) == len(made)


def test_epochs_together_take_every_row_equally_often():
    made = WeightedParts((10, 7), (0.3, 1.0), seed=1)
    counts = Counter(row for epoch in range(10) for row in made.rows(epoch, np.arange(len(made))).tolist())
    assert [counts[row] for row in range(10)] == [3] * 10
    assert [counts[row] for row in range(10, 17)] == [10] * 7


@pytest.mark.parametrize("places", [[0], [5, 1], list(range(13))])
def test_a_row_depends_on_seed_epoch_and_place_alone(places):
    made, other = (WeightedParts((10, 3), (1.0, 1.0), seed) for seed in (1, 2))
    whole = made.rows(2, np.arange(13))
    assert made.rows(2, np.array(places)).tolist() == whole[places].tolist()
    assert whole.tolist() not in (made.rows(3, np.arange(13)).tolist(), other.rows(2, np.arange(13)).tolist())
