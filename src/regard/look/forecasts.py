"""A forecast as a picture: the past, what is expected, and the interval around it, a panel for each column."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.look import chart
from regard.look.chart import Axis, Curve, Linear
from regard.look.svg import UNIT, document
from regard.look.terminal import padded
from regard.look.tokens import cut, visible

PAST, EXPECTED, INSIDE = "•", "*", "░"
HEIGHT = 12
"""lines of a panel in a terminal"""
WIDEST = 100
TICKS = 5
"""times that are written along an axis, at most"""


@dataclass(frozen=True)
class Times(Axis):
    """Rows that are a step apart, with the times that some of them have.

    >>> Times("date", ("09:00", "10:00", "11:00")).ticks((0, 2))
    [(0, '09:00'), (1, '10:00'), (2, '11:00')]
    """

    labels: Sequence[str] = ()

    def ends(self, numbers: Sequence[float]) -> tuple[float, float]:
        return min(numbers), max(max(numbers), min(numbers) + 1)

    def share(self, number: float, ends: tuple[float, float]) -> float:
        return (number - ends[0]) / (ends[1] - ends[0])

    def ticks(self, ends: tuple[float, float]) -> list[tuple[float, str]]:
        last = len(self.labels) - 1
        step = max(1, math.ceil(last / (TICKS - 1)))
        return [(i, self.labels[i]) for i in range(0, last + 1, step)]

    def fits(self, number: float) -> bool:
        return math.isfinite(number)


@dataclass(frozen=True)
class Panel:
    """One column: its past, and what is expected of it.

    >>> panel = Panel("load", (1.0, 2.0), (3.0,), (2.5,), (3.5,))
    >>> [curve.label for curve in panel.curves()]
    ['past', 'expected']
    """

    name: str
    past: Sequence[float]
    expected: Sequence[float]
    lower: Sequence[float]
    upper: Sequence[float]

    def curves(self) -> tuple[Curve, Curve]:
        """The past, and a curve that begins where it ends."""
        now, ahead = len(self.past), len(self.expected)
        last = list(self.past[-1:])
        x = list(range(now - len(last), now + ahead))
        ends = ([*last, *side] for side in (self.expected, self.lower, self.upper))
        return Curve("past", range(now), list(self.past)), Curve("expected", x, *ends)


@dataclass(frozen=True)
class ForecastView:
    """What is expected to come after a past, in a picture.

    >>> panel = Panel("load", (1.0, 2.0, 3.0, 2.0), (1.0, 2.0), (0.5, 1.0), (1.5, 3.0))
    >>> view = ForecastView("load", "row", tuple("123456"), (panel,), 0.8)
    >>> print(view.text(width=30, height=3))
    load, 80 % interval
    3 |          •              ░
    2 |     •         •    ░    *
    1 |•                   *    ░
      +--------------------------
       1         3         5
    • past   * expected   ░ interval
    """

    title: str
    time: str
    """the name of the column with times"""
    times: tuple[str, ...]
    """of the past and of what is expected, as they are written"""
    panels: tuple[Panel, ...]
    level: float

    def svg(self) -> str:
        """The picture as one SVG text; it needs no other file."""
        axis = Times(self.time, tuple(_brief(self.times)))
        drawn = [chart.chart(panel.curves(), self.heading(panel), axis, Linear(panel.name)) for panel in self.panels]
        if len(drawn) == 1:
            return drawn[0]
        sizes = [[float(part.split('"')[1]) for part in one.split(" viewBox")[0].split(" ")[2:4]] for one in drawn]
        parts, y = [], 0.0
        for one, (_, height) in zip(drawn, sizes, strict=True):
            parts.append(one.replace("<svg ", f'<svg y="{y:g}" ', 1))
            y += height + UNIT
        said = " ".join(f"{visible(panel.name)}: {_said(panel)}" for panel in self.panels)
        return document(max(width for width, _ in sizes), y, self.title, said, parts)

    def heading(self, panel: Panel) -> str:
        """What a panel shows."""
        return f"{panel.name}, {100 * self.level:g} % interval"

    def text(self, width: int | None = None, height: int = HEIGHT) -> str:
        """The picture in characters, a panel after the other."""
        width = shutil.get_terminal_size().columns if width is None else width
        lines = [line for panel in self.panels for line in self._panel(panel, width, height)]
        return "\n".join([*lines, f"{PAST} past   {EXPECTED} expected   {INSIDE} interval"])

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        parts = ("past", "expected", "lower", "upper")
        panels = [{"name": p.name, **{part: list(getattr(p, part)) for part in parts}} for p in self.panels]
        return {"title": self.title, "times": list(self.times), "level": self.level, "columns": panels}

    def _repr_html_(self) -> str:
        return self.svg()

    def _panel(self, panel: Panel, width: int, height: int) -> list[str]:
        values = [*panel.past, *panel.expected]
        axis = Linear(panel.name)
        ends = axis.ends([*values, *panel.lower, *panel.upper])
        labels = {round((1 - axis.share(number, ends)) * (height - 1)): label for number, label in axis.ticks(ends)}
        margin = max((len(label) for label in labels.values()), default=0)
        room = max(10, min(width - margin - 3, WIDEST))
        cells = [[" "] * room for _ in range(height)]

        def row(number: float) -> int:
            return round((1 - axis.share(number, ends)) * (height - 1))

        for i, value in enumerate(values):
            column = round(i * (room - 1) / max(1, len(values) - 1))
            ahead = i - len(panel.past)
            if ahead >= 0:
                for inside in range(row(panel.upper[ahead]), row(panel.lower[ahead]) + 1):
                    cells[inside][column] = INSIDE if cells[inside][column] == " " else cells[inside][column]
            cells[row(value)][column] = PAST if ahead < 0 else EXPECTED
        lines = [cut(visible(self.heading(panel)), width)]
        lines += [
            f"{padded(labels.get(at, ''), margin, 'right')} |{''.join(line)}".rstrip() for at, line in enumerate(cells)
        ]
        return [*lines, f"{' ' * margin} +{'-' * room}", f"{' ' * margin}  {self._below(room)}"]

    def _below(self, room: int) -> str:
        """Times under the axis; one that would touch another, or stand over the edge, is left out."""
        brief, below = _brief(self.times), [" "] * room
        for i, label in Times(self.time, brief).ticks((0, 1)):
            at = round(i * (room - 1) / max(1, len(brief) - 1))
            if at + len(label) <= room and not "".join(below[max(0, at - 1) : at + len(label) + 1]).strip():
                below[at : at + len(label)] = label
        return "".join(below).rstrip()


def _brief(times: Sequence[str]) -> list[str]:
    """Times without minutes and seconds, if none of them has any."""
    if all(time.endswith(":00:00") for time in times):
        return [f"{time.removesuffix(':00:00')}h" for time in times]
    return list(times)


def _said(panel: Panel) -> str:
    return f"{panel.past[-1]:.3g} now, {panel.expected[-1]:.3g} at the end." if len(panel.past) else "no past."
