"""Tokens as labels: nothing invisible, nothing that turns or controls."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from regard.look.tokens import FSI, PDI, clusters, cut, isolated, right_to_left, shown, visible

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
def test_a_token_is_shown_as(token, label):
    assert shown(token) == label


def test_the_whole_token_keeps_its_word_start():
    assert (visible("▁suis"), visible(" suis"), visible("suis")) == ("␣suis", "␣suis", "suis")


@given(anything)
def test_no_label_holds_a_control_a_bidi_mark_or_a_line_break(token):
    label = shown(token)
    assert label
    assert not [c for c in label if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]
    bidi = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert not [c for c in label if unicodedata.bidirectional(c) in bidi]
    assert label == label.strip()


@given(anything)
def test_clusters_lose_nothing(token):
    assert "".join(clusters(token)) == token


@given(anything.map(shown), st.integers(1, 20))
def test_a_cut_label_fits_and_is_a_beginning(label, cells):
    short = cut(label, cells)
    assert cell_len(short) <= cells
    assert short == label or (short.endswith("…") and label.startswith(short[:-1]))


def test_a_cut_never_goes_through_a_family_a_flag_or_an_accent():
    assert cut("👩‍👩‍👧👩‍👩‍👧", 3) == "👩‍👩‍👧…"
    assert cut("🇫🇷🇩🇪", 3) == "🇫🇷…"
    assert cut("e\u0301e\u0301e\u0301", 2) == "e\u0301…"
    assert cut("👍🏽👍🏽", 3) == "👍🏽…"


def test_direction_is_that_of_the_first_letter():
    assert all(right_to_left(t) for t in ("دانشجو", "שלום", "1 א"))
    assert not any(right_to_left(t) for t in ("abc", "123", "a א"))


def test_only_what_runs_from_right_to_left_is_fenced():
    assert isolated("suis") == "suis"
    assert isolated("من") == f"{FSI}من{PDI}"
    assert isolated("a שלום") == f"{FSI}a שלום{PDI}"
