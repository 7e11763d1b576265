"""Saliency of pixels: gradient x input attribution of a label to the image, one signed number per pixel and channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.look.color_scales import DivergingScale
from regard.look.image_overlay import png_uri
from regard.look.tiles import ColorTile, NumberTile, TileGrid, TilesView


@dataclass(frozen=True, eq=False, repr=False)
class PixelSaliency(TilesView):
    """Effect of each pixel on the log-odds of a label: above 0 for it, below 0 against it.

    >>> view = PixelSaliency("3 0.98", np.zeros((1, 2, 3), np.uint8), np.array([[[0.5, -2.0]]]), ("gray",))
    >>> view.per_pixel.tolist(), view.grid.title
    ([[0.5, -2.0]], '3 0.98: gradient x input')
    """

    title: str
    """the label and its probability"""
    pixels: np.ndarray
    """(rows, columns, 3): the image, from 0 to 255"""
    scores: np.ndarray
    """(channels, rows, columns): gradient x input, where the input is the normalized pixel"""
    channels: Sequence[str]
    """names of the channels"""

    @property
    def per_pixel(self) -> np.ndarray:
        """(rows, columns): the sum over the channels, which is drawn."""
        total: np.ndarray = self.scores.sum(0)
        return total

    @property
    def grid(self) -> TileGrid:
        scores = self.per_pixel
        scale = DivergingScale(float(np.abs(scores).max(initial=0)))
        tiles = (ColorTile("image", self.pixels), NumberTile("saliency", scores, scale))
        note = "orange pixels support the label, blue ones oppose it; sum over the channels"
        return TileGrid(f"{self.title}: gradient x input", tiles, side=224, note=note)

    def to_dict(self) -> dict[str, Any]:
        image = {"method": "gradient x input", "kind": "pixels", "image": png_uri(self.pixels)}
        return self._fields("title") | image | self._fields("channels", "scores")
