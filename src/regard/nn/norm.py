"""Normalization layers whose output is recorded: LayerNorm (Ba et al. 2016), RMSNorm (Zhang and Sennrich 2019)."""

from __future__ import annotations

from torch import Tensor, nn

from regard.trace import tap


class LayerNorm(nn.LayerNorm):
    """torch's layer normalization of vectors (N, L, D); records `normalized`. `side`: sequence of the positions.

    >>> import torch
    >>> from regard.trace import record
    >>> with record(norm := LayerNorm(2)) as trace:
    ...     _ = norm(torch.tensor([[[1.0, 3.0]]]))
    >>> trace.records[0].name, trace.records[0].data.detach().round()
    ('normalized', tensor([[[-1.,  1.]]]))
    """

    def __init__(self, width: int, side: str = "target", eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__(width, eps=eps, bias=bias)
        self.axes = f"batch position:{side} width"

    def forward(self, x_NLD: Tensor) -> Tensor:
        return tap(self, "normalized", super().forward(x_NLD), self.axes)


class RMSNorm(nn.RMSNorm):
    """x / sqrt(mean(x^2) + eps) * weight: neither a mean is subtracted nor a bias added. Records `normalized`.

    >>> import torch
    >>> RMSNorm(2)(torch.tensor([[[3.0, 3.0]]])).detach().round(decimals=3)
    tensor([[[1., 1.]]])
    """

    def __init__(self, width: int, side: str = "target", eps: float = 1e-5) -> None:
        super().__init__(width, eps=eps)
        self.axes = f"batch position:{side} width"

    def forward(self, x_NLD: Tensor) -> Tensor:
        return tap(self, "normalized", super().forward(x_NLD), self.axes)
