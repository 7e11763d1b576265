"""Color maps in SVG (light and dark) and in a terminal, each with the ink that is legible on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from regard.look.color_scales import Colormap

RGB = tuple[int, int, int]

LIGHT = {"page": "#FFFFFF", "text": "#1B1F24", "muted": "#57606A", "weight": "#6B3FA0"}
DARK = {"page": "#0D1117", "text": "#E6EDF3", "muted": "#9DA7B3", "weight": "#C7A6FF"}
SIGNS = {"negative": ("#0B62B8", "#6CB6FF"), "positive": ("#B35900", "#FFB454")}
"""Hues of the diverging color map on a light and on a dark page; 0 is the page itself."""
MAGNITUDES = ("#2A1A5E", "#2B4C8C", "#1F7A8C", "#2FA36B", "#9CCB3B", "#FBE34D")
"""Logarithmic color map, the same on every page; lightness is monotonic, so it is legible without hue."""
INK_LIGHT, INK_DARK = 0.8, 0.61
"""Intensities of purple at which the ink changes: there black and white are equally legible."""

GROUND, PURPLE = (0x16, 0x1B, 0x22), (0xC7, 0xA6, 0xFF)
"""In a terminal color maps start dark: both colors of a cell are set, and most terminals are dark."""
STEPS = (234, 236, 238, 60, 97, 140, 183)
"""The purple in xterm's 256 colors."""
NEGATIVE_STEPS, POSITIVE_STEPS = (234, 236, 24, 67, 74, 111), (234, 236, 94, 137, 173, 215)
MAGNITUDE_STEPS = (17, 18, 24, 31, 36, 71, 113, 227)


def rgb(color: str) -> RGB:
    """Channels of a color such as "#FF8000"."""
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def luminance(color: Sequence[float]) -> float:
    """Relative luminance, from 0 to 1 (WCAG 2)."""
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in color]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


EQUAL = math.sqrt(1.05 * 0.05) - 0.05
"""Luminance on which black and white have the same contrast."""


def blend(low: Sequence[float], high: Sequence[float], share: float) -> RGB:
    """Linear interpolation between two colors."""
    red, green, blue = (round(a + share * (b - a)) for a, b in zip(low, high))
    return red, green, blue


def log_color(intensity: float) -> RGB:
    """A color of the logarithmic color map."""
    place = intensity * (len(MAGNITUDES) - 1)
    i = min(int(place), len(MAGNITUDES) - 2)
    return blend(rgb(MAGNITUDES[i]), rgb(MAGNITUDES[i + 1]), place - i)


def svg_fill(colormap: Colormap, intensity: float) -> tuple[str, str, str]:
    """Paint of a cell in SVG: its class, its attributes, the class of its text."""
    if math.isnan(intensity):
        return "rg-weight", 'fill-opacity="0"', "rg-muted"
    if colormap == "log":
        red, green, blue = log_color(intensity)
        ink = "rg-black" if luminance((red, green, blue)) > EQUAL else "rg-white"
        return "rg-cell", f'fill="#{red:02X}{green:02X}{blue:02X}"', ink
    name = "weight" if colormap == "sequential" else "negative" if intensity < 0 else "positive"
    light, dark = INKS[name]
    size = abs(intensity)
    ink = "rg-high" if size >= light else "rg-mid" if size >= dark else "rg-low"
    return f"rg-{name}", f'fill-opacity="{size:.3f}"', ink


def _ink_change(page: str, color: str) -> float:
    """Intensity from which the other ink has more contrast."""
    low, high = rgb(page), rgb(color)
    side = luminance(low) > EQUAL
    return next((i / 100 for i in range(101) if (luminance(blend(low, high, i / 100)) > EQUAL) != side), 2.0)


INKS = {"weight": (INK_LIGHT, INK_DARK)} | {
    name: (_ink_change(LIGHT["page"], light), _ink_change(DARK["page"], dark)) for name, (light, dark) in SIGNS.items()
}
"""Per hue: intensity from which ink is white on a light page, and black on a dark one."""


def ansi_background(colormap: Colormap, intensity: float, depth: Literal["256", "24-bit"]) -> tuple[str, int]:
    """Background of a cell as an ANSI escape code, and its ink: 16 is black, 231 white."""
    intensity = 0.0 if math.isnan(intensity) else intensity
    if depth == "256":
        signed = NEGATIVE_STEPS if intensity < 0 else POSITIVE_STEPS
        steps = {"sequential": STEPS, "log": MAGNITUDE_STEPS}.get(colormap, signed)
        step = steps[round(abs(intensity) * (len(steps) - 1))]
        return f"48;5;{step}", _ink(xterm_color(step))
    if colormap == "log":
        color = log_color(intensity)
    else:
        end = PURPLE if colormap == "sequential" else rgb(SIGNS["negative" if intensity < 0 else "positive"][1])
        color = blend(GROUND, end, abs(intensity))
    return f"48;2;{color[0]};{color[1]};{color[2]}", _ink(color)


def _ink(color: RGB) -> int:
    return 16 if luminance(color) > EQUAL else 231


def xterm_color(code: int) -> RGB:
    """Channels of one of xterm's colors 16 to 255."""
    if code >= 232:
        return (8 + 10 * (code - 232),) * 3
    levels = (0, 95, 135, 175, 215, 255)
    return levels[(code - 16) // 36], levels[(code - 16) // 6 % 6], levels[(code - 16) % 6]
