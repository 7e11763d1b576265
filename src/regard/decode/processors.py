"""Logits processors: (log-probs, history) -> log-probs, applied in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import torch
from torch import Tensor

from regard.decode.hypothesis import History
from regard.sequence import EOS, Tokens

LogitsProcessor = Callable[[Tensor, History], Tensor]
"""log-probs (N, V) and the history -> log-probs (N, V), not in place"""


def compose(processors: Iterable[LogitsProcessor], log_NV: Tensor, history: History) -> Tensor:
    """Apply processors one after the other.

    >>> compose([temperature(2.0), temperature(2.0)], torch.tensor([[-4.0]]), None)
    tensor([[-1.]])
    """
    return reduce(lambda log, processor: processor(log, history), processors, log_NV)


def apply(processors: tuple[LogitsProcessor, ...], out_NV: Tensor, history: History, eos: int = EOS) -> Tensor:
    """Log-probs after all processors. Where they ban everything, <EOS> stays allowed.

    >>> apply((ban(0, 1),), torch.tensor([[0.0, 0.0]]), None, eos=1)
    tensor([[   -inf, -0.6931]])
    """
    return process(processors, out_NV.log_softmax(-1), history, eos)


def process(processors: tuple[LogitsProcessor, ...], log_NV: Tensor, history: History, eos: int = EOS) -> Tensor:
    """As `apply`, for log-probs."""
    if not processors:
        return log_NV
    processed_NV = compose(processors, log_NV, history)
    stuck_N = processed_NV.amax(1) == -math.inf
    if bool(stuck_N.any()):
        end_N = torch.where(stuck_N, log_NV[:, eos], processed_NV[:, eos])
        processed_NV = processed_NV.index_copy(1, torch.tensor([eos], device=end_N.device), end_N[:, None])
    return processed_NV


@dataclass(frozen=True)
class Ban:
    """Processor that bans the same tokens in every row: always, or for outputs with fewer than `below` tokens."""

    ids: tuple[int, ...]
    below: float = math.inf

    def __call__(self, log_NV: Tensor, history: History) -> Tensor:
        if self.below < math.inf and history.length >= self.below:
            return log_NV
        return log_NV.index_fill(1, torch.tensor(self.ids, dtype=torch.long, device=log_NV.device), -math.inf)


def ban(*ids: int) -> LogitsProcessor:
    """Ban tokens.

    >>> ban(1)(torch.zeros(1, 3), None)
    tensor([[0., -inf, 0.]])
    """
    return Ban(ids)


def min_length(n: int, eos: int = EOS) -> LogitsProcessor:
    """At least `n` tokens before <EOS>."""
    return Ban((eos,), n)


@dataclass(frozen=True)
class Temperature:
    """Processor that divides log-probs: below 1 the distribution is more peaked, above 1 flatter."""

    value: float

    def __call__(self, log_NV: Tensor, history: History) -> Tensor:
        return log_NV / self.value


def temperature(t: float) -> LogitsProcessor:
    """Softmax temperature: below 1 more peaked, above 1 flatter.

    >>> temperature(0.5)(torch.tensor([[-1.0, -2.0]]), None)
    tensor([[-2., -4.]])
    """
    return Temperature(t)


def top_k(k: int) -> LogitsProcessor:
    """Top-k: only the k most probable tokens, and ties with the last of them (Fan et al. 2018).

    >>> top_k(1)(torch.tensor([[-1.0, -2.0]]), None)
    tensor([[-1., -inf]])
    """

    def processor(log_NV: Tensor, history: History) -> Tensor:
        least_N1 = log_NV.topk(min(k, log_NV.shape[1])).values[:, -1:]
        return log_NV.masked_fill(log_NV < least_N1, -math.inf)

    return processor


def top_p(p: float) -> LogitsProcessor:
    """Nucleus (top-p): the fewest tokens with a total probability of `p` (Holtzman et al. 2020); at least one.

    >>> top_p(0.6)(torch.tensor([[0.5, 0.3, 0.2]]).log(), None).exp()
    tensor([[0.5000, 0.3000, 0.0000]])
    """

    def processor(log_NV: Tensor, history: History) -> Tensor:
        sorted_NV, order_NV = log_NV.softmax(-1).sort(dim=-1, descending=True, stable=True)
        before_NV = sorted_NV.cumsum(-1) - sorted_NV
        out_NV = torch.empty_like(order_NV, dtype=torch.bool).scatter_(1, order_NV, before_NV >= p)
        return log_NV.masked_fill(out_NV, -math.inf)

    return processor


def min_p(p: float) -> LogitsProcessor:
    """Min-p: tokens with at least `p` times the highest probability (Nguyen et al. 2024).

    >>> min_p(0.5)(torch.tensor([[0.5, 0.3, 0.2]]).log(), None).exp()
    tensor([[0.5000, 0.3000, 0.0000]])
    """
    return lambda log_NV, history: log_NV.masked_fill(log_NV < log_NV.amax(-1, keepdim=True) + math.log(p), -math.inf)


def repetition_penalty(factor: float) -> LogitsProcessor:
    """Repetition penalty: log-probs of generated tokens are multiplied (Keskar et al. 2019, on log-probs)."""

    def processor(log_NV: Tensor, history: History) -> Tensor:
        tokens_NT = history.tokens
        if not tokens_NT.shape[1]:
            return log_NV
        tokens_NT = torch.where(tokens_NT < 0, tokens_NT[:, -1:], tokens_NT)  # see with_prompts
        return log_NV.scatter(1, tokens_NT, log_NV.gather(1, tokens_NT) * factor)

    return processor


def no_repeat_ngram(n: int) -> LogitsProcessor:
    """No n-gram occurs twice (Paulus et al. 2017)."""

    def processor(log_NV: Tensor, history: History) -> Tensor:
        tokens_NT = history.tokens
        if tokens_NT.shape[1] < n:
            return log_NV
        grams = tokens_NT.unfold(1, n, 1)
        tail_N1 = tokens_NT[:, None, tokens_NT.shape[1] - n + 1 :]
        rows, at = ((grams[..., :-1] == tail_N1).all(-1) & (grams[..., -1] >= 0)).nonzero().unbind(1)
        return log_NV.index_put((rows, grams[rows, at, -1]), log_NV.new_tensor(-math.inf))

    return processor


def with_prompts(processor: LogitsProcessor, numbers_B: Tensor, prompts: Sequence[Sequence[int]]) -> LogitsProcessor:
    """A processor that looks at the prompts too, not only at generated tokens, as language models need it.

    `numbers_B` are the indices of the sources, ascending; rows are padded on the left with -1.

    >>> history = History.start(torch.tensor([4]), torch.tensor([9]), 1, 1)
    >>> with_prompts(repetition_penalty(2.0), torch.tensor([4]), [[0]])(torch.tensor([[-1.0, -1.0]]), history)
    tensor([[-2., -1.]])
    """
    longest = max(map(len, prompts), default=0)
    rows = [[-1] * (longest - len(ids)) + list(ids) for ids in prompts]
    ids_BP = torch.tensor(rows, dtype=torch.long, device="cpu")

    def process(log_NV: Tensor, history: History) -> Tensor:
        rows_N = torch.searchsorted(numbers_B, history.owners.cpu())
        before_NP = ids_BP.index_select(0, rows_N).to(history.tokens.device)
        return processor(log_NV, replace(history, tokens=torch.cat([before_NP, history.tokens], 1)))

    return process


def force_prefix(prefixes: Tokens) -> LogitsProcessor:
    """Force each output to start with the prefix of its source: row s is that of source s."""

    def processor(log_NV: Tensor, history: History) -> Tensor:
        t, owners_N = history.length, history.owners
        if t >= prefixes.data.shape[1]:
            return log_NV
        here = prefixes.to(log_NV.device)
        forced_N1 = here.data.index_select(0, owners_N)[:, t : t + 1]
        bound_N1 = t < here.lengths.index_select(0, owners_N)[:, None]
        other_NV = torch.arange(log_NV.shape[1], device=log_NV.device) != forced_N1
        return log_NV.masked_fill(other_NV & bound_N1, -math.inf)

    return processor
