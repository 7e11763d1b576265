"""Line charts as SVG: points are at their numbers, names do not overlap, and no label can be markup."""

import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.look.chart import (
    CHART_STYLE,
    HEIGHT,
    LEFT,
    LINE_COLORS,
    TOP,
    WIDTH,
    Curve,
    LinearAxis,
    LineChart,
    LogAxis,
    spread_labels,
)

SVG = "{http://www.w3.org/2000/svg}"


def draw(*curves, y=None):
    return ElementTree.fromstring(LineChart("decay", LinearAxis("distance"), y or LogAxis("norm"), curves).svg())


def test_points_are_drawn_at_their_numbers():
    root = draw(Curve("a", (0, 5, 10), (1.0, 0.1, 0.01)))
    places = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter(f"{SVG}circle")]
    assert places == [(LEFT, TOP), (LEFT + WIDTH / 2, TOP + HEIGHT / 2), (LEFT + WIDTH, TOP + HEIGHT)]
    titles = [c.find(f"{SVG}title").text for c in root.iter(f"{SVG}circle")]
    assert titles == ["a, 0: 1", "a, 5: 0.1", "a, 10: 0.01"]


def test_points_without_a_logarithm_are_left_out():
    root = draw(Curve("a", (0, 1, 2, 3), (1.0, 0.0, math.nan, 0.1)))
    assert len(list(root.iter(f"{SVG}circle"))) == 2


@pytest.mark.parametrize("axis", [LinearAxis("norm"), LogAxis("norm")])
@pytest.mark.parametrize("y", [(), (3.0,), (3.0, 3.0), (1e-30, 1e30), (0.2, 0.3)])
def test_any_number_of_points_can_be_drawn(axis, y):
    root = draw(Curve("a", range(len(y)), y), y=axis)
    assert len(list(root.iter(f"{SVG}circle"))) == len(y)


@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=16))
def test_points_stay_inside_the_plot_area(numbers):
    for axis in (LinearAxis("y"), LogAxis("y")):
        for circle in draw(Curve("a", range(len(numbers)), numbers), y=axis).iter(f"{SVG}circle"):
            assert TOP - 0.01 <= float(circle.get("cy")) <= TOP + HEIGHT + 0.01


def test_a_long_curve_has_at_most_sixteen_dots():
    root = draw(Curve("a", range(100), [0.9**i for i in range(100)]))
    assert 8 <= len(list(root.iter(f"{SVG}circle"))) <= 16
    (line,) = [p for p in root.iter(f"{SVG}path") if "rg-line" in p.get("class")]
    assert line.get("d").count("L") == 99


def test_names_of_curves_do_not_overlap():
    root = draw(*(Curve(f"model {i}", (0, 1), (1.0, 0.5 + i / 1000)) for i in range(8)))
    names = [t for t in root.iter(f"{SVG}text") if "rg-name" in t.get("class")]
    assert [t.text for t in names] == [f"model {i}" for i in reversed(range(8))]
    heights = [float(t.get("y")) for t in names]
    assert all(b - a >= 15.9 for a, b in pairwise(heights))


@given(st.lists(st.floats(0, 100), max_size=6))
def test_labels_are_spread_in_order_and_inside(places):
    found = spread_labels(sorted(places), 16.0, 0.0, 100.0)
    assert all(b - a >= 15.99 for a, b in pairwise(found))
    assert all(-0.01 <= place <= 100.01 for place in found)


def test_curves_differ_by_more_than_their_color():
    root = draw(*(Curve(f"m{i}", (0, 1), (1.0, 0.5)) for i in range(len(LINE_COLORS))))
    lines = [p for p in root.iter(f"{SVG}path") if "rg-line" in p.get("class")]
    assert len({p.get("stroke-dasharray") for p in lines}) == len({p.get("class") for p in lines}) == len(LINE_COLORS)


def test_intervals_are_drawn_around_their_curve():
    root = draw(Curve("a", (0, 1), (2.0, 3.0), (1.0, 2.0), (4.0, 5.0)), y=LinearAxis("BLEU"))
    (band,) = [p for p in root.iter(f"{SVG}path") if "rg-band" in p.get("class")]
    assert band.get("d").count("L") == 3 and band.get("d").endswith("Z")


def test_points_and_intervals_must_fit():
    with pytest.raises(ValueError, match=r"^a: 2 x for 1 y, 0 low, 0 high$"):
        Curve("a", (0, 1), (1.0,))


def test_ticks_are_few_and_round():
    assert [label for _, label in LinearAxis("x").ticks((0, 59))] == ["0", "10", "20", "30", "40", "50"]
    assert [label for _, label in LogAxis("y").ticks((1e-30, 1.0))] == [
        "10⁻³⁰", "10⁻²⁵", "10⁻²⁰", "10⁻¹⁵", "10⁻¹⁰", "10⁻⁵", "1"
    ]  # fmt: skip


def test_no_label_is_markup():
    evil = "</text><script>alert(1)</script>"
    text = LineChart(evil, LinearAxis(evil), LogAxis(evil), [Curve(evil, (0, 1), (1.0, 0.5))]).svg()
    root = ElementTree.fromstring(text)
    allowed = {f"{SVG}{name}" for name in ("svg", "title", "desc", "style", "rect", "text", "path", "circle")}
    assert {element.tag for element in root.iter()} <= allowed and "<script" not in text
    assert [style.text for style in root.iter(f"{SVG}style")] == [CHART_STYLE]


def test_every_selector_starts_with_our_class_and_nothing_is_loaded():
    flat = CHART_STYLE.replace("@media (prefers-color-scheme:dark){", "")
    selectors = [s for rule in re.findall(r"([^{}]+)\{", flat) for s in rule.split(",")]
    assert all(s.strip().startswith(".rg") for s in selectors)
    assert not re.search(r"url\(|@import|@font-face", CHART_STYLE)


def test_the_description_for_screen_readers_has_the_ends_of_curves():
    root = draw(Curve("lstm", (0, 10), (1.0, 0.25)))
    assert root.find(f"{SVG}desc").text == "norm against distance. lstm: from 1 at 0 to 0.25 at 10."


@pytest.mark.parametrize(("number", "ends"), [(0.0, (0, 1)), (0.25, (0, 1)), (7.0, (6.5, 7.5)), (-3.0, (-3.5, -2.5))])
def test_the_axis_of_a_single_number_goes_below_zero_only_if_it_does(number, ends):
    assert LinearAxis("BLEU").limits([number, number]) == ends
