"""Metrics: each score with its signature and its confidence interval.

Neither torch nor sacrebleu is imported here: sacrebleu is loaded on first use, so that other commands start fast.
"""

from __future__ import annotations

from regard.metrics.paired import PairedComparison, UnitSums, align_sums, paired_bootstrap, paired_bootstrap_sums
from regard.metrics.perplexity import perplexity
from regard.metrics.score import Score
from regard.metrics.thresholds import check_minimum, parse_minimum
from regard.metrics.translation import bleu, chrf, ter, tokenized_bleu

__all__ = [
    "PairedComparison",
    "Score",
    "UnitSums",
    "align_sums",
    "bleu",
    "check_minimum",
    "chrf",
    "paired_bootstrap",
    "paired_bootstrap_sums",
    "parse_minimum",
    "perplexity",
    "ter",
    "tokenized_bleu",
]
