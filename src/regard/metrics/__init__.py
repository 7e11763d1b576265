"""How good outputs are: each score with its signature and its interval. Neither torch nor sacrebleu is imported here.

sacrebleu is loaded when something is scored, so that a command that scores nothing does not wait for it.
"""

from __future__ import annotations

from regard.metrics.paired import Paired, Parts, paired, paired_parts, shared_parts
from regard.metrics.perplexity import perplexity
from regard.metrics.score import Score
from regard.metrics.thresholds import check_minimum, parse_minimum
from regard.metrics.translation import bleu, chrf, ter, tokenised_bleu

__all__ = [
    "Paired",
    "Parts",
    "Score",
    "bleu",
    "check_minimum",
    "chrf",
    "paired",
    "paired_parts",
    "parse_minimum",
    "perplexity",
    "shared_parts",
    "ter",
    "tokenised_bleu",
]
