"""Raster images in drawings: colors of pixels and of numbers, as PNG inside an SVG and as half blocks in a terminal."""

from __future__ import annotations

import numpy as np

from regard.look.color_scales import Colormap
from regard.look.colormaps import GROUND, LIGHT, MAGNITUDES, PURPLE, RGB, SIGNS, rgb
from regard.look.image_overlay import png_uri
from regard.look.svg import coord, escape_text
from regard.look.terminal import SHADES, ColorDepth

HALF_BLOCK = "▀"
"""the upper half of a character: its ink is one pixel, its background the pixel below"""
LUMINANCE = np.array([0.299, 0.587, 0.114])
"""weights of red, green and blue in the brightness of a pixel (ITU-R BT.601), as in Pillow"""


def number_colors(colormap: Colormap, intensities: np.ndarray, dark: bool = False) -> np.ndarray:
    """Colors (rows, columns, 3) of numbers by their positions on a color map; on a dark ground in a terminal.

    >>> number_colors("sequential", np.array([[0.0, 1.0]])).tolist()
    [[[255, 255, 255], [107, 63, 160]]]
    """
    size = np.nan_to_num(np.abs(intensities))[..., None]
    if colormap == "log":
        stops = np.array([rgb(color) for color in MAGNITUDES], float)
        place = size[..., 0] * (len(stops) - 1)
        mixed = np.stack([np.interp(place, np.arange(len(stops)), stops[:, c]) for c in range(3)], -1)
        return np.rint(mixed).astype(np.uint8)
    ground = np.array(GROUND if dark else rgb(LIGHT["page"]), float)
    high: RGB = PURPLE if dark else rgb(LIGHT["weight"])
    low = high
    if colormap == "diverging":
        low, high = (rgb(SIGNS[sign][int(dark)]) for sign in ("negative", "positive"))
    ends = np.where(np.nan_to_num(intensities)[..., None] < 0, np.array(low, float), np.array(high, float))
    return np.rint(ground + size * (ends - ground)).astype(np.uint8)


def enlarge(colors_YX3: np.ndarray, zoom: int) -> np.ndarray:
    """Each pixel as a square of `zoom` x `zoom` pixels."""
    return colors_YX3.repeat(zoom, 0).repeat(zoom, 1)


def shrink(values: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Fewer rows and columns: means over rectangles of (nearly) equal size; the same if there are not more.

    >>> shrink(np.array([[0.0, 2.0], [4.0, 6.0]]), 1, 2)
    array([[2., 4.]])
    """
    found = values.astype(float)
    for axis, size in ((0, rows), (1, columns)):
        if found.shape[axis] > size:
            starts = np.arange(size) * found.shape[axis] // size
            counts = np.diff([*starts, found.shape[axis]])
            shape = [-1 if i == axis else 1 for i in range(found.ndim)]
            found = np.add.reduceat(found, starts, axis) / counts.reshape(shape)
    return found


def svg_image(colors_YX3: np.ndarray, x: float, y: float, side: float, title: str = "") -> str:
    """An <image> element, `side` wide; pixels keep sharp edges because the PNG is as large as the drawing."""
    height = side * colors_YX3.shape[0] / colors_YX3.shape[1]
    sharp = enlarge(colors_YX3, max(1, round(2 * side / colors_YX3.shape[1])))
    name = f"<title>{escape_text(title)}</title>" if title else ""
    return (
        f'<image x="{coord(x)}" y="{coord(y)}" width="{coord(side)}" height="{coord(height)}" '
        f'preserveAspectRatio="none" href="{png_uri(np.ascontiguousarray(sharp))}">{name}</image>'
    )


def terminal_rows(colors_YX3: np.ndarray, intensities_YX: np.ndarray, color: ColorDepth) -> list[str]:
    """Lines of characters, each of which is two pixels, one above the other.

    Without colors a character is as dark as its two pixels are large.

    >>> terminal_rows(np.zeros((2, 2, 3), np.uint8), np.array([[0.0, 1.0], [0.0, 1.0]]), "none")
    [' █']
    """
    if len(colors_YX3) % 2:
        colors_YX3, intensities_YX = (np.concatenate([a, a[-1:]]) for a in (colors_YX3, intensities_YX))
    if color == "none":
        means = np.nan_to_num(intensities_YX).reshape(-1, 2, intensities_YX.shape[1]).mean(1)
        return ["".join(SHADES[round(x * (len(SHADES) - 1))] for x in row) for row in means.clip(0, 1).tolist()]
    lines = []
    for top, below in zip(colors_YX3[::2].tolist(), colors_YX3[1::2].tolist(), strict=True):
        cells = [f"\x1b[{_ansi(38, a, color)};{_ansi(48, b, color)}m{HALF_BLOCK}" for a, b in zip(top, below)]
        lines.append("".join(cells) + "\x1b[0m")
    return lines


def _ansi(code: int, channels: list[int], color: ColorDepth) -> str:
    """A foreground (38) or background (48) color; of 256 colors the nearest of the cube or of the grays."""
    red, green, blue = channels
    if color == "24-bit":
        return f"{code};2;{red};{green};{blue}"
    if max(channels) - min(channels) < 12:
        gray = (red + green + blue) // 3
        return f"{code};5;{16 if gray < 4 else 231 if gray > 246 else 232 + min(23, max(0, round((gray - 8) / 10)))}"
    levels = (0, 95, 135, 175, 215, 255)
    near = np.abs(np.subtract.outer(channels, levels)).argmin(1).tolist()
    return f"{code};5;{16 + 36 * near[0] + 6 * near[1] + near[2]}"


def brightness(colors_YX3: np.ndarray) -> np.ndarray:
    """Brightness of colors, from 0 to 1."""
    return colors_YX3 @ LUMINANCE / 255
