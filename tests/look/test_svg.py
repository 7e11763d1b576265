"""The SVG: the numbers are the weights, the labels are in order, and no token can be markup."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.look import AttentionGrid, AttentionView
from regard.look.colormaps import DARK, INK_DARK, INK_LIGHT, LIGHT
from regard.look.matrix import Matrix
from regard.look.svg import SIDE_COLORS, STYLE, heat_map, text_width
from regard.look.tokens import token_label

SVG = "{http://www.w3.org/2000/svg}"
ALLOWED = {f"{SVG}{name}" for name in ("svg", "title", "desc", "style", "rect", "text", "tspan", "g")}
HOSTILE = [
    "</svg><script>alert(1)</script>",
    "<script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</desc><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</text><image href=x onerror=alert(1)>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<foreignObject><body onload=alert(1)>",
    "<use href='data:image/svg+xml,<svg/>'/>",
    "<animate onbegin=alert(1) attributeName=x>",
    "<set onbegin=alert(1)>",
    "<a xlink:href='javascript:alert(1)'>x</a>",
    "<iframe src=javascript:alert(1)>",
    '" onload="alert(1)',
    "' onload='alert(1)",
    '"><script>alert(1)</script>',
    "'><script>alert(1)</script>",
    "javascript:alert(1)",
    "<!--",
    "-->",
    "<!-- --><script>alert(1)</script>",
    "<![CDATA[",
    "]]>",
    "]]><script>alert(1)</script>",
    "<?xml version='1.0'?>",
    "<?xml-stylesheet href='x'?>",
    "<!DOCTYPE svg [<!ENTITY x 'y'>]>",
    "<!ENTITY x SYSTEM 'file:///etc/passwd'>",
    "&x;",
    "&amp;",
    "&lt;script&gt;",
    "&#60;script&#62;",
    "&#x0;",
    "&",
    "&&&",
    "<",
    ">",
    "<<<>>>",
    '"',
    "'",
    "`",
    "${alert(1)}",
    "{{constructor.constructor('alert(1)')()}}",
    "@import 'x'",
    "url(javascript:alert(1))",
    "expression(alert(1))",
    "\x00<script>",
    "\u202e<tpircs>",
    "\ufeff<script>",
    "＜script＞",
    "\ud800<script>",
    "<scr\nipt>",
    "%3Cscript%3E",
]


def softmax(rows, columns, seed=0):
    scores = np.exp(2 * np.random.default_rng(seed).normal(size=(rows, columns)))
    return (scores / scores.sum(1, keepdims=True)).astype(np.float32)


def view(rows, columns):
    return AttentionView("decoder.layers.0.cross.weights", softmax(len(rows), len(columns)), list(rows), list(columns))


def labels(root, kind):
    return [t.text for t in root.iter(f"{SVG}text") if kind in t.get("class").split()]


def tooltips(root):
    return [g.find(f"{SVG}title").text for g in root.iter(f"{SVG}g")]


@pytest.mark.parametrize("shape", [(1, 1), (4, 3), (7, 12), (40, 60), (100, 100)])
def test_each_cell_has_a_tooltip_with_its_weight(shape):
    v = view([f"r{i}" for i in range(shape[0])], [f"c{i}" for i in range(shape[1])])
    root = ElementTree.fromstring(v.svg())
    expected = [f"r{i} → c{j}: {v.weights[i, j]:.4f}" for i in range(shape[0]) for j in range(shape[1])]
    assert tooltips(root) == expected
    assert labels(root, "rg-row") == v.rows and labels(root, "rg-column") == v.columns
    opacities = [float(r.get("fill-opacity")) for r in root.iter(f"{SVG}rect") if r.get("fill-opacity")][
        : v.weights.size
    ]
    np.testing.assert_allclose(opacities, (v.weights / v.weights.max()).flatten(), atol=0.0006)


def test_large_cells_show_their_number():
    v = view("abcd", "xyz")
    shown_numbers = labels(ElementTree.fromstring(v.svg()), "rg-number")
    assert shown_numbers == [f"{w:.2f}" for w in v.weights.flatten()]
    assert labels(ElementTree.fromstring(view("a" * 30, "b" * 30).svg()), "rg-number") == []


def test_the_legend_has_the_smallest_and_the_largest_number():
    v = view("abcd", "xyz")
    assert f"smallest {v.weights.min():.4f}, largest {v.weights.max():.4f}" in labels(
        ElementTree.fromstring(v.svg()), "rg-muted"
    )


@pytest.mark.parametrize("token", HOSTILE)
def test_no_token_is_markup(token):
    hostile = AttentionView(token, softmax(2, 2), [token, "b"], [token, "d"], heads=2, head=0)
    for svg in (hostile.svg(), AttentionGrid((hostile, hostile)).svg()):
        root = ElementTree.fromstring(svg)
        assert {element.tag for element in root.iter()} <= ALLOWED
        names = {name for element in root.iter() for name in element.keys()}  # noqa: SIM118
        assert not [name for name in names if name.startswith("on") or "href" in name]
        assert [style.text for style in root.iter(f"{SVG}style")] == [STYLE]
    assert labels(ElementTree.fromstring(hostile.svg()), "rg-row")[1] == "b"


@settings(deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_categories=()), max_size=10), min_size=1, max_size=4), st.text(max_size=5)
)
def test_a_drawing_of_any_tokens_is_well_formed(tokens, name):
    v = AttentionView(name, softmax(len(tokens), 1), tokens, ["x"])
    root = ElementTree.fromstring(v.svg())
    assert len(labels(root, "rg-row")) == len(tokens)


def test_the_drawing_loads_nothing():
    svg = view("ab", "cd").svg()
    assert re.findall(r"https?://[^\"']*", svg) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"url\(|@import|@font-face|<script|<image|href", svg)


def test_a_word_start_mark_is_only_in_the_tooltip():
    root = ElementTree.fromstring(view(["▁suis", " am", "ent"], ["x"]).svg())
    assert labels(root, "rg-row") == ["suis", "am", "ent"]
    whole = [t.find(f"{SVG}title").text for t in root.iter(f"{SVG}text") if "rg-row" in t.get("class")]
    assert whole == ["␣suis", "␣am", "ent"]


def test_right_to_left_labels_have_a_direction_and_stay_next_to_their_row():
    root = ElementTree.fromstring(view(["من", "i", "שלום"], ["دانشجو", "b"]).svg())
    rows = [(t.get("direction"), t.get("text-anchor")) for t in root.iter(f"{SVG}text") if "rg-row" in t.get("class")]
    assert rows == [("rtl", "start"), ("ltr", "end"), ("rtl", "start")]
    assert "unicode-bidi:isolate" in STYLE
    assert tooltips(root)[0].startswith("\u2068من\u2069 → \u2068دانشجو\u2069: 0.")


def test_the_description_for_screen_readers_summarizes_the_matrix():
    v = AttentionView("cross", np.array([[0.25, 0.75], [1.0, 0.0]]), ["i", "am"], ["je", "suis"])
    root = ElementTree.fromstring(v.svg())
    title, desc = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.get("role") == "img" and root.get("aria-labelledby") == f"{title.get('id')} {desc.get('id')}"
    assert title.text == "cross"
    assert desc.text == (
        "2 x 2 weights, from 0.0000 to 1.0000. Each target looks most at: i at suis (0.7500); am at je (1.0000)."
    )


def test_two_drawings_in_one_page_share_no_id():
    ids = [re.findall(r' id="([^"]+)"', view(rows, "xy").svg()) for rows in ("ab", "ac")]
    assert len(ids[0]) == 2 and not set(ids[0]) & set(ids[1])


def test_every_selector_of_the_style_starts_with_our_class():
    flat = STYLE.replace("@media (prefers-color-scheme:dark){", "")
    selectors = [s for rule in re.findall(r"([^{}]+)\{", flat) for s in rule.split(",")]
    assert selectors and all(s.strip().startswith(".rg") for s in selectors)
    assert "prefers-color-scheme:dark" in STYLE


def test_a_long_label_is_truncated_and_its_tooltip_is_complete():
    word = "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz"
    root = ElementTree.fromstring(view([word], ["x"]).svg())
    assert labels(root, "rg-row") == ["Rindfleischetikettierun…"]
    assert word in [t.text for t in root.iter(f"{SVG}title")]


@pytest.mark.parametrize("tokens", [["من", "یک"], ["学生", "です"], ["Donaudampfschifffahrt", "W" * 30], ["a"] * 100])
def test_labels_stay_inside_the_drawing(tokens):
    root = ElementTree.fromstring(view(tokens, tokens).svg())
    width = float(root.get("width"))
    for t in root.iter(f"{SVG}text"):
        if "rg-row" in t.get("class"):
            assert float(t.get("x")) - text_width(token_label(t.text), 13) >= 0
        assert 0 <= float(t.get("x")) <= width


def test_the_heads_of_a_layer_share_their_colors():
    weak, strong = np.array([[0.2, 0.1]]), np.array([[0.8, 0.4]])
    views = [AttentionView("cross", w, ["a"], ["b", "c"], heads=2, head=i) for i, w in enumerate((weak, strong))]
    root = ElementTree.fromstring(AttentionGrid(tuple(views)).svg())
    cells = [g.find(f"{SVG}rect").get("fill-opacity") for g in root.iter(f"{SVG}g")]
    assert cells == ["0.250", "0.125", "1.000", "0.500"]
    assert tooltips(root) == ["a → b: 0.2000", "a → c: 0.1000", "a → b: 0.8000", "a → c: 0.4000"]
    assert [word.text for word in root.iter(f"{SVG}tspan")] == ["a", "b", "c"]
    assert "smallest 0.1000, largest 0.8000" in labels(root, "rg-muted")


def test_zeros_and_non_finite_numbers_can_be_drawn():
    for numbers in (np.zeros((2, 2)), np.full((2, 2), np.nan), np.array([[np.inf, 0.5], [0.1, np.nan]])):
        root = ElementTree.fromstring(heat_map(Matrix(numbers, ("a", "b"), ("c", "d"), "cross")))
        assert len(tooltips(root)) == 4


def rgb(color):
    return [int(color[i : i + 2], 16) for i in (1, 3, 5)]


def contrast(one, two):
    def luminance(parts):
        linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(two)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_is_legible_on_its_background(scheme):
    colors = LIGHT if scheme == "light" else DARK
    page, weight = rgb(colors["page"]), rgb(colors["weight"])
    for name in ("text", "muted"):
        assert contrast(rgb(colors[name]), page) >= 4.5
    for pair in SIDE_COLORS.values():
        assert contrast(rgb(pair[scheme == "dark"]), page) >= 4.5
    for strength in np.linspace(0, 1, 201):
        ground = [p + strength * (w - p) for p, w in zip(page, weight)]
        if scheme == "light":
            ink = [255] * 3 if strength >= INK_LIGHT else [0] * 3
        else:
            ink = [0] * 3 if strength >= INK_DARK else [255] * 3
        assert contrast(ink, ground) >= 4.5, strength


def test_plain_data_is_json():
    v = view("ab", "xyz")
    data = v.to_dict()
    assert data["rows"] == ["a", "b"] and data["weights"] == v.weights.tolist() and data["heads"] == 1
