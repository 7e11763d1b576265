"""Learning-rate schedules: pure functions of the step (from 1 on), the planned steps and the drops so far."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

from regard.errors import ConfigError


@dataclass(frozen=True)
class _WarmupSchedule:
    """Settings of a schedule with linear warmup to a given learning rate."""

    kind: str = ""
    lr: float = 5e-4
    """peak learning rate"""
    warmup: int = 4000
    """steps of linear warmup"""

    def __post_init__(self) -> None:
        if not 0 < self.lr < math.inf:
            raise ConfigError(f"lr = {self.lr} must be above 0 and finite")


@dataclass(frozen=True)
class Noam:
    """factor x width^-0.5 x min(step^-0.5, step x warmup^-1.5) (Vaswani et al. 2017, eq. 3).

    >>> round(Noam().rate(4000, 100_000), 8)
    0.00069877
    """

    kind: Literal["noam"] = "noam"
    """the Transformer paper's schedule"""
    warmup: int = 4000
    """steps of linear warmup"""
    width: int = 512
    """the model's width"""
    factor: float = 1.0
    """multiplies the learning rate"""

    def __post_init__(self) -> None:
        if self.width < 1 or not self.factor > 0:
            raise ConfigError(f"width = {self.width} must be at least 1 and factor = {self.factor} above 0")

    def rate(self, step: int, steps: int, drops: int = 0) -> float:
        return self.factor * self.width**-0.5 * min(step**-0.5, step * max(self.warmup, 1) ** -1.5)


@dataclass(frozen=True)
class InverseSqrt(_WarmupSchedule):
    """Linear warmup to lr, then lr x sqrt(warmup / step).

    >>> InverseSqrt(lr=1.0, warmup=4).rate(2, 100), InverseSqrt(lr=1.0, warmup=4).rate(16, 100)
    (0.5, 0.5)
    """

    kind: Literal["inverse-sqrt"] = "inverse-sqrt"
    """inverse square root decay, as Noam with the peak given"""

    def rate(self, step: int, steps: int, drops: int = 0) -> float:
        return self.lr * min(step / max(self.warmup, 1), math.sqrt(max(self.warmup, 1) / step))


@dataclass(frozen=True)
class _DecaySchedule(_WarmupSchedule, ABC):
    warmup: int = 400
    floor: float = 0.0
    """final learning rate, as a share of lr"""

    def rate(self, step: int, steps: int, drops: int = 0) -> float:
        if step < self.warmup:
            return self.lr * step / self.warmup
        done = min((step - self.warmup) / max(steps - self.warmup, 1), 1.0)
        return self.lr * (self.floor + (1 - self.floor) * self._shape(done))

    @abstractmethod
    def _shape(self, done: float) -> float:
        """Position between floor x lr (0) and lr (1) after a share of the decay steps."""


@dataclass(frozen=True)
class CosineDecay(_DecaySchedule):
    """Linear warmup to lr, then half a cosine down to floor x lr (Loshchilov and Hutter 2017)."""

    kind: Literal["cosine"] = "cosine"
    """cosine decay to the planned last step"""

    def _shape(self, done: float) -> float:
        return (1 + math.cos(math.pi * done)) / 2


@dataclass(frozen=True)
class LinearDecay(_DecaySchedule):
    """Linear warmup to lr, then linear decay to floor x lr.

    >>> LinearDecay(lr=1.0, warmup=0).rate(50, 100)
    0.5
    """

    kind: Literal["linear"] = "linear"
    """linear decay to the planned last step"""

    def _shape(self, done: float) -> float:
        return 1 - done


@dataclass(frozen=True)
class Plateau(_WarmupSchedule):
    """Reduce on plateau: lr x factor^drops; a drop follows `patience` validations without improvement.

    >>> Plateau(lr=1.0, factor=0.5).rate(10, 100, drops=2)
    0.25
    """

    kind: Literal["plateau"] = "plateau"
    """reduce the learning rate when validation stops improving"""
    lr: float = 5e-4
    """initial learning rate"""
    warmup: int = 0
    factor: float = 0.5
    """a drop multiplies the learning rate by this"""
    patience: int = 2
    """validations without improvement before a drop"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.patience < 1 or not 0 < self.factor < 1:
            raise ConfigError(
                f"patience = {self.patience} must be at least 1 and factor = {self.factor} above 0 and below 1"
            )

    def rate(self, step: int, steps: int, drops: int = 0) -> float:
        return self.lr * self.factor**drops * min(1.0, step / max(self.warmup, 1))


@dataclass(frozen=True)
class Constant(_WarmupSchedule):
    """Constant learning rate after linear warmup."""

    kind: Literal["constant"] = "constant"
    """no decay"""
    lr: float = 5e-4
    """learning rate"""
    warmup: int = 0

    def rate(self, step: int, steps: int, drops: int = 0) -> float:
        return self.lr * min(1.0, step / max(self.warmup, 1))


Schedule = Noam | InverseSqrt | CosineDecay | LinearDecay | Plateau | Constant


def count_drops(schedule: Schedule, before: int, stale: int) -> int:
    """Drops of the learning rate so far, after `stale` validations without improvement.

    >>> count_drops(Plateau(patience=2), 1, 2), count_drops(Constant(), 0, 9)
    (2, 0)
    """
    patience = schedule.patience if isinstance(schedule, Plateau) else 0
    return before + 1 if patience and stale and stale % patience == 0 else before


def rate_setting(schedule: Schedule) -> str:
    """The setting that scales a schedule's learning rate.

    >>> rate_setting(Constant()), rate_setting(Noam())
    ('train.schedule.lr', 'train.schedule.factor')
    """
    return "train.schedule.factor" if isinstance(schedule, Noam) else "train.schedule.lr"
