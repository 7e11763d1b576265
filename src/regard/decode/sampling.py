"""Sampling, and rollouts of real-valued models: strategies that never reorder rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from regard.data.splitmix import row_seeds, splitmix64
from regard.decode.beam import argmax_rows
from regard.decode.hypothesis import Choice, History, extend_rows
from regard.decode.processors import LogitsProcessor, process
from regard.sequence import EOS

CHUNK = 2**16
"""random numbers that are drawn at once, so that they stay in the cache"""


@dataclass(frozen=True)
class Sampling:
    """Ancestral sampling of `width` outputs per source; processors shape the distribution, scores stay the model's.

    A token is drawn by the Gumbel-max trick: the largest log-probability plus Gumbel noise. Every output has its own
    random stream, seeded by the seed, its source and its index: the other rows of a batch change nothing, and the same
    seed gives the same output.

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
        shaped_NV = process(self.processors, log_NV, history, self.eos)
        _, tokens_N = argmax_rows(shaped_NV + self.noise(history, out_NV.shape[1]).to(out_NV.device), history.scores)
        scores_N = history.scores + log_NV.gather(1, tokens_N[:, None]).squeeze(1)
        ended_N = (tokens_N == self.eos) & (scores_N > -math.inf)
        return extend_rows(history, tokens_N, scores_N, scores_N, ended_N)

    def noise(self, history: History, size: int) -> Tensor:
        """(N, V) Gumbel noise of the next token, on the CPU: every device draws alike from equal probabilities."""
        slots_N = torch.arange(len(history.scores), device="cpu") % self.width
        return gumbel_noise(self.seed, history.owners.cpu(), slots_N, history.length, size)


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


def gumbel_noise(seed: int, sources_N: Tensor, slots_N: Tensor, step: int, size: int) -> Tensor:
    """(N, V) standard Gumbel noise, -log(-log u): one stream of uniform numbers (SplitMix64) per row and step.

    >>> gumbel_noise(0, torch.tensor([0, 1]), torch.tensor([0, 0]), 0, 3)
    tensor([[ 0.5757,  0.6294, -0.3288],
            [-0.7504, -0.5104,  1.8838]])
    """
    seeds_N = row_seeds(torch.stack([sources_N, slots_N], 1).numpy(), seed, step)
    noise_NV = torch.empty(len(seeds_N), size, device="cpu")
    rows = max(1, CHUNK // size)
    for start in range(0, len(seeds_N), rows):
        # 52 bits and a half: never 0 and never 1
        bits_NV = (splitmix64(seeds_N[start : start + rows], size) >> 12).view(np.int64)
        uniform_NV = torch.asarray(bits_NV, dtype=torch.double, device="cpu").add_(0.5).mul_(2.0**-52)
        noise_NV[start : start + rows] = uniform_NV.log_().neg_().log_().neg_()
    return noise_NV
