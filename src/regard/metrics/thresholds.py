"""Score thresholds of `regard eval --min`, such as bleu=25."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

from regard.errors import ConfigError, ThresholdMissed
from regard.metrics.score import Score


def parse_minimum(text: str, known: Collection[str]) -> tuple[str, float]:
    """Metric and number of "bleu=25"; `known` are the available metrics, so that mistakes are reported before the work.

    >>> parse_minimum("bleu=25", known=["bleu", "chrf"])
    ('bleu', 25.0)
    """
    name, equals, number = (part.strip() for part in text.partition("="))
    if not (name and equals and number):
        raise ConfigError(f"--min {text}: expected a score and a number, such as bleu=25")
    if name not in known:
        raise ConfigError(f'--min {text}: there is no score "{name}" here; there are {", ".join(known)}')
    try:
        least = float(number)
    except ValueError:
        least = math.nan
    if not math.isfinite(least):
        raise ConfigError(f'--min {text}: expected a number after {name}=, got "{number}"')
    return name, least


def check_minimum(scores: Iterable[Score], minimums: Sequence[str]) -> None:
    """Raise ThresholdMissed unless every score is at least as good as required; for ter and perplexity lower is better.

    >>> check_minimum([Score("bleu", 23.4, 22.5, 24.25, "nrefs:1", n=1000)], ["bleu=25"])
    Traceback (most recent call last):
    regard.errors.ThresholdMissed: bleu is 23.4 (95 %: 22.50 to 24.25), below the required 25
    """
    found = {score.name: score for score in scores}
    missed = []
    for name, number in [parse_minimum(text, found) for text in minimums]:
        score = found[name]
        good = score.value <= number if score.lower_is_better else score.value >= number  # NaN is never good
        if not good:
            interval = f"(95 %: {score.low:.2f} to {score.high:.2f})"
            side = "above" if score.lower_is_better else "below"
            missed.append(f"{name} is {score.value:.6g} {interval}, {side} the required {number:g}")
    if missed:
        raise ThresholdMissed("; ".join(missed))
