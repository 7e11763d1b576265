"""Convolutions over a sequence: each place from a window around it, all places at once; padding is never seen."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.sequence import Padded


class Convolution(nn.Module, ABC):
    """One layer with its residual. `kernel` is odd: as many neighbours on the left as on the right.

    What is outside the sequence is zeros on both sides of it, whether there is padding or the end of the batch.

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
        seen_BLD = x.data.masked_fill(~x.mask[..., None], 0.0) if x.ragged else x.data
        return self.joined(x.data, self.conv(seen_BLD.transpose(1, 2)).transpose(1, 2))

    @abstractmethod
    def joined(self, x_BLD: Tensor, made_BLC: Tensor) -> Tensor:
        """The residual with what the convolution made."""


class GatedConvolution(Convolution):
    """(x + a * sigmoid(b)) / sqrt(2), with a and b from one convolution (Dauphin et al. 2017; Gehring et al. 2017).

    >>> GatedConvolution(4, 3).conv.out_channels
    8
    """

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__(width, 2 * width, kernel)

    def joined(self, x_BLD: Tensor, made_BLC: Tensor) -> Tensor:
        return (x_BLD + F.glu(made_BLC, -1)) * 0.5**0.5


class ReluConvolution(Convolution):
    """x + max(0, convolution of x).

    >>> ReluConvolution(4, 3).conv.out_channels
    4
    """

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__(width, width, kernel)

    def joined(self, x_BLD: Tensor, made_BLC: Tensor) -> Tensor:
        return x_BLD + torch.relu(made_BLC)
