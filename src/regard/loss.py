"""Losses as named totals, and a chunked loss that never materializes all logits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.sequence import Rows


@dataclass(frozen=True)
class Loss(Rows):
    """Totals by name, each divided by its own count over all ranks and micro-batches.

    >>> Loss({"next": torch.tensor(6.0)}).mean({"next": torch.tensor(3)})
    tensor(2.)
    """

    totals: Mapping[str, Tensor]

    def mean(self, counts: Mapping[str, Tensor]) -> Tensor:
        """The loss to differentiate. `counts` depend on task and batches only, so they are known beforehand."""
        return torch.stack([total / counts[name].clamp(min=1) for name, total in self.totals.items()]).sum()


def chunked_loss(
    readout: nn.Module,
    score: Callable[[Tensor, Tensor], Tensor],
    features_ND: Tensor,
    target_N: Tensor,
    chunk: int = 1024,
) -> Tensor:
    """Sum of score(readout(features), target), chunk by chunk, without ever holding all logits.

    A sum has the same gradient whatever comes after it, up to one factor: so each chunk's gradient is computed at once,
    while its logits are still in cache, and nothing is computed twice. Always at least one chunk: a rank without
    predictions must still call the readout, or its peers wait for ever.

    >>> head, x = nn.Linear(2, 3), torch.ones(5, 2)
    >>> target = torch.tensor([0, 1, 2, 0, 1])
    >>> score = lambda out, target: nn.functional.cross_entropy(out, target, reduction="sum")
    >>> torch.allclose(chunked_loss(head, score, x, target, chunk=2), score(head(x), target))
    True
    """
    parameters = [p for p in readout.parameters() if p.requires_grad]
    if not torch.is_grad_enabled() or not (features_ND.requires_grad or parameters):
        pairs = zip(features_ND.split(chunk), target_N.split(chunk), strict=True)
        return torch.stack([score(readout(f_ND), t_N) for f_ND, t_N in pairs]).sum()
    return _ChunkedLoss.apply(readout, score, chunk, target_N, features_ND, *parameters)


class _ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, readout: nn.Module, score: Any, chunk: int, target_N: Tensor, *leaves: Tensor) -> Tensor:
        features_ND, parameters = leaves[0].detach(), list(leaves[1:])
        total: Tensor = features_ND.new_zeros((), dtype=torch.float32)
        into_features, into_parameters = torch.empty_like(features_ND), [torch.zeros_like(p) for p in parameters]
        slots = into_features.split(chunk)
        for f_ND, t_N, slot in zip(features_ND.split(chunk), target_N.split(chunk), slots, strict=True):
            with torch.enable_grad():
                f_ND = f_ND.detach().requires_grad_()
                part = score(readout(f_ND), t_N)
            found = torch.autograd.grad(part, [f_ND, *parameters])
            slot.copy_(found[0])
            for sum_, new in zip(into_parameters, found[1:], strict=True):
                sum_.add_(new)
            total = total + part.detach()
        ctx.save_for_backward(into_features, *into_parameters)
        return total

    @staticmethod
    def backward(ctx: Any, *factor: Tensor) -> Any:
        return (None, None, None, None, *(grad * factor[0] for grad in ctx.saved_tensors))
