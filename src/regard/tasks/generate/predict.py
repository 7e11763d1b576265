"""Generation with a trained model: continue a prompt by sampling, streamed as it is generated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from regard.data.scaling import StandardScaler
from regard.data.tables import parse_numeric_table
from regard.decode import DecodeConfig, Rollout, ban, decode
from regard.errors import ConfigError, DataError
from regard.models.base import EncoderDecoder
from regard.sequence import Tokens
from regard.spaces import Gaussian
from regard.tasks.base import tap_output
from regard.tasks.generate.loader import empty_source
from regard.text import Tokenizer
from regard.trace import tracing

MAX_PROMPT = 4096
"""tokens of a prompt that are read: the last ones of a longer one"""
MAX_LISTED = 5
"""unknown characters that a message lists"""


@dataclass(frozen=True)
class GeneratedText:
    """Continuation of a prompt."""

    text: str
    tokens: tuple[str, ...]
    score: float
    """log-probability under the model, whatever the sampling settings"""
    complete: bool
    """whether it ended with <EOS>, and not at the length limit"""


@dataclass(frozen=True)
class SampledToken:
    """One token of one sample."""

    sample: int
    id: int
    score: float
    """log-probability of the sample so far"""
    ended: bool
    """whether it is <EOS>"""
    last: bool = False
    """whether it is the last one before the context is read again"""


class IncrementalDetokenizer:
    """Decodes ids to text one at a time; incomplete UTF-8 sequences are held back."""

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int]) -> None:
        self.tokenizer = tokenizer
        self._restart(list(prompt))

    def add(self, id: int) -> str:
        """The characters that this id completes."""
        self._ids.append(id)
        text = self.tokenizer.decode(self._ids)
        if text.endswith("\ufffd"):
            return ""
        new = text[len(self._decoded) :]
        self._restart(self._ids)
        return new

    def flush(self) -> str:
        """What was held back, at the end."""
        return self.tokenizer.decode(self._ids)[len(self._decoded) :]

    def _restart(self, ids: list[int]) -> None:
        self._ids = ids[-8:]  # a few, since the text of a token may depend on its neighbors
        self._decoded = self.tokenizer.decode(self._ids)


class Sample(Protocol):
    """A generated sample of any modality."""

    @property
    def text(self) -> str:
        """The sample as text."""


class Generator(ABC):
    """Continues prompts."""

    @abstractmethod
    def generate(self, prompt: str, length: int, n: int = 1) -> Sequence[Sample]:
        """`n` continuations of a prompt, each of at most `length` positions."""

    @abstractmethod
    def stream(self, prompt: str, length: int) -> Iterator[str]:
        """One continuation, piece by piece, as it is generated."""

    @abstractmethod
    def check_prompt(self, prompt: str) -> None:
        """Refuse a prompt that cannot be continued."""

    @abstractmethod
    def encode_prompt(self, prompt: str) -> tuple[Tokens, list[str]]:
        """A prompt as the model's input, and the text of each position."""

    @abstractmethod
    def display_prompt(self, prompt: str) -> str:
        """The prompt as it is printed before its continuation."""

    @property
    @abstractmethod
    def samples_are_lines(self) -> bool:
        """Whether each sample is one line, so that no separator is needed."""


