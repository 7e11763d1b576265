"""Generation of series of numbers: continue a prompt by sampling each position from the predicted Gaussians."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.data.scaling import StandardScaler
from regard.data.tables import parse_numeric_table
from regard.decode import DecodeConfig, Rollout, decode
from regard.errors import ConfigError, DataError
from regard.models.base import EncoderDecoder
from regard.sequence import Tokens
from regard.spaces import Gaussian
from regard.tasks.generate.loader import empty_source
from regard.tasks.generate.predict import MAX_PROMPT, Generator, check_prompt_length


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
    sliding_window: bool = False
    """read the last positions of a prompt that is longer than the context, instead of refusing it"""

    @property
    def samples_are_lines(self) -> bool:
        return False

    @property
    def continues_lines(self) -> bool:
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

    def generate_batch(
        self, prompts: Sequence[str], length: int, n: int = 1, first: int = 0
    ) -> list[list[GeneratedSeries]]:
        """`n` continuations of each prompt, one prompt after the other."""
        return [self.generate(prompt, length, n) for prompt in prompts]

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
        values, limit = self.scaler.transform(table.values), self.context or MAX_PROMPT
        if not self.sliding_window:
            check_prompt_length(len(values), limit, "positions,")
        return values[-limit:]

    def sample_positions(self, before: np.ndarray, length: int, n: int) -> Iterator[np.ndarray]:
        """The next position of all samples, (n, F), one after the other."""
        if length < 1 or n < 1:
            raise ConfigError(f"length = {length} and n = {n} must be at least 1")
        step = self._next_position(n)
        read_NTF = torch.from_numpy(before)[None].repeat(n, 1, 1)
        while length:
            count = length if self.context is None else min(length, self.context + 1 - read_NTF.shape[1])
            prompt = Tokens.full(read_NTF)
            for choice in decode(self.model, empty_source(n), prompt, Rollout(step), torch.full((n,), count)):
                values_NF = choice.tokens.cpu()
                read_NTF = torch.cat([read_NTF, values_NF[:, None]], 1)
                yield self.scaler.inverse_transform(values_NF.numpy())
            length -= count
            read_NTF = read_NTF if self.context is None else read_NTF[:, -max(1, self.context // 2) :]

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
