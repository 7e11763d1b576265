"""Image overlay: numbers of map cells, patches or pixels over copies of the image that a model read, as SVG and text.

An encoder of images taps what it reads as "image" (batch channel row column), normalized; the context facts pixel_mean
and pixel_scale give the pixels from 0 to 255 back.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.look import svg
from regard.look.color_scales import ColorScale, DivergingScale, LinearScale
from regard.look.colormaps import SIGNS, blend, rgb
from regard.look.terminal import SHADES, ColorDepth, or_terminal
from regard.look.tokens import isolate_bidi, make_visible, token_label, truncate
from regard.look.view import View
from regard.trace import Record

IMAGE = "image"
"""last part of the name of the record that holds what an encoder of images read"""
PIXEL_MEAN, PIXEL_SCALE = "pixel_mean", "pixel_scale"
"""context facts: mean and standard deviation of each channel, by which pixels were normalized"""
FRAME, FRAMES = "frame", "frames"
"""axis of the frames of a clip; and the context fact that so many rows of a batch are the frames of one clip"""
SIDE = 136.0
"""width of a copy of the image in an SVG"""
COLUMNS = 16
"""terminal columns of a copy of the image, at least"""
DIM = 0.75
"""share of black over a cell without weight"""


def find_image(records: Sequence[Record]) -> Record | None:
    """The first record of an image."""
    return next((record for record in records if record.name.rpartition(".")[2] == IMAGE), None)


def is_of_frames(record: Record) -> bool:
    """Whether the batch of a record is made of the frames of clips."""
    return FRAMES in record.context and record.axes[:1] == ("batch",)


def image_pixels(record: Record, row: int = 0) -> np.ndarray:
    """(rows, columns, 3): the pixels from 0 to 255 of an image that was recorded as the model read it.

    Of a clip in a condensed recording: (frames, rows, columns, 3).

    >>> import torch
    >>> facts = {PIXEL_MEAN: [100.0], PIXEL_SCALE: [50.0]}
    >>> image_pixels(Record("encoder.image", (), torch.tensor([[[[-1.0, 3.0]]]]), {}, facts))[0].tolist()
    [[50, 50, 50], [250, 250, 250]]
    """
    return pixel_values(record, row).to(torch.uint8).numpy()


def pixel_values(record: Record, row: int = 0) -> Tensor:
    """The same as whole numbers in double precision, by torch operations, which a tape can explain."""
    values = record.data[row].detach().cpu().double()
    if PIXEL_MEAN in record.context:
        mean_C11, scale_C11 = (
            torch.tensor(record.context[name], dtype=torch.float64).view(-1, 1, 1) for name in (PIXEL_MEAN, PIXEL_SCALE)
        )
        values = values * scale_C11 + mean_C11
    else:  # the range is not known: the smallest value is black, the largest white
        low, high = float(values.min()), float(values.max())
        values = (values - low) * (255 / (high - low) if high > low else 0.0)
    pixels = values.round().clamp(0, 255).movedim(-3, -1)
    return pixels.repeat_interleave(3, -1) if pixels.shape[-1] == 1 else pixels[..., :3]


def cell_grid(positions: int, height: int, width: int) -> tuple[int, int, int] | None:
    """How positions lie over an image: those before the first cell, such as [CLS], then rows and columns of cells.

    None if they are no grid with the ratio of the image's sides.

    >>> cell_grid(64, 32, 32), cell_grid(65, 32, 32), cell_grid(7, 32, 32)
    ((0, 8, 8), (1, 8, 8), None)
    """
    for before in (0, 1):
        cells = positions - before
        rows = round(math.sqrt(cells * height / width)) if cells > 0 else 0
        if rows and cells % rows == 0 and rows <= height and cells // rows <= width:
            columns = cells // rows
            if abs(columns * height - rows * width) < max(height, width):  # a last cell may reach over the border
                return before, rows, columns
    return None


def png_uri(pixels_YXC: np.ndarray) -> str:
    """An image as a data URI."""
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels_YXC).save(out, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(out.getvalue()).decode()}"


@dataclass(frozen=True, eq=False)
class ImageOverlay(View):
    """Numbers over copies of one image: one copy per token, channel or layer.

    Weights light the image up and leave the rest dark; signed numbers color it.

    >>> image, weights = np.full((2, 2, 3), 200, np.uint8), np.array([[[0.75, 0.25], [0.0, 0.0]]])
    >>> print(ImageOverlay("cross", image, weights, ["red"]).text(width=40, color="none"))
    cross
    red
    ████████░░░░░░░░
    ████████░░░░░░░░
    ████████░░░░░░░░
    ████████░░░░░░░░
    <BLANKLINE>
    <BLANKLINE>
    <BLANKLINE>
    <BLANKLINE>
    from 0.0000 to 0.7500
    """

    title: str
    pixels: np.ndarray
    """(rows, columns, 3) from 0 to 255"""
    maps: np.ndarray
    """(N, rows of cells, columns of cells)"""
    labels: Sequence[str]
    """of each copy"""
    notes: Sequence[str] = ()
    """a second line below each label, such as the weight of positions outside of the image"""
    signed: bool = False
    """whether 0 is in the middle, as in a saliency map"""

    @property
    def scale(self) -> ColorScale:
        """One color scale for all copies."""
        finite = self.maps[np.isfinite(self.maps)]
        most = float(np.abs(finite).max()) if finite.size else 0.0
        return DivergingScale(most) if self.signed else LinearScale(most)

    def svg(self) -> str:
        """The copies side by side."""
        across = min(len(self.labels), 5)
        tall = SIDE * self.pixels.shape[0] / self.pixels.shape[1]
        step, line = SIDE + svg.UNIT * 2, tall + svg.UNIT * (6 if self.notes else 4.5)
        parts = [svg.text_element(svg.UNIT * 2, svg.UNIT * 3, make_visible(self.title), "rg-head")]
        uri = png_uri(self.pixels)
        for i in range(len(self.labels)):
            parts += self._copy(i, uri, svg.UNIT * 2 + i % across * step, svg.UNIT * 5 + i // across * line, tall)
        low = svg.UNIT * 5 + math.ceil(len(self.labels) / max(across, 1)) * line
        parts.append(svg.text_element(svg.UNIT * 2, low + svg.UNIT, self._legend(), "rg-muted"))
        width = max(svg.UNIT * 2 + across * step, svg.MIN_WIDTH, svg.text_width(self.title, 14) + svg.UNIT * 4)
        return svg.document(width, low + svg.UNIT * 3, self.title, self.summary(), parts)

    def _copy(self, i: int, uri: str, x: float, y: float, tall: float) -> list[str]:
        label = truncate(token_label(self.labels[i]), 18)
        place = f'x="{svg.coord(x)}" y="{svg.coord(y + svg.UNIT)}" width="{svg.coord(SIDE)}" height="{svg.coord(tall)}"'
        parts = [
            svg.text_element(x, y, isolate_bidi(label), "rg-target"),
            f'<image {place} preserveAspectRatio="none" style="image-rendering:pixelated" href="{uri}"/>',
        ]
        rows, columns = self.maps.shape[1:]
        intensities = self.scale.intensities(self.maps[i])
        for r in range(rows):
            for c in range(columns):
                color, opacity = self._paint(float(intensities[r, c]))
                at = x + c * SIDE / columns, y + svg.UNIT + r * tall / rows
                size = f'width="{svg.coord(SIDE / columns)}" height="{svg.coord(tall / rows)}"'
                exact = self.scale.format_exact(float(self.maps[i, r, c]))
                parts.append(
                    f'<rect x="{svg.coord(at[0])}" y="{svg.coord(at[1])}" {size} fill="{color}" '
                    f'fill-opacity="{opacity:.3f}"><title>{svg.escape_text(f"{label}: {exact}")}</title></rect>'
                )
        if self.notes:
            parts.append(svg.text_element(x, y + tall + svg.UNIT * 2.8, make_visible(self.notes[i]), "rg-muted"))
        return parts

    def _paint(self, intensity: float) -> tuple[str, float]:
        """Color and opacity of what is drawn over a cell."""
        if not self.signed:
            return "#000000", DIM * (1 - intensity)
        return SIGNS["negative" if intensity < 0 else "positive"][0], 0.85 * abs(intensity)

    def _legend(self) -> str:
        low, high = self.scale.limits
        exact = f"from {self.scale.format_exact(low)} to {self.scale.format_exact(high)}"
        return f"blue and orange: {exact}" if self.signed else f"dark to bright: {exact}"

    def summary(self) -> str:
        """Where each copy has its largest number, for screen readers."""
        found = []
        for label, map_YX in zip(self.labels, self.maps, strict=True):
            r, c = np.unravel_index(int(np.nan_to_num(np.abs(map_YX)).argmax()), map_YX.shape)
            exact = self.scale.format_exact(float(map_YX[r, c]))
            found.append(f"{token_label(label)} at row {r + 1}, column {c + 1} ({exact})")
        rows, columns = self.maps.shape[1:]
        return f"{rows} x {columns} cells of an image. Largest: {'; '.join(found)}."

    def text(self, width: int | None = None, color: ColorDepth | None = None) -> str:
        """The copies in characters; half a character is a pixel where there are colors."""
        width, color = or_terminal(width, color)
        columns = self.maps.shape[2]
        wide = max(COLUMNS, columns) if columns <= width else width
        tall = max(2, round(wide * self.pixels.shape[0] / self.pixels.shape[1] / 2) * 2)
        across = max(1, (width + 2) // (wide + 2))
        lines = [truncate(make_visible(self.title), width)]
        for start in range(0, len(self.labels), across):
            part = range(start, min(start + across, len(self.labels)))
            for texts in (self.labels, self.notes) if self.notes else (self.labels,):
                cells = [truncate(token_label(texts[i]), wide) for i in part]
                lines.append("  ".join(cell.ljust(wide) for cell in cells).rstrip())
            blocks = [self._block(i, wide, tall, color) for i in part]
            lines += ["  ".join(parts).rstrip() for parts in zip(*blocks, strict=True)]
        low, high = self.scale.limits
        return "\n".join([*lines, f"from {self.scale.format_exact(low)} to {self.scale.format_exact(high)}"])

    def _block(self, i: int, wide: int, tall: int, color: ColorDepth) -> list[str]:
        numbers = resample(self.scale.intensities(self.maps[i]), tall, wide)
        if color == "none":
            shades = np.abs(numbers[::2] + numbers[1::2]) / 2 * (len(SHADES) - 1)
            return ["".join(SHADES[round(s)] for s in line) for line in shades]
        pixels = resample(self.pixels.astype(np.float64), tall, wide)
        painted = np.empty_like(pixels)
        for at in np.ndindex(tall, wide):
            over, opacity = self._paint(float(numbers[at]))
            painted[at] = blend(pixels[at].tolist(), rgb(over), opacity)
        top, bottom = painted[::2], painted[1::2]
        return [
            "".join(f"\x1b[{_code(38, a, color)};{_code(48, b, color)}m▀" for a, b in zip(*pair, strict=True))
            + "\x1b[0m"
            for pair in zip(top, bottom, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        return self._fields("title", "labels", "notes", "signed", "maps") | {"image": png_uri(self.pixels)}

    def __repr__(self) -> str:
        return f"ImageOverlay({self.title!r}, {' x '.join(map(str, self.maps.shape))})"


def resample(values: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """The nearest values on another grid."""
    at_Y = (np.arange(rows) + 0.5) * values.shape[0] / rows
    at_X = (np.arange(columns) + 0.5) * values.shape[1] / columns
    found: np.ndarray = values[at_Y.astype(int)][:, at_X.astype(int)]
    return found


def _code(ground: int, color: np.ndarray, depth: ColorDepth) -> str:
    """Color of a character (38) or of its background (48) as part of an ANSI escape code."""
    red, green, blue = (round(float(c)) for c in color)
    if depth == "24-bit":
        return f"{ground};2;{red};{green};{blue}"
    levels = [round(c / 51) for c in (red, green, blue)]
    return f"{ground};5;{16 + 36 * levels[0] + 6 * levels[1] + levels[2]}"
