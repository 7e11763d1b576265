"""Tiles: small images and heat maps without labels, side by side, with one legend; the base of the views of images."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from regard.look.color_scales import ColorScale
from regard.look.raster import brightness, enlarge, number_colors, shrink, svg_image, terminal_rows
from regard.look.svg import MIN_WIDTH, UNIT, coord, document, legend, text_element, text_width
from regard.look.terminal import ColorDepth, or_terminal
from regard.look.tokens import make_visible, truncate
from regard.look.view import View

MAX_TILES = 256
"""tiles that are drawn; more are counted below"""
SMALL_COLUMNS, LARGE_COLUMNS = 9, 56
"""terminal columns up to which a small tile is enlarged, and of the widest tile"""


@dataclass(frozen=True, eq=False)
class Tile(ABC):
    """One small image with a label."""

    label: str

    @abstractmethod
    def colors(self, dark: bool = False) -> np.ndarray:
        """Colors of the pixels (rows, columns, 3), 8-bit."""

    @abstractmethod
    def intensities(self) -> np.ndarray:
        """How strong each pixel is without colors, from 0 to 1."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""


@dataclass(frozen=True, eq=False)
class ColorTile(Tile):
    """A tile of colors."""

    pixels: np.ndarray
    """(rows, columns, 3), 8-bit"""

    def colors(self, dark: bool = False) -> np.ndarray:
        return self.pixels

    def intensities(self) -> np.ndarray:
        return brightness(self.pixels)

    @property
    def shape(self) -> tuple[int, int]:
        return self.pixels.shape[0], self.pixels.shape[1]


@dataclass(frozen=True, eq=False)
class NumberTile(Tile):
    """A tile of numbers on a color scale."""

    numbers: np.ndarray
    """(rows, columns)"""
    scale: ColorScale

    def colors(self, dark: bool = False) -> np.ndarray:
        return number_colors(self.scale.colormap, self.scale.intensities(self.numbers), dark)

    def intensities(self) -> np.ndarray:
        return np.abs(self.scale.intensities(self.numbers))

    @property
    def shape(self) -> tuple[int, int]:
        return self.numbers.shape[0], self.numbers.shape[1]


