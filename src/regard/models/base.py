"""The model contract: any encoder and decoder that implement it work with the trainer, decoding and tracing.

Features are separate from logits: the loss projects only positions that count, a prompt only its last. A state has two
halves: beam search never copies what the hypotheses of a source share. The capacity of a KV cache is allocated once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from regard.sequence import Memory, Padded, Rows, Tokens
from regard.spaces import Space

INPUT_PARTS = ("embed", "positions", "segments", "input_embedding")
"""attributes of encoders and decoders that make the input of their first layer"""

ReceptiveField = Literal["full", "local", "left", "position"]
"""The part of the source that the output at a position depends on"""

RecordedValues = Callable[[str], Tensor]
"""name of a tap inside a module -> its recorded values of one text: (P, D), or (D,) of a value that is made once"""


@dataclass(frozen=True)
class State(Rows):
    """Decoder state: B rows of sources, B x width rows of hypotheses. Each forward call consumes it.

    >>> rows = Padded(torch.zeros(2, 1), torch.ones(2))
    >>> state = State(rows, rows).fork(3)
    >>> len(state.source), len(state.hypothesis), len(state.keep(torch.tensor([1])).hypothesis)
    (2, 6, 3)
    """

    source: Rows
    """shared by all hypotheses of a source; never copied for them"""
    hypothesis: Any
    """a Rows: state of each hypothesis, such as a KV cache"""
    width: int = 1
    """hypotheses per source"""

    def fork(self, width: int) -> State:
        """Repeat each hypothesis `width` times."""
        if width == 1:
            return self
        rows = torch.arange(len(self.hypothesis), device=self.hypothesis.device).repeat_interleave(width)
        return replace(self.reorder(rows), width=self.width * width)

    def reorder(self, parents: Tensor) -> State:
        """Hypothesis i continues from hypothesis `parents[i]`."""
        return replace(self, hypothesis=self.hypothesis.select(parents))

    def keep(self, rows: Tensor) -> State:
        """Keep only these sources, with all their hypotheses."""
        slots = torch.arange(self.width, device=rows.device)
        both = (rows[:, None] * self.width + slots).flatten()
        return replace(self, source=self.source.select(rows), hypothesis=self.hypothesis.select(both))


class Layer(nn.Module):
    """Called only through forward, and sole owner of its parameters: the unit that is compiled or sharded."""


class Encoder(nn.Module, ABC):
    """Source -> Memory. The source is Tokens, Images, or empty."""

    width: int
    """of memory.states; 0: reads no source"""
    final: tuple[tuple[int, ...], ...] = ()
    """widths of the tensors in memory.final: one tuple per layer; (): no final states"""
    input_parts: tuple[str, ...] = INPUT_PARTS
    """attributes below the first layer: the deepest group of layer-wise learning-rate decay"""

    @abstractmethod
    def forward(self, source: Any) -> Memory: ...

    def lens_states(self, x: Tensor) -> Tensor:
        """States, as if `x` were outputs of the last layer: a last norm, if there is one."""
        return x

    def embeddings(self) -> tuple[nn.Module, ...]:
        """The modules that turn ids into vectors: saliency attributes an answer to their outputs."""
        embed: Any = self.embed
        return (embed,)


class Decoder(nn.Module, ABC):
    """Tokens so far -> features of the next token; reads a whole target, a prompt, or one token at a time."""

    readout: nn.Module
    """output projection: features -> logits, or the parameters of another distribution"""
    input_parts: tuple[str, ...] = INPUT_PARTS
    """attributes below the first layer: the deepest group of layer-wise learning-rate decay"""

    @abstractmethod
    def start(self, memory: Memory, max_tokens: int) -> State:
        """Initial state. `max_tokens`: capacity of the KV cache; 0: one forward reads everything (teacher forcing)."""

    @abstractmethod
    def forward(self, tokens: Tokens, state: State) -> tuple[Tensor, State]:
        """Features (N, T, D) and the next state. Consumes `state`."""

    def lens_features(self, x_PD: Tensor, recorded: RecordedValues) -> Tensor | None:
        """Features, as if `x_PD` were outputs of the last layer: the logit lens projects the outputs of every layer.

        Features that are made of more than the last layer take the rest as it was recorded. None: there is no such
        reading of a layer.
        """
        return None

    def hidden_state(self, state: State) -> State | None:
        """Hidden state carried to the next window of truncated BPTT: a detached copy of the state.

        None if the state grows with the text (a KV cache): each window is then read independently.
        """
        return state.map(lambda tensor: tensor.detach().clone(memory_format=torch.contiguous_format))


class EncoderDecoder(nn.Module):
    """Any encoder with any decoder. A language model is EncoderDecoder(Nothing(), decoder).

    >>> from regard.models.gpt import GPTConfig
    >>> from regard.spaces import Words
    >>> model = GPTConfig(layers=1, width=8, heads=2, max_positions=16).build(Words(7), Words(7))
    >>> model(Tokens.pad([[]]), Tokens.pad([[2, 5, 6]])).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    @property
    def readout(self) -> nn.Module:
        return self.decoder.readout

    def start(self, source: Rows, max_tokens: int = 0) -> State:
        return self.decoder.start(self.encoder(source), max_tokens)

    def forward(self, source: Rows, target: Tokens) -> Tensor:
        return self.decoder(target, self.start(source))[0]


