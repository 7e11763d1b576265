"""Scores that must be reached."""

import math

import pytest

from regard.errors import ConfigError, ThresholdMissed
from regard.metrics import Score, check_minimum, parse_minimum

FOUND = [
    Score("bleu", 25.0, 24.0, 26.0, "nrefs:1", 1000),
    Score("chrf", 51.5, 51.0, 52.0, "nrefs:1", 1000),
    Score("ter", 60.25, 58.0, 62.0, "nrefs:1", 1000),
]


@pytest.mark.parametrize("wanted", [[], ["bleu=25"], ["bleu=25", "chrf=50.5"], [" bleu = 2.5e1 "], ["ter=60.25"]])
def test_what_is_reached_passes_also_when_reached_exactly(wanted):
    check_minimum(FOUND, wanted)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (["bleu=25.5"], "bleu is 25 (95 %: 24.00 to 26.00), below the 25.5 that was asked for"),
        (["bleu=1", "ter=60"], "ter is 60.25 (95 %: 58.00 to 62.00), above the 60 that was asked for"),
        (
            ["bleu=30", "chrf=60"],
            "bleu is 25 (95 %: 24.00 to 26.00), below the 30 that was asked for; "
            "chrf is 51.5 (95 %: 51.00 to 52.00), below the 60 that was asked for",
        ),
    ],
)
def test_what_is_missed_is_said_with_its_numbers(wanted, message):
    with pytest.raises(ThresholdMissed) as caught:
        check_minimum(FOUND, wanted)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["bleu", "ter"])
def test_a_score_that_is_no_number_reaches_nothing(name):
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
        lambda: check_minimum(FOUND, ["bleu=99", text]),
        lambda: parse_minimum(text, ["bleu", "chrf", "ter"]),
    ):
        with pytest.raises(ConfigError) as caught:
            refuse()
        assert str(caught.value) == message
