"""Two systems on the same sentences: a difference is found where there is one, and seldom where there is none."""

import random

import pytest

from regard.errors import DataError
from regard.score import bleu, chrf, paired, ter

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
    found = paired(a, b, references, metric)
    assert (found.a, found.b) == pytest.approx((score(a, references).value, score(b, references).value))
    assert found.p_value == pytest.approx(1 / 1001) and found.wins == 1.0
    assert found.low < found.delta < found.high
    assert (found.high < 0) if metric == "ter" else (found.low > 0)
    assert found.signature == score(a, references).signature and found.n == 150


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_a_system_is_no_better_than_itself(metric):
    a, _, references = systems(0.3, 0.3, sentences=20)
    found = paired(a, list(a), references, metric)
    assert (found.delta, found.low, found.high, found.p_value, found.wins) == (0, 0, 0, 1, 0)


def test_the_order_of_the_systems_turns_the_difference_and_keeps_its_likelihood():
    a, b, references = systems(0.3, 0.27)
    there, back = paired(a, b, references), paired(b, a, references)
    assert there.delta == -back.delta and there.p_value == back.p_value
    assert (there.low, there.high) == (-back.high, -back.low)
    assert there == paired(a, b, references)


@pytest.mark.slow
def test_between_equally_good_systems_one_test_in_twenty_finds_a_difference():
    found = [paired(*systems(0.2, 0.2, sentences=60, seed=seed)).p_value for seed in range(200)]
    assert 0.01 <= sum(p < 0.05 for p in found) / 200 <= 0.09  # 0.05, give or take 2.6 deviations
    assert 0.40 <= sum(p < 0.5 for p in found) / 200 <= 0.60


def test_capitals_may_be_left_out_of_account():
    references = ["The Cat sat on the Mat", "A Dog ran over the Hill"] * 10
    lower = [text.lower() for text in references]
    assert paired(lower, references, references).delta > 10
    assert paired(lower, references, references, lowercase=True).delta == 0
    assert "case:lc" in paired(lower, references, references, "chrf", lowercase=True).signature


def test_outputs_that_do_not_pair_are_refused_with_the_system_they_come_from():
    with pytest.raises(DataError) as caught:
        paired(["a"], ["a", "b"], ["a", "b"])
    assert str(caught.value) == (
        "there are 1 outputs of the first system and 2 references; line i of one must answer line i of the other"
    )
    with pytest.raises(DataError) as caught:
        paired(["a", "b"], ["a"], ["a", "b"])
    assert str(caught.value) == (
        "there are 1 outputs of the second system and 2 references; line i of one must answer line i of the other"
    )