class EmptyEncoder(Encoder):
    """Encoder of language models: ignores its input and returns an empty memory."""

    width = 0

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("zero", torch.zeros(()), persistent=False)  # follows the model's device and dtype

    def forward(self, source: Padded) -> Memory:
        zero: Tensor = self.zero  # type: ignore[assignment]
        return Memory(Padded(zero.expand(source.lengths.shape[0], 0, 1), source.lengths * 0, ragged=False))


class Classifier(nn.Module):
    """Seq2Vec: one output per source; `pool` makes one vector of the memory (first, mean, last, final)."""

    def __init__(self, encoder: Encoder, pool: Callable[[Memory], Tensor], space: Space, width: int) -> None:
        super().__init__()
        self.encoder, self.pool, self.readout = encoder, pool, space.head(width)

    def forward(self, source: Rows) -> Tensor:
        return self.pool(self.encoder(source))


class Tagger(nn.Module):
    """Aligned Seq2Seq: one output per position. BERT's masked LM is a tagger over the vocabulary."""

    def __init__(self, encoder: Encoder, space: Space, width: int) -> None:
        super().__init__()
        self.encoder, self.readout = encoder, space.head(width)

    def forward(self, source: Tokens) -> Tensor:
        return self.encoder(source).states.data


class ModelConfigBase:
    """Defaults of all model configs."""

    kind: Any
    """the name in recipes, a Literal of one string"""
    reads_images: ClassVar[bool] = False
    """whether the encoder reads images instead of sequences"""
    reads_clips: ClassVar[bool] = False
    """whether what it reads are image sequences"""
    reads_spellings: ClassVar[bool] = False
    """whether the encoder reads words by their characters, so that no word is unknown (SpelledInput)"""
    embeds_word_ids: ClassVar[bool] = True
    """whether the encoder embeds ids: false if it reads words by their characters alone"""
    bidirectional_lm: ClassVar[bool] = False
    """whether build() also gives a `backward_decoder`, a language model that reads texts from their end"""

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        return str(self.kind)

    @property
    def receptive_field(self) -> ReceptiveField:
        """The part of the source that the encoder's output at a position depends on."""
        return "full"

    @property
    def position_limit(self) -> int | None:
        """Longest sequence that can be read; None: any length."""
        return None

    @property
    def language_models(self) -> ModelConfigBase | None:
        """Config of the language models whose layers the encoder reads by (ELMo); None: there are none."""
        return None

    def check_shared_vocab(self, shared: bool) -> None:
        """Raise ConfigError if the model cannot translate, or not with two vocabularies; by default any will do."""


class EncoderDecoderConfigBase(ModelConfigBase, ABC):
    """Defaults of configs of encoder-decoder models."""

    @abstractmethod
    def build_encoder(self, source: Any) -> Encoder:
        """The encoder, with fresh weights."""

    @abstractmethod
    def build_decoder(self, target: Any, encoder: Encoder) -> Decoder:
        """The decoder, with fresh weights, for the memory of `encoder`."""

    def build(self, source: Space, target: Space) -> EncoderDecoder:
        """The model, with fresh weights."""
        encoder = self.build_encoder(source)
        return EncoderDecoder(encoder, self.build_decoder(target, encoder))


def parameters(model: nn.Module) -> int:
    """Number of parameters, frozen ones included; tied ones count once.

    >>> parameters(nn.Linear(3, 2))
    8
    """
    return sum(p.numel() for p in model.parameters())
