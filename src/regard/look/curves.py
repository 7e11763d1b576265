"""Curves as plain data that draw themselves: as SVG by chart.py, in characters in a terminal, as a dict."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import Any

from regard.look import chart
from regard.look.chart import Axis, Curve, Field
from regard.look.terminal import padded
from regard.look.tokens import cut, visible

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SEVERAL = "*"
"""stands where the points of several curves fall together"""
WIDEST = 100
"""columns of a terminal that curves are spread over, at most"""


@dataclass(frozen=True)
class CurvesView:
    """Curves over the same axes: score against length, time against length.

    >>> from regard.look.chart import Linear
    >>> lines = (Curve("gru", (0, 10), (30.0, 10.0)), Curve("lstm", (0, 10), (20.0, 10.0)))
    >>> print(CurvesView("by length", Linear("words"), Linear("BLEU"), lines).text(width=32, height=5))
    by length
    BLEU
      30 |a
      25 |
      20 |b
      15 |
      10 |                        *
         +-------------------------
          0    2    4   6    8    10
          words
    a gru   b lstm   * several
    """

    title: str
    x: Axis
    y: Axis
    curves: tuple[Curve, ...]

    def svg(self) -> str:
        """The picture as one SVG text; it needs no other file."""
        return chart.chart(self.curves, self.title, self.x, self.y)

    def text(self, width: int | None = None, height: int = 16) -> str:
        """The picture in characters: a letter a point, and whose letter it is below."""
        return _characters(self, shutil.get_terminal_size().columns if width is None else width, height)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        parts = ("x", "y", "low", "high")
        curves = [{"label": c.label, **{part: list(getattr(c, part)) for part in parts}} for c in self.curves]
        return {"title": self.title, "x": self.x.title, "y": self.y.title, "curves": curves}

    def _repr_html_(self) -> str:
        return self.svg()


def _characters(view: CurvesView, width: int, height: int) -> str:
    field = Field(view.curves, view.x, view.y)
    across_ends, up_ends = field.ends
    labels = [(1 - view.y.share(number, up_ends), label) for number, label in view.y.ticks(up_ends)]
    margin = max((len(label) for _, label in labels), default=0) + 2
    room = max(10, min(width - margin - 3, WIDEST))
    cells = [[" "] * room for _ in range(height)]
    for i, curve in enumerate(view.curves):
        for x, y in field.points(curve):
            row = round((1 - view.y.share(y, up_ends)) * (height - 1))
            column = round(view.x.share(x, across_ends) * (room - 1))
            cells[row][column] = LETTERS[i % len(LETTERS)] if cells[row][column] == " " else SEVERAL
    beside = {round(down * (height - 1)): label for down, label in labels}
    lines = [cut(visible(view.title), width), cut(visible(view.y.title), width)]
    lines += [
        f"{padded(beside.get(row, ''), margin, 'right')} |{''.join(cells[row])}".rstrip() for row in range(height)
    ]
    edge = " " * (margin + 1)
    lines += [f"{edge}+{'-' * room}", f"{edge} {_ticks(view, across_ends, room)}", f"{edge} {visible(view.x.title)}"]
    names = [f"{LETTERS[i % len(LETTERS)]} {visible(curve.label)}" for i, curve in enumerate(view.curves)]
    if any(SEVERAL in row for row in cells):
        names.append(f"{SEVERAL} several")
    return "\n".join([*lines, "   ".join(names)])


def _ticks(view: CurvesView, ends: tuple[float, float], room: int) -> str:
    """The numbers under the axis; one that would touch another is left out."""
    below = [" "] * (room + 8)
    for number, label in view.x.ticks(ends):
        at = round(view.x.share(number, ends) * (room - 1))
        if not "".join(below[max(0, at - 1) : at + len(label) + 1]).strip():
            below[at : at + len(label)] = label
    return "".join(below).rstrip()
