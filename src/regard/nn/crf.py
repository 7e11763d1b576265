"""Linear-chain conditional random field (Lafferty, McCallum and Pereira 2001) on a network (Collobert et al. 2011).

A sequence of labels y scores s(y) = start[y_1] + sum of emission[t, y_t] + sum of transition[y_{t-1}, y_t] + end[y_n],
and p(y) = exp(s(y)) / Z, Z over all sequences: labels depend on their neighbors. Z takes the forward algorithm and the
best sequence the Viterbi algorithm, both n x C x C additions, not C^n.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from regard.sequence import Padded

FORBIDDEN = -1e4
"""score of a forbidden transition: below anything learned, and not -inf, of which two make NaN"""


class LinearChainCRF(nn.Module):
    """Transition scores of a CRF, its likelihood and its decoding.

    Emissions are (B, L, C) with one length per row; padding is never read. An empty row scores 0.

    >>> crf = LinearChainCRF(2)
    >>> emissions = Padded(torch.tensor([[[3.0, 0.0], [0.0, 3.0]]]), torch.tensor([2]))
    >>> crf.viterbi(emissions)
    tensor([[0, 1]])
    >>> torch.allclose(crf.nll(emissions, torch.tensor([[0, 1]])), 2 * torch.tensor(1 + 0.049787).log())
    True
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.transitions = nn.Parameter(torch.zeros(size, size))
        self.start, self.end = nn.Parameter(torch.zeros(size)), nn.Parameter(torch.zeros(size))

    def nll(self, emissions: Padded, labels_BL: Tensor) -> Tensor:
        """(B,) negative log-likelihood -log p(labels) of each row's label sequence."""
        return self.log_partition(emissions) - self.score(emissions, labels_BL)

    def score(self, emissions: Padded, labels_BL: Tensor) -> Tensor:
        """(B,) s(labels)."""
        if not emissions.data.shape[1]:
            return emissions.data.new_zeros(len(labels_BL))
        real_BL = emissions.mask
        safe_BL = torch.where(real_BL, labels_BL, 0)
        at_BL = emissions.data.take_along_dim(safe_BL[..., None], 2).squeeze(2)
        steps_BL = self.transitions[safe_BL[:, :-1], safe_BL[:, 1:]]
        first_B, last_B = safe_BL[:, 0], safe_BL.take_along_dim(_last(emissions)[:, None], 1).squeeze(1)
        whole_B = torch.where(real_BL, at_BL, 0.0).sum(1) + torch.where(real_BL[:, 1:], steps_BL, 0.0).sum(1)
        return torch.where(emissions.lengths > 0, whole_B + self.start[first_B] + self.end[last_B], 0.0)

    def log_partition(self, emissions: Padded) -> Tensor:
        """(B,) log Z, by the forward algorithm."""
        if not emissions.data.shape[1]:
            return emissions.data.new_zeros(len(emissions))
        at, real_BL = emissions.data.unbind(1), emissions.mask
        sums_BC = self.start + at[0]
        for t in range(1, len(at)):
            after_BC = (sums_BC[:, :, None] + self.transitions).logsumexp(1) + at[t]
            sums_BC = torch.where(real_BL[:, t, None], after_BC, sums_BC)
        return torch.where(emissions.lengths > 0, (sums_BC + self.end).logsumexp(1), 0.0)

    def marginals(self, emissions: Padded) -> Tensor:
        """(B, L, C) marginal p(label at each position); 0 at padding. They are d log Z / d emission."""
        with torch.enable_grad():
            data_BLC = emissions.data.detach().requires_grad_()
            total = self.log_partition(emissions.like(data_BLC)).sum()
            return torch.autograd.grad(total, data_BLC)[0]

    @torch.no_grad()
    def viterbi(self, emissions: Padded, allowed: TransitionMask | None = None) -> Tensor:
        """(B, L) the labels of the highest score, by the Viterbi algorithm; 0 at padding, the lowest id among equals.

        `allowed` restricts the transitions of decoding only, not those of training.
        """
        B, L = emissions.data.shape[:2]
        if not L:
            return torch.zeros(B, 0, dtype=torch.long, device=emissions.data.device)
        start_C, step_CC, end_C = (self.start, self.transitions, self.end) if allowed is None else allowed.apply(self)
        at, real_BL = emissions.data.unbind(1), emissions.mask
        best_BC, came_from = start_C + at[0], []
        still_BC = torch.arange(best_BC.shape[1], device=best_BC.device).expand(B, -1)
        for t in range(1, L):
            after_BC, from_BC = (best_BC[:, :, None] + step_CC).max(1)
            best_BC = torch.where(real_BL[:, t, None], after_BC + at[t], best_BC)
            came_from.append(torch.where(real_BL[:, t, None], from_BC, still_BC))
        path = [(best_BC + end_C).argmax(1)]
        for from_BC in reversed(came_from):
            path.append(from_BC.take_along_dim(path[-1][:, None], 1).squeeze(1))
        return torch.stack(path[::-1], 1).masked_fill(~real_BL, 0)


class TransitionMask:
    """Allowed transitions: which labels may start, follow one another, and end.

    >>> allowed = TransitionMask(torch.tensor([True, False]), torch.ones(2, 2, dtype=torch.bool), torch.ones(2).bool())
    >>> emissions = Padded(torch.tensor([[[0.0, 3.0]]]), torch.tensor([1]))
    >>> LinearChainCRF(2).viterbi(emissions), LinearChainCRF(2).viterbi(emissions, allowed)
    (tensor([[1]]), tensor([[0]]))
    """

    def __init__(self, start_C: Tensor, step_CC: Tensor, end_C: Tensor) -> None:
        self.start_C, self.step_CC, self.end_C = start_C, step_CC, end_C

    def apply(self, crf: LinearChainCRF) -> tuple[Tensor, Tensor, Tensor]:
        """The scores of `crf`, with forbidden transitions far below all others."""
        device = crf.start.device
        return (
            crf.start.masked_fill(~self.start_C.to(device), FORBIDDEN),
            crf.transitions.masked_fill(~self.step_CC.to(device), FORBIDDEN),
            crf.end.masked_fill(~self.end_C.to(device), FORBIDDEN),
        )


def _last(emissions: Padded) -> Tensor:
    return (emissions.lengths - 1).clamp(min=0)