@dataclass(frozen=True, eq=False)
class TileGrid:
    """Tiles in rows under a title; those of numbers share the color scale of the legend."""

    title: str
    tiles: tuple[Tile, ...]
    across: int = 8
    """tiles of a row"""
    is_spatial: bool = False
    """whether the place of a tile means something: a row is then never broken, in a terminal tiles shrink instead"""
    note: str = ""
    """a line below, such as how many are not shown"""
    side: float = 72
    """width of a tile in the drawing, in pixels"""

    @property
    def numbers(self) -> list[NumberTile]:
        """The tiles of numbers."""
        return [tile for tile in self.tiles if isinstance(tile, NumberTile)]

    @property
    def limits(self) -> tuple[float, float]:
        """Smallest and largest finite number of all tiles; 0 if there are none."""
        found = [tile.numbers[np.isfinite(tile.numbers)] for tile in self.numbers]
        found = [numbers for numbers in found if numbers.size]
        return (min(float(n.min()) for n in found), max(float(n.max()) for n in found)) if found else (0.0, 0.0)

    @property
    def footnote(self) -> str:
        """The note, and how many tiles are left out."""
        left_out = len(self.tiles) - MAX_TILES
        more = [f"{left_out} more are not drawn"] if left_out > 0 else []
        return "; ".join([*([self.note] if self.note else []), *more])

    def svg(self) -> str:
        """The tiles as one self-contained SVG text."""
        tiles, has_labels = self.tiles[:MAX_TILES], any(tile.label for tile in self.tiles)
        gap, head = (UNIT, UNIT * 2.5) if has_labels else (4.0 if self.numbers else 2.0, 0.0)
        wide, tall = self.side + gap, self.side * max(t.shape[0] / t.shape[1] for t in tiles) + gap + head
        parts = [text_element(UNIT * 2, UNIT * 3, make_visible(self.title), "rg-head")]
        top = UNIT * 5
        for i, tile in enumerate(tiles):
            x, y = UNIT * 2 + i % self.across * wide, top + i // self.across * tall
            if tile.label:
                parts.append(text_element(x, y + UNIT * 1.5, self._fit_label(tile.label), "rg-muted"))
            parts.append(svg_image(tile.colors(), x, y + head, self.side, tile.label))
            height = coord(self.side * tile.shape[0] / tile.shape[1])
            frame = f'x="{coord(x)}" y="{coord(y + head)}" width="{coord(self.side)}" height="{height}"'
            parts.append(f'<rect class="rg-cell" fill="none" {frame}/>')
        low = top + math.ceil(len(tiles) / self.across) * tall + UNIT
        if self.numbers:
            parts += legend(self.numbers[0].scale, *self.limits, UNIT * 2, low)
            low += UNIT * 5
        if self.footnote:
            parts.append(text_element(UNIT * 2, low + UNIT, make_visible(self.footnote), "rg-muted"))
        texts = [text_width(self.title, 14), text_width(self.footnote, 12)]
        width = max(min(self.across, len(tiles)) * wide, MIN_WIDTH, *texts) + UNIT * 4
        return document(width, low + UNIT * 3, self.title, self.summary(), parts)

    def _fit_label(self, label: str) -> str:
        return make_visible(truncate(label, max(3, int(self.side / 7))))

    def summary(self) -> str:
        """The grid in one sentence, for screen readers."""
        rows, columns = self.tiles[0].shape
        size = f"{len(self.tiles)} images of {rows} x {columns}"
        if not self.numbers:
            return f"{size}."
        exact = self.numbers[0].scale.format_exact
        return f"{size}, numbers from {exact(self.limits[0])} to {exact(self.limits[1])}."

    def text(self, width: int | None = None, color: ColorDepth | None = None) -> str:
        """The tiles in characters, as many in a row as fit."""
        width, color = or_terminal(width, color)
        tiles = self.tiles[:MAX_TILES]
        columns = min(max(tile.shape[1] for tile in tiles), LARGE_COLUMNS, width)
        zoom = max(1, SMALL_COLUMNS // columns)
        columns = min(columns * zoom, width)
        across = max(1, min(self.across, (width + 1) // (columns + 1)))
        if self.is_spatial and across < self.across:
            across, columns = self.across, max(1, (width + 1) // self.across - 1)
        lines = [truncate(make_visible(self.title), width)]
        for start in range(0, len(tiles), across):
            row = tiles[start : start + across]
            if any(tile.label for tile in row):
                labels = [truncate(make_visible(tile.label), columns) for tile in row]
                lines.append(" ".join(f"{label:<{columns}}" for label in labels).rstrip())
            blocks = [_characters(tile, columns, zoom, color) for tile in row]
            tall = max(map(len, blocks))
            blocks = [block + [" " * columns] * (tall - len(block)) for block in blocks]
            lines += [" ".join(parts).rstrip() for parts in zip(*blocks, strict=True)]
        if self.numbers:
            exact = self.numbers[0].scale.format_exact
            lines.append(f"smallest {exact(self.limits[0])}, largest {exact(self.limits[1])}")
        return "\n".join([*lines, self.footnote] if self.footnote else lines)


def _characters(tile: Tile, columns: int, zoom: int, color: ColorDepth) -> list[str]:
    """Lines of one tile, padded to the width of its column."""
    colors, strengths = tile.colors(dark=True), tile.intensities()
    if zoom > 1:
        colors, strengths = enlarge(colors, zoom), strengths.repeat(zoom, 0).repeat(zoom, 1)
    wide = min(columns, colors.shape[1])
    tall = max(1, round(colors.shape[0] * wide / colors.shape[1]))
    colors, strengths = np.rint(shrink(colors, tall, wide)).astype(np.uint8), shrink(strengths, tall, wide)
    return [line + " " * (columns - wide) for line in terminal_rows(colors, strengths, color)]


class TilesView(View):
    """A view that is drawn as tiles."""

    @property
    @abstractmethod
    def grid(self) -> TileGrid:
        """The tiles with their title."""

    def svg(self) -> str:
        """The tiles as one self-contained SVG text."""
        return self.grid.svg()

    def text(self, width: int | None = None, color: ColorDepth | None = None) -> str:
        """The tiles in characters; width and color depth are those of the terminal by default."""
        return self.grid.text(width, color)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.grid.title!r}, {len(self.grid.tiles)} tiles)"
