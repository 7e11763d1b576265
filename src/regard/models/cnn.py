"""A small convolutional network: LeCun et al. 1998, "Gradient-Based Learning Applied to Document Recognition".

New against the multi-layer perceptron: a neuron sees a small window of the image, all windows share its weights, and
the resolution halves from stage to stage while the number of filters grows. Different from LeNet-5 here: two 3 x 3
convolutions per stage (Simonyan and Zisserman 2015), batch normalization, ReLU, max pooling, and the mean over the last
map instead of a dense layer, so that images of any size can be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import check_at_least, check_share
from regard.errors import ConfigError
from regard.models.base import Encoder, Layer, ModelConfigBase
from regard.nn.convolution2d import MAP_AXES, ConvNorm, map_memory
from regard.plurals import count_noun
from regard.sequence import Images, Memory
from regard.spaces import Pixels
from regard.trace import tap


@dataclass(frozen=True)
class CNNConfig(ModelConfigBase):
    """Config of a small convolutional network.

    >>> CNNConfig(channels=(16, 32)).summary
    'cnn 2 stages, 4 convolutions, 32 channels'
    """

    kind: Literal["cnn"] = "cnn"
    """LeCun et al. 1998"""
    channels: tuple[int, ...] = (32, 64, 128)
    """filters of each stage; a stage halves the resolution of the one before it"""
    convolutions: int = 2
    """convolutions per stage"""
    dropout: float = 0.1
    """dropout of whole feature maps between stages (Tompson et al. 2015)"""

    reads_images: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_at_least(self, 1, "convolutions")
        if not self.channels or min(self.channels) < 1:
            raise ConfigError(f"channels = {list(self.channels)} must name at least one filter for at least one stage")
        check_share(self, "dropout")

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        stages = count_noun(len(self.channels), "stage")
        convolutions = count_noun(len(self.channels) * self.convolutions, "convolution")
        return f"cnn {stages}, {convolutions}, {self.channels[-1]} channels"

    def build_encoder(self, source: Pixels) -> CNN:
        """The encoder, with fresh weights; the caller attaches a head or a decoder."""
        return CNN(self, source)


class CNNStage(Layer):
    """Convolutions at one resolution."""

    def __init__(self, channels: int, out: int, convolutions: int, first: bool = False) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            ConvNorm(out if i else channels, out, 3, first=first and not i) for i in range(convolutions)
        )

    def forward(self, x_BCYX: Tensor) -> Tensor:
        for conv in self.convs:
            x_BCYX = conv(x_BCYX)
        return tap(self, "feature_map", x_BCYX, MAP_AXES)


class CNN(Encoder):
    """Stages of convolutions with max pooling between them; the memory is the last feature map."""

    def __init__(self, config: CNNConfig, space: Pixels) -> None:
        super().__init__()
        self.width, self.dropout = config.channels[-1], nn.Dropout2d(config.dropout)
        before = (space.channels, *config.channels)
        self.stages = nn.ModuleList(
            CNNStage(channels, out, config.convolutions, first=not i)
            for i, (channels, out) in enumerate(zip(before, config.channels, strict=False))
        )

    def forward(self, source: Images) -> Memory:
        x_BCYX = tap(self, "image", source.pixels, MAP_AXES)
        for i, stage in enumerate(self.stages):
            if i:
                # images smaller than the pooling window keep their size
                x_BCYX = self.dropout(F.max_pool2d(x_BCYX, 2, ceil_mode=True) if min(x_BCYX.shape[2:]) > 1 else x_BCYX)
            x_BCYX = stage(x_BCYX)
        return map_memory(x_BCYX)
