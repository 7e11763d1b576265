"""What a recipe can say about training, and what a run may change when it goes on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from regard.errors import ConfigError
from regard.train.optim import Adam, OptimizerConfig
from regard.train.schedule import InverseSqrt, Schedule

PROBE = 200
"""characters of the longest probe: what is kept of it grows with the square"""


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained. The budget is one of steps, epochs, minutes; none of them means 10 epochs.

    >>> TrainConfig(steps=10, minutes=3)
    Traceback (most recent call last):
    regard.errors.ConfigError: give one of steps, epochs and minutes, not several (steps = 10, minutes = 3)
    """

    steps: int | None = None
    """updates of the weights"""
    epochs: float | None = None
    """passes over the training data"""
    minutes: float | None = None
    """time to train for, validation not counted; measured and turned into steps once, at the start"""
    tokens: int = 4096
    """positions in a batch, padding included, on its longer side; over all processes"""
    accumulate: int = 1
    """batches that make one update"""
    optimizer: OptimizerConfig = Adam()
    """what makes an update of a gradient"""
    schedule: Schedule = InverseSqrt()
    """how the learning rate goes"""
    clip: float | None = 1.0
    """longest gradient; a longer one is shortened to it; 0 for none"""
    smoothing: float = 0.1
    """label smoothing: share of the target spread over the whole vocabulary"""
    ema: float = 0.0
    """share of the averaged weights kept at each step (such as 0.999; less in the first steps); 0: no averaging"""
    precision: Literal["float32", "bfloat16"] = "float32"
    """numbers used inside layers; bfloat16 helps on a GPU and is slow on most CPUs"""
    compile: bool = False
    """compile the layers with torch.compile; needs a C++ compiler and minutes"""
    every: int | None = None
    """steps between validations; not set: once an epoch"""
    save: int | None = None
    """steps between checkpoints; not set: at validations only"""
    keep: int = 2
    """checkpoints that stay, besides the best"""
    patience: int = 0
    """stop after so many validations without improvement; 0: never"""
    select: str = "loss"
    """the score of validation that calls a checkpoint the best, such as loss; which there are is the task's to say"""
    tensorboard: bool = False
    """also write event files for TensorBoard; needs the tensorboard extra"""
    probe: str | None = None
    """a sentence that is looked into at each validation: the studio shows how its attention came about"""
    on_nan: Literal["stop", "skip"] = "stop"
    """what to do when a gradient is not a number: stop, or leave the update out"""

    def __post_init__(self) -> None:
        budget = {n: getattr(self, n) for n in ("steps", "epochs", "minutes") if getattr(self, n) is not None}
        if len(budget) > 1:
            said = ", ".join(f"{name} = {value}" for name, value in budget.items())
            raise ConfigError(f"give one of steps, epochs and minutes, not several ({said})")
        at_least = {"tokens": 1, "accumulate": 1, "keep": 2, "patience": 0, "every": 1, "save": 1, "steps": 1}
        for name, least in at_least.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigError(f"{name} = {value} must be at least {least}")
        for name in ("epochs", "minutes"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ConfigError(f"{name} = {value} must be above 0")
        if self.clip is not None and not self.clip >= 0:
            raise ConfigError(f"clip = {self.clip} must be at least 0 (0: gradients are not shortened)")
        if self.probe is not None and not 0 < len(self.probe.strip()) <= PROBE:
            raise ConfigError(f"probe: expected a sentence of 1 to {PROBE} characters, got {len(self.probe.strip())}")
        for name in ("smoothing", "ema"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)} must be at least 0 and below 1")


MAY_CHANGE = frozenset(
    f"train.{name}"
    for name in ("steps", "epochs", "every", "save", "keep", "patience", "select", "tensorboard", "probe")
)
"""Settings that may differ when a run goes on. Its past stays as it is; under a schedule that looks at the planned end
(cosine, linear) or at validation (plateau) its future is another than it would have been."""
