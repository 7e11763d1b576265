"""Line charts in characters and as plain data; for their SVG see test_charts.py."""

import json
import math
import xml.etree.ElementTree as ET

import pytest

from regard.look.chart import Curve, LinearAxis, LineChart, LogAxis


def view(*curves, x=LinearAxis("words"), y=LinearAxis("BLEU")):  # noqa: B008
    return LineChart("score by length", x, y, curves)


def field(output):
    """The rows of characters right of the axis."""
    return [line.partition("|")[2] for line in output.splitlines() if "|" in line]


def test_each_curve_has_its_letter_where_its_points_are():
    output = view(Curve("gru", (0, 10), (0.0, 10.0)), Curve("lstm", (0, 10), (10.0, 0.0))).text(60, 8)
    rows = field(output)
    assert (rows[0][0], rows[0][-1], rows[-1][0], rows[-1][-1]) == ("b", "a", "a", "b")
    assert output.splitlines()[-1] == "a gru   b lstm"


def test_points_of_several_curves_in_one_cell_are_marked():
    output = view(Curve("gru", (0, 10), (0.0, 10.0)), Curve("lstm", (0, 10), (0.0, 5.0))).text(60, 8)
    assert field(output)[-1][0] == "*"
    assert output.endswith("* several")


def test_on_a_logarithmic_axis_equal_factors_are_equal_steps():
    rows = field(view(Curve("rnn", (1, 2, 3), (1.0, 0.1, 0.01)), y=LogAxis("norm")).text(60, 9))
    assert [i for i, row in enumerate(rows) if "a" in row] == [0, 4, 8]


@pytest.mark.parametrize("hole", [math.nan, math.inf, 0.0])
def test_points_without_a_position_on_an_axis_are_left_out(hole):
    output = view(Curve("rnn", (1, 2, 3), (1.0, hole, 0.01)), y=LogAxis("norm")).text(60, 9)
    assert "".join(field(output)).count("a") == 2


@pytest.mark.parametrize("width", [30, 60, 200])
def test_the_chart_fits_the_terminal(width):
    output = view(Curve("gru", tuple(range(50)), tuple(float(i) for i in range(50)))).text(width)
    assert max(len(line) for line in output.splitlines() if "|" in line or "+" in line) <= width


def test_names_of_any_script_are_drawn():
    chart = view(Curve("نموذج 模型", (1, 2), (1.0, 2.0)))
    assert "模型" in chart.text(60)
    assert "模型" in "".join(ET.fromstring(chart.svg()).itertext())


def test_curves_as_plain_data_hold_every_number():
    curve = Curve("gru", (5, 10), (31.0, 28.5), (30.0, 27.0), (32.0, 30.0))
    restored = json.loads(json.dumps(view(curve).to_dict()))
    assert restored == {
        "title": "score by length",
        "x": "words",
        "y": "BLEU",
        "curves": [{"label": "gru", "x": [5, 10], "y": [31.0, 28.5], "low": [30.0, 27.0], "high": [32.0, 30.0]}],
    }


def test_curves_without_points_can_be_drawn():
    empty = view(Curve("gru", (), ()))
    assert ET.fromstring(empty.svg()) is not None
    assert "a gru" in empty.text(60)
