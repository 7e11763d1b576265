"""Curves in one picture, with a linear or a logarithmic axis: one SVG text, light or dark as the reader's screen is.

Each curve has a colour, a dash and its name at its end, so that colour is never all that tells them apart.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from regard.look.svg import STYLE, UNIT, document, extent, n, text, written
from regard.look.tokens import cut, visible

WIDTH, HEIGHT, LEFT, TOP = 560, 320, 64, 64
"""Of the field in which curves are drawn, and where it begins."""
HUES = (
    ("#0B62B8", "#6CB6FF"), ("#B35900", "#FFB454"), ("#00785A", "#57D9A3"), ("#6B3FA0", "#C7A6FF"),
    ("#B42318", "#FF8A80"), ("#0F6E84", "#5CC8DE"), ("#A8326E", "#FF9AC8"), ("#57606A", "#9DA7B3"),
)  # fmt: skip
"""Colours of curves on a light and on a dark page."""
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4", "12 4", "1 4", "6 2 1 2 1 2")
DOTS = 16
"""points of a curve that get a dot and a tooltip; of a longer curve some do"""


@dataclass(frozen=True)
class Curve:
    """Points that belong together, in the order of x.

    >>> Curve("lstm", (0, 1, 2), (1.0, 0.5, 0.25)).label
    'lstm'
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    """lower end of an interval around each point; none: no intervals"""
    high: Sequence[float] = ()

    def __post_init__(self) -> None:
        sizes = len(self.x), len(self.y)
        if len({*sizes, len(self.low) or sizes[0], len(self.high) or sizes[0]}) > 1:
            raise ValueError(f"{self.label}: {sizes[0]} x for {sizes[1]} y, {len(self.low)} low, {len(self.high)} high")


@dataclass(frozen=True)
class Axis(ABC):
    """From a number to a share of the way, and what is written along it."""

    title: str

    @abstractmethod
    def ends(self, numbers: Sequence[float]) -> tuple[float, float]:
        """Where the axis begins and ends for these numbers."""

    @abstractmethod
    def share(self, number: float, ends: tuple[float, float]) -> float:
        """From 0 at the beginning to 1 at the end."""

    @abstractmethod
    def ticks(self, ends: tuple[float, float]) -> list[tuple[float, str]]:
        """Numbers that are written along the axis, and how."""

    @abstractmethod
    def fits(self, number: float) -> bool:
        """Whether a number has a place on this axis."""


class Linear(Axis):
    """Equal steps.

    >>> Linear("words").ticks((0, 20))
    [(0, '0'), (5, '5'), (10, '10'), (15, '15'), (20, '20')]
    """

    def ends(self, numbers: Sequence[float]) -> tuple[float, float]:
        low, high = min(numbers), max(numbers)
        if high > low:
            return low, high
        start = low - 0.5 if low < 0 else max(0.0, low - 0.5)  # what is never below 0 has no axis there
        return start, start + 1.0

    def share(self, number: float, ends: tuple[float, float]) -> float:
        return (number - ends[0]) / (ends[1] - ends[0])

    def ticks(self, ends: tuple[float, float]) -> list[tuple[float, str]]:
        rough = (ends[1] - ends[0]) / 6
        power = 10 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
        first, last = math.ceil(ends[0] / step - 1e-9), math.floor(ends[1] / step + 1e-9)
        found = [i * step for i in range(first, last + 1)]
        return [(number, f"{number:.10g}") for number in found]

    def fits(self, number: float) -> bool:
        return math.isfinite(number)


