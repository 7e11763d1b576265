"""2-d convolutions over images, with batch normalization (Ioffe and Szegedy 2015), and a feature map as a memory."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.sequence import Memory, Padded
from regard.trace import tap

MAP_AXES = "batch channel row column"


class ConvNorm(nn.Module):
    """Convolution without bias, then batch normalization, then a ReLU if `relu`.

    >>> ConvNorm(3, 8, 3, stride=2)(torch.zeros(1, 3, 6, 6)).shape
    torch.Size([1, 8, 3, 3])
    """

    def __init__(self, channels: int, out: int, kernel: int, stride: int = 1, relu: bool = True) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out, kernel, stride, padding=kernel // 2, bias=False)
        self.norm, self.relu = nn.BatchNorm2d(out), relu
        nn.init.kaiming_normal_(self.conv.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x_BCYX: Tensor) -> Tensor:
        conv_BCYX = tap(self, "convolution", self.conv(x_BCYX), MAP_AXES)
        x_BCYX = tap(self, "norm", self.norm(conv_BCYX), MAP_AXES)
        return F.relu(x_BCYX) if self.relu else x_BCYX


def map_memory(map_BCYX: Tensor) -> Memory:
    """A feature map as a memory: one position per place of the map, row by row; mean pooling averages over them.

    >>> map_memory(torch.zeros(2, 8, 3, 4)).states.data.shape
    torch.Size([2, 12, 8])
    """
    return Memory(full_rows(map_BCYX.flatten(2).transpose(1, 2)))


def full_rows(states_BSC: Tensor) -> Padded:
    """States without padding."""
    lengths_B = torch.full((states_BSC.shape[0],), states_BSC.shape[1], device=states_BSC.device)
    return Padded(states_BSC, lengths_B, ragged=False)
