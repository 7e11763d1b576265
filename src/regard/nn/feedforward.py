"""The position-wise network between two attentions: FFN(x) = f(x W1 + b1) W2 + b2 (Vaswani et al. 2017, eq. 2)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class FeedForward(nn.Module):
    """Width -> inner -> width, with a ReLU.

    >>> import torch
    >>> FeedForward(8, 32)(torch.zeros(1, 2, 8)).shape
    torch.Size([1, 2, 8])
    """

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.rise, self.fall = nn.Linear(width, inner), nn.Linear(inner, width)
        for linear in (self.rise, self.fall):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x_NLD: Tensor) -> Tensor:
        return self.fall(F.relu(self.rise(x_NLD), inplace=True))


class GELUFeedForward(nn.Module):
    """The same with a GELU, as GPT and BERT have it; `approximate="tanh"` is GPT's.

    >>> import torch
    >>> GELUFeedForward(8, 32)(torch.zeros(1, 2, 8)).shape
    torch.Size([1, 2, 8])
    """

    def __init__(self, width: int, inner: int, approximate: str = "tanh") -> None:
        super().__init__()
        self.rise, self.fall, self.approximate = nn.Linear(width, inner), nn.Linear(inner, width), approximate

    def forward(self, x_NLD: Tensor) -> Tensor:
        return self.fall(F.gelu(self.rise(x_NLD), approximate=self.approximate))