class Logarithmic(Axis):
    """Equal factors; what is not above 0 has no place.

    >>> Logarithmic("norm").ticks((0.02, 3.0))
    [(0.1, '10⁻¹'), (1.0, '1')]
    """

    def ends(self, numbers: Sequence[float]) -> tuple[float, float]:
        low, high = min(numbers), max(numbers)
        if math.log10(high) - math.log10(low) < 1:  # room for two powers of ten
            low, high = 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high) + 1e-12)
            high = high if high > low else 10 * low
        return low, high

    def share(self, number: float, ends: tuple[float, float]) -> float:
        low, high = map(math.log10, ends)
        return (math.log10(number) - low) / (high - low)

    def ticks(self, ends: tuple[float, float]) -> list[tuple[float, str]]:
        low, high = math.ceil(math.log10(ends[0]) - 1e-9), math.floor(math.log10(ends[1]) + 1e-9)
        step = max(1, math.ceil((high - low) / 7))
        powers = [power for power in range(low, high + 1) if power % step == 0]
        return [(float(f"1e{power}"), _power(power)) for power in powers]

    def fits(self, number: float) -> bool:
        return math.isfinite(number) and number > 0


def _power(power: int) -> str:
    raised = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return {0: "1", 1: "10"}.get(power, f"10{raised}")


def chart(curves: Sequence[Curve], title: str, x: Axis, y: Axis) -> str:
    """A picture of some curves, each with its name at its end.

    >>> drawn = chart([Curve("lstm", (0, 1), (1.0, 0.1))], "decay", Linear("distance"), Logarithmic("norm"))
    >>> drawn.startswith("<svg xmlns"), "<title>lstm, 1: 0.1</title>" in drawn
    (True, True)
    """
    field = Field(curves, x, y)
    names = max((extent(_short(curve.label), 12) for curve in curves), default=0.0)
    width = max(LEFT + WIDTH + UNIT * 4 + names, extent(title, 14) + UNIT * 2) + UNIT * 2
    parts = [written(UNIT * 2, UNIT * 3, visible(title), "rg-head"), *_frame(field)]
    for i, curve in enumerate(curves):
        parts += _drawn(field, curve, i % len(HUES))
    parts += _names(field)
    said = " ".join(_said(curve) for curve in curves)
    return document(width, TOP + HEIGHT + UNIT * 7, title, f"{y.title} against {x.title}. {said}", parts, CURVES)


