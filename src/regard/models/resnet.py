"""ResNet: He, Zhang, Ren and Sun 2015, "Deep Residual Learning for Image Recognition".

New against AlexNet: shortcut connections. A block learns only what to add to its input, x + F(x), so that a hundred
layers train; every convolution is followed by batch normalization. It won ILSVRC 2015 with 3.57 % top-5 error. As in
later implementations, a bottleneck that halves the resolution does it in its 3 x 3 convolution, not in the first 1 x 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models.base import Encoder, Layer, ModelConfigBase
from regard.nn.convolution2d import MAP_AXES, ConvNorm, map_memory
from regard.sequence import Images, Memory
from regard.spaces import Pixels
from regard.trace import tap


@dataclass(frozen=True)
class ResNetConfig(ModelConfigBase):
    """Config of a ResNet; the defaults are ResNet-18.

    >>> ResNetConfig(depths=(3, 3, 3), width=16, stem="small", shortcut="pad").summary
    'resnet-20 (basic)'
    """

    kind: Literal["resnet"] = "resnet"
    """He et al. 2015"""
    depths: tuple[int, ...] = (2, 2, 2, 2)
    """blocks of each stage; each stage but the first halves the resolution and doubles the channels"""
    width: int = 64
    """channels of the first stage; bottleneck blocks put out four times as many"""
    block: Literal["basic", "bottleneck"] = "basic"
    """two 3 x 3 convolutions, or 1 x 1, 3 x 3 and 1 x 1"""
    stem: Literal["large", "small"] = "large"
    """first layer: 7 x 7 with stride 2 and max pooling (ImageNet), or 3 x 3 (section 4.2, 32 x 32 images)"""
    shortcut: Literal["projection", "pad"] = "projection"
    """where a block changes the shape: a 1 x 1 convolution, or the identity padded with zeros (option A)"""

    reads_images: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.depths or min(self.depths) < 1 or self.width < 1:
            raise ConfigError(f"depths = {list(self.depths)} and width = {self.width} must be at least 1 each")
        if self.block == "bottleneck" and self.shortcut == "pad":
            raise ConfigError('shortcut = "pad" is for basic blocks; use shortcut = "projection"')

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        layers = sum(self.depths) * (2 if self.block == "basic" else 3) + 2
        return f"resnet-{layers} ({self.block})"

    def build_encoder(self, source: Pixels) -> ResNet:
        """The network up to the last feature map, with fresh weights; the caller attaches a head or a decoder."""
        return ResNet(self, source)


class Projection(nn.Module):
    """Shortcut by a 1 x 1 convolution (option B)."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv = ConvNorm(channels, out, 1, stride, relu=False)

    def forward(self, x_BCYX: Tensor) -> Tensor:
        return self.conv(x_BCYX)


class ZeroPadding(nn.Module):
    """Shortcut without parameters: every second pixel, and zeros in the new channels (option A)."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.extra, self.stride = out - channels, stride

    def forward(self, x_BCYX: Tensor) -> Tensor:
        return F.pad(x_BCYX[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.extra))


SHORTCUTS: dict[str, type[Projection] | type[ZeroPadding]] = {"projection": Projection, "pad": ZeroPadding}


class ResidualBlock(Layer):
    """ReLU(x + F(x)); F ends with a batch normalization, without a ReLU."""

    def __init__(self, config: ResNetConfig, channels: int, inner: int, stride: int) -> None:
        super().__init__()
        if config.block == "basic":
            out = inner
            convs = [ConvNorm(channels, inner, 3, stride), ConvNorm(inner, out, 3, relu=False)]
        else:
            out = 4 * inner
            first, second = ConvNorm(channels, inner, 1), ConvNorm(inner, inner, 3, stride)
            convs = [first, second, ConvNorm(inner, out, 1, relu=False)]
        same = channels == out and stride == 1
        self.out, self.convs = out, nn.ModuleList(convs)
        self.shortcut = nn.Identity() if same else SHORTCUTS[config.shortcut](channels, out, stride)

    def forward(self, x_BCYX: Tensor) -> Tensor:
        branch_BCYX = x_BCYX
        for conv in self.convs:
            branch_BCYX = conv(branch_BCYX)
        sum_BCYX = tap(self, "residual", self.shortcut(x_BCYX) + branch_BCYX, MAP_AXES)
        return tap(self, "feature_map", F.relu(sum_BCYX), MAP_AXES)


class ResNet(Encoder):
    """Stem and stages of residual blocks; the memory is the last feature map, whose mean the classifier reads."""

    def __init__(self, config: ResNetConfig, space: Pixels) -> None:
        super().__init__()
        self.is_large = config.stem == "large"
        self.stem = ConvNorm(space.channels, config.width, *((7, 2) if self.is_large else (3, 1)), first=True)
        stages, channels = [], config.width
        for number, depth in enumerate(config.depths):
            blocks = []
            for i in range(depth):
                blocks.append(ResidualBlock(config, channels, config.width << number, 2 if number and not i else 1))
                channels = blocks[-1].out
            stages.append(nn.Sequential(*blocks))
        self.stages, self.width = nn.ModuleList(stages), channels

    def forward(self, source: Images) -> Memory:
        image_BCYX = tap(self, "image", source.pixels, MAP_AXES)
        x_BCYX = tap(self.stem, "feature_map", self.stem(image_BCYX), MAP_AXES)
        if self.is_large:
            x_BCYX = F.max_pool2d(x_BCYX, 3, 2, padding=1)
        for stage in self.stages:
            x_BCYX = stage(x_BCYX)
        return map_memory(x_BCYX)
