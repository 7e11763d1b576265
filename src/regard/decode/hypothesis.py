"""What a search says at each step, what it remembers, and the sentences that come out of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from regard.sequence import Rows


@dataclass(frozen=True)
class Choice(Rows):
    """One step of a search, best first within a source. A row neither live nor ended was cut by its limit.

    >>> choice = Choice(*torch.tensor([[0, 0], [0, 0], [5, 3], [-1, -2], [-1, -2]]), *torch.tensor([[False, True]] * 2))
    >>> choice.tokens[choice.ended]
    tensor([3])
    """

    sources: Tensor
    """(M,) the number of the source"""
    parents: Tensor
    """(M,) which live row of the step before it goes on from"""
    tokens: Tensor
    """(M,) ids, or (M, F) values"""
    scores: Tensor
    """(M,) log-probability so far, in double precision: sums of many small numbers; -inf: a place nobody took"""
    values: Tensor
    """(M,) what hypotheses are ranked by: the score after penalties, as if it ended here"""
    ended: Tensor
    """(M,) said <EOS>"""
    live: Tensor
    """(M,) goes on"""


@dataclass(frozen=True)
class History:
    """The live hypotheses, `width` rows a source, and what is known of each source.

    >>> History.begin(torch.tensor([7, 8]), torch.tensor([9, 9]), width=2, n_best=1).owners
    tensor([7, 7, 8, 8])
    """

    tokens: Tensor
    """(N, t) said since the prompt; (N, t, F) values"""
    scores: Tensor
    """(N,)"""
    sources: Tensor
    """(B,) the numbers of the sources"""
    limits: Tensor
    """(B,) how many tokens each may say"""
    finished: Tensor
    """(B,) how many hypotheses have ended"""
    best: Tensor
    """(B, n) their best values"""
    attended: Tensor | None = None
    """(N, S) attention that each word of the source has had; padding counts as 1; None: nobody asked"""

    @classmethod
    def begin(cls, sources_B: Tensor, limits_B: Tensor, width: int, n_best: int) -> History:
        """One hypothesis of a source is alive, its twins are not: else a beam would hold `width` times the same."""
        B, device = len(sources_B), sources_B.device
        scores_BW = torch.full((B, width), -math.inf, dtype=torch.double, device=device)
        scores_BW[:, 0] = 0.0
        nothing_NT = torch.zeros(B * width, 0, dtype=torch.long, device=device)
        best_Bn = scores_BW.new_full((B, n_best), -math.inf)
        return cls(nothing_NT, scores_BW.flatten(), sources_B, limits_B, torch.zeros_like(sources_B), best_Bn)

    @property
    def width(self) -> int:
        return self.scores.shape[0] // max(self.sources.shape[0], 1)

    @property
    def owners(self) -> Tensor:
        """(N,): the source of each row."""
        if self.width == 1:
            return self.sources
        return self.sources.repeat_interleave(self.width)

    @property
    def length(self) -> int:
        """How many tokens every row has said."""
        return self.tokens.shape[1]

    def follow(self, choice: Choice) -> tuple[History, Tensor]:
        """What is remembered after a choice, and which rows (N',) it goes on from."""
        rows = choice.live.nonzero().squeeze(1)
        parents_N, said = choice.parents.index_select(0, rows), choice.tokens.index_select(0, rows)[:, None]
        if self.width == 1 and len(rows) == len(self.scores):  # nothing moved
            return replace(
                self, tokens=torch.cat([self.tokens, said], 1) if self.length else said, scores=choice.scores
            ), rows
        before = self.tokens.index_select(0, parents_N)
        new = replace(
            self,
            tokens=torch.cat([before, said], 1) if self.length else said,
            scores=choice.scores.index_select(0, rows),
            attended=None if self.attended is None else self.attended.index_select(0, parents_N),
        )
        if len(parents_N) == len(self.scores):
            return new, parents_N
        kept_B = parents_N[:: self.width] // self.width
        names = ("sources", "limits", "finished", "best")
        return replace(new, **{name: getattr(self, name).index_select(0, kept_B) for name in names}), parents_N


def going_on(
    history: History, tokens: Tensor, scores_N: Tensor, values_N: Tensor, ended_N: Tensor
) -> tuple[Choice, History]:
    """A choice in which every row goes on from itself, until it ends. Where others of its source go on, its place is
    held by a row of score -inf: a source leaves the batch as a whole.

    >>> history = History.begin(torch.tensor([0, 1]), torch.tensor([5, 1]), 1, 1)
    >>> no = torch.tensor([False, False])
    >>> going_on(history, torch.tensor([7, 7]), history.scores, history.scores, no)[0].live
    tensor([ True, False])
    """
    N, W = len(scores_N), history.width
    parents_N, owners_N = torch.arange(N, device=tokens.device), history.owners
    if W == 1:
        live_N = ~ended_N & (history.length + 1 < history.limits)
        return Choice(owners_N, parents_N, tokens, scores_N, values_N, ended_N, live_N), history
    dead_N = scores_N == -math.inf
    going_N = ~ended_N & ~dead_N & (history.length + 1 < history.limits.repeat_interleave(W))
    held_N = ~going_N & going_N.view(-1, W).any(1).repeat_interleave(W)
    rows = torch.stack([~dead_N, held_N], 1).flatten().nonzero().squeeze(1)
    at, held = rows // 2, rows % 2 == 1
    scores, values = (t.index_select(0, at).masked_fill(held, -math.inf) for t in (scores_N, values_N))
    ended, going = ended_N.index_select(0, at) & ~held, going_N.index_select(0, at) | held
    said = (owners_N.index_select(0, at), parents_N.index_select(0, at), tokens.index_select(0, at))
    return Choice(*said, scores, values, ended, going), history


class Strategy(Protocol):
    """How to go on from what the model says; see Beam, Constrained, Sampling and Rollout."""

    @property
    def width(self) -> int:
        """How many hypotheses a source has."""

    @property
    def n_best(self) -> int:
        """How many of them are wanted."""

    @property
    def coverage(self) -> float:
        """Above 0: the loop adds up attention in History.attended."""

    def choose(self, out_NV: Tensor, history: History) -> tuple[Choice, History]:
        """The next tokens, given the model's output for every live row."""


def _longer(before: Tensor, said: Tensor) -> Tensor:
    return torch.cat([before, said], 1) if before.shape[1] else said


@dataclass(frozen=True)
class Hypothesis:
    """A sentence that was found; its tokens include <EOS> when it is complete.

    >>> Hypothesis((5, 6, 3), -0.4, -1.2, True).complete
    True
    """

    tokens: tuple
    """ids, or tuples of values"""
    value: float
    """the score after penalties: what hypotheses are ranked by"""
    score: float
    """log-probability"""
    complete: bool
    """False: cut by its limit"""


def collect(choices: Iterable[Choice], n_best: int = 1) -> list[list[Hypothesis]]:
    """The n best hypotheses of each source that a run of choices spells out, sources in the order of the batch.

    >>> first = Choice(*torch.tensor([[0, 0], [0, 0], [5, 3], [-1, -2], [-1, -2]]), *torch.tensor([[0, 1], [1, 0]]) > 0)
    >>> second = Choice(*torch.tensor([[0], [0], [3], [-1], [-1]]), *torch.tensor([[1], [0]]) > 0)
    >>> [h.tokens for h in collect([first, second], n_best=2)[0]]
    [(5, 3), (3,)]
    """
    steps = [choice if choice.tokens.device.type == "cpu" else choice.to("cpu") for choice in choices]
    if not steps:
        return []
    names = list(dict.fromkeys(steps[0].sources.tolist()))
    finals = [(~c.live & (c.scores > -math.inf)).nonzero().squeeze(1) for c in steps]
    wanted = _ranked(steps, finals, n_best)
    spelled = _spelled(steps, wanted)
    found: dict[int, list[tuple[int, Hypothesis]]] = {name: [] for name in names}
    for step, (ranks, rows) in enumerate(wanted):
        if len(rows):
            facts = steps[step].select(rows)
            columns = (facts.sources, ranks, facts.values, facts.scores, facts.ended)
            for tokens, (name, rank, value, score, ended) in zip(
                spelled[step], zip(*(t.tolist() for t in columns), strict=True), strict=True
            ):
                found[name].append((rank, Hypothesis(tokens, float(value), float(score), ended)))
    return [[h for _, h in sorted(found[name], key=lambda pair: pair[0])] for name in names]


def _ranked(steps: list[Choice], finals: list[Tensor], n_best: int) -> list[tuple[Tensor, Tensor]]:
    """Of each step the rows that are among the n best of their source, and the rank of each."""
    sources = torch.cat([c.sources.index_select(0, rows) for c, rows in zip(steps, finals, strict=True)])
    values = torch.cat([c.values.index_select(0, rows) for c, rows in zip(steps, finals, strict=True)])
    order = values.sort(descending=True, stable=True).indices
    order = order.index_select(0, sources.index_select(0, order).sort(stable=True).indices)
    grouped = sources.index_select(0, order)
    places = torch.arange(len(grouped))
    heads = torch.ones(len(grouped), dtype=torch.bool)
    heads[1:] = grouped[1:] != grouped[:-1]
    ranks = torch.empty_like(places)
    ranks[order] = places - torch.where(heads, places, 0).cummax(0).values if len(places) else places
    parts = ranks.split([len(rows) for rows in finals])
    return [(rank[rank < n_best], rows[rank < n_best]) for rank, rows in zip(parts, finals, strict=True)]


def _spelled(steps: list[Choice], wanted: list[tuple[Tensor, Tensor]]) -> list[list[tuple]]:
    """The tokens of the wanted rows of each step: all of them are walked back together, one step at a time."""
    counts = [len(rows) for _, rows in wanted]
    starts = [sum(counts[:step]) for step in range(len(steps) + 1)]
    said = steps[0].tokens.new_zeros(starts[-1], len(steps), *steps[0].tokens.shape[1:])
    at = torch.zeros(0, dtype=torch.long)  # where the rows that ended later stand at this step
    for step in range(len(steps) - 1, -1, -1):
        choice = steps[step]
        at = torch.cat([wanted[step][1], at])
        said[starts[step] :, step] = choice.tokens.index_select(0, at)
        if step:
            live = steps[step - 1].live.nonzero().squeeze(1)
            at = live.index_select(0, choice.parents.index_select(0, at))
    lists = said.tolist()
    freeze = tuple if said.ndim == 2 else (lambda rows: tuple(map(tuple, rows)))
    return [[freeze(row[: i + 1]) for row in lists[starts[i] : starts[i + 1]]] for i in range(len(steps))]
