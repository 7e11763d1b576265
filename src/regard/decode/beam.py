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

from regard.decode.coverage import coverage_penalty
from regard.decode.hypothesis import Choice, History, extend_rows
from regard.decode.processors import LogitsProcessor, apply
from regard.sequence import EOS

LengthPenalty = Callable[[Any], Any]
"""Length penalty: length, a number or a tensor -> divisor of the score"""


def wu_penalty(alpha: float) -> LengthPenalty:
    """Length penalty ((5 + L) / 6) ** alpha: Wu et al. 2016, eq. 14, and the Transformer paper with alpha 0.6.

    >>> wu_penalty(1.0)(torch.tensor(7.0))
    tensor(2.)
    """
    return lambda length: ((5 + length) / 6) ** alpha


def power_penalty(alpha: float) -> LengthPenalty:
    """Length penalty L ** alpha: fairseq, Marian, Hugging Face and CTranslate2 with alpha 1.

    >>> power_penalty(2.0)(torch.tensor(3.0))
    tensor(9.)
    """
    return lambda length: length**alpha


@dataclass(frozen=True)
class Beam:
    """Beam search; width 1 is greedy.

    A source ends when `width` hypotheses have ended, or when no live hypothesis can still enter its n best. Among
    equals the lower id wins.

    >>> log = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log()
    >>> choice, _ = Beam(1).choose(log, History.start(torch.tensor([0]), torch.tensor([5]), 1, 1))
    >>> choice.tokens, choice.ended
    (tensor([3]), tensor([True]))
    """

    width: int = 1
    penalty: LengthPenalty = power_penalty(0.0)
    processors: tuple[LogitsProcessor, ...] = ()
    n_best: int = 1
    coverage_penalty: float = 0.0
    eos: int = EOS

    def choose(self, out_NV: Tensor, history: History) -> tuple[Choice, History]:
        log_NV, W = apply(self.processors, out_NV, history, self.eos), self.width
        V = log_NV.shape[1]
        if W == 1:  # one hypothesis: nothing to compare
            scores_N, tokens_N = argmax_rows(log_NV, history.scores)
            ended_N = (tokens_N == self.eos) & (scores_N > -math.inf)
            values_N = self.value(scores_N, torch.arange(len(tokens_N), device=log_NV.device), history)
            return extend_rows(history, tokens_N, scores_N, values_N, ended_N)
        # each hypothesis ends in one way only: among 2 W candidates at least W continue
        scores_Bk, flat_Bk = top_candidates(log_NV, history.scores, W, min(2 * W, W * V))
        return finish_step(self, Candidates(scores_Bk, flat_Bk // V, flat_Bk % V), history)

    def value(self, scores_Bk: Tensor, parents_Bk: Tensor, history: History) -> Tensor:
        """Ranking score with one more token: divided by the length penalty, plus the coverage penalty."""
        values_Bk = scores_Bk / self.penalty(float(history.length + 1))
        if history.attended is None:
            return values_Bk
        penalty_N = coverage_penalty(history.attended, self.coverage_penalty)
        return values_Bk + penalty_N.index_select(0, parents_Bk.flatten()).view_as(values_Bk)


@dataclass(frozen=True)
class Candidates:
    """Candidate extensions of a step: k per source, best first."""

    scores: Tensor
    """(B, k)"""
    slots: Tensor
    """(B, k) the row of its source that it extends"""
    tokens: Tensor
    """(B, k)"""


def finish_step(beam: Beam, found: Candidates, history: History) -> tuple[Choice, History]:
    """Decide which candidates end, which continue, and which sources are done."""
    scores_Bk, W, length = found.scores, history.width, history.length + 1
    (B, k), device = scores_Bk.shape, scores_Bk.device
    eos_Bk = (found.tokens == beam.eos) & (scores_Bk > -math.inf)  # a source keeps its width: -inf marks an empty slot
    parents_Bk = found.slots + torch.arange(0, B * W, W, device=device)[:, None]
    values_Bk = beam.value(scores_Bk, parents_Bk, history)
    ended_Bk = eos_Bk & (torch.arange(k, device=device) < W)
    open_Bk = ~eos_Bk & ((~eos_Bk).cumsum(1) <= W)
    best_Bn = torch.cat([history.best, values_Bk.masked_fill(~ended_Bk, -math.inf)], 1)
    best_Bn = best_Bn.topk(history.best.shape[1]).values
    finished_B = history.finished + ended_Bk.sum(1)
    # upper bound of live hypotheses: the score so far over the penalty of the longest output, with full coverage
    top_B = scores_Bk.masked_fill(~open_Bk, -math.inf).amax(1)
    bound_B = top_B / beam.penalty(history.limits.to(top_B.dtype))
    done_B1 = ((finished_B >= W) | (best_Bn[:, -1] >= bound_B))[:, None]
    open_Bk = open_Bk & ~done_B1
    live_Bk = open_Bk & (length < history.limits)[:, None]
    sources_Bk = history.sources[:, None].expand(B, k)
    columns = (sources_Bk, parents_Bk, found.tokens, scores_Bk, values_Bk, ended_Bk, live_Bk)
    rows = (ended_Bk | open_Bk).flatten().nonzero().squeeze(1)
    if len(rows) == B * k:
        choice = Choice(*(t.flatten() for t in columns))
    else:
        choice = Choice(*(t.flatten().index_select(0, rows) for t in columns))
    return choice, replace(history, finished=finished_B, best=best_Bn)


def argmax_rows(log_NV: Tensor, before_N: Tensor) -> tuple[Tensor, Tensor]:
    """The best (score, token) of each row, the lowest id first among equals.

    >>> argmax_rows(torch.tensor([[1.0, 3.0, 3.0, 2.0]]), torch.tensor([-1.0]))
    (tensor([2.]), tensor([1]))
    """
    (N, V), size = log_NV.shape, _chunk(log_NV.shape[1], 1, 1)
    if V % size:
        tokens_N1 = log_NV.argmax(1, keepdim=True)
    else:  # maxima of chunks are fast, argmax is slow: take it in one chunk only
        at_N1 = log_NV.view(N, -1, size).amax(2).argmax(1, keepdim=True)
        rows_N = torch.arange(0, log_NV.numel() // size, V // size, device=log_NV.device) + at_N1.squeeze(1)
        chunk_NC = log_NV.view(-1, size).index_select(0, rows_N)
        tokens_N1 = at_N1 * size + chunk_NC.argmax(1, keepdim=True)
    return before_N + log_NV.gather(1, tokens_N1).squeeze(1), tokens_N1.squeeze(1)


def top_candidates(log_NV: Tensor, before_N: Tensor, width: int, k: int) -> tuple[Tensor, Tensor]:
    """The k best (score, index into width x V) of each source, exact, the lowest index first among equals.

    The maxima of chunks take one fast pass. The top k lie in the k chunks with the best maxima: an element of any other
    chunk has k maxima before it. Only those chunks are sorted.

    >>> top_candidates(torch.tensor([[1.0, 3.0, 3.0], [2.0, 9.0, 3.0]]), torch.tensor([0.0, -6.0]), 2, 3)
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
    token_Bk = (chunk_Bk % C * size + at_Bk % size).clamp(max=V - 1)  # padding scores -inf: an empty slot
    return scores_Bk, chunk_Bk // C * V + token_Bk


@cache
def _chunk(V: int, width: int, k: int) -> int:
    """A size near the cheapest that divides the vocabulary, if there is one."""
    ideal = max(1, math.isqrt(width * V // k))
    sizes = [size for size in range(max(1, ideal // 2), 2 * ideal + 1) if V % size == 0]
    return min(sizes, key=lambda size: abs(size - ideal), default=ideal)