@dataclass(frozen=True)
class Field:
    """Where the points of some curves lie.

    >>> Field([Curve("a", (0, 1), (0.0, 2.0))], Linear("x"), Linear("y")).at(1, 2.0)
    (624.0, 64.0)
    """

    curves: Sequence[Curve]
    x: Axis
    y: Axis

    def points(self, curve: Curve) -> list[tuple[float, float]]:
        """Of a curve those that have a place on both axes."""
        return [(x, y) for x, y in zip(curve.x, curve.y) if self.x.fits(x) and self.y.fits(y)]

    @cached_property
    def ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        found = [point for curve in self.curves for point in self.points(curve)]
        bounds = [b for c in self.curves for b in (*c.low, *c.high) if self.y.fits(b)]
        xs, ys = [x for x, _ in found], [y for _, y in found] + bounds
        return self.x.ends(xs or [1.0]), self.y.ends(ys or [1.0])

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a point is drawn."""
        across, up = self.x.share(x, self.ends[0]), self.y.share(y, self.ends[1])
        return LEFT + across * WIDTH, TOP + (1 - up) * HEIGHT


def _frame(field: Field) -> list[str]:
    parts = [f'<rect class="rg-frame" x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}"/>']
    for number, label in field.x.ticks(field.ends[0]):
        x = LEFT + field.x.share(number, field.ends[0]) * WIDTH
        parts.append(f'<path class="rg-grid" d="M{n(x)} {TOP}V{TOP + HEIGHT}"/>')
        parts.append(written(x, TOP + HEIGHT + UNIT * 2, label, "rg-muted", "middle"))
    for number, label in field.y.ticks(field.ends[1]):
        y = TOP + (1 - field.y.share(number, field.ends[1])) * HEIGHT
        parts.append(f'<path class="rg-grid" d="M{LEFT} {n(y)}H{LEFT + WIDTH}"/>')
        parts.append(written(LEFT - UNIT, y + 4, label, "rg-muted", "end"))
    parts.append(written(LEFT + WIDTH / 2, TOP + HEIGHT + UNIT * 4.5, visible(field.x.title), "rg-axis", "middle"))
    parts.append(written(LEFT, TOP - UNIT, visible(field.y.title), "rg-axis"))
    return parts


def _drawn(field: Field, curve: Curve, hue: int) -> list[str]:
    parts = []
    if len(curve.low):
        ends = [(x, a, b) for x, a, b in zip(curve.x, curve.low, curve.high) if field.y.fits(a) and field.y.fits(b)]
        around = [field.at(x, high) for x, _, high in ends] + [field.at(x, low) for x, low, _ in reversed(ends)]
        parts.append(f'<path class="rg-band rg-fill-{hue}" d="{_path(around)}Z"/>')
    points = field.points(curve)
    dash = f' stroke-dasharray="{DASHES[hue]}"' if DASHES[hue] else ""
    parts.append(f'<path class="rg-line rg-hue-{hue}"{dash} d="{_path([field.at(*point) for point in points])}"/>')
    shown = points[:: max(1, math.ceil(len(points) / DOTS))]
    for x, y in shown:
        across, down = field.at(x, y)
        told = text(f"{visible(curve.label)}, {x:g}: {y:.3g}")
        place = f'cx="{n(across)}" cy="{n(down)}" r="2.5"'
        parts.append(f'<circle class="rg-fill-{hue}" {place}><title>{told}</title></circle>')
    return parts


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "".join(f"{'L' if i else 'M'}{n(x)} {n(y)}" for i, (x, y) in enumerate(points))


def _names(field: Field) -> list[str]:
    """Names beside the ends of curves, pushed apart where they would touch; a thin line leads to each."""
    ends = [(field.at(*points[-1]), i) for i, c in enumerate(field.curves) if (points := field.points(c))]
    ends.sort(key=lambda end: end[0][1])
    places = spread([y for (_, y), _ in ends], 16.0, TOP + 6.0, TOP + HEIGHT + 0.0)
    parts, x = [], LEFT + WIDTH + UNIT * 3
    for ((left, y), i), place in zip(ends, places):
        hue = i % len(HUES)
        parts.append(f'<path class="rg-lead rg-hue-{hue}" d="M{n(left + 4)} {n(y)}L{n(x - 4)} {n(place)}"/>')
        parts.append(written(x, place + 4, _short(field.curves[i].label), f"rg-name rg-fill-{hue}"))
    return parts


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places in the same order, none nearer to the next than `gap`, as near as that allows to where they were.

    >>> spread([10.0, 11.0, 50.0], 16.0, 0.0, 100.0)
    [10.0, 26.0, 50.0]
    """
    found: list[float] = []
    for place in places:
        found.append(max(place, low, found[-1] + gap if found else low))
    limit = high
    for i in reversed(range(len(found))):  # back up from the lower edge, unless there is no room at all
        found[i] = max(min(found[i], limit), low + i * gap)
        limit = found[i] - gap
    return found


def _short(label: str) -> str:
    return cut(visible(label), 28)


def _said(curve: Curve) -> str:
    if not len(curve.x):
        return f"{visible(curve.label)}: no points."
    return f"{visible(curve.label)}: from {curve.y[0]:.3g} at {curve.x[0]:g} to {curve.y[-1]:.3g} at {curve.x[-1]:g}."


def _colours(scheme: int) -> str:
    return "".join(
        f".rg .rg-hue-{i}{{stroke:{pair[scheme]}}}.rg .rg-fill-{i}{{fill:{pair[scheme]}}}"
        for i, pair in enumerate(HUES)
    )


CURVES = (
    STYLE
    + ".rg .rg-line{fill:none;stroke-width:2;stroke-linejoin:round}.rg .rg-lead{fill:none;stroke-width:1;opacity:.5}"
    ".rg .rg-band{opacity:.14}.rg .rg-frame{fill:none;stroke:#8A94A0;stroke-opacity:.5}"
    ".rg .rg-grid{fill:none;stroke:#8A94A0;stroke-opacity:.22}.rg .rg-axis{font-size:12px;font-weight:600}"
    + _colours(0)
    + f"@media (prefers-color-scheme:dark){{{_colours(1)}}}"
)
"""The style of matrices, and that of curves."""
