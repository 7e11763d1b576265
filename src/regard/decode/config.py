"""Settings of a search, and the search they describe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import torch
from torch import Tensor

from regard.decode.beam import Beam, power, wu
from regard.decode.constraints import Constrained, Constraints
from regard.decode.greedy import screened
from regard.decode.hypothesis import Hypothesis, Strategy, collect
from regard.decode.loop import decode
from regard.decode.processors import Rule, forced, min_length, min_p, no_repeat, repetition, temperature, top_k, top_p
from regard.decode.sampling import Sampling
from regard.errors import ConfigError
from regard.models.base import EncoderDecoder
from regard.sequence import EOS, Padded, Rows, Tokens

WIDEST = 1000
"""The widest beam: wider ones cost memory and find worse translations (Stahlberg and Byrne 2019)"""


@dataclass(frozen=True)
class DecodeConfig:
    """How outputs are searched for; the defaults are the Transformer paper's (section 6.1).

    >>> DecodeConfig(beam=0)
    Traceback (most recent call last):
    regard.errors.ConfigError: beam = 0 must be between 1 (greedy) and 1000
    """

    beam: int = 4
    """hypotheses kept for each source; 1 is greedy, at most 1000"""
    penalty: Literal["wu", "power"] = "wu"
    """what a score is divided by: wu is ((5 + length) / 6) ** alpha, power is length ** alpha"""
    alpha: float = 0.6
    """strength of the length penalty; 0 is none, larger favours longer outputs"""
    coverage: float = 0.0
    """strength of the coverage penalty on source words that got little attention; 0 is none, and is faster"""
    n_best: int = 1
    """outputs given for each source, the best first; with sampling, how many are drawn"""
    extra: int = 50
    """the longest output is this many tokens longer than its source"""
    minimum: int = 0
    """the fewest tokens before <EOS>"""
    sample: bool = False
    """draw each word instead of searching for the likeliest sentence"""
    temperature: float = 1.0
    """with sample: below 1 draws likely words more often, above 1 less often"""
    top_k: int = 0
    """with sample: draw from this many likeliest words; 0 is all"""
    top_p: float = 1.0
    """with sample: draw from the fewest words that have this share together; 1 is all"""
    min_p: float = 0.0
    """with sample: draw from words at least this many times as likely as the likeliest; 0 is all"""
    seed: int = 0
    """with sample: the same seed draws the same outputs"""
    repetition: float = 1.0
    """above 1: what was said is said again less gladly; its log-probability is multiplied by this"""
    no_repeat: int = 0
    """no sequence of this many tokens is said twice; 0 allows all"""
    exact: bool = False
    """bit-equal outputs whatever the batch: each source is decoded alone, about four times slower than in 32s"""

    def __post_init__(self) -> None:
        _within("beam", self.beam, 1, WIDEST, f"must be between 1 (greedy) and {WIDEST}")
        _within("n_best", self.n_best, 1, WIDEST, f"must be between 1 and {WIDEST}")
        if not self.sample and self.n_best > self.beam:
            raise ConfigError(f"n_best = {self.n_best} is more than beam = {self.beam}; a beam finds no more than that")
        for name in ("alpha", "coverage", "minimum", "top_k", "no_repeat", "seed"):
            _within(name, getattr(self, name), 0, float("inf"), "must be at least 0")
        _within("extra", self.extra, 1, float("inf"), "must be at least 1")
        _within("repetition", self.repetition, 1, float("inf"), "must be at least 1 (no penalty)")
        _within("min_p", self.min_p, 0, 1, "must be between 0 and 1")
        for name, most in (("temperature", float("inf")), ("top_p", 1)):
            if not 0 < getattr(self, name) <= most:
                upper = "" if most > 1 else " and at most 1"
                raise ConfigError(f"{name} = {getattr(self, name)} must be above 0{upper}")

    def strategy(
        self,
        eos: int = EOS,
        prefixes: Tokens | None = None,
        constraints: Sequence[Constraints] | None = None,
        rules: Sequence[Rule] = (),
    ) -> Strategy:
        """The search itself; `prefixes` and `constraints` are one row a source, for this batch alone.

        `rules` come before those of the settings, which shape what is left.
        """
        forcing = () if prefixes is None else (forced(prefixes),)
        rules = (*forcing, *rules, *self._rules(eos))
        if self.sample:
            if constraints is not None and any(constraints):
                raise ConfigError("constraints need a beam; they cannot be met by sampling (sample = true)")
            return Sampling(self.seed, rules, self.n_best, eos)
        penalty = {"wu": wu, "power": power}[self.penalty](self.alpha)
        beam = Beam(self.beam, penalty, rules, self.n_best, self.coverage, eos)
        return beam if constraints is None or not any(constraints) else Constrained.of(beam, constraints)

    def limits(self, source: Rows) -> Tensor:
        """(B,): the longest output of each source."""
        if isinstance(source, Padded):
            return source.lengths + self.extra
        return torch.full((len(source),), self.extra, device=source.device)

    def _rules(self, eos: int) -> tuple[Rule, ...]:
        rules: list[Rule] = []
        if self.repetition > 1:
            rules.append(repetition(self.repetition))
        if self.no_repeat:
            rules.append(no_repeat(self.no_repeat))
        if self.minimum:
            rules.append(min_length(self.minimum, eos))
        if self.sample:
            rules += [temperature(self.temperature)] if self.temperature != 1 else []
            rules += [top_k(self.top_k)] if self.top_k else []
            rules += [top_p(self.top_p)] if self.top_p < 1 else []
            rules += [min_p(self.min_p)] if self.min_p else []
        return tuple(rules)


def search(
    model: EncoderDecoder,
    source: Rows,
    prompt: Tokens,
    strategy: Strategy,
    limits_B: Tensor,
    exact: bool = False,
    numbers_B: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """The n best outputs of each source; see decode. `exact`: their bits do not depend on the batch they came in.

    Kernels round differently for other numbers of rows and keys, so the only arithmetic that no neighbour can touch
    is a source's own: exact decodes one source after the other, without its padding.

    >>> from regard.models.gpt import GPTConfig
    >>> from regard.spaces import Words
    >>> model = GPTConfig(layers=1, width=8, heads=2, longest=16).build(Words(7), Words(7)).eval()
    >>> len(search(model, Tokens.of([[], []]), Tokens.of([[2], [2]]), Beam(2), torch.tensor([3, 3]), exact=True))
    2
    """
    if not exact:
        found = screened(model, source, prompt, strategy, limits_B)
        if found is None:
            found = collect(decode(model, source, prompt, strategy, limits_B, numbers_B), strategy.n_best)
        return found
    found = []
    for i in range(len(prompt)):
        row = torch.tensor([i], device=prompt.data.device)
        number = row if numbers_B is None else numbers_B[row]
        found += search(model, alone(source, row), alone(prompt, row), strategy, limits_B[row], numbers_B=number)
    return found


R = TypeVar("R", bound=Rows)


def alone(rows: R, row: Tensor) -> R:
    """One row without its neighbours, and so without padding.

    >>> alone(Tokens.of([[5, 6], [7]]), torch.tensor([1])).data
    tensor([[7]])
    """
    one = rows.select(row)
    if not isinstance(one, Padded):
        return one
    length = int(one.lengths)
    if length:
        return replace(one.map(lambda t: t if t.ndim == 1 else t[:, :length].contiguous()), ragged=False)
    # nothing is kept as one place of padding: a recurrent layer cannot read zero places
    return replace(one.map(lambda t: t if t.ndim == 1 else t.new_zeros(1, 1, *t.shape[2:])), ragged=True)


def _within(name: str, value: float, least: float, most: float, message: str) -> None:
    if not least <= value <= most:
        raise ConfigError(f"{name} = {value} {message}")
