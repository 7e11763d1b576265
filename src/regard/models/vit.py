"""The Vision Transformer: Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words".

New against convolutional networks: an image is a sequence of patches, read like words by the encoder of a Transformer
(pre-norm, GELU as in BERT), with learned positions and a [CLS] token whose last state the classifier reads. Nothing but
the patches knows that an image is two-dimensional: neighborhood is learned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from regard.config import check_at_least, check_share
from regard.errors import ConfigError, DataError
from regard.models.base import Encoder, Layer, ModelConfigBase
from regard.nn.attention import SelfAttention, check_heads
from regard.nn.convolution2d import MAP_AXES, PATCH_AXES, FilterConv2d, cut_patches, full_rows
from regard.nn.feedforward import GELUFeedForward
from regard.nn.norm import LayerNorm
from regard.plurals import count_noun
from regard.sequence import Images, Memory
from regard.spaces import Pixels
from regard.trace import tap, trace_context, tracing

AXES = "batch position:source width"


@dataclass(frozen=True)
class ViTConfig(ModelConfigBase):
    """Config of a Vision Transformer; the defaults are ViT-B/16.

    >>> ViTConfig(layers=6, width=64, heads=4, patch=4).summary
    'vit 6 layers, 4 heads, width 64, patches of 4 x 4'
    """

    kind: Literal["vit"] = "vit"
    """Dosovitskiy et al. 2021"""
    layers: int = 12
    """number of stacked layers"""
    width: int = 768
    """model width; the feed-forward network is four times as wide"""
    heads: int = 12
    """attention heads; they share the width"""
    patch: int = 16
    """rows and columns of a patch"""
    dropout: float = 0.0
    """share of numbers dropped from each sublayer's output and from the embeddings"""

    reads_images: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_at_least(self, 1, "layers", "width", "heads", "patch")
        check_heads(self.width, self.heads)
        check_share(self, "dropout")

    @property
    def summary(self) -> str:
        """One-line description of the model."""
        heads = f"{count_noun(self.layers, 'layer')}, {count_noun(self.heads, 'head')}"
        return f"vit {heads}, width {self.width}, patches of {self.patch} x {self.patch}"

    def build_encoder(self, source: Pixels) -> ViT:
        """The encoder, with fresh weights; the caller attaches a head or a decoder."""
        if source.height % self.patch or source.width % self.patch:
            raise ConfigError(
                f"patch = {self.patch} does not divide images of {source.height} x {source.width} pixels; use another "
                "model.patch or data.size"
            )
        return ViT(self, source)


class ViTLayer(Layer):
    """x + attention(norm(x)), then x + ffn(norm(x))."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        width = config.width
        self.attention = SelfAttention(width, config.heads, "query:source key:source")
        self.ffn = GELUFeedForward(width, 4 * width, approximate="none", side="source")
        self.norm1, self.norm2 = (LayerNorm(width, "source", eps=1e-12) for _ in range(2))
        self.dropout = nn.Dropout(config.dropout)
        for linear in (self.ffn.up, self.ffn.down):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x_BSD: Tensor) -> Tensor:
        attended_BSD = self.attention(*self.attention.project(self.norm1(x_BSD)), "full")
        x_BSD = tap(self, "attention_residual", x_BSD + self.dropout(attended_BSD), AXES)
        x_BSD = x_BSD + self.dropout(self.ffn(self.norm2(x_BSD)))
        return tap(self, "residual", x_BSD, AXES)


class ViT(Encoder):
    """Patches as tokens after [CLS]; bidirectional self-attention."""

    def __init__(self, config: ViTConfig, space: Pixels) -> None:
        super().__init__()
        self.width, self.patch, self.size = config.width, config.patch, (space.height, space.width)
        self.embed = FilterConv2d(space.channels, config.width, config.patch, stride=config.patch)
        patches = (space.height // config.patch) * (space.width // config.patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, config.width))
        self.positions = nn.Parameter(torch.empty(1, 1 + patches, config.width))
        self.layers = nn.ModuleList(ViTLayer(config) for _ in range(config.layers))
        self.norm, self.dropout = LayerNorm(config.width, "source", eps=1e-12), nn.Dropout(config.dropout)
        for weight in (self.cls_token, self.positions):
            nn.init.trunc_normal_(weight, std=0.02)

    def forward(self, source: Images) -> Memory:
        if (found := tuple(source.pixels.shape[2:])) != self.size:
            raise DataError(f"expected images of {self.size[0]} x {self.size[1]} pixels, got {found[0]} x {found[1]}")
        with trace_context(source=[self.position_names()] * len(source.pixels) if tracing() else ()):
            return self._read(source.pixels)

    def position_names(self) -> list[str]:
        """The names of the positions in a trace: [CLS], then row and column of each patch, from 0."""
        rows, columns = (side // self.patch for side in self.size)
        return ["[CLS]", *(f"{row},{column}" for row in range(rows) for column in range(columns))]

    def _read(self, pixels_BCYX: Tensor) -> Memory:
        pixels_BCYX = tap(self, "image", pixels_BCYX, MAP_AXES)
        tap(self, "patches", cut_patches(pixels_BCYX, self.patch), PATCH_AXES)
        patches_BPD = self.embed(pixels_BCYX).flatten(2).transpose(1, 2)
        x_BSD = torch.cat([self.cls_token.expand(patches_BPD.shape[0], -1, -1), patches_BPD], 1)
        positions_1SD = tap(self, "position", self.positions, AXES)
        x_BSD = self.dropout(tap(self, "embedding", x_BSD, AXES) + positions_1SD)
        outs = [tap(self, "residual", x_BSD, AXES)]
        for layer in self.layers:
            outs.append(layer(outs[-1]))
        return Memory(full_rows(self.norm(outs[-1])), (), tuple(outs))

    def lens_states(self, x: Tensor) -> Tensor:
        return self.norm(x)
