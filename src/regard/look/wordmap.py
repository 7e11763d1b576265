"""Words on a plane: a dot and a name each, as SVG, in characters in a terminal, as a dict.

Both axes have one scale, so that what is near on the picture is near. A name stands beside its dot where there is
room; where there is none, the dot stands alone, and its tooltip names it. In characters a word may stand a line off.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.cells import cell_len

from regard.look.svg import SIDES, STYLE, UNIT, document, extent, n, text, written
from regard.look.tokens import clusters, cut, isolated, right_to_left, visible

WIDTH, TOP, FONT, LONGEST = 720.0, 56.0, 12.0, 24
WIDEST, TALLEST = 100, 30
"""columns and lines of a terminal that a map is spread over, at most"""
DOT = "·"
Box = tuple[float, float, float, float]
"""left, top, right, bottom"""


@dataclass(frozen=True, eq=False)
class WordMapView:
    """Words, where they lie, and how much of what differs between them the two directions show.

    >>> view = WordMapView("two words", ("sea", "sky"), np.array([[0.0, 1.0], [2.0, 0.0]]), (0.75, 0.25))
    >>> print(view.text(width=20, height=3))
    two words
    ·sea
    <BLANKLINE>
                 ·sky
    across 75 %, up 25 % of what differs
    """

    title: str
    words: Sequence[str]
    points: np.ndarray
    """(N, 2): across and up"""
    shares: tuple[float, float]

    @property
    def told(self) -> str:
        """What the two directions show."""
        return f"across {100 * self.shares[0]:.0f} %, up {100 * self.shares[1]:.0f} % of what differs"

    def svg(self) -> str:
        """The picture as one SVG text; it needs no other file."""
        low, high = self.points.min(0), self.points.max(0)
        scale = (WIDTH - 160) / max(float((high - low).max()), 1e-12)
        height = max(160.0, float(high[1] - low[1]) * scale + 48)
        places = [(UNIT * 4 + (x - low[0]) * scale, TOP + 24 + (high[1] - y) * scale) for x, y in self.points.tolist()]
        taken: list[Box] = [(x - 3, y - 3, x + 3, y + 3) for x, y in places]
        parts = [written(UNIT * 2, UNIT * 3, visible(self.title), "rg-head")]
        parts.append(written(UNIT * 2, UNIT * 5.5, self.told, "rg-muted"))
        for word, (x, y) in zip(self.words, places, strict=True):
            name = text(isolated(visible(word)))
            parts.append(f'<circle cx="{n(x)}" cy="{n(y)}" r="3"><title>{name}</title></circle>')
            parts += _named(cut(visible(word), LONGEST), x, y, taken)
        said = f"{', '.join(visible(word) for word in self.words[:40])}: {self.told}."
        return document(WIDTH, TOP + height, self.title, said, parts, STYLE + DOTS)

    def text(self, width: int | None = None, height: int | None = None) -> str:
        """The picture in characters: a dot a word, and its name behind it where there is room."""
        terminal = shutil.get_terminal_size()
        across = max(20, min(terminal.columns if width is None else width, WIDEST))
        down = max(3, min(terminal.lines - 4, TALLEST) if height is None else height)
        low, high = self.points.min(0), self.points.max(0)
        size = np.where(high > low, high - low, 1.0)
        cells, left = [[" "] * across for _ in range(down)], 0
        for word, point in zip(self.words, self.points, strict=True):
            right, up = (point - low) / size
            place = round((1 - up) * (down - 1)), round(right * (across - 1 - LONGEST // 4))
            left += not _put(cells, *place, clusters(cut(visible(word), LONGEST)))
        lines = ["".join(row).rstrip() for row in cells]
        told = f"{self.told}; no room for {left} more" if left else self.told
        return "\n".join([cut(visible(self.title), across), *lines, told])

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        rows = [{"word": word, "x": x, "y": y} for word, (x, y) in zip(self.words, self.points.tolist(), strict=True)]
        return {"title": self.title, "shares": list(self.shares), "words": rows}

    def _repr_html_(self) -> str:
        return self.svg()


DOTS = ".rg circle{{fill-opacity:.8;fill:{}}}@media (prefers-color-scheme:dark){{.rg circle{{fill:{}}}}}".format(
    *SIDES["source"]
)
"""Dots are coloured as a source's words are."""


def _named(name: str, x: float, y: float, taken: list[Box]) -> list[str]:
    """The name of a dot at one of four places beside it; none if other names and dots leave no room."""
    wide = extent(name, FONT)
    for left, base, anchor in _beside(x, y, wide):
        box = (left, base - FONT * 0.8, left + wide, base + FONT * 0.2)
        if left < 0 or left + wide > WIDTH or any(_touch(box, other) for other in taken):
            continue
        taken.append(box)
        at = {"start": left, "end": left + wide, "middle": left + wide / 2}[anchor]
        if right_to_left(name) and anchor != "middle":  # "start" is the right end of such a text
            anchor = {"start": "end", "end": "start"}[anchor]
        way = "rtl" if right_to_left(name) else "ltr"
        label = f'<text class="rg-word" x="{n(at)}" y="{n(base)}" text-anchor="{anchor}" direction="{way}">'
        return [f"{label}{text(name)}</text>"]
    return []


def _beside(x: float, y: float, wide: float) -> Iterator[tuple[float, float, str]]:
    yield x + 6, y + 4, "start"
    yield x - 6 - wide, y + 4, "end"
    yield x - wide / 2, y - 7, "middle"
    yield x - wide / 2, y + 15, "middle"


def _touch(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _put(cells: list[list[str]], row: int, column: int, name: Sequence[str]) -> bool:
    """A dot and a name where all its cells are free: behind or before the dot, on its line or on the next ones."""
    wide = sum(map(cell_len, name))
    for line in (row, row + 1, row - 1):
        for start, spelled in ((column, [DOT, *name]), (column - wide, [*name, DOT])):
            whole = range(start - 1, start + wide + 2)  # with a gap before and after
            if not 0 <= line < len(cells) or start < 0 or start + wide >= len(cells[line]):
                continue
            if any(cells[line][i] != " " for i in whole if 0 <= i < len(cells[line])):
                continue
            for char in spelled:
                cells[line][start : start + cell_len(char)] = [char] + [""] * (cell_len(char) - 1)
                start += cell_len(char)
            return True
    return False
