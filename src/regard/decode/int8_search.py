"""Greedy search and sampling of one sentence without computing all logits: an optional accelerator.

Neither compares hypotheses, so scores are not needed before the end. A token is the largest logit, or the largest logit
plus noise: it is found by an int8 copy of the output projection (see nn/int8_argmax.py), tokens that are banned left
out, and all probabilities of a sentence by one product when it has ended.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from regard.decode.beam import Beam
from regard.decode.hypothesis import Choice, History, Hypothesis, Strategy, collect, extend_rows
from regard.decode.loop import decode
from regard.decode.processors import Ban, Temperature
from regard.decode.sampling import Sampling
from regard.models.base import EncoderDecoder
from regard.nn.inference import InferenceLinear
from regard.nn.int8_argmax import Int8Argmax
from regard.sequence import Rows, Tokens
from regard.trace import tracing

CHUNK = 64
"""positions whose probabilities are computed together"""


def int8_search(
    model: EncoderDecoder,
    source: Rows,
    prompt: Tokens,
    strategy: Strategy,
    limits_B: Tensor,
    numbers_B: Tensor | None = None,
) -> list[list[Hypothesis]] | None:
    """What `Beam(1)` or `Sampling` finds for one source, faster; None where `int8_strategy` does not apply."""
    fast = int8_strategy(model, len(prompt), strategy)
    if fast is None:
        return None
    [[found]] = collect(decode(FeaturesOnly(model), source, prompt, fast, limits_B, numbers_B))
    score = fast.total_score()
    value = score / float(strategy.penalty(float(len(found.tokens)))) if isinstance(strategy, Beam) else score
    return [[Hypothesis(found.tokens, value, score, found.complete)]]


def int8_strategy(model: EncoderDecoder, rows: int, strategy: Strategy) -> Int8Search | None:
    """Greedy search or sampling by Int8Argmax, to be run with `FeaturesOnly(model)`.

    None if it does not apply: another strategy, several rows, logits processors that need more than banned tokens and
    a temperature, tracing, a small vocabulary, or a model without `optimize_for_inference`.
    """
    if rows != 1 or not isinstance(strategy, Beam | Sampling) or strategy.width != 1 or tracing():
        return None
    bans = tuple(one for one in strategy.processors if isinstance(one, Ban))
    rest = [one for one in strategy.processors if not isinstance(one, Ban)]
    heats = [one.value for one in rest if isinstance(one, Temperature)]
    sampling = strategy if isinstance(strategy, Sampling) else None
    if len(heats) < len(rest) or (heats and sampling is None) or strategy.coverage_penalty:
        return None
    if not isinstance(model.readout, InferenceLinear):
        return None
    argmax = model.readout.int8_argmax()
    if argmax is None or len({id for one in bans for id in one.ids}) >= len(argmax.weight):
        return None
    return Int8Search(model.readout, argmax, strategy.eos, bans, sampling, math.prod(heats))


@dataclass
class Int8Search:
    """Tokens from features instead of logits; features are kept for `total_score`, and the scores of steps stay 0."""

    readout: nn.Module
    argmax: Int8Argmax
    eos: int
    bans: tuple[Ban, ...] = ()
    sampling: Sampling | None = None
    """whose noise is added; None: greedy search"""
    temperature: float = 1.0
    features: list[Tensor] = field(default_factory=list)
    tokens: list[Tensor] = field(default_factory=list)
    width = 1
    n_best = 1
    coverage_penalty = 0.0

    def __post_init__(self) -> None:
        # the steps at which the set of banned tokens changes, so that it is made once for each
        self._starts = {0, *(int(one.below) for one in self.bans if one.below < math.inf)}
        self._banned: Tensor | None = None

    def choose(self, features_1D: Tensor, history: History) -> tuple[Choice, History]:
        if history.length in self._starts:
            self._banned = self._banned_at(history.length)
        noise_V = None
        if self.sampling is not None:  # the largest of l / T + noise is that of l + T noise
            noise_V = self.sampling.noise(history, len(self.argmax.weight))[0].mul_(self.temperature)
        token_1 = self.argmax.argmax(features_1D, self._banned, noise_V)
        self.features.append(features_1D)
        self.tokens.append(token_1)
        return extend_rows(history, token_1, history.scores, history.scores, token_1 == self.eos)

    @torch.inference_mode()
    def total_score(self) -> float:
        """Log-probability of the tokens chosen so far, in one product for every `CHUNK` of them."""
        score = 0.0
        for start in range(0, len(self.tokens), CHUNK):
            part = slice(start, start + CHUNK)
            log_TV = self.readout(torch.cat(self.features[part])).log_softmax(-1)
            score += float(log_TV.gather(1, torch.cat(self.tokens[part])[:, None]).double().sum())
        return score

    def _banned_at(self, length: int) -> Tensor | None:
        ids = sorted({id for one in self.bans if length < one.below for id in one.ids})
        return torch.tensor(ids, device="cpu") if ids else None  # Int8Argmax is for CPUs


class FeaturesOnly(EncoderDecoder):
    """A model without its output projection."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__(model.encoder, model.decoder)
        self.features = nn.Identity()

    @property
    def readout(self) -> nn.Module:
        return self.features
