"""Score thresholds."""

import math

import pytest

from regard.errors import ConfigError, ThresholdMissed
from regard.metrics import Score, check_minimum, parse_minimum

SCORES = [
    Score("bleu", 25.0, 24.0, 26.0, "nrefs:1", 1000),
    Score("chrf", 51.5, 51.0, 52.0, "nrefs:1", 1000),
    Score("ter", 60.25, 58.0, 62.0, "nrefs:1", 1000),
]


@pytest.mark.parametrize("minimums", [[], ["bleu=25"], ["bleu=25", "chrf=50.5"], [" bleu = 2.5e1 "], ["ter=60.25"]])
def test_a_threshold_is_passed_also_when_reached_exactly(minimums):
    check_minimum(SCORES, minimums)


@pytest.mark.parametrize(
    ("minimums", "message"),
    [
        (["bleu=25.5"], "bleu is 25 (95 %: 24.00 to 26.00), below the required 25.5"),
        (["bleu=1", "ter=60"], "ter is 60.25 (95 %: 58.00 to 62.00), above the required 60"),
        (
            ["bleu=30", "chrf=60"],
            "bleu is 25 (95 %: 24.00 to 26.00), below the required 30; "
            "chrf is 51.5 (95 %: 51.00 to 52.00), below the required 60",
        ),
    ],
)
def test_a_missed_threshold_is_reported_with_its_numbers(minimums, message):
    with pytest.raises(ThresholdMissed) as caught:
        check_minimum(SCORES, minimums)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["bleu", "ter"])
def test_a_nan_score_misses_every_threshold(name):
    with pytest.raises(ThresholdMissed, match=f"{name} is nan"):
        check_minimum([Score(name, math.nan, math.nan, math.nan, "", 0)], [f"{name}=0"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bleu", "--min bleu: expected a score and a number, such as bleu=25"),
        ("=25", "--min =25: expected a score and a number, such as bleu=25"),
        ("bleu=", "--min bleu=: expected a score and a number, such as bleu=25"),
        ("", "--min : expected a score and a number, such as bleu=25"),
        ("bleu=high", '--min bleu=high: expected a number after bleu=, got "high"'),
        ("bleu=nan", '--min bleu=nan: expected a number after bleu=, got "nan"'),
        ("bleu=25=3", '--min bleu=25=3: expected a number after bleu=, got "25=3"'),
        ("blue=25", '--min blue=25: there is no score "blue" here; there are bleu, chrf, ter'),
    ],
)
def test_a_threshold_that_cannot_be_read_is_refused_before_and_after_scoring(text, message):
    for refuse in (
        lambda: check_minimum(SCORES, ["bleu=99", text]),
        lambda: parse_minimum(text, ["bleu", "chrf", "ter"]),
    ):
        with pytest.raises(ConfigError) as caught:
            refuse()
        assert str(caught.value) == message
