"""Heat map in a terminal: numbers on colors, or on shading characters where there are no colors."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Literal

from rich.cells import cell_len

from regard.look.color_scales import Colormap, ColorScale
from regard.look.colormaps import ansi_background
from regard.look.matrix import Matrix
from regard.look.tokens import isolate_bidi, make_visible, token_label, truncate

ColorDepth = Literal["none", "256", "24-bit"]
SHADES = " ░▒▓█"
MAX_LABEL, NUMBER_WIDTH = 12, 6
"""terminal columns of the widest column label and of a number"""


def heat_map(matrix: Matrix, width: int | None = None, color: ColorDepth | None = None) -> str:
    """Heat map in characters; columns that do not fit continue below. Width and colors default to the terminal's.

    >>> import numpy as np
    >>> print(heat_map(Matrix(np.array([[0.9, 0.1], [0.2, 0.8]]), ("i", "am"), ("je", "suis"), "cross"), 60, "none"))
    cross
    target \\ source
            je   suis
    i   ██0.90   0.10
    am  ░░0.20 ██0.80
    0.00 ░▒▓█ 0.90   smallest 0.10, largest 0.90
    """
    width, color = or_terminal(width, color)
    rows = [truncate(token_label(row), max(8, width // 4)) for row in matrix.rows]
    margin = max(map(cell_len, rows), default=0) + 1
    columns = [token_label(column) for column in matrix.columns]
    titles = (matrix.title, " \\ ".join(filter(None, (matrix.row_title, matrix.column_title))))
    head = [isolate_bidi(truncate(make_visible(title), width)) for title in titles]
    for most in (MAX_LABEL, 10, 8):
        cell = min(max([NUMBER_WIDTH, *map(cell_len, columns)]), most)
        if len(columns) * (cell + 1) <= width - margin - 1:
            body = _block(matrix, rows, [truncate(c, cell) for c in columns], range(len(columns)), cell, color)
            return "\n".join([*head, *body, legend(matrix, color)])
    return "\n".join([*head, *_split(matrix, rows, columns, width, color), legend(matrix, color)])


def _split(matrix: Matrix, rows: list[str], columns: list[str], width: int, color: ColorDepth) -> list[str]:
    """Several blocks of narrow cells with short numbers; columns are numbered, and their labels listed below.

    Labels no wider than a cell, such as the lags of a series, stay above their columns.
    """
    cell = max(matrix.scale.short_width, len(str(len(columns))))
    fit = max(1, (width - max(map(cell_len, rows), default=0) - 2) // (cell + 1))
    lines = [matrix.scale.short_unit]
    narrow = all(cell_len(column) <= cell for column in columns)
    heads = columns if narrow else [str(i + 1) for i in range(len(columns))]
    for start in range(0, len(columns), fit):
        lines += _block(matrix, rows, heads, range(start, min(start + fit, len(columns))), cell, color)
    if narrow:
        return lines
    return lines + _wrap_items([f"{i} {isolate_bidi(truncate(c, 24))}" for i, c in zip(heads, columns)], width)


def _wrap_items(items: Sequence[str], width: int) -> list[str]:
    lines: list[str] = []
    for item in items:
        if lines and cell_len(lines[-1]) + 3 + cell_len(item) <= width:
            lines[-1] += "   " + item
        else:
            lines.append(item)
    return lines


def _block(
    matrix: Matrix, rows: list[str], columns: Sequence[str], which: range, cell: int, color: ColorDepth
) -> list[str]:
    margin, intensities, scale = max(map(cell_len, rows), default=0) + 1, matrix.intensities, matrix.scale
    lines = [(" " * (margin + 1) + " ".join(pad_cells(columns[j], cell, "right") for j in which)).rstrip()]
    for i, label in enumerate(rows):
        cells = [_cell(scale, float(matrix.numbers[i, j]), float(intensities[i, j]), cell, color) for j in which]
        between = " " if color == "none" else ""
        lines.append(pad_cells(label, margin, "left") + " " + between.join(cells))
    return lines


def pad_cells(text: str, cells: int, side: Literal["left", "right"]) -> str:
    """A text aligned to one side of a number of terminal columns, in any script."""
    space = " " * (cells - cell_len(text))
    return isolate_bidi(text) + space if side == "left" else space + isolate_bidi(text)


def _cell(scale: ColorScale, number: float, intensity: float, width: int, color: ColorDepth) -> str:
    text = scale.format(number) if width >= NUMBER_WIDTH else scale.format_short(number)
    if color == "none":
        return f"{text:{shade(intensity)}>{width}}"
    return paint(f"{text:>{width}} ", intensity, color, scale.colormap)


def shade(intensity: float) -> str:
    """A character that is as dark as a number is large: for terminals without colors."""
    return SHADES[0] if math.isnan(intensity) else SHADES[round(abs(intensity) * (len(SHADES) - 1))]


def paint(text: str, intensity: float, color: ColorDepth, colormap: Colormap = "sequential") -> str:
    """A text on a background color, in black or white, whichever is more legible."""
    if color == "none":
        return text
    background, ink = ansi_background(colormap, intensity, color)
    return f"\x1b[{background};38;5;{ink}m{text}\x1b[0m"


def legend(matrix: Matrix, color: ColorDepth) -> str:
    """The color map with its limits, and the smallest and the largest number."""
    scale, diverging = matrix.scale, matrix.scale.colormap == "diverging"
    if color == "none":
        bar = SHADES[:0:-1] + SHADES if diverging else SHADES[1:]
    else:
        steps = [-1 + i / 4 for i in range(9)] if diverging else [i / 7 for i in range(8)]
        bar = "".join(paint("  ", step, color, scale.colormap) for step in steps)
    low, high, smallest, largest = map(scale.format, (*scale.limits, matrix.smallest, matrix.largest))
    return f"{low} {bar} {high}   smallest {smallest}, largest {largest}"


def or_terminal(width: int | None, color: ColorDepth | None) -> tuple[int, ColorDepth]:
    """Width and color depth as given, else those of the terminal."""
    width = shutil.get_terminal_size().columns if width is None else width
    return width, color_depth(os.environ, sys.stdout.isatty()) if color is None else color


def color_depth(environment: Mapping[str, str], is_terminal: bool) -> ColorDepth:
    """Color depth to use: none outside a terminal, in a dumb one, or if NO_COLOR is set."""
    if environment.get("NO_COLOR") or not is_terminal or environment.get("TERM", "dumb") == "dumb":
        return "none"
    return "24-bit" if environment.get("COLORTERM") in ("truecolor", "24bit") else "256"
