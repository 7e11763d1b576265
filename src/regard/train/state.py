"""Training state of a checkpoint, apart from tensors, and the report of a finished training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from regard.train.divergence import DivergenceState


@dataclass
class TrainState:
    """Training state apart from tensors, as a checkpoint stores it: plain JSON."""

    steps: int
    """planned updates in total"""
    step: int = 0
    position: Mapping[str, int] | None = None
    """position of the loader after the last update"""
    best: dict[str, float] = field(default_factory=dict)
    """metrics and step of the best validation"""
    stale: int = 0
    """validations since the best one"""
    drops: int = 0
    """learning-rate drops of the plateau schedule"""
    tokens: int = 0
    """predictions trained on so far"""
    divergence: DivergenceState = field(default_factory=DivergenceState)
    """memory of the divergence rule"""


@dataclass(frozen=True)
class TrainReport:
    """Result of training: the last step, why it ended ("done", or "early" for early stopping), the best validation."""

    step: int
    reason: str
    best: Mapping[str, float]
