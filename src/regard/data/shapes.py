"""Rendered shapes: scenes of two colored shapes in a relation, with captions by a grammar and the box of each shape.

A scene is a pure function of its number and split. Some combinations are never drawn in train, valid and test, so that
a model must put together what it saw apart: of color, shape and relation (UNSEEN), of which every scene of the split
"unseen" has one; and, harder, of color and shape (UNSEEN_PAIRS), of which every scene of "unseen-pairs" has one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

SIZE = 32
"""rows and columns of a scene"""
COLORS = {
    "red": (215, 40, 40),
    "green": (40, 170, 60),
    "blue": (50, 90, 225),
    "yellow": (235, 215, 50),
    "purple": (160, 60, 190),
    "white": (240, 240, 240),
}
SHAPES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "circle": lambda x, y: x**2 + y**2 <= 1,
    "square": lambda x, y: np.maximum(np.abs(x), np.abs(y)) <= 0.9,
    "triangle": lambda x, y: (y <= 0.85) & (2 * np.abs(x) <= y + 1),
    "cross": lambda x, y: (np.minimum(np.abs(x), np.abs(y)) <= 0.32) & (np.maximum(np.abs(x), np.abs(y)) <= 1),
    "ring": lambda x, y: np.abs(np.hypot(x, y) - 0.76) <= 0.24,
}
"""which points of the square from -1 to 1 belong to a shape; y points down"""
RELATIONS = {"above": "below", "below": "above", "left of": "right of", "right of": "left of"}
"""relations of the first shape to the second, each with its inverse"""
UNSEEN_PAIRS = frozenset((color, list(SHAPES)[i % len(SHAPES)]) for i, color in enumerate(COLORS))
"""combinations of color and shape that only the split "unseen-pairs" has: one of each color"""
UNSEEN = frozenset(
    (color, shape, list(RELATIONS)[(2 * i + 3 * j) % len(RELATIONS)])
    for i, color in enumerate(COLORS)
    for j, shape in enumerate(SHAPES)
    if (i + j) % 2 == 0 and (color, shape) not in UNSEEN_PAIRS
)
"""combinations of color, shape and its relation to the other shape that only the split "unseen" has"""
SPLITS = ("train", "valid", "test", "unseen", "unseen-pairs")
FINE = 4
"""samples per pixel along each axis, for smooth edges"""


@dataclass(frozen=True)
class ShapeObject:
    """One shape of a scene."""

    color: str
    shape: str
    x: float
    """column of its middle"""
    y: float
    """row of its middle"""
    radius: float

    @property
    def noun_phrase(self) -> str:
        return f"a {self.color} {self.shape}"

    @property
    def box(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom in pixels."""
        return self.x - self.radius, self.y - self.radius, self.x + self.radius, self.y + self.radius


@dataclass(frozen=True)
class Scene:
    """Two shapes, the relation of the first to the second, and the ground they are drawn on.

    >>> scene = make_scene(0, "train")
    >>> scene.captions
    ('a red square right of a blue ring', 'a blue ring left of a red square')
    >>> scene.render().shape
    (32, 32, 3)
    """

    first: ShapeObject
    second: ShapeObject
    relation: str
    ground: tuple[int, int, int]
    noise: int
    """seed of the noise"""

    @property
    def captions(self) -> tuple[str, str]:
        """The scene told from either shape."""
        first, second = self.first.noun_phrase, self.second.noun_phrase
        return f"{first} {self.relation} {second}", f"{second} {RELATIONS[self.relation]} {first}"

    def render(self) -> np.ndarray:
        """The pixels (32, 32, 3) from 0 to 255."""
        pixels_YXC = np.empty((SIZE, SIZE, 3))
        pixels_YXC[:] = self.ground
        for one in (self.first, self.second):
            draw_shape(pixels_YXC, one)
        noise_YXC = np.random.Generator(np.random.PCG64(self.noise)).normal(0, 5, pixels_YXC.shape)
        return (pixels_YXC + noise_YXC).round().clip(0, 255).astype(np.uint8)


def draw_shape(pixels_YXC: np.ndarray, one: ShapeObject) -> None:
    """Draw a shape over what is there, with smooth edges."""
    size = len(pixels_YXC)
    center = (np.arange(size * FINE) + 0.5) / FINE
    x_X, y_Y = (center - one.x) / one.radius, (center - one.y) / one.radius
    inside_YX = SHAPES[one.shape](x_X[None, :], y_Y[:, None])
    cover_YX = inside_YX.reshape(size, FINE, size, FINE).mean((1, 3))[..., None]
    pixels_YXC[:] = pixels_YXC * (1 - cover_YX) + np.array(COLORS[one.color]) * cover_YX


def split_generator(kind: str, split: str, number: int) -> np.random.Generator:
    """Random numbers of one picture; the split is part of the seed, so that splits share none."""
    seed = int.from_bytes(hashlib.blake2b(f"{kind} {split} {number}".encode(), digest_size=8).digest())
    return np.random.Generator(np.random.PCG64(seed))


def make_scene(number: int, split: str) -> Scene:
    """The scene of this number in a split."""
    draw = split_generator("shapes", split, number)
    pair, relation = _combination(draw, split)
    radii = draw.uniform(4.6, 6.4, 2)
    across, along = _positions(draw, radii)
    places = list(zip(across, along, radii.tolist(), strict=True))
    if relation in ("below", "right of"):
        places.reverse()
    vertical = relation in ("above", "below")
    first, second = (
        ShapeObject(color, shape, *((a, b) if vertical else (b, a)), radius)
        for (color, shape), (a, b, radius) in zip(pair, places, strict=True)
    )
    red, green, blue = (draw.integers(20, 70) + draw.integers(-8, 9, 3)).tolist()
    return Scene(first, second, relation, (red, green, blue), int(draw.integers(1 << 32)))


def _combination(draw: np.random.Generator, split: str) -> tuple[list[tuple[str, str]], str]:
    """Color and shape of two different shapes, and the relation of the first to the second."""
    seen = [(color, shape) for color in COLORS for shape in SHAPES if (color, shape) not in UNSEEN_PAIRS]
    while True:
        pair = [seen[i] for i in draw.choice(len(seen), 2, replace=False)]
        relation = list(RELATIONS)[int(draw.integers(len(RELATIONS)))]
        if split == "unseen-pairs":
            pair[int(draw.integers(2))] = sorted(UNSEEN_PAIRS)[int(draw.integers(len(UNSEEN_PAIRS)))]
        both = {(*pair[0], relation), (*pair[1], RELATIONS[relation])}
        if bool(both & UNSEEN) == (split == "unseen"):
            return pair, relation


def _positions(draw: np.random.Generator, radii: np.ndarray) -> tuple[list[float], list[float]]:
    """Middles of two shapes that do not touch: across the relation's axis, where they differ little, and along it."""
    room = SIZE - 2 * radii.sum() - 3
    before, between = np.sort(draw.uniform(0, room, 2))
    one = 1 + before + radii[0]
    other = one + radii.sum() + 1 + between - before
    middle = draw.uniform(radii.max() + 3, SIZE - radii.max() - 3)
    shift = draw.uniform(-2, 2, 2)
    return [float(middle + shift[0]), float(middle + shift[1])], [float(one), float(other)]
