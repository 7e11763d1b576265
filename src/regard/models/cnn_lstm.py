"""CNN and LSTM over the frames of a clip: Donahue et al. 2015, "Long-term Recurrent Convolutional Networks ...".

New against a classifier of images: the same convolutional network reads every frame, and a recurrent layer reads the
sequence of its vectors, so what counts is what changes from frame to frame. As there, a dense layer makes a vector of
the last feature map, which keeps where things are; here the convolutions are small and trained from the beginning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch.nn.functional as F
from torch import nn

from regard.config import check_at_least
from regard.models.base import Encoder, ModelConfigBase, ReceptiveField
from regard.models.cnn import CNN, CNNConfig
from regard.models.recurrent import check_recurrent
from regard.nn.convolution2d import full_rows
from regard.nn.recurrent import Cell, Stack
from regard.sequence import Clips, Images, Memory
from regard.spaces import Pixels
from regard.trace import tap, trace_context


@dataclass(frozen=True)
class CNNLSTMConfig(ModelConfigBase):
    """Config of a convolutional network with a recurrent layer over its frames.

    >>> CNNLSTMConfig().summary
    'cnn-lstm 3 stages, 3 convolutions, 32 channels; lstm width 64'
    """

    kind: Literal["cnn-lstm"] = "cnn-lstm"
    """Donahue et al. 2015"""
    channels: tuple[int, ...] = (8, 16, 32)
    """filters of each stage; a stage halves the resolution of the one before it"""
    convolutions: int = 1
    """convolutions per stage"""
    cell: Cell = "lstm"
    """recurrent cell"""
    layers: int = 1
    """number of stacked recurrent layers"""
    width: int = 64
    """width of the vector of a frame, and of each recurrent layer"""
    dropout: float = 0.0
    """dropout of feature maps, of the vectors of frames and between recurrent layers"""

    reads_images: ClassVar[bool] = True
    reads_clips: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_at_least(self, 1, "width")
        check_recurrent(self.layers, self.width, self.dropout, self.cell)
        self.frame_config()

    def frame_config(self) -> CNNConfig:
        """Config of the network that reads each frame."""
        return CNNConfig(channels=self.channels, convolutions=self.convolutions, dropout=self.dropout)

    def build_encoder(self, source: Pixels) -> CNNLSTM:
        """The encoder, with fresh weights; the caller attaches a head."""
        return CNNLSTM(self, source)

    @property
    def receptive_field(self) -> ReceptiveField:
        return "left"

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        return f"cnn-lstm {self.frame_config().summary.removeprefix('cnn ')}; {self.cell} width {self.width}"


class CNNLSTM(Encoder):
    """One state per frame; memory.final holds the last state of each recurrent layer."""

    def __init__(self, config: CNNLSTMConfig, space: Pixels) -> None:
        super().__init__()
        self.cnn = CNN(config.frame_config(), space)
        cells = 1
        for side in (space.height, space.width):
            for _ in config.channels[1:]:
                side = -(-side // 2) if side > 1 else side
            cells *= side
        self.frame = nn.Linear(config.channels[-1] * cells, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.stack = Stack(config.cell, [config.width] * (config.layers + 1), config.dropout)
        self.final = self.stack.state_widths
        self.width = config.width

    def forward(self, source: Clips) -> Memory:
        B, T = source.pixels.shape[:2]
        with trace_context(frames=T):
            maps = self.cnn(Images(source.pixels.flatten(0, 1))).states.data  # every frame is an image
        x_BTD = F.relu(self.frame(maps.flatten(1))).unflatten(0, (B, T))
        x_BTD = self.dropout(tap(self, "frame_vector", x_BTD, "batch position:source width"))
        with trace_context(reads="source"):
            outs, ends = self.stack(full_rows(x_BTD))
        return Memory(full_rows(outs[-1]), ends, (x_BTD, *outs))
