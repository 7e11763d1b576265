"""AlexNet: Krizhevsky, Sutskever and Hinton 2012, "ImageNet Classification with Deep Convolutional Neural Networks".

New against LeNet: depth and size (60 million weights, trained on GPUs), ReLU instead of tanh, dropout. It won ILSVRC
2012 with 15.3 % top-5 error against 26.2 %. As in torchvision: one stream instead of two GPUs' halves, 64 filters
in the first layer, no local response normalization (Krizhevsky 2014); the names of the weights are torchvision's too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import nn

from regard.config import check_share
from regard.errors import ConfigError, DataError
from regard.models.base import Encoder, ModelConfigBase
from regard.nn.convolution2d import MAP_AXES, FilterConv2d, full_rows
from regard.sequence import Images, Memory
from regard.spaces import Pixels
from regard.trace import tap

SMALLEST = 63
"""rows and columns of the smallest image that leaves something after three poolings"""


@dataclass(frozen=True)
class AlexNetConfig(ModelConfigBase):
    """Config of AlexNet."""

    kind: Literal["alexnet"] = "alexnet"
    """Krizhevsky et al. 2012"""
    dropout: float = 0.5
    """dropout before both dense layers"""

    reads_images: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_share(self, "dropout")

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        return "alexnet 5 convolutions, 3 dense layers"

    def build_encoder(self, source: Pixels) -> AlexNet:
        """The network up to the last hidden layer, with fresh weights; the caller attaches the head."""
        if min(source.height, source.width) < SMALLEST:
            raise ConfigError(
                f"alexnet needs images of at least {SMALLEST} x {SMALLEST} pixels, these have {source.height} x "
                f"{source.width}; use a larger data.size, or model.kind = cnn or resnet"
            )
        return AlexNet(self, source)


class AlexNet(Encoder):
    """Five convolutions and two dense layers; the memory is one vector of 4,096 numbers."""

    width = 4096

    def __init__(self, config: AlexNetConfig, space: Pixels) -> None:
        super().__init__()
        self.features = nn.Sequential(
            FilterConv2d(space.channels, 64, 11, stride=4, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(),
            nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(),
            nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2),
        )  # fmt: skip
        self.pool = nn.AdaptiveAvgPool2d(6)
        self.classifier = nn.Sequential(
            nn.Dropout(config.dropout), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(),
            nn.Dropout(config.dropout), nn.Linear(4096, 4096), nn.ReLU(),
        )  # fmt: skip

    def forward(self, source: Images) -> Memory:
        if min(source.pixels.shape[2:]) < SMALLEST:
            raise DataError(f"alexnet reads images of at least {SMALLEST} x {SMALLEST} pixels; resize them")
        x_BCYX = tap(self, "image", source.pixels, MAP_AXES)
        for layer in self.features:
            x_BCYX = layer(x_BCYX)
            if isinstance(layer, nn.ReLU | nn.MaxPool2d):
                x_BCYX = tap(layer, "feature_map", x_BCYX, MAP_AXES)
        vector_BD = self.classifier(self.pool(x_BCYX).flatten(1))
        return Memory(full_rows(tap(self, "features", vector_BD, "batch width")[:, None]))
