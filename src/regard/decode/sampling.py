"""Sampling, and rollouts of real-valued models: strategies that never reorder rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.decode.hypothesis import Choice, History, extend_rows
from regard.decode.processors import LogitsProcessor, apply
from regard.sequence import EOS


@dataclass(frozen=True)
class Sampling:
    """Ancestral sampling of `width` outputs per source; processors shape the distribution, scores stay the model's.

    Every output has its own random stream, seeded by the seed, its source and its index: the other rows of a batch
    change nothing, and the same seed gives the same output.

    >>> history = History.start(torch.tensor([0]), torch.tensor([5]), 1, 1)
    >>> Sampling(seed=1).choose(torch.tensor([[0.0, -99.0, 0.0]]), history)[0].tokens
    tensor([0])
    """

    seed: int = 0
    processors: tuple[LogitsProcessor, ...] = ()
    width: int = 1
    eos: int = EOS

    @property
    def n_best(self) -> int:
        return self.width

    @property
    def coverage_penalty(self) -> float:
        return 0.0

    def choose(self, out_NV: Tensor, history: History) -> tuple[Choice, History]:
        if not history.length:  # unlike beams, all samples of a source start alive
            history = replace(history, scores=torch.zeros_like(history.scores))
        log_NV = out_NV.log_softmax(-1)
        # drawn on the CPU, in double precision, which MPS lacks: every device draws alike from equal probabilities
        cumulative_NV = apply(self.processors, out_NV, history, self.eos).cpu().double().softmax(-1).cumsum(-1)
        slots_N = torch.arange(len(history.scores), device="cpu") % self.width
        uniform_N = uniform(self.seed, history.owners.cpu(), slots_N, history.length)
        tokens_N = (cumulative_NV <= uniform_N[:, None] * cumulative_NV[:, -1:]).sum(1).to(out_NV.device)
        scores_N = history.scores + log_NV.gather(1, tokens_N[:, None]).squeeze(1)
        ended_N = (tokens_N == self.eos) & (scores_N > -math.inf)
        return extend_rows(history, tokens_N, scores_N, scores_N, ended_N)


@dataclass(frozen=True)
class Rollout:
    """Autoregressive forecast: each prediction is the next input. `predict` is the space's mode, or samples from it.

    >>> history = History.start(torch.tensor([0]), torch.tensor([5]), 1, 1)
    >>> Rollout(lambda out: out * 2).choose(torch.ones(1, 3), history)[0].tokens
    tensor([[2., 2., 2.]])
    """

    predict: Callable[[Tensor], Tensor]

    @property
    def width(self) -> int:
        return 1

    @property
    def n_best(self) -> int:
        return 1

    @property
    def coverage_penalty(self) -> float:
        return 0.0

    def choose(self, out_NF: Tensor, history: History) -> tuple[Choice, History]:
        never_N = torch.zeros_like(history.scores, dtype=torch.bool)
        return extend_rows(history, self.predict(out_NF), history.scores, history.scores, never_N)


def uniform(seed: int, sources_N: Tensor, slots_N: Tensor, step: int) -> Tensor:
    """(N,) uniform random numbers in [0, 1), double precision: SplitMix64 (Steele et al. 2014), one stream per row.

    >>> uniform(0, torch.tensor([0, 1]), torch.tensor([0, 0]), 0)
    tensor([0.5301, 0.6600], dtype=torch.float64)
    """
    mixed_N = torch.full_like(sources_N, _to_int64(seed))
    for part in (sources_N, slots_N, torch.full_like(sources_N, step)):
        mixed_N = _mix(mixed_N ^ _mix(part))
    return (mixed_N & ((1 << 40) - 1)).double() / (1 << 40)


def _mix(x_N: Tensor) -> Tensor:
    x_N = x_N + _to_int64(0x9E3779B97F4A7C15)
    x_N = (x_N ^ _logical_shift(x_N, 30)) * _to_int64(0xBF58476D1CE4E5B9)
    x_N = (x_N ^ _logical_shift(x_N, 27)) * _to_int64(0x94D049BB133111EB)
    return x_N ^ _logical_shift(x_N, 31)


def _logical_shift(x_N: Tensor, bits: int) -> Tensor:
    """Logical shift; torch's is arithmetic."""
    return (x_N >> bits) & ((1 << (64 - bits)) - 1)


def _to_int64(x: int) -> int:
    return (x + (1 << 63)) % (1 << 64) - (1 << 63)
