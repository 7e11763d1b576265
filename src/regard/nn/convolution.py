"""1-d convolutions over padded sequences; padding never leaks into real positions."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.sequence import Padded


class Convolution(nn.Module, ABC):
    """Convolution layer with a residual connection; `kernel` is odd, so that the window is centered.

    Outside the sequence there are zeros on both sides, at padding as well as at the edge of the batch.

    >>> x = Padded(torch.randn(2, 5, 4), torch.tensor([5, 2]))
    >>> layer = GatedConvolution(4, 3)
    >>> alone = layer(Padded(x.data[1:, :2], torch.tensor([2])))
    >>> layer(x).shape, torch.allclose(layer(x)[1, :2], alone[0], atol=1e-6)
    (torch.Size([2, 5, 4]), True)
    """

    def __init__(self, width: int, channels: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(width, channels, kernel, padding=kernel // 2)

    def forward(self, x: Padded) -> Tensor:
        if not x.data.shape[1]:
            return x.data
        masked_BLD = x.data.masked_fill(~x.mask[..., None], 0.0) if x.ragged else x.data
        return self.residual(x.data, self.conv(masked_BLD.transpose(1, 2)).transpose(1, 2))

    @abstractmethod
    def residual(self, x_BLD: Tensor, conv_BLC: Tensor) -> Tensor:
        """The residual connection around the activated convolution."""


class GatedConvolution(Convolution):
    """(x + a * sigmoid(b)) / sqrt(2), with a and b from one convolution (Dauphin et al. 2017; Gehring et al. 2017)."""

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__(width, 2 * width, kernel)

    def residual(self, x_BLD: Tensor, conv_BLC: Tensor) -> Tensor:
        return (x_BLD + F.glu(conv_BLC, -1)) * 0.5**0.5


class ReluConvolution(Convolution):
    """x + max(0, conv(x))."""

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__(width, width, kernel)

    def residual(self, x_BLD: Tensor, conv_BLC: Tensor) -> Tensor:
        return x_BLD + torch.relu(conv_BLC)
