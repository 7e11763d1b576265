"""Line chart: curves over a linear or logarithmic axis, as SVG, in characters in a terminal, as a dict.

Each curve has a color, a dash pattern and its name at its end, so that color is not all that distinguishes them.
"""

from __future__ import annotations

import math
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from regard.look.svg import STYLE, UNIT, coord, document, escape_text, text_element, text_width
from regard.look.terminal import pad_cells
from regard.look.tokens import make_visible, truncate
from regard.look.view import View

WIDTH, HEIGHT, LEFT, TOP = 560, 320, 64, 64
"""Size and position of the plot area."""
LINE_COLORS = (
    ("#0B62B8", "#6CB6FF"), ("#B35900", "#FFB454"), ("#00785A", "#57D9A3"), ("#6B3FA0", "#C7A6FF"),
    ("#B42318", "#FF8A80"), ("#0F6E84", "#5CC8DE"), ("#A8326E", "#FF9AC8"), ("#57606A", "#9DA7B3"),
)  # fmt: skip
"""Colors of curves on a light and on a dark page."""
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4", "12 4", "1 4", "6 2 1 2 1 2")
DOTS = 16
"""most points of a curve that get a dot and a tooltip"""
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SEVERAL = "*"
"""marks a cell with points of several curves"""
MAX_COLUMNS = 100
"""most terminal columns of a chart"""


@dataclass(frozen=True)
class Curve:
    """One line of a chart: points in the order of x."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    """lower end of an interval around each point; empty: no intervals"""
    high: Sequence[float] = ()

    def __post_init__(self) -> None:
        sizes = len(self.x), len(self.y)
        if len({*sizes, len(self.low) or sizes[0], len(self.high) or sizes[0]}) > 1:
            raise ValueError(f"{self.label}: {sizes[0]} x for {sizes[1]} y, {len(self.low)} low, {len(self.high)} high")


@dataclass(frozen=True)
class Axis(ABC):
    """Maps a number to a fraction of the axis, and places the ticks."""

    title: str

    @abstractmethod
    def limits(self, numbers: Sequence[float]) -> tuple[float, float]:
        """Start and end of the axis for these numbers."""

    @abstractmethod
    def fraction(self, number: float, limits: tuple[float, float]) -> float:
        """From 0 at the start to 1 at the end."""

    @abstractmethod
    def ticks(self, limits: tuple[float, float]) -> list[tuple[float, str]]:
        """Numbers along the axis and their labels."""

    def accepts(self, number: float) -> bool:
        """Whether the axis has a position for a number."""
        return math.isfinite(number)


class LinearAxis(Axis):
    """Linear axis."""

    def limits(self, numbers: Sequence[float]) -> tuple[float, float]:
        low, high = min(numbers), max(numbers)
        if high > low:
            return low, high
        start = low - 0.5 if low < 0 else max(0.0, low - 0.5)  # no axis below 0 for numbers that are not
        return start, start + 1.0

    def fraction(self, number: float, limits: tuple[float, float]) -> float:
        return (number - limits[0]) / (limits[1] - limits[0])

    def ticks(self, limits: tuple[float, float]) -> list[tuple[float, str]]:
        rough = (limits[1] - limits[0]) / 6
        power = 10 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
        first, last = math.ceil(limits[0] / step - 1e-9), math.floor(limits[1] / step + 1e-9)
        return [(i * step, f"{i * step:.10g}") for i in range(first, last + 1)]


class LogAxis(Axis):
    """Logarithmic axis of the numbers above 0."""

    def limits(self, numbers: Sequence[float]) -> tuple[float, float]:
        low, high = min(numbers), max(numbers)
        if math.log10(high) - math.log10(low) < 1:  # room for two powers of ten
            low, high = 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high) + 1e-12)
            high = high if high > low else 10 * low
        return low, high

    def fraction(self, number: float, limits: tuple[float, float]) -> float:
        low, high = map(math.log10, limits)
        return (math.log10(number) - low) / (high - low)

    def ticks(self, limits: tuple[float, float]) -> list[tuple[float, str]]:
        low, high = math.ceil(math.log10(limits[0]) - 1e-9), math.floor(math.log10(limits[1]) + 1e-9)
        step = max(1, math.ceil((high - low) / 7))
        powers = [power for power in range(low, high + 1) if power % step == 0]
        return [(float(f"1e{power}"), _power_label(power)) for power in powers]

    def accepts(self, number: float) -> bool:
        return math.isfinite(number) and number > 0


def _power_label(power: int) -> str:
    raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return {0: "1", 1: "10"}.get(power, f"10{raised}")


@dataclass(frozen=True)
class LineChart(View):
    """Curves over the same axes, such as score against length.

    >>> lines = (Curve("gru", (0, 10), (30.0, 10.0)), Curve("lstm", (0, 10), (20.0, 10.0)))
    >>> print(LineChart("by length", LinearAxis("words"), LinearAxis("BLEU"), lines).text(width=32, height=5))
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
    curves: Sequence[Curve]

    def svg(self) -> str:
        """The chart as SVG, each curve with its name at its end."""
        area = PlotArea(self.curves, self.x, self.y)
        names = max((text_width(_short(curve.label), 12) for curve in self.curves), default=0.0)
        width = max(LEFT + WIDTH + UNIT * 4 + names, text_width(self.title, 14) + UNIT * 2) + UNIT * 2
        parts = [text_element(UNIT * 2, UNIT * 3, make_visible(self.title), "rg-head"), *_frame(area)]
        for i, curve in enumerate(self.curves):
            parts += _line(area, curve, i % len(LINE_COLORS))
        parts += _names(area)
        summary = f"{self.y.title} against {self.x.title}. {' '.join(_summary(curve) for curve in self.curves)}"
        return document(width, TOP + HEIGHT + UNIT * 7, self.title, summary, parts, CHART_STYLE)

    def text(self, width: int | None = None, height: int = 16) -> str:
        """The chart in characters: a letter per point, and the names of the letters below."""
        return _characters(self, shutil.get_terminal_size().columns if width is None else width, height)

    def to_dict(self) -> dict[str, Any]:
        parts = ("x", "y", "low", "high")
        curves = [{"label": c.label, **{part: list(getattr(c, part)) for part in parts}} for c in self.curves]
        return {"title": self.title, "x": self.x.title, "y": self.y.title, "curves": curves}


