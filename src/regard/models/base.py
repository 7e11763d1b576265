"""The contract between models and everything else: one trainer, one decoding loop and one trace serve whoever keeps it.

Features apart from logits: a loss projects only the places that count, a prompt only its last. A state in two
halves: beam search never copies what all hypotheses of a source share. Room for a cache is asked for, not grown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from regard.sequence import Memory, Padded, Rows, Tokens
from regard.spaces import Space

Scope = Literal["all", "near", "before", "itself"]
"""How much of its source a place knows when it answers"""


@dataclass(frozen=True)
class State(Rows):
    """What a decoder remembers: B rows about sources, B x width rows about hypotheses. Each call consumes it.

    >>> rows = Padded(torch.zeros(2, 1), torch.ones(2))
    >>> state = State(rows, rows).fork(3)
    >>> len(state.source), len(state.hypothesis), len(state.keep(torch.tensor([1])).hypothesis)
    (2, 6, 3)
    """

    source: Rows
    """read by all hypotheses of a source; never copied for them"""
    hypothesis: Any
    """a Rows: what each hypothesis has read so far"""
    width: int = 1

    def fork(self, width: int) -> State:
        """Each hypothesis becomes `width` of them."""
        if width == 1:
            return self
        rows = torch.arange(len(self.hypothesis), device=self.hypothesis.device).repeat_interleave(width)
        return replace(self.reorder(rows), width=self.width * width)

    def reorder(self, parents: Tensor) -> State:
        """Hypothesis i goes on from where `parents[i]` was."""
        return replace(self, hypothesis=self.hypothesis.select(parents))

    def keep(self, rows: Tensor) -> State:
        """Only these sources go on, with all their hypotheses."""
        slots = torch.arange(self.width, device=rows.device)
        both = (rows[:, None] * self.width + slots).flatten()
        return replace(self, source=self.source.select(rows), hypothesis=self.hypothesis.select(both))


class Layer(nn.Module):
    """Entered only through forward, and owning its parameters alone: the unit that is compiled or sharded.

    >>> isinstance(Layer(), nn.Module)
    True
    """


class Encoder(nn.Module, ABC):
    """Source -> Memory. The source is Tokens, Images, or nothing.

    >>> Nothing()(Tokens.of([[], []])).states.data.shape
    torch.Size([2, 0, 1])
    """

    width: int
    """of memory.states; 0: there never is a source"""
    final: tuple[tuple[int, ...], ...] = ()
    """the widths of what memory.final holds: one tuple a layer, one number a tensor; (): nothing is handed on"""

    @abstractmethod
    def forward(self, source: Any) -> Memory: ...


class Decoder(nn.Module, ABC):
    """Reads what was said and gives features of what comes next; the whole target, a prompt, or one token.

    >>> Decoder.__abstractmethods__ == {"start", "forward"}
    True
    """

    readout: nn.Module
    """features -> logits, or the parameters of another distribution"""

    @abstractmethod
    def start(self, memory: Memory, room: int) -> State:
        """`room`: how many tokens will be read in all; 0: one forward will read everything (teacher forcing)."""

    @abstractmethod
    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        """Features (N, T, D) and the next state. Consumes `state`."""

    def carry(self, state: State) -> State | None:
        """What the next window of a stream goes on from: this state without its gradients, in memory of its own.

        A decoder whose state grows with all that it has read gives None: each window is then read alone.
        """
        return state.map(lambda tensor: tensor.detach().clone(memory_format=torch.contiguous_format))


class EncoderDecoder(nn.Module):
    """Any encoder with any decoder. A language model is EncoderDecoder(Nothing(), decoder).

    >>> from regard.models.gpt import GPTConfig
    >>> from regard.spaces import Words
    >>> model = GPTConfig(layers=1, width=8, heads=2, longest=16).build(Words(7), Words(7))
    >>> model(Tokens.of([[]]), Tokens.of([[2, 5, 6]])).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    @property
    def readout(self) -> nn.Module:
        return self.decoder.readout

    def start(self, source: Rows, room: int = 0) -> State:
        return self.decoder.start(self.encoder(source), room)

    def forward(self, source: Rows, target: Tokens) -> Tensor:
        return self.decoder(target, self.start(source))[0]


class Nothing(Encoder):
    """The empty source: a language model, or a forecaster, is a generator with x = 0.

    >>> Nothing()(Tokens.of([[]])).states.lengths
    tensor([0])
    """

    width = 0

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("zero", torch.zeros(()), persistent=False)  # follows the model's device and dtype

    def forward(self, source: Padded) -> Memory:
        zero: Tensor = self.zero  # type: ignore[assignment]
        return Memory(Padded(zero.expand(len(source), 0, 1), source.lengths * 0, ragged=False))


class Classifier(nn.Module):
    """Seq2Vec: one answer for the whole source; the head pools (first, mean, last, final).

    >>> from regard.sequence import first
    >>> from regard.spaces import Classes
    >>> Classifier(Nothing(), first, Classes(2), 8).readout
    Linear(in_features=8, out_features=2, bias=True)
    """

    def __init__(self, encoder: Encoder, pool: Callable[[Memory], Tensor], space: Space, width: int) -> None:
        super().__init__()
        self.encoder, self.pool, self.readout = encoder, pool, space.head(width)

    def forward(self, source: Rows) -> Tensor:
        return self.pool(self.encoder(source))


class Tagger(nn.Module):
    """Seq2Seq, aligned: one answer a position. BERT's masked LM is a tagger over the vocabulary.

    >>> from regard.spaces import Classes
    >>> Tagger(Nothing(), Classes(3), 8).readout
    Linear(in_features=8, out_features=3, bias=True)
    """

    def __init__(self, encoder: Encoder, space: Space, width: int) -> None:
        super().__init__()
        self.encoder, self.readout = encoder, space.head(width)

    def forward(self, source: Tokens) -> Tensor:
        return self.encoder(source).states.data


def parameters(model: nn.Module) -> int:
    """How many numbers a model learns; tied ones count once.

    >>> parameters(nn.Linear(3, 2))
    8
    """
    return sum(p.numel() for p in model.parameters())
