"""Rendered digits: 28 x 28 pixels, drawn as strokes that vary in slant, size, thickness and shape.

The built-in images, for tests and for machines without a network. A digit is a pure function of its number and split.
"""

from __future__ import annotations

import hashlib
import math
from functools import cache

import numpy as np

SIZE = 28
"""rows and columns of a digit"""


def _arc(x: float, y: float, width: float, height: float, start: float, end: float) -> list[tuple[float, float]]:
    """Points of an arc of an ellipse; angles in degrees, clockwise from the right, since y points down."""
    angles = [math.radians(start + (end - start) * i / 12) for i in range(13)]
    return [(x + width * math.cos(angle), y + height * math.sin(angle)) for angle in angles]


STROKES: tuple[list[list[tuple[float, float]]], ...] = (
    [_arc(0.5, 0.5, 0.27, 0.4, 0, 360)],
    [[(0.34, 0.27), (0.52, 0.1), (0.52, 0.9)]],
    [[*_arc(0.5, 0.33, 0.25, 0.23, 190, 390), (0.27, 0.88), (0.76, 0.88)]],
    [_arc(0.47, 0.3, 0.24, 0.2, 200, 450), _arc(0.47, 0.7, 0.27, 0.2, 270, 520)],
    [[(0.62, 0.9), (0.62, 0.1), (0.22, 0.64), (0.8, 0.64)]],
    [[(0.73, 0.11), (0.35, 0.11), (0.32, 0.45)], _arc(0.48, 0.64, 0.25, 0.25, 230, 500)],
    [[(0.65, 0.1), (0.4, 0.35), (0.27, 0.62)], _arc(0.5, 0.68, 0.23, 0.21, 180, 540)],
    [[(0.24, 0.12), (0.76, 0.12), (0.43, 0.9)]],
    [_arc(0.5, 0.3, 0.2, 0.19, 90, 450), _arc(0.5, 0.7, 0.25, 0.2, 270, 630)],
    [_arc(0.5, 0.33, 0.23, 0.22, 0, 360), [(0.73, 0.33), (0.7, 0.62), (0.55, 0.9)]],
)
"""strokes of the digits 0 to 9 in the unit square"""


def digit_class(number: int) -> int:
    """The digit that an image of this number shows: the classes take turns."""
    return number % 10


def render_digit(number: int, split: str) -> np.ndarray:
    """The pixels (28, 28) of a digit, white on black; the split is part of the seed, so that splits share no image.

    >>> image = render_digit(7, "train")
    >>> image.shape, image.dtype, bool((image == render_digit(7, "test")).all())
    ((28, 28), dtype('uint8'), False)
    """
    seed = int.from_bytes(hashlib.blake2b(f"{split} {number}".encode(), digest_size=8).digest())
    draw = np.random.Generator(np.random.PCG64(seed))
    matrix_22, shift_2 = _random_affine(draw)
    thickness, softness = draw.uniform(0.028, 0.075), 0.03
    nearest_P = np.full(SIZE * SIZE, np.inf)
    for stroke in STROKES[digit_class(number)]:
        points_N2 = np.array(stroke) + draw.normal(0, 0.012, (len(stroke), 2))
        points_N2 = (points_N2 - 0.5) @ matrix_22.T + 0.5 + shift_2
        nearest_P = np.minimum(nearest_P, _distance(points_N2))
    ink_P = np.clip((thickness + softness - nearest_P) / softness, 0, 1) * draw.uniform(0.75, 1)
    noisy_P = ink_P + draw.normal(0, 0.03, ink_P.shape) * (ink_P > 0)
    return (noisy_P.clip(0, 1) * 255).round().astype(np.uint8).reshape(SIZE, SIZE)


def _random_affine(draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A random slant, rotation and scale, and a random shift."""
    angle, slant = draw.normal(0, 0.12), draw.normal(0, 0.2)
    rotation = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    scale = np.diag(draw.uniform(0.65, 0.95, 2))
    return rotation @ np.array([[1, -slant], [0, 1]]) @ scale, draw.uniform(-0.07, 0.07, 2)


@cache
def _grid() -> np.ndarray:
    """(P, 2): the centers of the pixels in the unit square."""
    center = (np.arange(SIZE) + 0.5) / SIZE
    return np.stack(np.meshgrid(center, center), -1).reshape(-1, 2)


def _distance(points_N2: np.ndarray) -> np.ndarray:
    """(P,): the distance of each pixel to a line of points."""
    start_N2, along_N2 = points_N2[:-1], np.diff(points_N2, axis=0)
    offset_PN2 = _grid()[:, None] - start_N2
    share_PN = (offset_PN2 * along_N2).sum(-1) / np.maximum((along_N2**2).sum(-1), 1e-12)
    gap_PN2 = offset_PN2 - share_PN.clip(0, 1)[..., None] * along_N2
    return np.sqrt((gap_PN2**2).sum(-1)).min(1)
