"""The colours of each ramp, on a page (light and dark) and in a terminal, and the ink that can be read on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from regard.look.color_scales import Ramp

RGB = tuple[int, int, int]

LIGHT = {"page": "#FFFFFF", "text": "#1B1F24", "muted": "#57606A", "weight": "#6B3FA0"}
DARK = {"page": "#0D1117", "text": "#E6EDF3", "muted": "#9DA7B3", "weight": "#C7A6FF"}
SIGNS = {"negative": ("#0B62B8", "#6CB6FF"), "positive": ("#B35900", "#FFB454")}
"""The two hues of signed values, on a light and on a dark page; 0 is the page itself."""
MAGNITUDES = ("#2A1A5E", "#2B4C8C", "#1F7A8C", "#2FA36B", "#9CCB3B", "#FBE34D")
"""From little to much, the same on every page: lightness grows all the way, so that it can be read without hue."""
INK_LIGHT, INK_DARK = 0.8, 0.61
"""Strengths of the purple from which a number in a cell changes its ink: there black and white read equally well."""

GROUND, PURPLE = (0x16, 0x1B, 0x22), (0xC7, 0xA6, 0xFF)
"""In a terminal ramps begin on dark, since both colours of a cell are set and most terminals are dark."""
STEPS = (234, 236, 238, 60, 97, 140, 183)
"""The purple in the fixed colours of older terminals."""
NEGATIVE_STEPS, POSITIVE_STEPS = (234, 236, 24, 67, 74, 111), (234, 236, 94, 137, 173, 215)
MAGNITUDE_STEPS = (17, 18, 24, 31, 36, 71, 113, 227)


def rgb(colour: str) -> RGB:
    """The parts of a colour.

    >>> rgb("#FF8000")
    (255, 128, 0)
    """
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def luminance(colour: Sequence[float]) -> float:
    """How bright a colour is to the eye, from 0 to 1 (WCAG 2).

    >>> luminance((255, 255, 255))
    1.0
    """
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


EQUAL = math.sqrt(1.05 * 0.05) - 0.05
"""The luminance on which black and white can be read equally well."""


def mixed(low: Sequence[float], high: Sequence[float], share: float) -> RGB:
    """A colour between two.

    >>> mixed((0, 0, 0), (200, 100, 50), 0.5)
    (100, 50, 25)
    """
    red, green, blue = (round(a + share * (b - a)) for a, b in zip(low, high))
    return red, green, blue


def magnitude(strength: float) -> RGB:
    """A colour of the ramp over powers of ten.

    >>> magnitude(0.0) == rgb(MAGNITUDES[0])
    True
    """
    place = strength * (len(MAGNITUDES) - 1)
    i = min(int(place), len(MAGNITUDES) - 2)
    return mixed(rgb(MAGNITUDES[i]), rgb(MAGNITUDES[i + 1]), place - i)


def on_page(ramp: Ramp, strength: float) -> tuple[str, str, str]:
    """How SVG paints a place on a ramp: class of the cell, its attributes, class of the ink.

    >>> on_page("weight", 0.5), on_page("signed", -1.0)
    (('rg-weight', 'fill-opacity="0.500"', 'rg-low'), ('rg-negative', 'fill-opacity="1.000"', 'rg-high'))
    """
    if math.isnan(strength):
        return "rg-weight", 'fill-opacity="0"', "rg-muted"
    if ramp == "log":
        red, green, blue = magnitude(strength)
        ink = "rg-black" if luminance((red, green, blue)) > EQUAL else "rg-white"
        return "rg-cell", f'fill="#{red:02X}{green:02X}{blue:02X}"', ink
    name = "weight" if ramp == "weight" else "negative" if strength < 0 else "positive"
    light, dark = INKS[name]
    size = abs(strength)
    ink = "rg-high" if size >= light else "rg-mid" if size >= dark else "rg-low"
    return f"rg-{name}", f'fill-opacity="{size:.3f}"', ink


def _turn(page: str, colour: str) -> float:
    """The strength from which the other ink reads better."""
    low, high = rgb(page), rgb(colour)
    side = luminance(low) > EQUAL
    return next((i / 100 for i in range(101) if (luminance(mixed(low, high, i / 100)) > EQUAL) != side), 2.0)


INKS = {"weight": (INK_LIGHT, INK_DARK)} | {
    name: (_turn(LIGHT["page"], light), _turn(DARK["page"], dark)) for name, (light, dark) in SIGNS.items()
}
"""Of a hue: from where on ink is white on a light page, and black on a dark one."""


def in_terminal(ramp: Ramp, strength: float, depth: Literal["256", "24-bit"]) -> tuple[str, int]:
    """The background of a place on a ramp as an escape code, and its ink: 16 is black, 231 white.

    >>> in_terminal("weight", 1.0, "24-bit")
    ('48;2;199;166;255', 16)
    """
    strength = 0.0 if math.isnan(strength) else strength
    if depth == "256":
        steps = {"weight": STEPS, "log": MAGNITUDE_STEPS}.get(ramp, NEGATIVE_STEPS if strength < 0 else POSITIVE_STEPS)
        step = steps[round(abs(strength) * (len(steps) - 1))]
        return f"48;5;{step}", _ink(fixed(step))
    if ramp == "log":
        colour = magnitude(strength)
    else:
        end = PURPLE if ramp == "weight" else rgb(SIGNS["negative" if strength < 0 else "positive"][1])
        colour = mixed(GROUND, end, abs(strength))
    return f"48;2;{colour[0]};{colour[1]};{colour[2]}", _ink(colour)


def _ink(colour: RGB) -> int:
    return 16 if luminance(colour) > EQUAL else 231


def fixed(code: int) -> RGB:
    """One of the fixed colours 16 to 255 of older terminals.

    >>> fixed(16), fixed(231), fixed(234)
    ((0, 0, 0), (255, 255, 255), (28, 28, 28))
    """
    if code >= 232:
        return (8 + 10 * (code - 232),) * 3
    levels = (0, 95, 135, 175, 215, 255)
    return levels[(code - 16) // 36], levels[(code - 16) // 6 % 6], levels[(code - 16) % 6]
