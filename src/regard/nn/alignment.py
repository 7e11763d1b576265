"""Attention of recurrent decoders: alignment scores, weights and context (Bahdanau et al. 2015, Luong et al. 2015).

What depends on the source alone is computed once per source. The W hypotheses of a source are W queries to one copy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from regard.errors import ConfigError
from regard.sequence import Padded, Rows
from regard.trace import tap

AXES = "batch head query:target key:source"
MAX_ELEMENTS = 2**24
"""elements of the additive score's tanh that may be kept at once, 64 MB; beyond, it is computed query by query"""
ScoreName = Literal["dot", "general", "concat", "cosine"]


class AlignmentScore(nn.Module, ABC):
    """Alignment score: how well a query matches each position of the source."""

    def keys(self, states_BSM: Tensor) -> Tensor:
        """(B, S, K): the part that depends on the source only."""
        return states_BSM

    @abstractmethod
    def forward(self, query_BQD: Tensor, keys_BSK: Tensor) -> Tensor:
        """(B, Q, S)"""


class Dot(AlignmentScore):
    """q . h (Luong et al. 2015, eq. 8).

    >>> Dot(2, 2)(torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[3.0, 0.0], [0.0, 4.0]]]))
    tensor([[[3., 8.]]])
    >>> Dot(8, 4)
    Traceback (most recent call last):
    regard.errors.ConfigError: a dot product needs vectors of one width; the query has 8, the source 4: use score ...
    """

    def __init__(self, query: int, memory: int) -> None:
        super().__init__()
        _check_widths("a dot product", query, memory)

    def forward(self, query_BQD: Tensor, keys_BSK: Tensor) -> Tensor:
        return query_BQD @ keys_BSK.mT


class General(AlignmentScore):
    """q . W h (Luong et al. 2015, eq. 8)."""

    def __init__(self, query: int, memory: int) -> None:
        super().__init__()
        self.key = nn.Linear(memory, query, bias=False)

    def keys(self, states_BSM: Tensor) -> Tensor:
        return self.key(states_BSM)

    def forward(self, query_BQD: Tensor, keys_BSK: Tensor) -> Tensor:
        return query_BQD @ keys_BSK.mT


class Additive(AlignmentScore):
    """v . tanh(W q + U h) (Bahdanau et al. 2015, A.1.2); Luong's "concat" is the same, with [W; U] as one matrix."""

    def __init__(self, query: int, memory: int, inner: int) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(query, inner, bias=False), nn.Linear(memory, inner, bias=False)
        self.v = nn.Linear(inner, 1, bias=False)

    def keys(self, states_BSM: Tensor) -> Tensor:
        return self.key(states_BSM)

    def forward(self, query_BQD: Tensor, keys_BSK: Tensor) -> Tensor:
        query_BQK, v_K = self.query(query_BQD), self.v.weight.squeeze(0)
        if query_BQK.shape[1] * keys_BSK.numel() > MAX_ELEMENTS:
            return _AdditiveByQuery.apply(query_BQK, keys_BSK, v_K)
        return (query_BQK[:, :, None] + keys_BSK[:, None]).tanh_() @ v_K


class _AdditiveByQuery(torch.autograd.Function):
    """v . tanh(q + k) of all pairs, query by query: the tensor of queries x positions x width is never materialized.

    With all words of a target at once it may take gigabytes. The backward pass recomputes each tanh.
    """

    @staticmethod
    def forward(ctx: Any, query_BQK: Tensor, keys_BSK: Tensor, v_K: Tensor) -> Tensor:
        ctx.save_for_backward(query_BQK, keys_BSK, v_K)
        return torch.stack([(q_BK[:, None] + keys_BSK).tanh_() @ v_K for q_BK in query_BQK.unbind(1)], 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *into: Tensor) -> Any:
        query_BQK, keys_BSK, v_K = ctx.saved_tensors
        of_query, of_squares, of_v = torch.empty_like(query_BQK), torch.zeros_like(keys_BSK), torch.zeros_like(v_K)
        fits_BSK = torch.empty_like(keys_BSK)
        for q, into_BS in enumerate(into[0].unbind(1)):
            torch.add(query_BQK[:, q, None], keys_BSK, out=fits_BSK).tanh_()
            of_v += into_BS.flatten() @ fits_BSK.flatten(0, 1)
            of_squares.addcmul_(fits_BSK.square_(), into_BS[:, :, None])  # tanh' = 1 - tanh^2: the ones come last
            of_query[:, q] = torch.bmm(into_BS[:, None], fits_BSK).squeeze(1)
        of_query = (into[0].sum(2)[:, :, None] - of_query).mul_(v_K)
        return of_query, (into[0].sum(1)[:, :, None] - of_squares).mul_(v_K), of_v


