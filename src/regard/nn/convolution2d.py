"""2-d convolutions over images, with batch normalization (Ioffe and Szegedy 2015), and a feature map as a memory."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.sequence import Memory, Padded
from regard.trace import tap, tracing

MAP_AXES = "batch channel row column"
PATCH_AXES = "batch patch_row patch_column channel row column"


class FilterConv2d(nn.Conv2d):
    """First convolution of a model: its filters, which read pixels, are recorded."""

    def forward(self, x_BCYX: Tensor) -> Tensor:
        filters = tap(self, "filters", self.weight, "filter channel row column")
        return F.conv2d(x_BCYX, filters, self.bias, self.stride, self.padding)


class ConvNorm(nn.Module):
    """Convolution without bias, then batch normalization, then a ReLU if `relu`.

    Recorded are the feature maps, and the statistics of the normalization: running means and variances, and those of
    this batch, which it normalizes by in training.

    >>> ConvNorm(3, 8, 3, stride=2)(torch.zeros(1, 3, 6, 6)).shape
    torch.Size([1, 8, 3, 3])
    """

    def __init__(
        self, channels: int, out: int, kernel: int, stride: int = 1, relu: bool = True, first: bool = False
    ) -> None:
        super().__init__()
        layer = FilterConv2d if first else nn.Conv2d
        self.conv = layer(channels, out, kernel, stride, padding=kernel // 2, bias=False)
        self.norm, self.relu = nn.BatchNorm2d(out), relu
        nn.init.kaiming_normal_(self.conv.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x_BCYX: Tensor) -> Tensor:
        conv_BCYX = tap(self, "convolution", self.conv(x_BCYX), MAP_AXES)
        if tracing():
            self._record_statistics(conv_BCYX)
        x_BCYX = tap(self, "norm", self.norm(conv_BCYX), MAP_AXES)
        return F.relu(x_BCYX) if self.relu else x_BCYX

    def _record_statistics(self, conv_BCYX: Tensor) -> None:
        variance_C, mean_C = torch.var_mean(conv_BCYX, (0, 2, 3), correction=0)
        buffers = self.norm.running_mean, self.norm.running_var
        for name, values_C in zip(STATISTICS, (*buffers, mean_C, variance_C), strict=True):
            tap(self, name, values_C if values_C is not None else mean_C, "channel")


STATISTICS = ("running_mean", "running_variance", "batch_mean", "batch_variance")
"""names of the recorded statistics of a batch normalization"""


def cut_patches(pixels_BCYX: Tensor, patch: int) -> Tensor:
    """Images cut into square patches: (batch, patch row, patch column, channel, row, column).

    >>> cut_patches(torch.arange(16.0).view(1, 1, 4, 4), 2)[0, 0, 1, 0].tolist()
    [[2.0, 3.0], [6.0, 7.0]]
    """
    return pixels_BCYX.unfold(2, patch, patch).unfold(3, patch, patch).permute(0, 2, 3, 1, 4, 5)


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