@dataclass(frozen=True)
class PlotArea:
    """Positions of the points of some curves."""

    curves: Sequence[Curve]
    x: Axis
    y: Axis

    def points(self, curve: Curve) -> list[tuple[float, float]]:
        """The points of a curve that have a position on both axes."""
        return [(x, y) for x, y in zip(curve.x, curve.y) if self.x.accepts(x) and self.y.accepts(y)]

    @cached_property
    def limits(self) -> tuple[tuple[float, float], tuple[float, float]]:
        points = [point for curve in self.curves for point in self.points(curve)]
        bounds = [b for c in self.curves for b in (*c.low, *c.high) if self.y.accepts(b)]
        xs, ys = [x for x, _ in points], [y for _, y in points] + bounds
        return self.x.limits(xs or [1.0]), self.y.limits(ys or [1.0])

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Coordinates of a point in the SVG."""
        across, up = self.x.fraction(x, self.limits[0]), self.y.fraction(y, self.limits[1])
        return LEFT + across * WIDTH, TOP + (1 - up) * HEIGHT


def _frame(area: PlotArea) -> list[str]:
    parts = [f'<rect class="rg-frame" x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}"/>']
    for number, label in area.x.ticks(area.limits[0]):
        x = LEFT + area.x.fraction(number, area.limits[0]) * WIDTH
        parts.append(f'<path class="rg-grid" d="M{coord(x)} {TOP}V{TOP + HEIGHT}"/>')
        parts.append(text_element(x, TOP + HEIGHT + UNIT * 2, label, "rg-muted", "middle"))
    for number, label in area.y.ticks(area.limits[1]):
        y = TOP + (1 - area.y.fraction(number, area.limits[1])) * HEIGHT
        parts.append(f'<path class="rg-grid" d="M{LEFT} {coord(y)}H{LEFT + WIDTH}"/>')
        parts.append(text_element(LEFT - UNIT, y + 4, label, "rg-muted", "end"))
    below = TOP + HEIGHT + UNIT * 4.5
    parts.append(text_element(LEFT + WIDTH / 2, below, make_visible(area.x.title), "rg-axis", "middle"))
    parts.append(text_element(LEFT, TOP - UNIT, make_visible(area.y.title), "rg-axis"))
    return parts


def _line(area: PlotArea, curve: Curve, hue: int) -> list[str]:
    parts = []
    if len(curve.low):
        ends = zip(curve.x, curve.low, curve.high)
        bounds = [(x, a, b) for x, a, b in ends if area.y.accepts(a) and area.y.accepts(b)]
        around = [area.at(x, high) for x, _, high in bounds] + [area.at(x, low) for x, low, _ in reversed(bounds)]
        parts.append(f'<path class="rg-band rg-fill-{hue}" d="{_path(around)}Z"/>')
    points = area.points(curve)
    dash = f' stroke-dasharray="{DASHES[hue]}"' if DASHES[hue] else ""
    parts.append(f'<path class="rg-line rg-hue-{hue}"{dash} d="{_path([area.at(*point) for point in points])}"/>')
    for x, y in points[:: max(1, math.ceil(len(points) / DOTS))]:
        across, down = area.at(x, y)
        tooltip = escape_text(f"{make_visible(curve.label)}, {x:g}: {y:.3g}")
        place = f'cx="{coord(across)}" cy="{coord(down)}" r="2.5"'
        parts.append(f'<circle class="rg-fill-{hue}" {place}><title>{tooltip}</title></circle>')
    return parts


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "".join(f"{'L' if i else 'M'}{coord(x)} {coord(y)}" for i, (x, y) in enumerate(points))


def _names(area: PlotArea) -> list[str]:
    """Names at the ends of the curves, spread where they would overlap, each with a thin line to its curve."""
    ends = [(area.at(*points[-1]), i) for i, c in enumerate(area.curves) if (points := area.points(c))]
    ends.sort(key=lambda end: end[0][1])
    places = spread_labels([y for (_, y), _ in ends], 16.0, TOP + 6.0, TOP + HEIGHT + 0.0)
    parts, x = [], LEFT + WIDTH + UNIT * 3
    for ((left, y), i), place in zip(ends, places):
        hue = i % len(LINE_COLORS)
        path = f"M{coord(left + 4)} {coord(y)}L{coord(x - 4)} {coord(place)}"
        parts.append(f'<path class="rg-lead rg-hue-{hue}" d="{path}"/>')
        parts.append(text_element(x, place + 4, _short(area.curves[i].label), f"rg-name rg-fill-{hue}"))
    return parts


def spread_labels(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions of labels in the same order, at least `gap` apart, as near to their places as possible."""
    found: list[float] = []
    for place in places:
        found.append(max(place, low, found[-1] + gap if found else low))
    limit = high
    for i in reversed(range(len(found))):  # back from the lower edge, unless there is no room at all
        found[i] = max(min(found[i], limit), low + i * gap)
        limit = found[i] - gap
    return found


