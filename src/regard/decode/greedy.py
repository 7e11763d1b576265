"""Greedy search of one sentence without computing all logits: an optional accelerator.

A greedy search compares no hypotheses, so scores are not needed before its end. Tokens are found by an int8 copy of the
output projection (see nn/int8_argmax.py), and all probabilities of a sentence by one product when it has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from regard.decode.beam import Beam
from regard.decode.hypothesis import Choice, History, Hypothesis, Strategy, collect, extend_rows
from regard.decode.loop import decode
from regard.models.base import EncoderDecoder
from regard.nn.inference import InferenceLinear
from regard.nn.int8_argmax import Int8Argmax
from regard.sequence import Rows, Tokens
from regard.trace import tracing

CHUNK = 64
"""positions whose probabilities are computed together"""


def int8_greedy(
    model: EncoderDecoder, source: Rows, prompt: Tokens, strategy: Strategy, limits_B: Tensor
) -> list[list[Hypothesis]] | None:
    """Greedy search of one source by Int8Argmax. None if it does not apply: another strategy, logits processors,
    tracing, a small vocabulary, or a model without `optimize_for_inference`.
    """
    if len(prompt) != 1 or not isinstance(strategy, Beam) or strategy.width != 1 or tracing():
        return None
    if strategy.processors or strategy.coverage_penalty or not isinstance(model.readout, InferenceLinear):
        return None
    argmax = model.readout.int8_argmax()
    return None if argmax is None else greedy(model, argmax, source, prompt, strategy, limits_B)


def greedy(
    model: EncoderDecoder, argmax: Int8Argmax, source: Rows, prompt: Tokens, beam: Beam, limits_B: Tensor
) -> list[list[Hypothesis]]:
    """What `Beam(1)` finds for one source, faster."""
    strategy = Int8Greedy(argmax, beam.eos)
    [[found]] = collect(decode(FeaturesOnly(model), source, prompt, strategy, limits_B))
    score, tokens = 0.0, torch.tensor(found.tokens, device="cpu")  # Int8Argmax is for CPUs
    with torch.inference_mode():
        for features_TD, tokens_T in zip(torch.cat(strategy.features).split(CHUNK), tokens.split(CHUNK), strict=True):
            log_TV = model.readout(features_TD).log_softmax(-1)
            score += float(log_TV.gather(1, tokens_T[:, None]).double().sum())
    return [[Hypothesis(found.tokens, score / float(beam.penalty(float(len(tokens)))), score, found.complete)]]


@dataclass
class Int8Greedy:
    """Argmax from features instead of logits; features are kept, and scores stay 0."""

    argmax: Int8Argmax
    eos: int
    features: list[Tensor] = field(default_factory=list)
    width = 1
    n_best = 1
    coverage_penalty = 0.0

    def choose(self, features_1D: Tensor, history: History) -> tuple[Choice, History]:
        self.features.append(features_1D)
        token_1 = self.argmax.argmax(features_1D)
        return extend_rows(history, token_1, history.scores, history.scores, token_1 == self.eos)


class FeaturesOnly(EncoderDecoder):
    """A model without its output projection."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__(model.encoder, model.decoder)
        self.features = nn.Identity()

    @property
    def readout(self) -> nn.Module:
        return self.features
