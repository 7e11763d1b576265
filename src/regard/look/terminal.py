"""A matrix as a heat map of characters: in colours, or in shades where there are none. The numbers are always there."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Literal

from rich.cells import cell_len

from regard.look.color_scales import Ramp, Scale
from regard.look.colormaps import in_terminal
from regard.look.matrix import Matrix
from regard.look.tokens import cut, isolated, shown, visible

Colour = Literal["none", "256", "24-bit"]
SHADES = " ░▒▓█"
WIDEST_LABEL, NUMBER = 12, 6


def heat_map(matrix: Matrix, width: int | None = None, colour: Colour | None = None) -> str:
    """Rows of cells with their numbers; what does not fit side by side goes on below. None: as this terminal is.

    >>> import numpy as np
    >>> print(heat_map(Matrix(np.array([[0.9, 0.1], [0.2, 0.8]]), ("i", "am"), ("je", "suis"), "cross"), 60, "none"))
    cross
    target \\ source
            je   suis
    i   ██0.90   0.10
    am  ░░0.20 ██0.80
    0.00 ░▒▓█ 0.90   smallest 0.10, largest 0.90
    """
    width = shutil.get_terminal_size().columns if width is None else width
    colour = colours(os.environ, sys.stdout.isatty()) if colour is None else colour
    rows = [cut(shown(row), max(8, width // 4)) for row in matrix.rows]
    margin = max(map(cell_len, rows), default=0) + 1
    columns = [shown(column) for column in matrix.columns]
    titles = (matrix.title, " \\ ".join(filter(None, (matrix.row_title, matrix.column_title))))
    head = [isolated(cut(visible(title), width)) for title in titles]
    room = width - margin - 1
    for most in (WIDEST_LABEL, 10, 8):
        cell = min(max([NUMBER, *map(cell_len, columns)]), most)
        if len(columns) * (cell + 1) <= room:
            body = _block(matrix, rows, [cut(c, cell) for c in columns], range(len(columns)), cell, colour)
            return "\n".join([*head, *body, legend(matrix, colour)])
    return "\n".join([*head, *_split(matrix, rows, columns, width, colour), legend(matrix, colour)])


def _split(matrix: Matrix, rows: list[str], columns: list[str], width: int, colour: Colour) -> list[str]:
    """Narrow cells with brief numbers, columns by number; as many blocks as it takes, then whose the numbers are.

    Labels that are no wider than a cell, such as the lags of a series, stand over their columns themselves.
    """
    cell = max(matrix.scale.narrow, len(str(len(columns))))
    fit = max(1, (width - max(map(cell_len, rows), default=0) - 2) // (cell + 1))
    lines = [matrix.scale.note]
    brief = all(cell_len(column) <= cell for column in columns)
    heads = columns if brief else [str(i + 1) for i in range(len(columns))]
    for start in range(0, len(columns), fit):
        lines += _block(matrix, rows, heads, range(start, min(start + fit, len(columns))), cell, colour)
    return lines if brief else lines + _wrapped([f"{i} {isolated(cut(c, 24))}" for i, c in zip(heads, columns)], width)


def _wrapped(items: Sequence[str], width: int) -> list[str]:
    lines: list[str] = []
    for item in items:
        if lines and cell_len(lines[-1]) + 3 + cell_len(item) <= width:
            lines[-1] += "   " + item
        else:
            lines.append(item)
    return lines


def _block(
    matrix: Matrix, rows: list[str], columns: Sequence[str], which: range, cell: int, colour: Colour
) -> list[str]:
    margin, strengths, scale = max(map(cell_len, rows), default=0) + 1, matrix.strengths, matrix.scale
    lines = [(" " * (margin + 1) + " ".join(padded(columns[j], cell, "right") for j in which)).rstrip()]
    for i, label in enumerate(rows):
        cells = [_cell(scale, float(matrix.numbers[i, j]), float(strengths[i, j]), cell, colour) for j in which]
        between = " " if colour == "none" else ""
        lines.append(padded(label, margin, "left") + " " + between.join(cells))
    return lines


def padded(text: str, cells: int, side: Literal["left", "right"]) -> str:
    """A text at one side of so many columns of the terminal, whatever its script.

    >>> padded("学", 4, "right"), padded("a", 3, "left")
    ('  学', 'a  ')
    """
    space = " " * (cells - cell_len(text))
    return isolated(text) + space if side == "left" else space + isolated(text)


def _cell(scale: Scale, number: float, strength: float, width: int, colour: Colour) -> str:
    text = scale.told(number) if width >= NUMBER else scale.brief(number)
    if colour == "none":
        return f"{text:{_shade(strength)}>{width}}"
    return painted(f"{text:>{width}} ", strength, colour, scale.ramp)


def _shade(strength: float) -> str:
    return SHADES[0] if math.isnan(strength) else SHADES[round(abs(strength) * (len(SHADES) - 1))]


def painted(text: str, strength: float, colour: Colour, ramp: Ramp = "weight") -> str:
    """A text on the colour of a place on a ramp, black or white, whichever is easier to read.

    >>> painted("0.90", 1.0, "24-bit")
    '\\x1b[48;2;199;166;255;38;5;16m0.90\\x1b[0m'
    """
    if colour == "none":
        return text
    ground, ink = in_terminal(ramp, strength, colour)
    return f"\x1b[{ground};38;5;{ink}m{text}\x1b[0m"


def legend(matrix: Matrix, colour: Colour) -> str:
    """What the colours mean, with the smallest and the largest number.

    >>> import numpy as np
    >>> legend(Matrix(np.array([[0.5]]), ("a",), ("b",), "cross"), "none")
    '0.00 ░▒▓█ 0.50   smallest 0.50, largest 0.50'
    """
    scale, both = matrix.scale, matrix.scale.ramp == "signed"
    if colour == "none":
        ramp = SHADES[:0:-1] + SHADES if both else SHADES[1:]
    else:
        places = [-1 + i / 4 for i in range(9)] if both else [i / 7 for i in range(8)]
        ramp = "".join(painted("  ", place, colour, scale.ramp) for place in places)
    low, high, least, most = map(scale.told, (*scale.ends, matrix.smallest, matrix.largest))
    return f"{low} {ramp} {high}   smallest {least}, largest {most}"


def colours(environment: Mapping[str, str], terminal: bool) -> Colour:
    """How many colours may be used: none if nobody asked for a terminal, or NO_COLOR is set.

    >>> colours({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, True), colours({"NO_COLOR": "1"}, True)
    ('24-bit', 'none')
    """
    if environment.get("NO_COLOR") or not terminal or environment.get("TERM", "dumb") == "dumb":
        return "none"
    return "24-bit" if environment.get("COLORTERM") in ("truecolor", "24bit") else "256"
