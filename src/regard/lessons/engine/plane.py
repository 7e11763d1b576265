"""The plane of two inputs: a function of two numbers as a heat map, x1 to the right and x2 upwards."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from regard.lessons.engine.lesson import Value

TICKS = np.linspace(-0.5, 1.5, 9)
"""coordinates at which the function is drawn; 0 and 1 are among them"""


def plane_value(name: str, function: Callable[[np.ndarray], np.ndarray], symbol: str = "") -> Value:
    """Values of a function of two numbers on a grid; it takes rows of points and returns one number for each.

    >>> plane_value("sum", lambda points: points.sum(1)).data[0]
    [1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0]
    """
    up = TICKS[::-1]
    points = np.stack(np.meshgrid(TICKS, up), -1).reshape(-1, 2)
    rows = function(points).reshape(len(up), len(TICKS)).tolist()
    labels = {"x2": [f"{x:g}" for x in up], "x1": [f"{x:g}" for x in TICKS]}
    return Value(name, rows, ("x2", "x1"), labels, symbol, "signed")
