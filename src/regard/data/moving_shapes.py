"""Moving shapes: rendered clips in which one shape moves in a straight line, with its direction and its next position.

A clip is a pure function of its number and split. No single frame shows the direction: a model must compare frames.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regard.data.shapes import COLORS, SHAPES, ShapeObject, draw_shape, split_generator

SIZE, FRAMES = 24, 6
"""rows and columns of a frame, and frames of a clip"""
DIRECTIONS = {
    "up": (0, -1),
    "up-right": (1, -1),
    "right": (1, 0),
    "down-right": (1, 1),
    "down": (0, 1),
    "down-left": (-1, 1),
    "left": (-1, 0),
    "up-left": (-1, -1),
}
"""columns and rows of a step; y points down"""


@dataclass(frozen=True)
class MovingShape:
    """A shape, its direction, and its speed.

    >>> clip = make_clip(0, "train")
    >>> clip.direction, [round(number, 1) for number in clip.next_position], clip.render().shape
    ('up', [16.1, 6.6], (6, 24, 24, 3))
    """

    color: str
    shape: str
    radius: float
    direction: str
    speed: float
    """pixels per frame, along each axis on which it moves"""
    start: tuple[float, float]
    """column and row of its middle in the first frame"""
    ground: int
    noise: int
    """seed of the noise"""

    def position(self, frame: int) -> tuple[float, float]:
        """Column and row of its middle in a frame, counted from 0; FRAMES is the one after the last."""
        dx, dy = DIRECTIONS[self.direction]
        return self.start[0] + frame * self.speed * dx, self.start[1] + frame * self.speed * dy

    @property
    def next_position(self) -> tuple[float, float]:
        """Column and row of its middle in the frame after the last."""
        return self.position(FRAMES)

    def render(self) -> np.ndarray:
        """The pixels (frames, rows, columns, 3) from 0 to 255."""
        frames_TYXC = np.full((FRAMES, SIZE, SIZE, 3), float(self.ground))
        for t in range(FRAMES):
            draw_shape(frames_TYXC[t], ShapeObject(self.color, self.shape, *self.position(t), self.radius))
        noise_TYXC = np.random.Generator(np.random.PCG64(self.noise)).normal(0, 6, frames_TYXC.shape)
        return (frames_TYXC + noise_TYXC).round().clip(0, 255).astype(np.uint8)


def make_clip(number: int, split: str) -> MovingShape:
    """The clip of this number in a split."""
    draw = split_generator("clips", split, number)
    direction = list(DIRECTIONS)[number % len(DIRECTIONS)]
    radius, speed = float(draw.uniform(2.6, 4.0)), float(draw.uniform(1.0, 2.2))
    room = SIZE - 2 * radius
    start = []
    for step in DIRECTIONS[direction]:
        travel = FRAMES * speed * abs(step)
        free = float(draw.uniform(0, room - travel))
        start.append(radius + free + (travel if step < 0 else 0.0))
    color, shape = (list(names)[int(draw.integers(len(names)))] for names in (COLORS, SHAPES))
    ground, noise = int(draw.integers(20, 70)), int(draw.integers(1 << 32))
    return MovingShape(color, shape, radius, direction, speed, (start[0], start[1]), ground, noise)
