"""Training settings: the [train] section of a recipe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from regard.config import check_at_least, check_share
from regard.device import check_device_name
from regard.errors import ConfigError
from regard.train.divergence import DivergenceRule, OnDivergence, has_diverged
from regard.train.optim import Adam, OptimizerConfig
from regard.train.schedule import InverseSqrt, Schedule

PROBE_LIMIT = 200
"""most characters of train.probe: the stored attention grows with the square"""


@dataclass(frozen=True)
class TrainConfig:
    """Settings of training. The budget is one of steps, epochs and minutes; if none is given, 10 epochs."""

    steps: int | None = None
    """training steps: updates of the weights"""
    epochs: float | None = None
    """epochs: passes over the training data"""
    minutes: float | None = None
    """training time without validation; converted into steps once, at the start, by timing a few batches"""
    batch_tokens: int = 4096
    """batch size in positions (tokens, steps of a series) on the longer side, padding included, over all processes"""
    accumulate: int = 1
    """gradient accumulation: batches per update"""
    optimizer: OptimizerConfig = Adam()
    """optimizer"""
    schedule: Schedule = InverseSqrt()
    """learning-rate schedule"""
    clip_norm: float | None = 1.0
    """gradient clipping: largest L2 norm of the gradient; 0: no clipping"""
    freeze: tuple[str, ...] = ()
    """parameters that are not trained, by patterns of their names, such as ["encoder.*"]"""
    rates: dict[str, float] = field(default_factory=dict)
    """multipliers of the learning rate by patterns of names, such as {"encoder.*" = 0.1}; several matches multiply"""
    layer_decay: float = 1.0
    """layer-wise learning-rate decay: each layer has the rate of the one above it times this, the embedding that of the
    first layer times this; heads keep the whole rate; 1: no decay"""
    label_smoothing: float = 0.1
    """label smoothing: share of the target probability spread over all classes; 0 where targets are numbers"""
    ema: float = 0.0
    """exponential moving average of the weights: its decay, such as 0.999 (less in the first steps); 0: no averaging"""
    device: str = "auto"
    """device: auto (an accelerator if there is one, else the CPU), cpu, cuda, cuda:N or mps"""
    threads: int = 0
    """threads of the CPU, per process; 0: by the size of the model, or as many as OMP_NUM_THREADS says"""
    precision: Literal["float32", "bfloat16"] = "float32"
    """number format inside layers; bfloat16 (mixed precision) is faster on CPUs with AVX-512 BF16, slower on others"""
    compile: bool = False
    """compile the layers with torch.compile; needs a C++ compiler and takes minutes"""
    validate_every: int | None = None
    """steps between validations; not set: once per epoch"""
    save_every: int | None = None
    """steps between checkpoints; not set: at validations only"""
    keep_checkpoints: int = 2
    """newest checkpoints to keep, besides the best"""
    patience: int = 0
    """early stopping: stop after this many validations without improvement; 0: never"""
    best_metric: str = "loss"
    """validation metric that selects the best checkpoint, such as loss; the choices depend on the task"""
    tensorboard: bool = False
    """also write event files for TensorBoard; needs the tensorboard extra"""
    probe: str | None = None
    """an input whose attention is recorded at each validation; the studio shows how it develops"""
    timeout: float = 10.0
    """minutes that one of several processes may keep the others waiting before it is named and training ends"""
    on_divergence: OnDivergence = "stop"
    """when training diverges: stop, skip the update, or go back to a good checkpoint with a lower learning rate"""
    divergence: DivergenceRule = DivergenceRule()
    """when training counts as diverged (docs/divergence.md)"""

    def __post_init__(self) -> None:
        budget = {n: getattr(self, n) for n in ("steps", "epochs", "minutes") if getattr(self, n) is not None}
        if len(budget) > 1:
            given = ", ".join(f"{name} = {value}" for name, value in budget.items())
            raise ConfigError(f"give one of steps, epochs and minutes, not several ({given})")
        for name in ("batch_tokens", "accumulate", "validate_every", "save_every", "steps"):
            if getattr(self, name) is not None:
                check_at_least(self, 1, name)
        check_at_least(self, 2, "keep_checkpoints")
        check_at_least(self, 0, "patience")
        check_at_least(self, 0, "threads")
        check_device_name(self.device, f'device = "{self.device}"')
        for name in ("epochs", "minutes", "timeout"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ConfigError(f"{name} = {value} must be above 0")
        if self.clip_norm is not None and not self.clip_norm >= 0:
            raise ConfigError(f"clip_norm = {self.clip_norm} must be at least 0 (0: no gradient clipping)")
        if self.probe is not None and not 0 < len(self.probe.strip()) <= PROBE_LIMIT:
            raise ConfigError(
                f"probe: expected a sentence of 1 to {PROBE_LIMIT} characters, got {len(self.probe.strip())}"
            )
        check_rates(self.rates, self.layer_decay)
        check_share(self, "label_smoothing", "ema")


def check_rates(rates: Mapping[str, float], layer_decay: float) -> None:
    """Refuse multipliers of the learning rate that are not positive, or a decay above 1."""
    for pattern, rate in rates.items():
        if not 0 < rate < math.inf:
            raise ConfigError(f'rates."{pattern}" = {rate} must be above 0; train.freeze is for parts that stay')
    if not 0 < layer_decay <= 1:
        raise ConfigError(f"layer_decay = {layer_decay} must be above 0 and at most 1 (1: no decay)")


_RESUMABLE = (
    "steps epochs device validate_every save_every keep_checkpoints patience best_metric tensorboard probe "
    "on_divergence divergence timeout"
)
MAY_CHANGE = frozenset(f"train.{name}" for name in _RESUMABLE.split())
"""Settings that may differ when a run is resumed. Its past is unaffected; under a schedule that depends on the planned
steps (cosine, linear) or on validation (plateau) the rest of the run differs from what it would have been; on another
kind of device it differs in the last bits."""
AFTER_DIVERGENCE = frozenset({"train.clip_norm", "train.schedule"})
"""Further ones when a run that diverged is resumed from its last good checkpoint."""


def resumable_settings(run: Path) -> frozenset[str]:
    """Settings that may differ when a run is resumed: more of them after a divergence."""
    return MAY_CHANGE | AFTER_DIVERGENCE if has_diverged(run) else MAY_CHANGE


def refused_changes(run: Path, differences: Iterable[str], may: tuple[str, ...] = ()) -> list[str]:
    """Those of the differences of two recipes with which a run cannot be resumed; `may`: further prefixes allowed."""
    allowed = (*(f"{name}{end}" for name in resumable_settings(run) for end in (" ", ".")), "decode.", *may)
    return [line for line in differences if not line.startswith(allowed)]