@dataclass(frozen=True)
class TextGenerator(Generator):
    """Text generation with a language model, its tokenizer and the sampling settings."""

    model: EncoderDecoder
    tokenizer: Tokenizer
    config: DecodeConfig
    has_ends: bool = False
    """whether training texts end with <EOS>: then the prompt may be empty, and generation may end by itself"""
    context: int | None = None
    """positions that the model reads at once; when full, the last half is read again. None: unlimited"""

    @property
    def samples_are_lines(self) -> bool:
        return self.has_ends

    def check_prompt(self, prompt: str) -> None:
        self.prompt_ids(prompt)

    def encode_prompt(self, prompt: str) -> tuple[Tokens, list[str]]:
        ids = self.prompt_ids(prompt)
        return Tokens.pad([ids]), self.tokenizer.tokens(ids)

    def display_prompt(self, prompt: str) -> str:
        return prompt

    def generate(self, prompt: str, length: int, n: int = 1) -> list[GeneratedText]:
        """`n` continuations of a prompt, each of at most `length` tokens."""
        before, found = self.prompt_ids(prompt), [GeneratedText("", (), 0.0, False)] * n
        ids: list[list[int]] = [[] for _ in range(n)]
        for token in self.sample_tokens(before, length, n):
            if not token.ended:
                ids[token.sample].append(token.id)
            found[token.sample] = replace(found[token.sample], score=token.score, complete=token.ended)
        if tracing():
            tap_output(self.model, self.tokenizer, ids)
        texts = [self._decode_continuation(before, row) for row in ids]
        tokens = [tuple(self.tokenizer.tokens(row)) for row in ids]
        return [replace(g, text=text, tokens=t) for g, text, t in zip(found, texts, tokens, strict=True)]

    def stream(self, prompt: str, length: int) -> Iterator[str]:
        """One continuation, in whole characters."""
        before = self.prompt_ids(prompt)
        detokenizer = IncrementalDetokenizer(self.tokenizer, before)
        for token in self.sample_tokens(before, length, 1):
            text = "" if token.ended else detokenizer.add(token.id)
            if text:
                yield text
        if rest := detokenizer.flush():
            yield rest

    def prompt_ids(self, prompt: str) -> list[int]:
        """A prompt as ids; a text begins after <EOS>."""
        encoded, unk = self.tokenizer.encode(prompt), self.tokenizer.unk
        unknown = [prompt[a:b] for (a, b), id in zip(encoded.offsets, encoded.ids, strict=True) if id == unk]
        if unknown:
            names = list(dict.fromkeys(unknown))
            more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
            raise DataError(
                f"the prompt has tokens that this model does not know: "
                f"{', '.join(map(_quote, names[:MAX_LISTED]))}{more}; leave it out, or train on text that has it"
            )
        ids = [self.tokenizer.eos, *encoded.ids] if self.has_ends else encoded.ids
        if not ids:
            raise DataError(
                "the prompt is empty, and this model was trained on one running text without beginnings; "
                'give it a prompt, such as "The"'
            )
        return ids[-MAX_PROMPT:]

    def sample_tokens(self, before: Sequence[int], length: int, n: int = 1) -> Iterator[SampledToken]:
        """The tokens of all samples as they are sampled, all samples in parallel."""
        if length < 1 or n < 1:
            raise ConfigError(f"length = {length} and n = {n} must be at least 1")
        texts, scores = {number: list(before) for number in range(n)}, [0.0] * n
        kept = MAX_PROMPT if self.context is None else max(1, self.context // 2)
        segment = 0
        while length and texts:
            prompt = torch.tensor([ids[-kept:] for ids in texts.values()])
            count = length if self.context is None else min(length, max(1, self.context - prompt.shape[1]))
            for token in self._sample_segment(list(texts), prompt, count, segment):
                if token.ended:
                    del texts[token.sample]
                else:
                    texts[token.sample].append(token.id)
                yield replace(token, score=scores[token.sample] + token.score)
                if token.last:
                    scores[token.sample] += token.score
            length, segment = length - count, segment + 1

    def _sample_segment(self, numbers: list[int], prompt: Tensor, count: int, segment: int) -> Iterator[SampledToken]:
        """Up to `count` tokens of each sample after reading the prompts once."""
        seed = self.config.seed + 1_000_003 * segment  # else each segment would draw the same random numbers
        rows, config = len(numbers), replace(self.config, beam=1, n_best=1, seed=seed)
        banned = [self.tokenizer.pad, self.tokenizer.sos, self.tokenizer.unk]
        strategy = config.strategy(
            self.tokenizer.eos, processors=(ban(*banned, *([] if self.has_ends else [self.tokenizer.eos])),)
        )
        limits = torch.full((rows,), count)
        choices = decode(self.model, empty_source(rows), Tokens.full(prompt), strategy, limits, torch.tensor(numbers))
        for choice in choices:
            columns = (choice.sources, choice.tokens, choice.scores, choice.ended, ~choice.live)
            yield from (SampledToken(*values) for values in zip(*(tensor.tolist() for tensor in columns), strict=True))

    def _decode_continuation(self, before: Sequence[int], ids: Sequence[int]) -> str:
        detokenizer = IncrementalDetokenizer(self.tokenizer, before)
        return "".join([*(detokenizer.add(id) for id in ids), detokenizer.flush()])


@dataclass(frozen=True)
class GeneratedSeries:
    """Continuation of a series of numbers."""

    values: tuple[tuple[float, ...], ...]

    @property
    def text(self) -> str:
        return format_numbers(np.array(self.values))


@dataclass(frozen=True)
class NumberGenerator(Generator):
    """Generation of numbers with a model, its scaler and the sampling settings."""

    model: EncoderDecoder
    scaler: StandardScaler
    config: DecodeConfig
    context: int | None = None
    """positions that the model reads at once; when full, the last half is read again. None: unlimited"""

    @property
    def samples_are_lines(self) -> bool:
        return False

    def check_prompt(self, prompt: str) -> None:
        self.prompt_values(prompt)

    def encode_prompt(self, prompt: str) -> tuple[Tokens, list[str]]:
        values = self.prompt_values(prompt)
        words = [format_numbers(row[None]).rstrip("\n") for row in self.scaler.inverse_transform(values)]
        return Tokens.full(torch.from_numpy(values)[None]), words

    def display_prompt(self, prompt: str) -> str:
        return f"{prompt.rstrip()}\n" if prompt.strip() else ""

    def generate(self, prompt: str, length: int, n: int = 1) -> list[GeneratedSeries]:
        """`n` continuations of a series; an empty prompt stands for the mean of the training data."""
        positions = list(self.sample_positions(self.prompt_values(prompt), length, n))
        return [GeneratedSeries(tuple(tuple(values[i].tolist()) for values in positions)) for i in range(n)]

    def stream(self, prompt: str, length: int) -> Iterator[str]:
        """One continuation, one line per position."""
        for values in self.sample_positions(self.prompt_values(prompt), length, 1):
            yield format_numbers(values)

    def prompt_values(self, prompt: str) -> np.ndarray:
        """A prompt as standardized numbers."""
        if not prompt.strip():
            return np.zeros((1, len(self.scaler.names)), np.float32)
        table = parse_numeric_table(prompt.splitlines(), "the prompt")
        if len(table.names) != len(self.scaler.names):
            raise DataError(
                f"the prompt has {len(table.names)} numbers per line, this model was trained on "
                f"{len(self.scaler.names)}: {', '.join(self.scaler.names)}"
            )
        return self.scaler.transform(table.values)[-MAX_PROMPT:]

    def sample_positions(self, before: np.ndarray, length: int, n: int) -> Iterator[np.ndarray]:
        """The next position of all samples, (n, F), one after the other."""
        if length < 1 or n < 1:
            raise ConfigError(f"length = {length} and n = {n} must be at least 1")
        step = self._next_position(n)
        read_NTF = torch.from_numpy(before)[None].repeat(n, 1, 1)
        kept = MAX_PROMPT if self.context is None else max(1, self.context // 2)
        while length:
            read_NTF = read_NTF[:, -kept:]
            count = length if self.context is None else min(length, max(1, self.context - read_NTF.shape[1]))
            prompt = Tokens.full(read_NTF)
            for choice in decode(self.model, empty_source(n), prompt, Rollout(step), torch.full((n,), count)):
                values_NF = choice.tokens.cpu()
                read_NTF = torch.cat([read_NTF, values_NF[:, None]], 1)
                yield self.scaler.inverse_transform(values_NF.numpy())
            length -= count

    def _next_position(self, n: int) -> Callable[[Tensor], Tensor]:
        """From a prediction to the next position: sampled with one random generator per sample, or the mode."""
        space = Gaussian(len(self.scaler.names))
        if not self.config.sample:
            return space.mode
        generators = [torch.Generator().manual_seed(self.config.seed * 1_000_003 + i) for i in range(n)]

        def next_position(out_NC: Tensor) -> Tensor:
            rows = [space.sample(out_NC[i : i + 1], generator) for i, generator in enumerate(generators)]
            sampled_NF, mean_NF = torch.cat(rows), space.mode(out_NC)
            return mean_NF + self.config.temperature * (sampled_NF - mean_NF)

        return next_position


def format_numbers(values: np.ndarray | Sequence[Sequence[float]]) -> str:
    """Numbers as text, one position per line."""
    return "".join(",".join(f"{number:.6g}" for number in position) + "\n" for position in values)


def _quote(characters: str) -> str:
    return f'"{characters}"' + (f" (U+{ord(characters):04X})" if len(characters) == 1 else "")
