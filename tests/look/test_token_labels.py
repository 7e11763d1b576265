"""Token labels: no invisible and no control characters, and correct directions."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.look.tokens import FSI, PDI, grapheme_clusters, is_rtl, isolate_bidi, make_visible, token_label, truncate

anything = st.text(st.characters(exclude_categories=()), max_size=12)


@pytest.mark.parametrize(
    ("token", "label"),
    [
        ("▁suis", "suis"),
        (" suis", "suis"),
        ("  suis", "␣suis"),
        ("suis ", "suis␣"),
        ("a b", "a b"),
        ("a▁b", "a b"),
        (" ", "␣"),
        ("▁▁", "␣"),
        ("", "∅"),
        ("\n", "↵"),
        (" \n", "↵"),
        ("\t", "⇥"),
        ("\x00", "␀"),
        ("\x1b[31m", "␛[31m"),
        ("\x9b", "U+009B"),
        ("\u202eabc", "U+202Eabc"),
        ("\u2068", "U+2068"),
        ("\u200f", "U+200F"),
        ("\u200b", "U+200B"),
        ("\u00a0", "U+00A0"),
        ("\ufeffa", "U+FEFFa"),
        ("\ud800", "U+D800"),
        ("\uffff", "U+FFFF"),
        ("\u0301", "◌\u0301"),
        ("ि", "◌ि"),
        ("\u200d", "U+200D"),
        ("a\u200d", "aU+200D"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("👩‍👩‍👧", "👩‍👩‍👧"),
        (
            "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
            "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        ),
        ("a\U000e0067", "aU+E0067"),
        ("❤️", "❤️"),
        ("<EOS>", "<EOS>"),
    ],
)
def test_a_token_has_this_label(token, label):
    assert token_label(token) == label


def test_the_whole_token_keeps_its_word_start():
    assert (make_visible("▁suis"), make_visible(" suis"), make_visible("suis")) == ("␣suis", "␣suis", "suis")


@given(anything)
def test_no_label_contains_a_control_character_bidi_mark_or_line_break(token):
    label = token_label(token)
    assert label
    assert not [c for c in label if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]
    bidi = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert not [c for c in label if unicodedata.bidirectional(c) in bidi]
    assert label == label.strip()


@given(anything)
def test_clusters_lose_nothing(token):
    assert "".join(grapheme_clusters(token)) == token


@given(anything.map(token_label), st.integers(1, 20))
def test_a_truncated_label_fits_and_is_a_prefix(label, cells):
    short = truncate(label, cells)
    assert cell_len(short) <= cells
    assert short == label or (short.endswith("…") and label.startswith(short[:-1]))


def test_truncation_never_splits_a_grapheme_cluster():
    assert truncate("👩‍👩‍👧👩‍👩‍👧", 3) == "👩‍👩‍👧…"
    assert truncate("🇫🇷🇩🇪", 3) == "🇫🇷…"
    assert truncate("e\u0301e\u0301e\u0301", 2) == "e\u0301…"
    assert truncate("👍🏽👍🏽", 3) == "👍🏽…"


def test_direction_is_that_of_the_first_letter():
    assert all(is_rtl(t) for t in ("دانشجو", "שלום", "1 א"))
    assert not any(is_rtl(t) for t in ("abc", "123", "a א"))


def test_only_right_to_left_text_is_isolated():
    assert isolate_bidi("suis") == "suis"
    assert isolate_bidi("من") == f"{FSI}من{PDI}"
    assert isolate_bidi("a שלום") == f"{FSI}a שלום{PDI}"
