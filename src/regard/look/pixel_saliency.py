"""Saliency of pixels: gradient x input attribution of outputs to an image or the frames of a clip."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.look.color_scales import DivergingScale
from regard.look.image_overlay import png_uri
from regard.look.tiles import ColorTile, NumberTile, TileGrid, TilesView


@dataclass(frozen=True, eq=False, repr=False)
class PixelSaliency(TilesView):
    """Effect of each pixel on the log-odds of a label, or on predicted numbers: above 0 it raises them.

    >>> image, scores = np.zeros((1, 1, 2, 3), np.uint8), np.array([[[[[0.5, -2.0]]]]])
    >>> view = PixelSaliency(("3 0.98",), image, scores, ("gray",))
    >>> view.per_pixel.tolist(), view.grid.title
    ([[[[0.5, -2.0]]]], '3 0.98: gradient x input')
    """

    outputs: Sequence[str]
    """what is attributed: a label with its probability, or each number with its name"""
    pixels: np.ndarray
    """(frames, rows, columns, 3): the image, or the frames of a clip, from 0 to 255"""
    scores: np.ndarray
    """(outputs, frames, channels, rows, columns): gradient x input, where the input is the normalized pixel"""
    channels: Sequence[str]
    """names of the channels"""

    @property
    def per_pixel(self) -> np.ndarray:
        """(outputs, frames, rows, columns): the sum over the channels, which is drawn."""
        total: np.ndarray = self.scores.sum(2)
        return total

    @property
    def title(self) -> str:
        """All outputs."""
        return ", ".join(self.outputs)

    @property
    def grid(self) -> TileGrid:
        scores, frames = self.per_pixel, len(self.pixels)
        scale = DivergingScale(float(np.abs(scores).max(initial=0)))
        names = [f"frame {i + 1}" for i in range(frames)] if frames > 1 else ["image"]
        tiles = [ColorTile(name, pixels) for name, pixels in zip(names, self.pixels, strict=True)]
        named = self.outputs if len(self.outputs) > 1 else ["saliency"]
        numbers = [NumberTile(name, one, scale) for name, row in zip(named, scores, strict=True) for one in row]
        note = "orange pixels raise the output, blue ones lower it; sum over the channels"
        across, side = (frames, 72.0) if frames > 1 else (1 + len(self.outputs), 224.0)
        return TileGrid(f"{self.title}: gradient x input", (*tiles, *numbers), across, frames > 1, note, side)

    def table(self) -> Iterator[tuple[Any, ...]]:
        """Rows of a table, the first with the titles: output, frame, row, column, and a number per channel."""
        yield "output", "frame", "row", "column", *self.channels
        for output, frame, row, column in np.ndindex(*self.per_pixel.shape):
            numbers = self.scores[output, frame, :, row, column].tolist()
            yield self.outputs[output], frame + 1, row, column, *map(repr, numbers)

    def to_dict(self) -> dict[str, Any]:
        about = {"method": "gradient x input", "kind": "pixels", "images": [png_uri(frame) for frame in self.pixels]}
        return {"title": self.title} | self._fields("outputs") | about | self._fields("channels", "scores")
