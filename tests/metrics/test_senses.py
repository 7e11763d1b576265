"""The benchmark of word senses: its sentences, its nearest centroids and its test."""

from __future__ import annotations

import re
import runpy
from collections import Counter
from pathlib import Path

import pytest
import torch

SENSES = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "senses.py"))
EXAMPLES = SENSES["read_examples"]()


def test_five_words_have_two_senses_with_ten_sentences_each_and_each_has_its_word_once():
    assert sorted(Counter((one.word, one.sense) for one in EXAMPLES).values()) == [10] * 10
    assert len({one.word for one in EXAMPLES}) == 5 and len({one.sentence for one in EXAMPLES}) == 100
    for one in EXAMPLES:
        assert len(re.findall(rf"\b{one.word}\b", one.sentence)) == 1


def test_a_sentence_does_not_count_in_its_own_centroid_and_a_tie_goes_to_the_first_sense():
    nearest = SENSES["nearest_centroid"]
    right = torch.tensor([[1.0, 0.0] if one.sense in ("money", "person") else [0.0, 1.0] for one in EXAMPLES])
    assert [nearest(right, EXAMPLES, i) for i in range(20)] == ["money"] * 10 + ["river"] * 10
    moved = right.clone()
    moved[0] = torch.tensor([0.0, 1.0])
    assert nearest(moved, EXAMPLES, 0) == "river"
    assert {nearest(torch.ones(100, 2), EXAMPLES, i) for i in range(20)} == {"money"}


@pytest.mark.parametrize(
    ("only_a", "only_b", "expected"), [(0, 0, 1.0), (0, 6, 0.03125), (1, 9, 22 / 1024), (5, 5, 1.0)]
)
def test_the_exact_test_counts_what_one_of_both_has_right(only_a, only_b, expected):
    a = [True] * only_a + [False] * only_b + [True] * 3
    b = [False] * only_a + [True] * only_b + [True] * 3
    assert SENSES["mcnemar"](a, b) == pytest.approx(expected)
