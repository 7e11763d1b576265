"""Forecast view: past values, forecast and prediction interval, one panel per column."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.look.chart import MAX_COLUMNS, Curve, LinearAxis, LineChart
from regard.look.svg import UNIT, document
from regard.look.terminal import pad_cells
from regard.look.tokens import make_visible, truncate
from regard.look.view import View

PAST, EXPECTED, INSIDE = "•", "*", "░"
HEIGHT = 12
"""terminal lines of a panel"""
TICKS = 5
"""most labels along the time axis"""


@dataclass(frozen=True)
class TimeAxis(LinearAxis):
    """Time axis of equally spaced rows, some of them labeled.

    >>> TimeAxis("date", ("09:00", "10:00", "11:00")).ticks((0, 2))
    [(0, '09:00'), (1, '10:00'), (2, '11:00')]
    """

    labels: Sequence[str] = ()

    def limits(self, numbers: Sequence[float]) -> tuple[float, float]:
        return min(numbers), max(max(numbers), min(numbers) + 1)

    def ticks(self, limits: tuple[float, float]) -> list[tuple[float, str]]:
        last = len(self.labels) - 1
        step = max(1, math.ceil(last / (TICKS - 1)))
        return [(i, self.labels[i]) for i in range(0, last + 1, step)]


@dataclass(frozen=True)
class Panel:
    """One column: past values, forecast, and bounds of the interval."""

    name: str
    past: Sequence[float]
    expected: Sequence[float]
    lower: Sequence[float]
    upper: Sequence[float]

    def curves(self) -> tuple[Curve, Curve]:
        """The past, and the forecast that continues from its last value."""
        now, ahead = len(self.past), len(self.expected)
        last = list(self.past[-1:])
        x = list(range(now - len(last), now + ahead))
        ends = ([*last, *side] for side in (self.expected, self.lower, self.upper))
        return Curve("past", range(now), list(self.past)), Curve("expected", x, *ends)


@dataclass(frozen=True)
class ForecastView(View):
    """Forecast view of one or more columns.

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
    """name of the time column"""
    times: tuple[str, ...]
    """labels of the past and the forecast rows"""
    panels: tuple[Panel, ...]
    level: float

    def svg(self) -> str:
        """The panels as one self-contained SVG text."""
        axis = TimeAxis(self.time, tuple(_short_times(self.times)))
        charts = [LineChart(self.heading(p), axis, LinearAxis(p.name), p.curves()).svg() for p in self.panels]
        if len(charts) == 1:
            return charts[0]
        sizes = [[float(part.split('"')[1]) for part in one.split(" viewBox")[0].split(" ")[2:4]] for one in charts]
        parts, y = [], 0.0
        for one, (_, height) in zip(charts, sizes, strict=True):
            parts.append(one.replace("<svg ", f'<svg y="{y:g}" ', 1))
            y += height + UNIT
        summary = " ".join(f"{make_visible(panel.name)}: {_summary(panel)}" for panel in self.panels)
        return document(max(width for width, _ in sizes), y, self.title, summary, parts)

    def heading(self, panel: Panel) -> str:
        """Title of a panel."""
        return f"{panel.name}, {100 * self.level:g} % interval"

    def text(self, width: int | None = None, height: int = HEIGHT) -> str:
        """The panels in characters, one below the other."""
        width = shutil.get_terminal_size().columns if width is None else width
        lines = [line for panel in self.panels for line in self._panel(panel, width, height)]
        return "\n".join([*lines, f"{PAST} past   {EXPECTED} expected   {INSIDE} interval"])

    def to_dict(self) -> dict[str, Any]:
        parts = ("past", "expected", "lower", "upper")
        panels = [{"name": p.name, **{part: list(getattr(p, part)) for part in parts}} for p in self.panels]
        about = {"title": self.title, "time": self.time, "times": list(self.times), "level": self.level}
        return {**about, "columns": panels}

    def _panel(self, panel: Panel, width: int, height: int) -> list[str]:
        values = [*panel.past, *panel.expected]
        axis = LinearAxis(panel.name)
        limits = axis.limits([*values, *panel.lower, *panel.upper])

        def row(number: float) -> int:
            return round((1 - axis.fraction(number, limits)) * (height - 1))

        labels = {row(number): label for number, label in axis.ticks(limits)}
        margin = max((len(label) for label in labels.values()), default=0)
        columns = max(10, min(width - margin - 3, MAX_COLUMNS))
        cells = [[" "] * columns for _ in range(height)]
        for i, value in enumerate(values):
            column = round(i * (columns - 1) / max(1, len(values) - 1))
            ahead = i - len(panel.past)
            if ahead >= 0:
                for inside in range(row(panel.upper[ahead]), row(panel.lower[ahead]) + 1):
                    cells[inside][column] = INSIDE if cells[inside][column] == " " else cells[inside][column]
            cells[row(value)][column] = PAST if ahead < 0 else EXPECTED
        lines = [truncate(make_visible(self.heading(panel)), width)]
        for i, line in enumerate(cells):
            lines.append(f"{pad_cells(labels.get(i, ''), margin, 'right')} |{''.join(line)}".rstrip())
        return [*lines, f"{' ' * margin} +{'-' * columns}", f"{' ' * margin}  {self._time_line(columns)}"]

    def _time_line(self, columns: int) -> str:
        """Times under the axis, without those that would touch another or the edge."""
        labels, line = _short_times(self.times), [" "] * columns
        for i, label in TimeAxis(self.time, labels).ticks((0, 1)):
            at = round(i * (columns - 1) / max(1, len(labels) - 1))
            if at + len(label) <= columns and not "".join(line[max(0, at - 1) : at + len(label) + 1]).strip():
                line[at : at + len(label)] = label
        return "".join(line).rstrip()


def _short_times(times: Sequence[str]) -> list[str]:
    """Times without minutes and seconds, if all of these are 0."""
    if all(time.endswith(":00:00") for time in times):
        return [f"{time.removesuffix(':00:00')}h" for time in times]
    return list(times)


def _summary(panel: Panel) -> str:
    return f"{panel.past[-1]:.3g} now, {panel.expected[-1]:.3g} at the end." if len(panel.past) else "no past."