def _short(label: str) -> str:
    return truncate(make_visible(label), 28)


def _summary(curve: Curve) -> str:
    if not len(curve.x):
        return f"{make_visible(curve.label)}: no points."
    first, last = (f"{curve.y[i]:.3g} at {curve.x[i]:g}" for i in (0, -1))
    return f"{make_visible(curve.label)}: from {first} to {last}."


def _color_rules(scheme: int) -> str:
    return "".join(
        f".rg .rg-hue-{i}{{stroke:{pair[scheme]}}}.rg .rg-fill-{i}{{fill:{pair[scheme]}}}"
        for i, pair in enumerate(LINE_COLORS)
    )


CHART_STYLE = (
    STYLE
    + ".rg .rg-line{fill:none;stroke-width:2;stroke-linejoin:round}.rg .rg-lead{fill:none;stroke-width:1;opacity:.5}"
    ".rg .rg-band{opacity:.14}.rg .rg-frame{fill:none;stroke:#8A94A0;stroke-opacity:.5}"
    ".rg .rg-grid{fill:none;stroke:#8A94A0;stroke-opacity:.22}.rg .rg-axis{font-size:12px;font-weight:600}"
    + _color_rules(0)
    + f"@media (prefers-color-scheme:dark){{{_color_rules(1)}}}"
)
"""The style of heat maps, and that of curves."""


def _characters(chart: LineChart, width: int, height: int) -> str:
    area = PlotArea(chart.curves, chart.x, chart.y)
    x_limits, y_limits = area.limits
    labels = [(1 - chart.y.fraction(number, y_limits), label) for number, label in chart.y.ticks(y_limits)]
    margin = max((len(label) for _, label in labels), default=0) + 2
    columns = max(10, min(width - margin - 3, MAX_COLUMNS))
    cells = [[" "] * columns for _ in range(height)]
    for i, curve in enumerate(chart.curves):
        for x, y in area.points(curve):
            row = round((1 - chart.y.fraction(y, y_limits)) * (height - 1))
            column = round(chart.x.fraction(x, x_limits) * (columns - 1))
            cells[row][column] = LETTERS[i % len(LETTERS)] if cells[row][column] == " " else SEVERAL
    tick_rows = {round(down * (height - 1)): label for down, label in labels}
    lines = [truncate(make_visible(chart.title), width), truncate(make_visible(chart.y.title), width)]
    for row in range(height):
        lines.append(f"{pad_cells(tick_rows.get(row, ''), margin, 'right')} |{''.join(cells[row])}".rstrip())
    edge, ticks = " " * (margin + 1), _tick_line(chart.x, x_limits, columns)
    lines += [f"{edge}+{'-' * columns}", f"{edge} {ticks}", f"{edge} {make_visible(chart.x.title)}"]
    names = [f"{LETTERS[i % len(LETTERS)]} {make_visible(curve.label)}" for i, curve in enumerate(chart.curves)]
    if any(SEVERAL in row for row in cells):
        names.append(f"{SEVERAL} several")
    return "\n".join([*lines, "   ".join(names)])


def _tick_line(axis: Axis, limits: tuple[float, float], columns: int) -> str:
    """The numbers under the axis, without those that would touch another."""
    line = [" "] * (columns + 8)
    for number, label in axis.ticks(limits):
        at = round(axis.fraction(number, limits) * (columns - 1))
        if not "".join(line[max(0, at - 1) : at + len(label) + 1]).strip():
            line[at : at + len(label)] = label
    return "".join(line).rstrip()
