"""Word and character vocabulary, and plain text split into words."""

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
from regard.tasks.label.vocab import WordVocab, split_words

VOCAB = WordVocab.count(Counter(["do", "n't", "etc.", "U.S.", "it", "'s", "l'", "ami", "--", "stop"]))


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in split_words(text, VOCAB)]


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
def test_punctuation_is_split_off_unless_the_vocabulary_has_the_word_with_it(text: str, words: list[str]) -> None:
    assert split(text) == words


@settings(deadline=None)
@given(st.text(max_size=60))
def test_words_are_in_order_and_leave_out_only_whitespace(text: str) -> None:
    places = split_words(text, VOCAB)
    assert all(start < end for start, end in places)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(places))
    assert "".join(text[start:end] for start, end in places) == "".join(text.split())


@pytest.mark.parametrize("sign", ["!", "'", "x", "don't"])
def test_a_megabyte_without_a_space_takes_no_longer_than_its_length(sign: str) -> None:
    text = sign * (1_000_000 // len(sign))
    began = time.process_time()
    assert sum(end - start for start, end in split_words(text, VOCAB)) == len(text)
    assert time.process_time() - began < 10


def test_rare_words_are_unknown_but_have_their_characters() -> None:
    vocab = WordVocab.count(Counter({"cat": 2, "cab": 1}), min_count=2)
    assert vocab.encode("cab")[0] == UNK and vocab.encode("cab")[1:3] == vocab.encode("cat")[1:3]
    assert vocab.encode("é") == [UNK, UNK]
    assert WordVocab.count(Counter({"cat": 2}), with_chars=False).encode("cat") == [2]


def test_word_ids_may_ignore_case_and_character_ids_do_not() -> None:
    vocab = WordVocab.count(Counter({"The": 1, "the": 3, "cat": 2}), min_count=2, lowercase=True)
    assert vocab.words == ("the", "cat")
    assert vocab.encode("THE")[0] == vocab.encode("the")[0] != UNK
    assert vocab.encode("The")[1] != vocab.encode("the")[1]


def test_both_ends_of_a_long_word_are_read() -> None:
    vocab = WordVocab(("abcdefgh",), tuple("abcdefgh"), max_chars=5)
    read = "".join(vocab.chars[i - 2] for i in vocab.encode("abcdefgh")[1:])
    assert read == "abfgh"


def test_a_vocabulary_does_not_depend_on_the_order_of_the_data_and_is_saved(tmp_path: Path) -> None:
    one, two = WordVocab.count(Counter("a b b c".split())), WordVocab.count(Counter("c b a b".split()))  # noqa: SIM905
    assert one == two
    one.save(tmp_path / "vocab.json")
    assert WordVocab.load(tmp_path / "vocab.json") == one
    (tmp_path / "vocab.json").write_text("[]", encoding="utf-8")
    with pytest.raises(ModelError) as caught:
        WordVocab.load(tmp_path / "vocab.json")
    assert str(caught.value) == f"{tmp_path}/vocab.json cannot be read: expected the word vocabulary of a model"
