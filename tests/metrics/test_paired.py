"""Two systems on the same sentences: a difference is found where there is one, and seldom where there is none."""

import math
import random
from itertools import accumulate

import pytest

from regard.errors import DataError
from regard.metrics import align_sums, bleu, chrf, paired_bootstrap, paired_bootstrap_sums, perplexity, ter

WORDS = [f"word{i}" for i in range(60)]


def systems(noise_a, noise_b, sentences=150, seed=1):
    draw = random.Random(seed)
    references = [" ".join(draw.choices(WORDS, k=draw.randint(5, 15))) for _ in range(sentences)]
    noisy = [
        [" ".join(draw.choice(WORDS) if draw.random() < noise else w for w in r.split()) for r in references]
        for noise in (noise_a, noise_b)
    ]
    return *noisy, references


@pytest.mark.parametrize(("metric", "score"), [("bleu", bleu), ("chrf", chrf), ("ter", ter)])
def test_a_clearly_better_system_is_found_better(metric, score):
    a, b, references = systems(0.4, 0.2)
    found = paired_bootstrap(a, b, references, metric)
    assert (found.a, found.b) == pytest.approx((score(a, references).value, score(b, references).value))
    assert found.p_value == pytest.approx(1 / 1001) and found.wins == 1.0
    assert found.low < found.delta < found.high
    assert (found.high < 0) if metric == "ter" else (found.low > 0)
    assert found.signature == score(a, references).signature and found.n == 150


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_a_system_is_no_better_than_itself(metric):
    a, _, references = systems(0.3, 0.3, sentences=20)
    found = paired_bootstrap(a, list(a), references, metric)
    assert (found.delta, found.low, found.high, found.p_value, found.wins) == (0, 0, 0, 1, 0)


def test_swapping_the_systems_flips_the_difference_and_keeps_p():
    a, b, references = systems(0.3, 0.27)
    there, back = paired_bootstrap(a, b, references), paired_bootstrap(b, a, references)
    assert there.delta == -back.delta and there.p_value == back.p_value
    assert (there.low, there.high) == (-back.high, -back.low)
    assert there == paired_bootstrap(a, b, references)


@pytest.mark.slow
def test_between_equally_good_systems_one_test_in_twenty_finds_a_difference():
    found = [paired_bootstrap(*systems(0.2, 0.2, sentences=60, seed=seed)).p_value for seed in range(200)]
    assert 0.01 <= sum(p < 0.05 for p in found) / 200 <= 0.09  # 0.05, give or take 2.6 deviations
    assert 0.40 <= sum(p < 0.5 for p in found) / 200 <= 0.60


def test_case_can_be_ignored():
    references = ["The Cat sat on the Mat", "A Dog ran over the Hill"] * 10
    lower = [text.lower() for text in references]
    assert paired_bootstrap(lower, references, references).delta > 10
    assert paired_bootstrap(lower, references, references, lowercase=True).delta == 0
    assert "case:lc" in paired_bootstrap(lower, references, references, "chrf", lowercase=True).signature


def test_outputs_of_unequal_number_are_refused_by_system():
    with pytest.raises(DataError) as caught:
        paired_bootstrap(["a"], ["a", "b"], ["a", "b"])
    assert str(caught.value) == (
        "there are 1 outputs of the first system and 2 references; line i of one must match line i of the other"
    )
    with pytest.raises(DataError) as caught:
        paired_bootstrap(["a", "b"], ["a"], ["a", "b"])
    assert str(caught.value) == (
        "there are 1 outputs of the second system and 2 references; line i of one must match line i of the other"
    )


def readers(gain, windows=150, seed=1, spread=0.3):
    """Sums of nll and counts of two language models per window; the second has `gain` nats less per token."""
    draw = random.Random(seed)
    counts = [draw.randint(5, 9) for _ in range(windows)]
    hard = [draw.gauss(2.0, 0.5) for _ in counts]
    sides = [[n * draw.gauss(h - less, spread) for n, h in zip(counts, hard, strict=True)] for less in (0.0, gain)]
    return [list(zip(nats, counts, strict=True)) for nats in sides]


