"""Highlighted text: every token once, in visual order, with its number."""

import json
import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.look import HighlightedText
from regard.look.color_scales import DivergingScale, LinearScale
from regard.look.highlighted_text import running_text, visual_order, wrap_tokens

SVG = "{http://www.w3.org/2000/svg}"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def highlighted(tokens, scale=None):
    values = np.linspace(-1, 1, len(tokens)) if scale is None else np.linspace(0, 1, len(tokens))
    return HighlightedText("decoder.hidden, unit 3 of 8", list(tokens), values, scale or DivergingScale(1.0))


def test_highlighting_keeps_the_text():
    lines = ESCAPE.sub("", highlighted("To be, or\nnot to be").text(80, "24-bit")).splitlines()
    assert lines[1:3] == ["To be, or↵", "not to be"]
    assert ESCAPE.sub("", highlighted([" je", " suis", "ent"]).text(80, "256")).splitlines()[1] == " je suisent"


def test_a_color_is_that_of_the_value():
    line = highlighted(["a", "b", "c"]).text(80, "24-bit").splitlines()[1]
    grounds = [tuple(map(int, g)) for g in re.findall(r"48;2;(\d+);(\d+);(\d+)", line)]
    assert grounds == [(0x6C, 0xB6, 0xFF), (0x16, 0x1B, 0x22), (0xFF, 0xB4, 0x54)]


def test_without_colors_each_token_has_its_number():
    lines = highlighted(["To", " be", "\n"], LinearScale(1.0)).text(80, "none").splitlines()
    assert lines[3:6] == ["To    0.00", "be  ▒▒0.50", "↵   ██1.00"]


@pytest.mark.parametrize("color", ["none", "256", "24-bit"])
def test_the_legend_is_always_there(color):
    assert "smallest -1.00, largest +1.00" in highlighted("abc").text(80, color)


@pytest.mark.parametrize("width", [10, 40])
def test_lines_are_as_wide_as_the_terminal_at_most(width):
    lines = ESCAPE.sub("", highlighted(["wort", " für", " 学生", "👍🏽", " "] * 9).text(width, "256")).splitlines()
    assert max(map(cell_len, lines[1:-1])) <= width


@given(st.lists(st.sampled_from(["a", " b", "من", " یک", "שלום", "学", "\n", " ", "👩‍👩‍👧", "1", "."]), max_size=40))
def test_every_token_is_drawn_once(tokens):
    lines = wrap_tokens(tokens, 12)
    assert [i for line in lines for i in line] == list(range(len(tokens)))
    for line in lines:
        assert sorted(visual_order(line, tokens)) == line


def test_a_right_to_left_text_starts_at_the_right():
    tokens = ["من", " یک", " دانشجو", " هستم"]
    root = ElementTree.fromstring(highlighted(tokens).svg())
    places = [(float(t.get("x")), t.text.strip()) for t in root.iter(f"{SVG}text") if "rg-mono" in t.get("class")]
    assert [word for _, word in sorted(places, reverse=True)] == ["من", "یک", "دانشجو", "هستم"]
    assert {t.get("direction") for t in root.iter(f"{SVG}text") if "rg-mono" in t.get("class")} == {"rtl"}


def test_words_of_another_direction_are_reversed_as_a_run():
    assert visual_order([0, 1, 2, 3], ["the", " من", " یک", " b"]) == [0, 2, 1, 3]
    assert visual_order([0, 1, 2, 3], ["من", " the", " word", " یک"]) == [3, 1, 2, 0]


def test_each_box_has_a_tooltip_with_token_and_value():
    root = ElementTree.fromstring(highlighted(["a", " b", "<script>"]).svg())
    titles = [g.find(f"{SVG}title").text for g in root.iter(f"{SVG}g")]
    assert titles == ["a: -1.0000", "␣b: 0.0000", "<script>: 1.0000"]


def test_boxes_of_a_line_are_adjacent():
    root = ElementTree.fromstring(highlighted(["je", " suis", " étudiant", "学生"]).svg())
    boxes = [g.find(f"{SVG}rect") for g in root.iter(f"{SVG}g")]
    ends = [(float(b.get("x")), float(b.get("x")) + float(b.get("width"))) for b in boxes]
    for (_, end), (start, _) in pairwise(ends):
        assert start - end == pytest.approx(1, abs=0.02)


def test_spaces_stay_and_other_invisible_characters_are_visible():
    assert running_text(" ", 80) == " " and running_text("▁▁", 80) == "  " and running_text("", 80) == " "
    assert (
        running_text("\t", 80) == "⇥"
        and running_text("\u202e", 80) == "U+202E"
        and running_text(" \u0301", 80) == " ◌\u0301"
    )


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=6), min_size=1, max_size=12))
def test_drawings_of_any_tokens_are_well_formed(tokens):
    text = highlighted(tokens)
    root = ElementTree.fromstring(text.svg())
    assert len([t for t in root.iter(f"{SVG}text") if "rg-mono" in t.get("class")]) == len(tokens)
    plain = ESCAPE.sub("", text.text(60, "24-bit"))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066\u2067\u2028\u2029]", plain)


def test_plain_data_is_json():
    data = json.loads(json.dumps(highlighted("ab").to_dict()))
    assert data == {"title": "decoder.hidden, unit 3 of 8", "tokens": ["a", "b"], "values": [-1, 1], "range": [-1, 1]}
