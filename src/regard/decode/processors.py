"""Rules: functions from log-probs to log-probs. A chain of them says what may be said, and how gladly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import reduce

import torch
from torch import Tensor

from regard.decode.hypothesis import History
from regard.sequence import EOS, Tokens

Rule = Callable[[Tensor, History], Tensor]
"""Log-probs (N, V) and what was said so far -> log-probs (N, V), not in place"""


def chain(rules: Iterable[Rule], log_NV: Tensor, history: History) -> Tensor:
    """One rule after the other.

    >>> chain([temperature(2.0), temperature(2.0)], torch.tensor([[-4.0]]), None)
    tensor([[-1.]])
    """
    return reduce(lambda log, rule: rule(log, history), rules, log_NV)


def allowed(rules: tuple[Rule, ...], out_NV: Tensor, history: History, eos: int = EOS) -> Tensor:
    """Log-probs under the rules. Where they ban everything the sentence ends: that way is always open.

    >>> allowed((banned(0, 1),), torch.tensor([[0.0, 0.0]]), None, eos=1)
    tensor([[   -inf, -0.6931]])
    """
    log_NV = out_NV.log_softmax(-1)
    if not rules:
        return log_NV
    ruled_NV = chain(rules, log_NV, history)
    stuck_N = ruled_NV.amax(1) == -math.inf
    if bool(stuck_N.any()):
        end_N = torch.where(stuck_N, log_NV[:, eos], ruled_NV[:, eos])
        ruled_NV = ruled_NV.index_copy(1, torch.tensor([eos], device=end_N.device), end_N[:, None])
    return ruled_NV


def banned(*ids: int) -> Rule:
    """Words that are never said.

    >>> banned(1)(torch.zeros(1, 3), None)
    tensor([[0., -inf, 0.]])
    """
    return lambda log_NV, history: log_NV.index_fill(1, torch.tensor(ids, device=log_NV.device), -math.inf)


def min_length(n: int, eos: int = EOS) -> Rule:
    """At least `n` words before <EOS>."""
    ban = banned(eos)
    return lambda log_NV, history: ban(log_NV, history) if history.length < n else log_NV


def temperature(t: float) -> Rule:
    """Below 1 the likely becomes likelier, above 1 less so.

    >>> temperature(0.5)(torch.tensor([[-1.0, -2.0]]), None)
    tensor([[-2., -4.]])
    """
    return lambda log_NV, history: log_NV / t


def top_k(k: int) -> Rule:
    """Only the k likeliest words, and what is as likely as the last of them (Fan et al. 2018).

    >>> top_k(1)(torch.tensor([[-1.0, -2.0]]), None)
    tensor([[-1., -inf]])
    """

    def rule(log_NV: Tensor, history: History) -> Tensor:
        least_N1 = log_NV.topk(min(k, log_NV.shape[1])).values[:, -1:]
        return log_NV.masked_fill(log_NV < least_N1, -math.inf)

    return rule


def top_p(p: float) -> Rule:
    """The fewest words that have a share of `p` together (Holtzman et al. 2020); never none.

    >>> top_p(0.6)(torch.tensor([[0.5, 0.3, 0.2]]).log(), None).exp()
    tensor([[0.5000, 0.3000, 0.0000]])
    """

    def rule(log_NV: Tensor, history: History) -> Tensor:
        sorted_NV, order_NV = log_NV.softmax(-1).sort(dim=-1, descending=True, stable=True)
        before_NV = sorted_NV.cumsum(-1) - sorted_NV
        out_NV = torch.empty_like(order_NV, dtype=torch.bool).scatter_(1, order_NV, before_NV >= p)
        return log_NV.masked_fill(out_NV, -math.inf)

    return rule


def min_p(p: float) -> Rule:
    """Words at least `p` times as likely as the likeliest (Nguyen et al. 2024).

    >>> min_p(0.5)(torch.tensor([[0.5, 0.3, 0.2]]).log(), None).exp()
    tensor([[0.5000, 0.3000, 0.0000]])
    """
    return lambda log_NV, history: log_NV.masked_fill(log_NV < log_NV.amax(-1, keepdim=True) + math.log(p), -math.inf)


def repetition(factor: float) -> Rule:
    """What was said is said again less gladly: its log-prob is multiplied (Keskar et al. 2019, on log-probs)."""

    def rule(log_NV: Tensor, history: History) -> Tensor:
        said_NT = history.tokens
        return log_NV.scatter(1, said_NT, log_NV.gather(1, said_NT) * factor)

    return rule


def no_repeat(n: int) -> Rule:
    """No n-gram twice (Paulus et al. 2017)."""

    def rule(log_NV: Tensor, history: History) -> Tensor:
        said_NT = history.tokens
        if said_NT.shape[1] < n:
            return log_NV
        grams = said_NT.unfold(1, n, 1)
        tail_N1 = said_NT[:, None, said_NT.shape[1] - n + 1 :]
        rows, at = (grams[..., :-1] == tail_N1).all(-1).nonzero().unbind(1)
        return log_NV.index_put((rows, grams[rows, at, -1]), log_NV.new_tensor(-math.inf))

    return rule


def forced(prefixes: Tokens) -> Rule:
    """Each source's answer begins with its own prefix: row s is that of the source whose number is s."""

    def rule(log_NV: Tensor, history: History) -> Tensor:
        t, owners_N = history.length, history.owners
        if t >= prefixes.data.shape[1]:
            return log_NV
        wanted_N1 = prefixes.data.index_select(0, owners_N)[:, t : t + 1]
        bound_N1 = t < prefixes.lengths.index_select(0, owners_N)[:, None]
        other_NV = torch.arange(log_NV.shape[1], device=log_NV.device) != wanted_N1
        return log_NV.masked_fill(other_NV & bound_N1, -math.inf)

    return rule
