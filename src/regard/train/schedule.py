"""How the learning rate goes: pure functions of the step (from 1 on), the planned steps and the drops so far."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from regard.errors import ConfigError


def _positive(lr: float) -> None:
    if not lr > 0:
        raise ConfigError(f"lr = {lr} must be above 0")


@dataclass(frozen=True)
class Noam:
    """factor x width^-0.5 x min(step^-0.5, step x warmup^-1.5) (Vaswani et al. 2017, eq. 3).

    >>> round(Noam().rate(4000, 100_000), 8)
    0.00069877
    """

    kind: Literal["noam"] = "noam"
    """the Transformer paper's"""
    warmup: int = 4000
    """steps of linear rise"""
    width: int = 512
    """the model's width"""
    factor: float = 1.0
    """multiplies everything"""

    def __post_init__(self) -> None:
        if self.width < 1 or not self.factor > 0:
            raise ConfigError(f"width = {self.width} must be at least 1 and factor = {self.factor} above 0")

    def rate(self, step: int, steps: int, drops: int = 0) -> float:
        return self.factor * self.width**-0.5 * min(step**-0.5, step * max(self.warmup, 1) ** -1.5)


@dataclass(frozen=True)
class InverseSqrt:
    """Linear rise to lr, then lr x sqrt(warmup / step).

    >>> InverseSqrt(lr=1.0, warmup=4).rate(2, 100), InverseSqrt(lr=1.0, warmup=4).rate(16, 100)
    (0.5, 0.5)
    """

    kind: Literal["inverse-sqrt"] = "inverse-sqrt"
    """as Noam, but the peak is given"""
    lr: float = 5e-4
    """the peak"""
    warmup: int = 4000
    """steps of linear rise"""

    def __post_init__(self) -> None:
        _positive(self.lr)

    def rate(self, step: int, steps: int, drops: int = 0) -> float:
        return self.lr * min(step / max(self.warmup, 1), math.sqrt(max(self.warmup, 1) / step))


@dataclass(frozen=True)
class Cosine:
    """Linear rise to lr, then half a cosine down to floor x lr (Loshchilov and Hutter 2017).

    >>> Cosine(lr=1.0, warmup=0).rate(100, 100)
    0.0
    """

    kind: Literal["cosine"] = "cosine"
    """ends at the planned last step"""
    lr: float = 5e-4
    """the peak"""
    warmup: int = 400
    """steps of linear rise"""
    floor: float = 0.0
    """share of lr that is left at the end"""

    def __post_init__(self) -> None:
        _positive(self.lr)

    def rate(self, step: int, steps: int, drops: int = 0) -> float:
        if step < self.warmup:
            return self.lr * step / self.warmup
        way = min((step - self.warmup) / max(steps - self.warmup, 1), 1.0)
        return self.lr * (self.floor + (1 - self.floor) * (1 + math.cos(math.pi * way)) / 2)


@dataclass(frozen=True)
class Linear:
    """Linear rise to lr, then straight down to floor x lr.

    >>> Linear(lr=1.0, warmup=0).rate(50, 100)
    0.5
    """

    kind: Literal["linear"] = "linear"
    """ends at the planned last step"""
    lr: float = 5e-4
    """the peak"""
    warmup: int = 400
    """steps of linear rise"""
    floor: float = 0.0
    """share of lr that is left at the end"""

    def __post_init__(self) -> None:
        _positive(self.lr)

    def rate(self, step: int, steps: int, drops: int = 0) -> float:
        if step < self.warmup:
            return self.lr * step / self.warmup
        way = min((step - self.warmup) / max(steps - self.warmup, 1), 1.0)
        return self.lr * (self.floor + (1 - self.floor) * (1 - way))


@dataclass(frozen=True)
class Plateau:
    """lr, multiplied by `factor` each time validation has not improved for `patience` validations.

    >>> Plateau(lr=1.0, factor=0.5).rate(10, 100, drops=2)
    0.25
    """

    kind: Literal["plateau"] = "plateau"
    """lower when stuck"""
    lr: float = 5e-4
    """the rate to start from"""
    warmup: int = 0
    """steps of linear rise"""
    factor: float = 0.5
    """what a drop multiplies by"""
    patience: int = 2
    """validations without improvement before a drop"""

    def __post_init__(self) -> None:
        _positive(self.lr)
        if self.patience < 1 or not 0 < self.factor < 1:
            raise ConfigError(
                f"patience = {self.patience} must be at least 1 and factor = {self.factor} above 0 and below 1"
            )

    def rate(self, step: int, steps: int, drops: int = 0) -> float:
        return self.lr * self.factor**drops * min(1.0, step / max(self.warmup, 1))


@dataclass(frozen=True)
class Constant:
    """lr, after a linear rise.

    >>> Constant(lr=0.1).rate(7, 100)
    0.1
    """

    kind: Literal["constant"] = "constant"
    """no change"""
    lr: float = 5e-4
    """the rate"""
    warmup: int = 0
    """steps of linear rise"""

    def __post_init__(self) -> None:
        _positive(self.lr)

    def rate(self, step: int, steps: int, drops: int = 0) -> float:
        return self.lr * min(1.0, step / max(self.warmup, 1))


Schedule = Noam | InverseSqrt | Cosine | Linear | Plateau | Constant


def drops(schedule: Schedule, before: int, stale: int) -> int:
    """How often the rate has dropped, after `stale` validations without improvement.

    >>> drops(Plateau(patience=2), 1, 2), drops(Constant(), 0, 9)
    (2, 0)
    """
    patience = schedule.patience if isinstance(schedule, Plateau) else 0
    return before + 1 if patience and stale and stale % patience == 0 else before
