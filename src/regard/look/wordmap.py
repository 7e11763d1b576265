"""Word map: a scatter plot of word vectors, as SVG, in characters in a terminal, as a dict.

Both axes have one scale, so that distances are comparable. A name stands next to its dot where there is room; otherwise
only the tooltip has it. In characters a name may be one line off.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.cells import cell_len

from regard.look.svg import SIDE_COLORS, STYLE, UNIT, coord, document, escape_text, text_element, text_width
from regard.look.tokens import grapheme_clusters, is_rtl, isolate_bidi, make_visible, truncate
from regard.look.view import View

WIDTH, TOP, FONT, MAX_LABEL = 720.0, 56.0, 12.0, 24
MAX_COLUMNS, MAX_LINES = 100, 30
"""most terminal columns and lines of a map"""
DOT = "·"
Box = tuple[float, float, float, float]
"""left, top, right, bottom"""


@dataclass(frozen=True, eq=False)
class WordMapView(View):
    """Words with their coordinates, and the share of the variance that each axis explains.

    >>> view = WordMapView("two words", ("sea", "sky"), np.array([[0.0, 1.0], [2.0, 0.0]]), (0.75, 0.25))
    >>> print(view.text(width=20, height=3))
    two words
    ·sea
    <BLANKLINE>
                 ·sky
    across 75 %, up 25 % of the variance
    """

    title: str
    words: Sequence[str]
    points: np.ndarray
    """(N, 2): across and up"""
    shares: tuple[float, float]
    """explained variance of the two axes"""

    @property
    def variance_line(self) -> str:
        """Explained variance in words."""
        return f"across {100 * self.shares[0]:.0f} %, up {100 * self.shares[1]:.0f} % of the variance"

    def svg(self) -> str:
        """The map as one self-contained SVG text."""
        low, high = self.points.min(0), self.points.max(0)
        scale = (WIDTH - 160) / max(float((high - low).max()), 1e-12)
        height = max(160.0, float(high[1] - low[1]) * scale + 48)
        places = [(UNIT * 4 + (x - low[0]) * scale, TOP + 24 + (high[1] - y) * scale) for x, y in self.points.tolist()]
        taken: list[Box] = [(x - 3, y - 3, x + 3, y + 3) for x, y in places]
        parts = [text_element(UNIT * 2, UNIT * 3, make_visible(self.title), "rg-head")]
        parts.append(text_element(UNIT * 2, UNIT * 5.5, self.variance_line, "rg-muted"))
        for word, (x, y) in zip(self.words, places, strict=True):
            name = escape_text(isolate_bidi(make_visible(word)))
            parts.append(f'<circle cx="{coord(x)}" cy="{coord(y)}" r="3"><title>{name}</title></circle>')
            parts += _name(truncate(make_visible(word), MAX_LABEL), x, y, taken)
        summary = f"{', '.join(make_visible(word) for word in self.words[:40])}: {self.variance_line}."
        return document(WIDTH, TOP + height, self.title, summary, parts, STYLE + DOTS)

    def text(self, width: int | None = None, height: int | None = None) -> str:
        """The map in characters: a dot per word, and its name next to it where there is room."""
        terminal = shutil.get_terminal_size()
        across = max(20, min(terminal.columns if width is None else width, MAX_COLUMNS))
        down = max(3, min(terminal.lines - 4, MAX_LINES) if height is None else height)
        low, high = self.points.min(0), self.points.max(0)
        size = np.where(high > low, high - low, 1.0)
        cells, left = [[" "] * across for _ in range(down)], 0
        for word, point in zip(self.words, self.points, strict=True):
            right, up = (point - low) / size
            place = round((1 - up) * (down - 1)), round(right * (across - 1 - MAX_LABEL // 4))
            left += not _put(cells, *place, grapheme_clusters(truncate(make_visible(word), MAX_LABEL)))
        lines = ["".join(row).rstrip() for row in cells]
        last = f"{self.variance_line}; no room for {left} more" if left else self.variance_line
        return "\n".join([truncate(make_visible(self.title), across), *lines, last])

    def to_dict(self) -> dict[str, Any]:
        rows = [{"word": word, "x": x, "y": y} for word, (x, y) in zip(self.words, self.points.tolist(), strict=True)]
        return {"title": self.title, "shares": list(self.shares), "words": rows}


DOTS = ".rg circle{{fill-opacity:.8;fill:{}}}@media (prefers-color-scheme:dark){{.rg circle{{fill:{}}}}}".format(
    *SIDE_COLORS["source"]
)
"""Dots have the color of a source's labels."""


def _name(name: str, x: float, y: float, taken: list[Box]) -> list[str]:
    """The name of a dot at one of four places around it; none if other names and dots leave no room."""
    wide = text_width(name, FONT)
    for left, base, anchor in _label_places(x, y, wide):
        box = (left, base - FONT * 0.8, left + wide, base + FONT * 0.2)
        if left < 0 or left + wide > WIDTH or any(_overlap(box, other) for other in taken):
            continue
        taken.append(box)
        at = {"start": left, "end": left + wide, "middle": left + wide / 2}[anchor]
        if is_rtl(name) and anchor != "middle":  # "start" is the right end
            anchor = {"start": "end", "end": "start"}[anchor]
        direction = "rtl" if is_rtl(name) else "ltr"
        place = f'x="{coord(at)}" y="{coord(base)}" text-anchor="{anchor}" direction="{direction}"'
        return [f'<text class="rg-word" {place}>{escape_text(name)}</text>']
    return []


def _label_places(x: float, y: float, wide: float) -> Iterator[tuple[float, float, str]]:
    yield x + 6, y + 4, "start"
    yield x - 6 - wide, y + 4, "end"
    yield x - wide / 2, y - 7, "middle"
    yield x - wide / 2, y + 15, "middle"


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _put(cells: list[list[str]], row: int, column: int, name: Sequence[str]) -> bool:
    """Write a dot and a name where its cells are free: after or before the dot, on its line or a neighboring one."""
    wide = sum(map(cell_len, name))
    for line in (row, row + 1, row - 1):
        for start, chars in ((column, [DOT, *name]), (column - wide, [*name, DOT])):
            whole = range(start - 1, start + wide + 2)  # with a gap before and after
            if not 0 <= line < len(cells) or start < 0 or start + wide >= len(cells[line]):
                continue
            if any(cells[line][i] != " " for i in whole if 0 <= i < len(cells[line])):
                continue
            for char in chars:
                cells[line][start : start + cell_len(char)] = [char] + [""] * (cell_len(char) - 1)
                start += cell_len(char)
            return True
    return False
