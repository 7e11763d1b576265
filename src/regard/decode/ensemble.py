"""Ensembles: the mean of the probabilities of several models (Sutskever et al. 2014, 3.6). Used from Python only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import ModelError
from regard.models.base import Decoder, Encoder, EncoderDecoder, State
from regard.sequence import Memory, Rows, Tokens


class Ensemble(EncoderDecoder):
    """Ensemble of models with one vocabulary, of any families; usable wherever an EncoderDecoder is.

    >>> from regard.models.gpt import GPTConfig
    >>> from regard.spaces import Words
    >>> models = [GPTConfig(layers=1, width=8, heads=2, max_positions=16).build(Words(7), Words(7)) for _ in range(2)]
    >>> both = Ensemble(models).eval()
    >>> log = both.readout(both(Tokens.pad([[]]), Tokens.pad([[2, 5]])))
    >>> log.shape, torch.allclose(log.exp().sum(-1), torch.ones(1, 2))
    (torch.Size([1, 2, 7]), True)
    """

    def __init__(self, models: Sequence[EncoderDecoder]) -> None:
        if not models:
            raise ModelError("an ensemble needs at least one model, got none")
        super().__init__(EnsembleEncoder([m.encoder for m in models]), EnsembleDecoder([m.decoder for m in models]))


@dataclass(frozen=True)
class EnsembleMemory(Memory):
    """The memory of each encoder; `states` are those of the first."""

    parts: tuple[Memory, ...] = ()


class EnsembleEncoder(Encoder):
    """The encoders of all models read the same source."""

    def __init__(self, parts: Sequence[Encoder]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, source: Any) -> EnsembleMemory:
        memories = tuple(part(source) for part in self.parts)
        return EnsembleMemory(memories[0].states, (), (), memories)


@dataclass(frozen=True)
class EnsembleState(Rows):
    """The state of each model."""

    parts: tuple[Rows, ...]

    def select(self, rows: Tensor) -> EnsembleState:
        """By the method of each part: a KV cache reorders itself."""
        return EnsembleState(tuple(part.select(rows) for part in self.parts))


class EnsembleDecoder(Decoder):
    """The decoders of all models read the same target. Their features differ in width, so the output is the log of the
    mean probability itself, and the readout is the identity."""

    def __init__(self, parts: Sequence[Decoder]) -> None:
        super().__init__()
        self.parts, self.readout = nn.ModuleList(parts), nn.Identity()

    def start(self, memory: Memory, max_tokens: int) -> State:
        memories: tuple[Memory, ...] = memory.parts  # type: ignore[attr-defined]
        pairs = zip(self.parts, memories, strict=True)
        states = [part.start(m, max_tokens) for part, m in pairs]  # type: ignore[operator]
        return State(EnsembleState(tuple(s.source for s in states)), EnsembleState(tuple(s.hypothesis for s in states)))

    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        sources: tuple[Rows, ...] = state.source.parts  # type: ignore[attr-defined]
        logs, states = [], []
        for part, source, hypothesis in zip(self.parts, sources, state.hypothesis.parts, strict=True):
            features_NTD, after = part(tokens, State(source, hypothesis, state.width))
            logs.append(part.readout(features_NTD).log_softmax(-1))  # type: ignore[operator]
            states.append(after)
        sizes = {log.shape[-1] for log in logs}
        if len(sizes) > 1:
            raise ModelError(f"an ensemble needs models with one vocabulary; theirs have {sorted(sizes)} words")
        mean_NTV = torch.stack(logs).logsumexp(0) - math.log(len(logs))
        after = (EnsembleState(tuple(s.source for s in states)), EnsembleState(tuple(s.hypothesis for s in states)))
        return mean_NTV, State(*after, state.width)
