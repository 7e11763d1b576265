"""Lexically constrained beam search: phrases that must appear, by dynamic beam allocation (Post and Vilar 2018).

Hypotheses compete within banks, by the number of constraint tokens they contain; the slots of the beam go round the
banks, the fullest first, so that no constraint is put off for ever and none is forced where it costs much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.decode.beam import Beam, Candidates, finish_step, top_candidates
from regard.decode.hypothesis import Choice, History
from regard.decode.processors import apply
from regard.errors import DataError

Constraints = Sequence[Sequence[int]]
"""Phrases (sequences of ids) that must appear; a phrase that is given twice needs to appear only once."""


class UnsatisfiableConstraint(DataError):
    """The constraints of a source cannot be satisfied: which source, and why.

    >>> str(UnsatisfiableConstraint(2, "its constraints need 9 tokens"))
    'source 2: its constraints need 9 tokens'
    """

    def __init__(self, source: int, why: str) -> None:
        super().__init__(f"source {source}: {why}")
        self.source, self.why = source, why


@dataclass(frozen=True)
class ConstrainedBeam:
    """Beam search whose outputs contain the constraints of their source: row s is that of source s.

    >>> strategy = ConstrainedBeam.from_lists(Beam(2), [[[5, 6]], []])
    >>> strategy.match_counts(torch.tensor([[4, 5, 6], [4, 4, 5]]), torch.tensor([0, 0]))
    tensor([[2],
            [1]])
    """

    beam: Beam
    ids: Tensor
    """(sources, C, K), padded with -1"""

    @classmethod
    def from_lists(cls, beam: Beam, constraints: Sequence[Constraints]) -> ConstrainedBeam:
        """From the constraints of each source, as lists of ids."""
        C = max((len(row) for row in constraints), default=0)
        K = max((len(ids) for row in constraints for ids in row), default=0)
        filled = [[[*ids, *[-1] * (K - len(ids))] for ids in row] + [[-1] * K] * (C - len(row)) for row in constraints]
        return cls(beam, torch.tensor(filled, dtype=torch.long).reshape(len(constraints), C, K))

    @property
    def width(self) -> int:
        return self.beam.width

    @property
    def n_best(self) -> int:
        return self.beam.n_best

    @property
    def coverage_penalty(self) -> float:
        return self.beam.coverage_penalty

    def choose(self, out_NV: Tensor, history: History) -> tuple[Choice, History]:
        ids_NCK = self.ids.to(out_NV.device).index_select(0, history.owners)
        if not history.length:
            self._check(history, ids_NCK, out_NV.shape[1])
        matched_NC = matched_tokens(history.tokens, ids_NCK)
        lengths_NC = (ids_NCK >= 0).sum(-1)
        log_NV = apply(self.beam.processors, out_NV, history, self.beam.eos)
        early_N = (matched_NC < lengths_NC).any(1).nonzero().squeeze(1)
        end = torch.tensor(self.beam.eos, device=log_NV.device)
        log_NV = log_NV.index_put((early_N, end), log_NV.new_tensor(-math.inf))
        missing_NC = torch.where(matched_NC < lengths_NC, _next(ids_NCK, matched_NC), self.beam.eos)
        found = self._allocate(self._pool(log_NV, missing_NC, history), history)
        choice, history = finish_step(self.beam, found, history)
        return self._drop_unsatisfied(choice, history), history

    def match_counts(self, tokens_NT: Tensor, owners_N: Tensor) -> Tensor:
        """(N, C): matched tokens of each constraint."""
        return matched_tokens(tokens_NT, self.ids.to(owners_N.device).index_select(0, owners_N))

    def _pool(self, log_NV: Tensor, missing_NC: Tensor, history: History) -> Candidates:
        """The best candidates, and every candidate that continues a constraint or ends."""
        (N, V), W = log_NV.shape, self.width
        end_N1 = missing_NC.new_full((N, 1), self.beam.eos)
        more_NM = torch.cat([missing_NC, end_N1], 1)
        scores_NM = history.scores[:, None] + log_NV.gather(1, more_NM)
        slots_NM = (torch.arange(N, device=log_NV.device) % W)[:, None].expand_as(more_NM)
        top_Bk, flat_Bk = top_candidates(log_NV, history.scores, W, min(2 * W, W * V))
        flat_BP = torch.cat([flat_Bk, (slots_NM * V + more_NM).view(N // W, -1)], 1)
        scores_BP = torch.cat([top_Bk, scores_NM.view(N // W, -1)], 1)
        twice_BP = (flat_BP[:, :, None] == flat_BP[:, None]).tril(-1).any(2)
        return Candidates(scores_BP.masked_fill(twice_BP, -math.inf), flat_BP // V, flat_BP % V)

    def _allocate(self, pool: Candidates, history: History) -> Candidates:
        """2 W candidates: the best of each bank, the fullest bank first, then the second best of each, and so on."""
        (B, P), W, T = pool.scores.shape, self.width, history.length
        rows_BP = pool.slots + torch.arange(0, B * W, W, device=pool.slots.device)[:, None]
        before = history.tokens.index_select(0, rows_BP.flatten())
        tokens = torch.cat([before.view(B * P, T), pool.tokens.reshape(-1, 1)], 1)
        owners = history.sources.repeat_interleave(P)
        bank_BP = self.match_counts(tokens, owners).sum(1).view(B, P)
        order_BP = pool.scores.sort(dim=1, descending=True, stable=True).indices
        bank_BP, sorted_BP = bank_BP.gather(1, order_BP), pool.scores.gather(1, order_BP)
        rank_BP = (bank_BP[:, :, None] == bank_BP[:, None]).tril(-1).sum(2)
        banks = int(bank_BP.max()) + 1
        turn_BP = rank_BP * banks - bank_BP + (sorted_BP == -math.inf) * (P + 1) * banks
        taken_Bk = order_BP.gather(1, turn_BP.sort(dim=1, stable=True).indices[:, : 2 * W])
        return Candidates(*(t.gather(1, taken_Bk) for t in (pool.scores, pool.slots, pool.tokens)))

    def _drop_unsatisfied(self, choice: Choice, history: History) -> Choice:
        """Drop rows that were cut off before they satisfied all constraints. A source left without rows is an error."""
        tokens = torch.cat([history.tokens.index_select(0, choice.parents), choice.tokens[:, None]], 1)
        lengths_MC = (self.ids.to(history.sources.device).index_select(0, choice.sources) >= 0).sum(-1)
        short_M = (self.match_counts(tokens, choice.sources) < lengths_MC).any(1)
        rows = (choice.live | choice.ended | ~short_M).nonzero().squeeze(1)
        kept = choice.select(rows)
        alive = set(kept.sources[kept.scores > -math.inf].tolist())
        for number, finished, limit in zip(
            history.sources.tolist(), history.finished.tolist(), history.limits.tolist(), strict=True
        ):
            if number not in alive and not finished:
                raise UnsatisfiableConstraint(
                    number,
                    f"no output of at most {limit} tokens satisfies all its constraints and the other decoding "
                    "settings; raise the limit, or relax the settings",
                )
        return kept

    def _check(self, history: History, ids_NCK: Tensor, V: int) -> None:
        rows = ids_NCK[:: self.width].tolist()
        for number, limit, row in zip(history.sources.tolist(), history.limits.tolist(), rows, strict=True):
            phrases = [[i for i in ids if i != -1] for ids in row]
            for i in (i for ids in phrases for i in ids if not 0 <= i < V or i == self.beam.eos):
                what = "ends a sentence" if i == self.beam.eos else f"is not in the vocabulary of {V} words"
                raise UnsatisfiableConstraint(number, f"id {i} of a constraint {what}; it cannot appear in an output")
            needed = sum(map(len, {tuple(ids) for ids in phrases}))
            if needed + 1 > limit:
                raise UnsatisfiableConstraint(
                    number,
                    f"its constraints need {needed + 1} tokens with <EOS>, but at most {limit} are allowed; raise the "
                    "limit, or require fewer words",
                )


def matched_tokens(tokens_NT: Tensor, ids_NCK: Tensor) -> Tensor:
    """(N, C): matched tokens of each constraint: all if it appears, else the longest prefix that the row ends with.

    >>> matched_tokens(torch.tensor([[5, 5, 6, 4], [4, 4, 5, 5]]), torch.tensor([[[5, 6, -1]], [[5, 5, 6]]]))
    tensor([[2],
            [2]])
    """
    (N, T), (_, C, K) = tokens_NT.shape, ids_NCK.shape
    if not T or not K:
        return torch.zeros(N, C, dtype=torch.long, device=ids_NCK.device)
    windows_NTK = F.pad(tokens_NT, (0, K - 1), value=-2).unfold(1, K, 1)
    same = (windows_NTK[:, :, None] == ids_NCK[:, None]) | (ids_NCK == -1)[:, None]
    agree_NTC = same.cumprod(-1).sum(-1)
    to_the_end_T1 = torch.arange(T, 0, -1, device=ids_NCK.device)[:, None]
    partly_NC = torch.where(agree_NTC == to_the_end_T1, agree_NTC, 0).amax(1)
    return torch.where((agree_NTC == K).any(1), (ids_NCK >= 0).sum(-1), partly_NC)


def _next(ids_NCK: Tensor, matched_NC: Tensor) -> Tensor:
    """(N, C): the next token of each constraint."""
    return ids_NCK.gather(2, matched_NC.clamp(max=ids_NCK.shape[2] - 1)[..., None]).squeeze(2)
