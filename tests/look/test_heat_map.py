"""The heat map in the terminal: numbers, labels and widths are right in every script."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.look.colormaps import GROUND, PURPLE, STEPS
from regard.look.matrix import Matrix
from regard.look.terminal import color_depth, heat_map

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def softmax(rows, columns, seed=0):
    scores = np.exp(3 * np.random.default_rng(seed).normal(size=(rows, columns)))
    return (scores / scores.sum(1, keepdims=True)).astype(np.float32)


def matrix(rows, columns):
    return Matrix(softmax(len(rows), len(columns)), tuple(rows), tuple(columns), "cross")


def numbers(line):
    return [float(n) for n in re.findall(r"\d+\.\d\d", line)]


@pytest.mark.parametrize("color", ["none", "256", "24-bit"])
def test_the_cells_hold_the_weights_in_order(color):
    m = matrix(["i", "am", "a", "student"], ["je", "suis", "étudiant"])
    lines = [ESCAPE.sub("", line) for line in heat_map(m, 80, color).splitlines()]
    assert lines[2].split() == ["je", "suis", "étudiant"]
    assert [line.split()[0] for line in lines[3:7]] == ["i", "am", "a", "student"]
    printed = np.array([numbers(line) for line in lines[3:7]])
    np.testing.assert_allclose(printed, m.numbers, atol=0.005 + 1e-6)


def test_a_heat_map_without_colors_is_this_text():
    m = Matrix(np.array([[0.9, 0.1, 0.0], [0.25, 0.25, 0.5]]), ("▁i", "▁am"), ("▁je", "▁suis", "<EOS>"), "cross")
    assert heat_map(m, 60, "none") == (
        "cross\n"
        "target \\ source\n"
        "        je   suis  <EOS>\n"
        "i   ██0.90   0.10   0.00\n"
        "am  ░░0.25 ░░0.25 ▒▒0.50\n"
        "0.00 ░▒▓█ 0.90   smallest 0.00, largest 0.90"
    )


def test_a_wide_matrix_is_split_and_its_columns_numbered():
    m = matrix([f"r{i}" for i in range(3)], [f"column{i}" for i in range(60)])
    text = heat_map(m, 80, "none")
    assert max(map(cell_len, text.splitlines())) <= 80
    blocks = [line for line in text.splitlines() if line.startswith("r1 ")]
    assert len(blocks) == 4  # 19 columns of 4 cells each beside the labels
    printed = [int(n) for line in blocks for n in re.findall(r"\d+", line[3:])]
    np.testing.assert_allclose(printed, 100 * m.numbers[1], atol=0.5 + 1e-4)
    assert "1 column0   2 column1" in text and "60 column59" in text


def test_narrow_labels_stay_above_their_columns_in_a_split_matrix():
    lags = tuple(str(i) for i in range(-40, 0))
    m = Matrix(np.linspace(0, 1, 40)[None], ("load",), lags, "saliency", "column", "row")
    lines = heat_map(m, 80, "none").splitlines()
    assert [label for line in lines[3:-1:2] for label in line.split()] == list(lags)
    assert lines[-2].startswith("load ") and lines[-1].startswith("0.00 ")


def test_an_empty_axis_title_leaves_no_separator():
    m = Matrix(np.array([[0.5], [1.0]]), ("so", "great"), ("value",), "unit 3", "token", "")
    assert heat_map(m, 80, "none").splitlines()[:2] == ["unit 3", "token"]


SCRIPTS = ["من", "یک", "دانشجو", "שלום", "学生", "です", "विद्यार्थी"]
SCRIPTS += ["👩‍👩‍👧", "🇫🇷", "👍🏽", "e\u0301", "\u0301", "\n", "Donaudampfschiff" * 2]  # fmt: skip


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("color", ["none", "24-bit"])
def test_all_rows_have_the_same_width_in_every_script(width, color):
    m = matrix(SCRIPTS, SCRIPTS[:4])
    lines = ESCAPE.sub("", heat_map(m, width, color)).splitlines()
    start = next(i for i, line in enumerate(lines) if "من" in line and re.search(r"\d\d", line))
    cells = lines[start : start + len(SCRIPTS)]
    assert all(len(re.findall(r"\d+\.\d\d|\d+", line)) == 4 for line in cells)
    assert cells[-2].startswith("↵ ") and cells[-1].startswith("Donau")
    assert len({cell_len(line) for line in cells}) == 1


@settings(deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_categories=()), max_size=8), min_size=1, max_size=6), st.integers(30, 120)
)
def test_a_heat_map_of_any_tokens_fits_the_width(tokens, width):
    text = heat_map(Matrix(softmax(len(tokens), len(tokens)), tuple(tokens), tuple(tokens), "cross"), width, "none")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067\u2028\u2029]", text)
    assert text.count("\u2068") == text.count("\u2069")
    assert max(map(cell_len, text.splitlines()[:-1])) <= width


@pytest.mark.parametrize(
    ("environment", "terminal", "expected"),
    [
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, True, "24-bit"),
        ({"TERM": "xterm-256color"}, True, "256"),
        ({"TERM": "xterm", "COLORTERM": "truecolor", "NO_COLOR": "1"}, True, "none"),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, "256"),
        ({"TERM": "dumb"}, True, "none"),
        ({}, True, "none"),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, False, "none"),
    ],
)
def test_colors_are_used_only_in_terminals_that_allow_them(environment, terminal, expected):
    assert color_depth(environment, terminal) == expected


def test_captured_output_has_no_colors():
    assert "\x1b" not in heat_map(matrix(["a"], ["b"]), 80)


def luminance(rgb):
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def xterm(code):
    if code >= 232:
        return (8 + 10 * (code - 232),) * 3
    levels = (0, 95, 135, 175, 215, 255)
    return levels[(code - 16) // 36], levels[(code - 16) // 6 % 6], levels[(code - 16) % 6]


@pytest.mark.parametrize("color", ["256", "24-bit"])
def test_every_number_is_legible_on_its_color(color):
    for w in np.linspace(0, 1, 101):
        text = heat_map(Matrix(np.array([[w, 1.0]]), ("a",), ("b", "c"), "cross"), 80, color).splitlines()[3]
        codes = [int(c) for c in re.search(r"\x1b\[([0-9;]+)m", text)[1].split(";")]
        ground = tuple(codes[2:5]) if color == "24-bit" else xterm(codes[2])
        light, dark = sorted((luminance(ground), luminance(xterm(codes[-1]))), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (w, ground)


def test_lightness_grows_with_the_weight():
    assert luminance(GROUND) < luminance(PURPLE)
    steps = [luminance(xterm(step)) for step in STEPS]
    assert steps == sorted(steps)


def test_nan_is_printed_as_nan():
    text = heat_map(Matrix(np.array([[np.nan, 0.5]]), ("a",), ("b", "c"), "cross"), 80, "none")
    assert "nan" in text and "largest 0.50" in text


def test_labels_that_do_not_fit_the_numbers_are_refused():
    with pytest.raises(ValueError, match=r"^cross: 1 x 2 labels for 1 x 3 numbers$"):
        Matrix(np.zeros((1, 3)), ("a",), ("b", "c"), "cross")
