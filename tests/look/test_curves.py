"""Curves in characters and as plain data; chart.py draws them as SVG and has its own tests."""

import json
import math
import xml.etree.ElementTree as ET

import pytest

from regard.look.chart import Curve, Linear, Logarithmic
from regard.look.curves import CurvesView


def view(*curves, x=Linear("words"), y=Linear("BLEU")):  # noqa: B008
    return CurvesView("score by length", x, y, curves)


def field(told):
    """The rows of characters right of the axis."""
    return [line.partition("|")[2] for line in told.splitlines() if "|" in line]


def test_each_curve_has_its_letter_where_its_points_are():
    told = view(Curve("gru", (0, 10), (0.0, 10.0)), Curve("lstm", (0, 10), (10.0, 0.0))).text(60, 8)
    rows = field(told)
    assert (rows[0][0], rows[0][-1], rows[-1][0], rows[-1][-1]) == ("b", "a", "a", "b")
    assert told.splitlines()[-1] == "a gru   b lstm"


def test_points_that_fall_together_are_not_told_as_one_curves():
    told = view(Curve("gru", (0, 10), (0.0, 10.0)), Curve("lstm", (0, 10), (0.0, 5.0))).text(60, 8)
    assert field(told)[-1][0] == "*"
    assert told.endswith("* several")


def test_on_a_logarithmic_axis_equal_factors_are_equal_steps():
    rows = field(view(Curve("rnn", (1, 2, 3), (1.0, 0.1, 0.01)), y=Logarithmic("norm")).text(60, 9))
    assert [i for i, row in enumerate(rows) if "a" in row] == [0, 4, 8]


@pytest.mark.parametrize("hole", [math.nan, math.inf, 0.0])
def test_what_has_no_place_on_an_axis_is_left_out(hole):
    told = view(Curve("rnn", (1, 2, 3), (1.0, hole, 0.01)), y=Logarithmic("norm")).text(60, 9)
    assert "".join(field(told)).count("a") == 2


@pytest.mark.parametrize("width", [30, 60, 200])
def test_the_picture_fits_the_terminal(width):
    told = view(Curve("gru", tuple(range(50)), tuple(float(i) for i in range(50)))).text(width)
    assert max(len(line) for line in told.splitlines() if "|" in line or "+" in line) <= width


def test_names_of_any_script_stand_in_the_picture():
    shown = view(Curve("نموذج 模型", (1, 2), (1.0, 2.0)))
    assert "模型" in shown.text(60)
    assert "模型" in "".join(ET.fromstring(shown.svg()).itertext())


def test_curves_as_plain_data_hold_every_number():
    curve = Curve("gru", (5, 10), (31.0, 28.5), (30.0, 27.0), (32.0, 30.0))
    kept = json.loads(json.dumps(view(curve).to_dict()))
    assert kept == {
        "title": "score by length",
        "x": "words",
        "y": "BLEU",
        "curves": [{"label": "gru", "x": [5, 10], "y": [31.0, 28.5], "low": [30.0, 27.0], "high": [32.0, 30.0]}],
    }


def test_curves_without_a_point_are_still_a_picture():
    empty = view(Curve("gru", (), ()))
    assert ET.fromstring(empty.svg()) is not None
    assert "a gru" in empty.text(60)
