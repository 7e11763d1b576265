"""Decoding settings, and the search they describe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import torch
from torch import Tensor

from regard.decode.beam import Beam, power_penalty, wu_penalty
from regard.decode.constraints import ConstrainedBeam, Constraints
from regard.decode.hypothesis import Hypothesis, Strategy, collect
from regard.decode.int8_search import int8_search
from regard.decode.loop import decode
from regard.decode.processors import (
    LogitsProcessor,
    force_prefix,
    min_length,
    min_p,
    no_repeat_ngram,
    repetition_penalty,
    temperature,
    top_k,
    top_p,
    with_prompts,
)
from regard.decode.sampling import Sampling
from regard.errors import ConfigError
from regard.models.base import EncoderDecoder
from regard.sequence import EOS, Padded, Rows, Tokens

MAX_BEAM = 1000
"""widest beam: wider ones cost memory and find worse translations (Stahlberg and Byrne 2019)"""


@dataclass(frozen=True)
class DecodeConfig:
    """Decoding settings; the defaults are the Transformer paper's (section 6.1).

    >>> DecodeConfig(beam=0)
    Traceback (most recent call last):
    regard.errors.ConfigError: beam = 0 must be between 1 (greedy) and 1000
    """

    beam: int = 4
    """hypotheses kept for each source; 1 is greedy, at most 1000"""
    length_penalty: Literal["wu", "power"] = "wu"
    """length penalty, the divisor of a score: wu is ((5 + length) / 6) ** alpha, power is length ** alpha"""
    alpha: float = 0.6
    """strength of the length penalty; 0 is none, larger favors longer outputs"""
    coverage_penalty: float = 0.0
    """strength of the coverage penalty on source words that got little attention; 0 is none, and is faster"""
    n_best: int = 1
    """outputs per source, the best first; with sampling, the number of samples"""
    max_extra_tokens: int = 50
    """maximum output length, in tokens beyond the length of the source"""
    min_length: int = 0
    """minimum number of tokens before <EOS>"""
    sample: bool = False
    """sample each token instead of searching for the most probable output"""
    temperature: float = 1.0
    """with sample: softmax temperature; below 1 is more peaked, above 1 flatter"""
    top_k: int = 0
    """with sample: only the k most probable tokens; 0 is all"""
    top_p: float = 1.0
    """with sample: nucleus sampling, the fewest tokens with this total probability; 1 is all"""
    min_p: float = 0.0
    """with sample: only tokens with at least this fraction of the highest probability; 0 is all"""
    seed: int = 0
    """with sample: random seed; the same seed gives the same outputs"""
    repetition_penalty: float = 1.0
    """repetition penalty (Keskar et al. 2019): log-probs of generated tokens are multiplied by this; 1 is none"""
    no_repeat_ngram: int = 0
    """no n-gram of this length occurs twice; 0 allows all"""
    exact: bool = False
    """bit-identical outputs whatever the batch: each source is decoded alone, about four times slower than in 32s"""

    def __post_init__(self) -> None:
        _check_range("beam", self.beam, 1, MAX_BEAM, f"must be between 1 (greedy) and {MAX_BEAM}")
        _check_range("n_best", self.n_best, 1, MAX_BEAM, f"must be between 1 and {MAX_BEAM}")
        if not self.sample and self.n_best > self.beam:
            raise ConfigError(f"n_best = {self.n_best} is more than beam = {self.beam}; a beam finds no more than that")
        for name in ("alpha", "coverage_penalty", "min_length", "top_k", "no_repeat_ngram", "seed"):
            _check_range(name, getattr(self, name), 0, float("inf"), "must be at least 0")
        _check_range("max_extra_tokens", self.max_extra_tokens, 1, float("inf"), "must be at least 1")
        _check_range("repetition_penalty", self.repetition_penalty, 1, float("inf"), "must be at least 1 (no penalty)")
        _check_range("min_p", self.min_p, 0, 1, "must be between 0 and 1")
        for name, most in (("temperature", float("inf")), ("top_p", 1)):
            if not 0 < getattr(self, name) <= most:
                upper = "" if most > 1 else " and at most 1"
                raise ConfigError(f"{name} = {getattr(self, name)} must be above 0{upper}")

    def strategy(
        self,
        eos: int = EOS,
        prefixes: Tokens | None = None,
        constraints: Sequence[Constraints] | None = None,
        processors: Sequence[LogitsProcessor] = (),
        prompts: tuple[Tensor, Sequence[Sequence[int]]] | None = None,
    ) -> Strategy:
        """The decoding strategy; `prefixes` and `constraints` have one row per source of this batch.

        `processors` are applied before those of the settings. `prompts` are indices of sources and the ids before each
        output, in which repetition_penalty and no_repeat_ngram find repetitions too.
        """
        prefix = () if prefixes is None else (force_prefix(prefixes),)
        processors = (*prefix, *processors, *self._repetition_processors(prompts), *self._processors(eos))
        if self.sample:
            if constraints is not None and any(constraints):
                raise ConfigError("constraints need a beam; they cannot be met by sampling (sample = true)")
            return Sampling(self.seed, processors, self.n_best, eos)
        penalty = {"wu": wu_penalty, "power": power_penalty}[self.length_penalty](self.alpha)
        beam = Beam(self.beam, penalty, processors, self.n_best, self.coverage_penalty, eos)
        return beam if constraints is None or not any(constraints) else ConstrainedBeam.from_lists(beam, constraints)

    def limits(self, source: Rows) -> Tensor:
        """(B,): maximum output length of each source."""
        if isinstance(source, Padded):
            return source.lengths + self.max_extra_tokens
        return torch.full((len(source),), self.max_extra_tokens, device=source.device)

    def _repetition_processors(
        self, prompts: tuple[Tensor, Sequence[Sequence[int]]] | None
    ) -> tuple[LogitsProcessor, ...]:
        penalty = (repetition_penalty(self.repetition_penalty),) if self.repetition_penalty > 1 else ()
        ngram = (no_repeat_ngram(self.no_repeat_ngram),) if self.no_repeat_ngram else ()
        return tuple(one if prompts is None else with_prompts(one, *prompts) for one in (*penalty, *ngram))

    def _processors(self, eos: int) -> tuple[LogitsProcessor, ...]:
        processors: list[LogitsProcessor] = []
        if self.min_length:
            processors.append(min_length(self.min_length, eos))
        if self.sample:
            processors += [temperature(self.temperature)] if self.temperature != 1 else []
            processors += [top_k(self.top_k)] if self.top_k else []
            processors += [top_p(self.top_p)] if self.top_p < 1 else []
            processors += [min_p(self.min_p)] if self.min_p else []
        return tuple(processors)


def search(
    model: EncoderDecoder,
    source: Rows,
    prompt: Tokens,
    strategy: Strategy,
    limits_B: Tensor,
    exact: bool = False,
    numbers_B: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """The n best outputs of each source; see decode. `exact`: bit-identical whatever the batch.

    Kernels round differently for other numbers of rows and keys, so exact decodes each source alone, without padding.
    """
    if not exact:
        found = int8_search(model, source, prompt, strategy, limits_B, numbers_B)
        if found is None:
            found = collect(decode(model, source, prompt, strategy, limits_B, numbers_B), strategy.n_best)
        return found
    found = []
    for i in range(len(prompt)):
        row = torch.tensor([i], device=prompt.data.device)
        number = row if numbers_B is None else numbers_B[row]
        found += search(
            model, without_padding(source, row), without_padding(prompt, row), strategy, limits_B[row], numbers_B=number
        )
    return found


R = TypeVar("R", bound=Rows)


def without_padding(rows: R, row: Tensor) -> R:
    """One row without the others, and so without padding."""
    one = rows.select(row)
    if not isinstance(one, Padded):
        return one
    length = int(one.lengths)
    if length:
        return replace(one.map(lambda t: t if t.ndim == 1 else t[:, :length].contiguous()), ragged=False)
    # an empty row becomes one position of padding: a recurrent layer cannot read zero positions
    return replace(one.map(lambda t: t if t.ndim == 1 else t.new_zeros(1, 1, *t.shape[2:])), ragged=True)


def _check_range(name: str, value: float, least: float, most: float, message: str) -> None:
    if not least <= value <= most:
        raise ConfigError(f"{name} = {value} {message}")
