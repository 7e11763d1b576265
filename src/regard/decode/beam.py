"""Beam search; a beam of one is greedy search."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.decode.coverage import coverage
from regard.decode.hypothesis import Choice, History, going_on
from regard.decode.processors import Rule, allowed
from regard.sequence import EOS

Penalty = Callable[[Any], Any]
"""Length, one number or a tensor of them -> what a score is divided by"""


def wu(alpha: float) -> Penalty:
    """((5 + L) / 6) ** alpha: Wu et al. 2016, eq. 14, and the Transformer paper with alpha 0.6.

    >>> wu(1.0)(torch.tensor(7.0))
    tensor(2.)
    """
    return lambda length: ((5 + length) / 6) ** alpha


def power(alpha: float) -> Penalty:
    """L ** alpha: fairseq, Marian, Hugging Face and CTranslate2 with alpha 1.

    >>> power(2.0)(torch.tensor(3.0))
    tensor(9.)
    """
    return lambda length: length**alpha


@dataclass(frozen=True)
class Beam:
    """The `width` likeliest hypotheses of each source; width 1 is greedy.

    A source ends when `width` hypotheses have ended, or when nothing live can still come under its n best. Among
    equals the lower id wins.

    >>> log = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log()
    >>> choice, _ = Beam(1).choose(log, History.begin(torch.tensor([0]), torch.tensor([5]), 1, 1))
    >>> choice.tokens, choice.ended
    (tensor([3]), tensor([True]))
    """

    width: int = 1
    penalty: Penalty = power(0.0)
    rules: tuple[Rule, ...] = ()
    n_best: int = 1
    coverage: float = 0.0
    eos: int = EOS

    def choose(self, out_NV: Tensor, history: History) -> tuple[Choice, History]:
        log_NV, W = allowed(self.rules, out_NV, history, self.eos), self.width
        V = log_NV.shape[1]
        if W == 1:  # the one hypothesis goes on or ends: nobody is compared
            scores_N, tokens_N = likeliest(log_NV, history.scores)
            ended_N = (tokens_N == self.eos) & (scores_N > -math.inf)
            values_N = self.value(scores_N, torch.arange(len(tokens_N), device=log_NV.device), history)
            return going_on(history, tokens_N, scores_N, values_N, ended_N)
        # each hypothesis ends in one way only: among 2 W candidates at least W go on
        scores_Bk, flat_Bk = best(log_NV, history.scores, W, min(2 * W, W * V))
        return settle(self, Candidates(scores_Bk, flat_Bk // V, flat_Bk % V), history)

    def value(self, scores_Bk: Tensor, parents_Bk: Tensor, history: History) -> Tensor:
        """The score with one word more, divided by the length penalty, plus the coverage penalty."""
        values_Bk = scores_Bk / self.penalty(float(history.length + 1))
        if history.attended is None:
            return values_Bk
        return values_Bk + coverage(history.attended, self.coverage).index_select(0, parents_Bk.flatten()).view_as(
            values_Bk
        )


@dataclass(frozen=True)
class Candidates:
    """Ways to go on from a step: k of each source, in the order in which they are taken."""

    scores: Tensor
    """(B, k)"""
    slots: Tensor
    """(B, k) which of its source's rows it goes on from"""
    tokens: Tensor
    """(B, k)"""


def settle(beam: Beam, found: Candidates, history: History) -> tuple[Choice, History]:
    """Who ends, who goes on, which sources are done.

    >>> found = Candidates(torch.tensor([[-1.0]]), torch.tensor([[0]]), torch.tensor([[5]]))
    >>> settle(Beam(1), found, History.begin(torch.tensor([0]), torch.tensor([1]), 1, 1))[0].live
    tensor([False])
    """
    scores_Bk, W, length = found.scores, history.width, history.length + 1
    (B, k), device = scores_Bk.shape, scores_Bk.device
    eos_Bk = (found.tokens == beam.eos) & (scores_Bk > -math.inf)  # a source keeps its width: -inf holds a place
    parents_Bk = found.slots + torch.arange(0, B * W, W, device=device)[:, None]
    values_Bk = beam.value(scores_Bk, parents_Bk, history)
    ended_Bk = eos_Bk & (torch.arange(k, device=device) < W)
    onward_Bk = ~eos_Bk & ((~eos_Bk).cumsum(1) <= W)
    best_Bn = torch.cat([history.best, values_Bk.masked_fill(~ended_Bk, -math.inf)], 1)
    best_Bn = best_Bn.topk(history.best.shape[1]).values
    finished_B = history.finished + ended_Bk.sum(1)
    # nothing live can rise above its score so far, over the penalty of the longest sentence, with all words covered
    top_B = scores_Bk.masked_fill(~onward_Bk, -math.inf).amax(1)
    hope_B = top_B / beam.penalty(history.limits.to(top_B.dtype))
    done_B1 = ((finished_B >= W) | (best_Bn[:, -1] >= hope_B))[:, None]
    onward_Bk = onward_Bk & ~done_B1
    live_Bk = onward_Bk & (length < history.limits)[:, None]
    sources_Bk = history.sources[:, None].expand(B, k)
    columns = (sources_Bk, parents_Bk, found.tokens, scores_Bk, values_Bk, ended_Bk, live_Bk)
    rows = (ended_Bk | onward_Bk).flatten().nonzero().squeeze(1)
    if len(rows) == B * k:
        choice = Choice(*(t.flatten() for t in columns))
    else:
        choice = Choice(*(t.flatten().index_select(0, rows) for t in columns))
    return choice, replace(history, finished=finished_B, best=best_Bn)


