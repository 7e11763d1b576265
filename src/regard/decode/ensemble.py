"""Several models that speak as one: the mean of their probabilities (Sutskever et al. 2014, 3.6)."""

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
    """Models with one vocabulary, whatever their families: what takes an EncoderDecoder takes an ensemble.

    >>> from regard.models.gpt import GPTConfig
    >>> from regard.spaces import Words
    >>> models = [GPTConfig(layers=1, width=8, heads=2, longest=16).build(Words(7), Words(7)) for _ in range(2)]
    >>> both = Ensemble(models).eval()
    >>> log = both.readout(both(Tokens.of([[]]), Tokens.of([[2, 5]])))
    >>> log.shape, torch.allclose(log.exp().sum(-1), torch.ones(1, 2))
    (torch.Size([1, 2, 7]), True)
    """

    def __init__(self, models: Sequence[EncoderDecoder]) -> None:
        if not models:
            raise ModelError("an ensemble needs at least one model, got none")
        super().__init__(Encoders([m.encoder for m in models]), Decoders([m.decoder for m in models]))


@dataclass(frozen=True)
class Memories(Memory):
    """What each encoder hands on; `states` are the first one's."""

    parts: tuple[Memory, ...] = ()


class Encoders(Encoder):
    """Each model's encoder reads the same source."""

    def __init__(self, parts: Sequence[Encoder]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, source: Any) -> Memories:
        memories = tuple(part(source) for part in self.parts)
        return Memories(memories[0].states, (), (), memories)


@dataclass(frozen=True)
class Each(Rows):
    """What each model remembers."""

    parts: tuple[Rows, ...]

    def select(self, rows: Tensor) -> Each:
        """Each in its own way: a cache knows how to move itself."""
        return Each(tuple(part.select(rows) for part in self.parts))


class Decoders(Decoder):
    """Each model's decoder reads the same target. Features have other widths in each, so what is handed on is the
    logarithm of the mean probability itself, and the readout has nothing left to do."""

    def __init__(self, parts: Sequence[Decoder]) -> None:
        super().__init__()
        self.parts, self.readout = nn.ModuleList(parts), nn.Identity()

    def start(self, memory: Memory, room: int) -> State:
        memories: tuple[Memory, ...] = memory.parts  # type: ignore[attr-defined]
        pairs = zip(self.parts, memories, strict=True)
        states = [part.start(m, room) for part, m in pairs]  # type: ignore[operator]
        return State(Each(tuple(s.source for s in states)), Each(tuple(s.hypothesis for s in states)))

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
        after = (Each(tuple(s.source for s in states)), Each(tuple(s.hypothesis for s in states)))
        return mean_NTV, State(*after, state.width)
