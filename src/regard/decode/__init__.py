"""Decoding: beam search, sampling, rollouts, logits processors, lexical constraints, ensembles and forced scoring.

`Ensemble` (mean of the probabilities of several models) and `align` (word alignments from attention) have no command:
they are used from Python.
"""

from __future__ import annotations

from regard.decode.beam import Beam, LengthPenalty, power_penalty, wu_penalty
from regard.decode.config import DecodeConfig, search
from regard.decode.constraints import ConstrainedBeam, Constraints, UnsatisfiableConstraint
from regard.decode.ensemble import Ensemble
from regard.decode.hypothesis import Choice, History, Hypothesis, Strategy, collect
from regard.decode.loop import decode
from regard.decode.processors import (
    LogitsProcessor,
    ban,
    force_prefix,
    min_length,
    min_p,
    no_repeat_ngram,
    repetition_penalty,
    temperature,
    top_k,
    top_p,
    with_prompts,
)
from regard.decode.sampling import Rollout, Sampling
from regard.decode.scoring import TokenScores, align, score

__all__ = [
    "Beam",
    "Choice",
    "ConstrainedBeam",
    "Constraints",
    "DecodeConfig",
    "Ensemble",
    "History",
    "Hypothesis",
    "LengthPenalty",
    "LogitsProcessor",
    "Rollout",
    "Sampling",
    "Strategy",
    "TokenScores",
    "UnsatisfiableConstraint",
    "align",
    "ban",
    "collect",
    "decode",
    "force_prefix",
    "min_length",
    "min_p",
    "no_repeat_ngram",
    "power_penalty",
    "repetition_penalty",
    "score",
    "search",
    "temperature",
    "top_k",
    "top_p",
    "with_prompts",
    "wu_penalty",
]
