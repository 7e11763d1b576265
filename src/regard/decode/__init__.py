"""The one loop, and what it is asked to do: beams, samples, forecasts, rules, constraints, ensembles, scores."""

from __future__ import annotations

from regard.decode.beam import Beam, Penalty, power, wu
from regard.decode.config import DecodeConfig, search
from regard.decode.constraints import Constrained, Constraints, Unmet
from regard.decode.ensemble import Ensemble
from regard.decode.hypothesis import Choice, History, Hypothesis, Strategy, collect
from regard.decode.loop import decode
from regard.decode.processors import (
    Rule,
    banned,
    forced,
    min_length,
    min_p,
    no_repeat,
    repetition,
    temperature,
    top_k,
    top_p,
)
from regard.decode.sampling import Rollout, Sampling
from regard.decode.scoring import Scores, align, score

__all__ = [
    "Beam",
    "Choice",
    "Constrained",
    "Constraints",
    "DecodeConfig",
    "Ensemble",
    "History",
    "Hypothesis",
    "Penalty",
    "Rollout",
    "Rule",
    "Sampling",
    "Scores",
    "Strategy",
    "Unmet",
    "align",
    "banned",
    "collect",
    "decode",
    "forced",
    "min_length",
    "min_p",
    "no_repeat",
    "power",
    "repetition",
    "score",
    "search",
    "temperature",
    "top_k",
    "top_p",
    "wu",
]
