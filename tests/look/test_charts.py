"""Curves: points are where their numbers are, names do not touch, and no label can be markup."""

import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.look.chart import CURVES, HEIGHT, HUES, LEFT, TOP, WIDTH, Curve, Linear, Logarithmic, chart, spread

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*curves, y=None):
    return ElementTree.fromstring(chart(curves, "decay", Linear("distance"), y or Logarithmic("norm")))


def test_points_lie_where_their_numbers_are():
    root = drawn(Curve("a", (0, 5, 10), (1.0, 0.1, 0.01)))
    places = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter(f"{SVG}circle")]
    assert places == [(LEFT, TOP), (LEFT + WIDTH / 2, TOP + HEIGHT / 2), (LEFT + WIDTH, TOP + HEIGHT)]
    told = [c.find(f"{SVG}title").text for c in root.iter(f"{SVG}circle")]
    assert told == ["a, 0: 1", "a, 5: 0.1", "a, 10: 0.01"]


def test_what_has_no_logarithm_is_left_out():
    root = drawn(Curve("a", (0, 1, 2, 3), (1.0, 0.0, math.nan, 0.1)))
    assert len(list(root.iter(f"{SVG}circle"))) == 2


@pytest.mark.parametrize("axis", [Linear("norm"), Logarithmic("norm")])
@pytest.mark.parametrize("y", [(), (3.0,), (3.0, 3.0), (1e-30, 1e30), (0.2, 0.3)])
def test_any_number_of_points_can_be_drawn(axis, y):
    root = drawn(Curve("a", range(len(y)), y), y=axis)
    assert len(list(root.iter(f"{SVG}circle"))) == len(y)


@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=16))
def test_nothing_is_drawn_outside_the_field(numbers):
    for axis in (Linear("y"), Logarithmic("y")):
        for circle in drawn(Curve("a", range(len(numbers)), numbers), y=axis).iter(f"{SVG}circle"):
            assert TOP - 0.01 <= float(circle.get("cy")) <= TOP + HEIGHT + 0.01


def test_a_long_curve_has_a_dot_here_and_there():
    root = drawn(Curve("a", range(100), [0.9**i for i in range(100)]))
    assert 8 <= len(list(root.iter(f"{SVG}circle"))) <= 16
    (line,) = [p for p in root.iter(f"{SVG}path") if "rg-line" in p.get("class")]
    assert line.get("d").count("L") == 99


def test_names_stand_beside_their_curves_and_do_not_touch():
    root = drawn(*(Curve(f"model {i}", (0, 1), (1.0, 0.5 + i / 1000)) for i in range(8)))
    names = [t for t in root.iter(f"{SVG}text") if "rg-name" in t.get("class")]
    assert [t.text for t in names] == [f"model {i}" for i in reversed(range(8))]
    heights = [float(t.get("y")) for t in names]
    assert all(b - a >= 15.9 for a, b in pairwise(heights))


@given(st.lists(st.floats(0, 100), max_size=6))
def test_places_are_spread_in_order_and_inside(places):
    found = spread(sorted(places), 16.0, 0.0, 100.0)
    assert all(b - a >= 15.99 for a, b in pairwise(found))
    assert all(-0.01 <= place <= 100.01 for place in found)


def test_curves_differ_by_more_than_their_colour():
    root = drawn(*(Curve(f"m{i}", (0, 1), (1.0, 0.5)) for i in range(len(HUES))))
    lines = [p for p in root.iter(f"{SVG}path") if "rg-line" in p.get("class")]
    assert len({p.get("stroke-dasharray") for p in lines}) == len({p.get("class") for p in lines}) == len(HUES)


def test_intervals_are_drawn_around_their_curve():
    root = drawn(Curve("a", (0, 1), (2.0, 3.0), (1.0, 2.0), (4.0, 5.0)), y=Linear("BLEU"))
    (band,) = [p for p in root.iter(f"{SVG}path") if "rg-band" in p.get("class")]
    assert band.get("d").count("L") == 3 and band.get("d").endswith("Z")


def test_points_and_intervals_must_fit():
    with pytest.raises(ValueError, match=r"^a: 2 x for 1 y, 0 low, 0 high$"):
        Curve("a", (0, 1), (1.0,))


def test_ticks_are_few_and_round():
    assert [label for _, label in Linear("x").ticks((0, 59))] == ["0", "10", "20", "30", "40", "50"]
    assert [label for _, label in Logarithmic("y").ticks((1e-30, 1.0))] == [
        "10⁻³⁰", "10⁻²⁵", "10⁻²⁰", "10⁻¹⁵", "10⁻¹⁰", "10⁻⁵", "1"
    ]  # fmt: skip


def test_no_label_is_markup():
    evil = "</text><script>alert(1)</script>"
    text = chart([Curve(evil, (0, 1), (1.0, 0.5))], evil, Linear(evil), Logarithmic(evil))
    root = ElementTree.fromstring(text)
    allowed = {f"{SVG}{name}" for name in ("svg", "title", "desc", "style", "rect", "text", "path", "circle")}
    assert {element.tag for element in root.iter()} <= allowed and "<script" not in text
    assert [style.text for style in root.iter(f"{SVG}style")] == [CURVES]


def test_every_rule_begins_with_a_class_of_ours_and_needs_nothing_from_elsewhere():
    flat = CURVES.replace("@media (prefers-color-scheme:dark){", "")
    selectors = [s for rule in re.findall(r"([^{}]+)\{", flat) for s in rule.split(",")]
    assert all(s.strip().startswith(".rg") for s in selectors)
    assert not re.search(r"url\(|@import|@font-face", CURVES)


def test_a_reader_who_hears_is_told_where_curves_begin_and_end():
    root = drawn(Curve("lstm", (0, 10), (1.0, 0.25)))
    assert root.find(f"{SVG}desc").text == "norm against distance. lstm: from 1 at 0 to 0.25 at 10."


@pytest.mark.parametrize(("number", "ends"), [(0.0, (0, 1)), (0.25, (0, 1)), (7.0, (6.5, 7.5)), (-3.0, (-3.5, -2.5))])
def test_one_number_alone_has_an_axis_that_does_not_go_below_zero_unless_it_does(number, ends):
    assert Linear("BLEU").ends([number, number]) == ends