def test_a_language_model_with_lower_nll_is_found_better_by_perplexity():
    a, b = readers(0.3)
    found = paired_bootstrap_sums(a, b, "perplexity", "unit:token")
    assert (found.a, found.b) == tuple(perplexity(*zip(*side, strict=True)).value for side in (a, b))
    assert found.low < found.delta < found.high < 0 and found.wins == 1.0 and found.p_value == pytest.approx(1 / 1001)
    assert found.n == 150 and found.signature == "unit:token"


def test_a_paired_test_finds_more_than_two_overlapping_intervals():
    a, b = readers(0.1, spread=0.1)
    one, two = (perplexity(*zip(*side, strict=True)) for side in (a, b))
    assert one.low < two.high
    assert paired_bootstrap_sums(a, b, "perplexity", "").p_value < 0.01


@pytest.mark.parametrize("name", ["perplexity", "loss", "accuracy"])
def test_swapping_the_systems_of_sums_flips_the_difference_and_keeps_p(name):
    a, b = readers(0.02)
    there, back, same = (paired_bootstrap_sums(*sides, name, "") for sides in ((a, b), (b, a), (a, a)))
    assert there.delta == -back.delta and there.p_value == back.p_value
    assert (there.low, there.high) == (-back.high, -back.low)
    assert there.wins == pytest.approx(1 - back.wins)
    assert (same.delta, same.low, same.high, same.p_value, same.wins) == (0, 0, 0, 1, 0)


def test_higher_or_lower_is_better_depends_on_the_metric():
    worse, better = [(50.0, 1)] * 30, [(60.0, 1)] * 30
    assert paired_bootstrap_sums(worse, better, "accuracy", "").wins == 1.0
    assert paired_bootstrap_sums(worse, better, "loss", "").wins == 0.0


def test_p_of_sums_is_below_five_percent_only_where_the_interval_excludes_0():
    significant = 0
    for seed in range(40):
        found = paired_bootstrap_sums(*readers(0.05, windows=40, seed=seed), "perplexity", "")
        significant += found.p_value < 0.05
        assert found.p_value >= 0.05 or not found.low <= 0 <= found.high, f"seed {seed}"
    assert 2 < significant < 38  # there were both


@pytest.mark.slow
def test_between_equally_good_language_models_one_test_in_twenty_finds_a_difference():
    found = [
        paired_bootstrap_sums(*readers(0.0, windows=60, seed=seed), "perplexity", "").p_value for seed in range(200)
    ]
    assert 0.01 <= sum(p < 0.05 for p in found) / 200 <= 0.09
    assert 0.40 <= sum(p < 0.5 for p in found) / 200 <= 0.60


def test_a_word_of_probability_zero_does_not_crash():
    a, b = [(math.inf, 1), (1.0, 1)] * 10, [(1.0, 1)] * 20
    found = paired_bootstrap_sums(a, b, "perplexity", "")
    assert found.b == pytest.approx(math.e) and found.a == pytest.approx(math.exp(700)) and found.wins == 1.0


def test_sums_of_unequal_length_are_refused():
    with pytest.raises(DataError) as caught:
        paired_bootstrap_sums([(1.0, 1)], [(1.0, 1)] * 2, "loss", "")
    assert str(caught.value) == "there are 1 parts of the first system and 2 of the second; each needs both"


def test_aligned_sums_keep_the_totals_and_share_their_boundaries():
    draw = random.Random(5)
    for _ in range(50):
        places = range(1, 200)
        sides = []
        for most in (draw.randint(1, 150), draw.randint(1, 150)):
            ends = [*sorted(draw.sample(places, most)), 200]
            counts = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
            sides.append([(float(draw.randint(0, 99)), count) for count in counts])
        a, b = align_sums(*sides)
        assert [count for _, count in a] == [count for _, count in b]
        assert [sum(total for total, _ in side) for side in (a, b)] == [sum(t for t, _ in side) for side in sides]
        ends = [set(accumulate(count for _, count in side)) for side in (*sides, a)]
        assert ends[0] & ends[1] == ends[2]
        assert align_sums(sides[0], sides[0]) == (sides[0], sides[0])