class Cosine(AlignmentScore):
    """b q . h / (|q| |h|) with a learned sharpness b (Graves et al. 2014, eq. 5 and 6).

    A cosine alone lies between -1 and 1: the best position could never weigh more than e^2 times the worst.

    >>> score = Cosine(2, 2)
    >>> keys = score.keys(torch.tensor([[[3.0, 0.0], [0.0, 0.5], [0.0, 0.0]]]))
    >>> (score(torch.tensor([[[2.0, 2.0]]]), keys) / score.log_sharpness.exp()).detach()
    tensor([[[0.7071, 0.7071, 0.0000]]])
    """

    def __init__(self, query: int, memory: int) -> None:
        super().__init__()
        _check_widths("a cosine", query, memory)
        self.log_sharpness = nn.Parameter(torch.full((), math.log(8.0)))

    def keys(self, states_BSM: Tensor) -> Tensor:
        return F.normalize(states_BSM, dim=-1)

    def forward(self, query_BQD: Tensor, keys_BSK: Tensor) -> Tensor:
        return self.log_sharpness.exp() * (F.normalize(query_BQD, dim=-1) @ keys_BSK.mT)


def _check_widths(what: str, query: int, memory: int) -> None:
    if query != memory:
        raise ConfigError(
            f'{what} needs vectors of one width; the query has {query}, the source {memory}: use score = "general"'
        )


SCORES: dict[ScoreName, Callable[[int, int], AlignmentScore]] = {
    "dot": Dot,
    "general": General,
    "concat": lambda query, memory: Additive(query, memory, query),
    "cosine": Cosine,
}
"""By name: (width of a query, width of the source's states) -> score"""


@dataclass(frozen=True)
class Annotations(Rows):
    """States and keys of a source, computed once and never copied for hypotheses."""

    states: Tensor
    """(B, S, M)"""
    keys: Tensor
    """(B, S, K)"""
    mask: Tensor | None = None
    """(B, 1, S), True = may attend; None: no padding"""


class Alignment(nn.Module):
    """Attention over a source: scores, weights and context.

    >>> alignment = Alignment(Dot(2, 2))
    >>> states = Padded(torch.tensor([[[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]]), torch.tensor([2]))
    >>> alignment(torch.tensor([[[5.0, 5.0]]]), alignment.annotate(states))
    tensor([[[0.5000, 0.5000]]])
    """

    def __init__(self, score: AlignmentScore) -> None:
        super().__init__()
        self.score = score

    def annotate(self, states: Padded) -> Annotations:
        """The part that depends on the source only."""
        return Annotations(states.data, self.score.keys(states.data), states.mask[:, None] if states.ragged else None)

    def weights(self, query_NTD: Tensor, source: Annotations) -> Tensor:
        """(N, 1, T, S): attention weights, 0 at padding and for an empty source."""
        (N, T, D), (B, S, _) = query_NTD.shape, source.keys.shape
        scores_BQS = self.score(query_NTD.reshape(B, N // max(B, 1) * T, D), source.keys)
        scores_BQS = tap(self, "scores", scores_BQS.view(N, 1, T, S), AXES).view(scores_BQS.shape)
        if source.mask is None:
            weights_BQS = scores_BQS.softmax(-1)
        else:  # an empty source is all padding: its softmax is NaN, its weights are zeros
            padding_B1S = ~source.mask
            weights_BQS = scores_BQS.masked_fill(padding_B1S, -math.inf).softmax(-1).masked_fill(padding_B1S, 0.0)
        return tap(self, "weights", weights_BQS.view(N, 1, T, S), AXES)

    def forward(self, query_NTD: Tensor, source: Annotations) -> Tensor:
        """(N, T, M): the context, the weighted sum of the source's states."""
        context_NTM = weighted_sum(self.weights(query_NTD, source), source.states)
        return tap(self, "context", context_NTM[:, None], "batch head query:target width").squeeze(1)


def weighted_sum(weights_N1TS: Tensor, values_BSM: Tensor) -> Tensor:
    """(N, T, M): sum of a source's values, weighted by each hypothesis's weights.

    >>> weighted_sum(torch.tensor([[[[0.5, 0.5]]], [[[1.0, 0.0]]]]), torch.tensor([[[2.0], [4.0]]]))
    tensor([[[3.]],
    <BLANKLINE>
            [[2.]]])
    """
    (N, _, T, S), (B, _, M) = weights_N1TS.shape, values_BSM.shape
    return (weights_N1TS.reshape(B, N // max(B, 1) * T, S) @ values_BSM).view(N, T, M)
