"""Data augmentation of images: mirrored, shifted, cropped and recolored copies, drawn from one seed per image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.config import check_at_least, check_share
from regard.data.splitmix import splitmix64_uniform

DRAWS = 8
"""random numbers per image"""


@dataclass(frozen=True)
class AugmentConfig:
    """Augmentation of the training images; by default none."""

    flip: bool = False
    """mirror half of the images from left to right"""
    shift: int = 0
    """shift by up to this many pixels in each direction; what comes in is black (He et al. 2015: 4 for 32 x 32)"""
    crop: float = 0.0
    """cut a random square of at least 1 - crop of the sides and scale it back; 0: none"""
    color: float = 0.0
    """change brightness, contrast and saturation by a factor of up to 1 +- color; 0: none"""

    def __post_init__(self) -> None:
        check_at_least(self, 0, "shift")
        check_share(self, "crop", "color")

    @property
    def is_used(self) -> bool:
        """Whether any augmentation is on."""
        return self.flip or bool(self.shift or self.crop or self.color)


def augment_images(pixels_BCYX: Tensor, seeds: np.ndarray, config: AugmentConfig) -> Tensor:
    """Augmented copies of images with values from 0 to 255; a pure function of images and seeds."""
    draws_BK = torch.from_numpy(splitmix64_uniform(seeds, DRAWS)).float()
    flip_B, down_B, right_B, zoom_B, *factors_B = draws_BK.unbind(1)
    if config.flip:
        pixels_BCYX = torch.where((flip_B < 0.5)[:, None, None, None], pixels_BCYX.flip(3), pixels_BCYX)
    if config.shift:
        pixels_BCYX = shift_images(pixels_BCYX, down_B, right_B, config.shift)
    if config.crop:
        pixels_BCYX = crop_images(pixels_BCYX, 1 - config.crop * zoom_B, draws_BK[:, 1:3])
    if config.color:
        low, width = 1 - config.color, 2 * config.color
        pixels_BCYX = recolor_images(pixels_BCYX, *(low + width * factor_B for factor_B in factors_B[:3]))
    return pixels_BCYX


def shift_images(pixels_BCYX: Tensor, down_B: Tensor, right_B: Tensor, most: int) -> Tensor:
    """Images shifted by whole pixels, from -most to most, by numbers from 0 to 1; filled with 0."""
    B, _, Y, X = pixels_BCYX.shape
    padded = F.pad(pixels_BCYX, (most, most, most, most))
    rows_BY = (down_B * (2 * most + 1)).long().clamp(max=2 * most)[:, None] + torch.arange(Y)
    columns_BX = (right_B * (2 * most + 1)).long().clamp(max=2 * most)[:, None] + torch.arange(X)
    batch_B11 = torch.arange(B)[:, None, None]
    return padded.permute(0, 2, 3, 1)[batch_B11, rows_BY[:, :, None], columns_BX[:, None]].permute(0, 3, 1, 2)


def crop_images(pixels_BCYX: Tensor, side_B: Tensor, place_B2: Tensor) -> Tensor:
    """Squares of these sides (shares of the image) at these places (0 to 1), scaled back by bilinear interpolation."""
    center_B2 = (1 - side_B)[:, None] * (2 * place_B2 - 1)
    theta_B23 = torch.zeros(len(side_B), 2, 3)
    theta_B23[:, 0, 0] = theta_B23[:, 1, 1] = side_B
    theta_B23[:, :, 2] = center_B2
    grid = F.affine_grid(theta_B23, list(pixels_BCYX.shape), align_corners=False)
    return F.grid_sample(pixels_BCYX, grid, padding_mode="border", align_corners=False)


def recolor_images(pixels_BCYX: Tensor, bright_B: Tensor, contrast_B: Tensor, saturation_B: Tensor) -> Tensor:
    """Images with other brightness, contrast (around the mean) and saturation (around gray)."""
    bright, contrast, saturation = (f[:, None, None, None] for f in (bright_B, contrast_B, saturation_B))
    pixels_BCYX = pixels_BCYX * bright
    mean_B111 = pixels_BCYX.mean((1, 2, 3), keepdim=True)
    pixels_BCYX = mean_B111 + contrast * (pixels_BCYX - mean_B111)
    gray_B1YX = pixels_BCYX.mean(1, keepdim=True)
    return (gray_B1YX + saturation * (pixels_BCYX - gray_B1YX)).clamp(0, 255)
