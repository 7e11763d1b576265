"""Words, their letters, and plain text cut into words."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import ModelError
from regard.sequence import UNK
from regard.text.word_vocab import Spelling, words_of

KNOWN = Spelling.of(Counter(["do", "n't", "etc.", "U.S.", "it", "'s", "l'", "ami", "--", "stop"]))


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in words_of(text, KNOWN)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Stop, please!", ["Stop", ",", "please", "!"]),
        ("(don't)", ["(", "do", "n't", ")"]),
        ("it's l'ami l’ami", ["it", "'s", "l'", "ami", "l’ami"]),
        ("won't", ["won't"]),  # its parts were never seen
        ("the U.S. etc.", ["the", "U.S.", "etc."]),
        ("stop...", ["stop", ".", ".", "."]),
        ("well-known 3.5 a@b.c", ["well-known", "3.5", "a@b.c"]),
        ("--", ["--"]),
        ("  \t ", []),
        ("", []),
        ("“中文。”", ["“", "中文", "。", "”"]),
        ("$5 +", ["$", "5", "+"]),
    ],
)
def test_signs_stand_alone_unless_a_word_was_seen_with_them(text: str, words: list[str]) -> None:
    assert cut(text) == words


@settings(deadline=None)
@given(st.text(max_size=60))
def test_words_are_in_order_and_leave_out_nothing_but_space(text: str) -> None:
    places = words_of(text, KNOWN)
    assert all(start < end for start, end in places)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(places))
    assert "".join(text[start:end] for start, end in places) == "".join(text.split())


@pytest.mark.parametrize("sign", ["!", "'", "x", "don't"])
def test_a_megabyte_without_a_space_takes_no_longer_than_its_length(sign: str) -> None:
    text = sign * (1_000_000 // len(sign))
    began = time.process_time()
    assert sum(end - start for start, end in words_of(text, KNOWN)) == len(text)
    assert time.process_time() - began < 10


def test_rare_words_are_unknown_but_have_their_letters() -> None:
    spelling = Spelling.of(Counter({"cat": 2, "cab": 1}), least=2)
    assert spelling.row("cab")[0] == UNK and spelling.row("cab")[1:3] == spelling.row("cat")[1:3]
    assert spelling.row("é") == [UNK, UNK]
    assert Spelling.of(Counter({"cat": 2}), spelled=False).row("cat") == [2]


def test_words_may_forget_capitals_and_their_letters_do_not() -> None:
    spelling = Spelling.of(Counter({"The": 1, "the": 3, "cat": 2}), least=2, lowercase=True)
    assert spelling.words == ("the", "cat")
    assert spelling.row("THE")[0] == spelling.row("the")[0] != UNK
    assert spelling.row("The")[1] != spelling.row("the")[1]


def test_of_a_long_word_both_ends_are_read() -> None:
    spelling = Spelling.of(Counter({"abcdefgh": 1}), longest=5)
    spelled = "".join(spelling.letters[i - 2] for i in spelling.row("abcdefgh")[1:])
    assert spelled == "abfgh"


def test_a_vocabulary_is_the_same_whatever_the_order_of_the_data_and_outlives_it(tmp_path: Path) -> None:
    one, two = Spelling.of(Counter("a b b c".split())), Spelling.of(Counter("c b a b".split()))  # noqa: SIM905
    assert one == two
    one.save(tmp_path / "spelling.json")
    assert Spelling.load(tmp_path / "spelling.json") == one
    (tmp_path / "spelling.json").write_text("[]", encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        Spelling.load(tmp_path / "spelling.json")
    assert str(caught.value) == (
        f"{tmp_path}/spelling.json cannot be read: expected the words and letters that a model knows"
    )
