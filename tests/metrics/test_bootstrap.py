"""Bootstrap of differences: the p-value and the interval never contradict each other."""

import numpy as np
import pytest

from regard.metrics.bootstrap import p_value, percentile_interval


def leaning(seed):
    """A difference, and skewed resampled ones that may be 0, as those of weak systems."""
    draw = np.random.default_rng(seed)
    around = draw.normal(-1, 1) * draw.uniform(0.2, 3)
    found = around + draw.choice([-1, 1]) * (draw.gamma(draw.uniform(0.3, 3), size=1000) - draw.uniform(0, 2))
    found[draw.random(1000) < draw.choice([0.0, 0.02, 0.1])] = 0.0
    return around, found


def test_a_difference_missing_in_a_tenth_of_the_corpora_is_not_significant():
    draw = np.random.default_rng(1)
    found = np.concatenate([np.zeros(104), draw.uniform(-0.35, -0.18, 896)])
    assert percentile_interval(found)[1] == 0.0
    assert p_value(-0.25, found) == pytest.approx(0.208)


def test_p_is_below_five_percent_only_where_the_interval_excludes_0():
    covered = 0
    for seed in range(300):
        delta, found = leaning(seed)
        low, high = percentile_interval(found)
        if p_value(delta, found) < 0.05:
            covered += 1
            assert not low <= 0 <= high, f"seed {seed}"
    assert 30 < covered < 270  # there were both


def test_p_is_the_same_whichever_system_comes_first():
    for seed in range(50):
        delta, found = leaning(seed)
        assert p_value(delta, found) == p_value(-delta, -found)


@pytest.mark.parametrize("kind", ["normal", "leaning"])
def test_the_false_positive_rate_is_about_one_in_twenty(kind):
    draw, trials, n = np.random.default_rng(2), 400, 80
    made = draw.normal(size=(trials, n)) if kind == "normal" else draw.exponential(size=(trials, n)) - 1
    found = [p_value(row.mean(), row[draw.integers(n, size=(1000, n))].mean(1)) for row in made]
    assert 0.02 <= np.mean(np.array(found) < 0.05) <= 0.09
