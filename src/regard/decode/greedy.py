"""Greedy search of one sentence by a model that is ready for use: the word first, its probability at the end.

Nobody is compared while a greedy search goes on, so no score is needed before it is over. The word is found by a screen
of the softmax's matrix (see nn/screen.py), and all probabilities of a sentence by one product when it has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from regard.decode.beam import Beam
from regard.decode.hypothesis import Choice, History, Hypothesis, Strategy, collect, going_on
from regard.decode.loop import decode
from regard.models.base import EncoderDecoder
from regard.nn.inference import ReadyLinear
from regard.nn.int8_argmax import Screen
from regard.sequence import Rows, Tokens
from regard.trace import tracing

CHUNK = 64
"""Places whose probabilities are computed together"""


def screened(
    model: EncoderDecoder, source: Rows, prompt: Tokens, strategy: Strategy, limits_B: Tensor
) -> list[list[Hypothesis]] | None:
    """What a greedy search finds for one source, sooner. None: it has rules, or is another search, or somebody looks at
    the logits, or the model is small or not made ready.

    >>> from regard.models.gpt import GPTConfig
    >>> from regard.spaces import Words
    >>> model = GPTConfig(layers=1, width=8, heads=2, longest=16).build(Words(7), Words(7)).eval()
    >>> screened(model, Tokens.of([[]]), Tokens.of([[2]]), Beam(1), torch.tensor([3])) is None
    True
    """
    if len(prompt) != 1 or not isinstance(strategy, Beam) or strategy.width != 1 or tracing():
        return None
    if strategy.rules or strategy.coverage or not isinstance(model.readout, ReadyLinear):
        return None
    screen = model.readout.screen()
    return None if screen is None else greedy(model, screen, source, prompt, strategy, limits_B)


def greedy(
    model: EncoderDecoder, screen: Screen, source: Rows, prompt: Tokens, beam: Beam, limits_B: Tensor
) -> list[list[Hypothesis]]:
    """What `Beam(1)` finds for one source, sooner.

    >>> from regard.models.gpt import GPTConfig
    >>> from regard.spaces import Words
    >>> model = GPTConfig(layers=1, width=8, heads=2, longest=16).build(Words(7), Words(7)).eval()
    >>> asked = (Tokens.of([[]]), Tokens.of([[2]]), Beam(1), torch.tensor([3]))
    >>> found = greedy(model, Screen(model.readout.weight.detach()), *asked)[0][0]
    >>> found.tokens == collect(decode(model, *asked))[0][0].tokens
    True
    """
    first = First(screen, beam.eos)
    [[found]] = collect(decode(Unread(model), source, prompt, first, limits_B))
    score, said = 0.0, torch.tensor(found.tokens)
    with torch.inference_mode():
        for features_TD, said_T in zip(torch.cat(first.features).split(CHUNK), said.split(CHUNK), strict=True):
            log_TV = model.readout(features_TD).log_softmax(-1)
            score += float(log_TV.gather(1, said_T[:, None]).double().sum())
    return [[Hypothesis(found.tokens, score / float(beam.penalty(float(len(said)))), score, found.complete)]]


@dataclass
class First:
    """The likeliest word, of features instead of logits; they are kept, and scores stay 0."""

    screen: Screen
    eos: int
    features: list[Tensor] = field(default_factory=list)
    width = 1
    n_best = 1
    coverage = 0.0

    def choose(self, features_1D: Tensor, history: History) -> tuple[Choice, History]:
        self.features.append(features_1D)
        token_1 = self.screen.likeliest(features_1D)
        return going_on(history, token_1, history.scores, history.scores, token_1 == self.eos)


class Unread(EncoderDecoder):
    """A model whose features are all that is asked for."""

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__(model.encoder, model.decoder)
        self.features = nn.Identity()

    @property
    def readout(self) -> nn.Module:
        return self.features