def likeliest(log_NV: Tensor, before_N: Tensor) -> tuple[Tensor, Tensor]:
    """The best (score, word) of each row, the lowest id first among equals.

    >>> likeliest(torch.tensor([[1.0, 3.0, 3.0, 2.0]]), torch.tensor([-1.0]))
    (tensor([2.]), tensor([1]))
    """
    (N, V), size = log_NV.shape, _chunk(log_NV.shape[1], 1, 1)
    if V % size:
        tokens_N1 = log_NV.argmax(1, keepdim=True)
    else:  # the maxima of chunks are fast, a place of a maximum is slow: look for it in one chunk
        at_N1 = log_NV.view(N, -1, size).amax(2).argmax(1, keepdim=True)
        rows_N = torch.arange(0, log_NV.numel() // size, V // size, device=log_NV.device) + at_N1.squeeze(1)
        chunk_NC = log_NV.view(-1, size).index_select(0, rows_N)
        tokens_N1 = at_N1 * size + chunk_NC.argmax(1, keepdim=True)
    return before_N + log_NV.gather(1, tokens_N1).squeeze(1), tokens_N1.squeeze(1)


def best(log_NV: Tensor, before_N: Tensor, width: int, k: int) -> tuple[Tensor, Tensor]:
    """The k best (score, place among width x V) of each source, exactly, the lowest place first among equals.

    The maxima of chunks are one fast pass. A top k stands in the k chunks with the best maxima: whatever is in
    another chunk has k maxima before it. Only those chunks are sorted.

    >>> best(torch.tensor([[1.0, 3.0, 3.0], [2.0, 9.0, 3.0]]), torch.tensor([0.0, -6.0]), 2, 3)
    (tensor([[3., 3., 3.]]), tensor([[1, 2, 4]]))
    """
    (N, V), size = log_NV.shape, _chunk(log_NV.shape[1], width, k)
    B, C = N // width, -(-V // size)
    padded_NV = log_NV if C * size == V else F.pad(log_NV, (0, C * size - V), value=-math.inf)
    chunks = padded_NV.reshape(N * C, size)
    if width * C > k:
        maxima_BC = (chunks.amax(1).view(N, C) + before_N[:, None]).view(B, width * C)
        order_Bk = maxima_BC.sort(dim=1, descending=True, stable=True).indices[:, :k].sort(dim=1).values
    else:
        order_Bk = torch.arange(width * C, device=log_NV.device).expand(B, -1)
    rows = (order_Bk + torch.arange(0, N * C, width * C, device=log_NV.device)[:, None]).flatten()
    pool = chunks.index_select(0, rows) + before_N.index_select(0, rows // C)[:, None]
    scores_Bk, at_Bk = (t[:, :k] for t in pool.view(B, -1).sort(dim=1, descending=True, stable=True))
    chunk_Bk = order_Bk.gather(1, at_Bk // size)
    token_Bk = (chunk_Bk % C * size + at_Bk % size).clamp(max=V - 1)  # padding scores -inf: a place nobody takes
    return scores_Bk, chunk_Bk // C * V + token_Bk


@cache
def _chunk(V: int, width: int, k: int) -> int:
    """A size near the cheapest that divides the vocabulary, if there is one."""
    ideal = max(1, math.isqrt(width * V // k))
    sizes = [size for size in range(max(1, ideal // 2), 2 * ideal + 1) if V % size == 0]
    return min(sizes, key=lambda size: abs(size - ideal), default=ideal)
