"""Splits by the hash of a sentence: which share is held out, and what counts as the same sentence."""

from __future__ import annotations

from collections import Counter

import numpy as np

from regard.data.splits import hashes, is_held_out, isin_sorted, partition, split_of


def test_a_share_is_held_out_and_repetitions_stay_together() -> None:
    assert [n for n in range(100) if is_held_out(f"{n} cats", 0.05)] == [10, 14, 17, 28, 46, 60, 63]
    assert is_held_out("Va !", 0.5) == is_held_out("va.", 0.5)
    assert [split_of(f"{n} stars", 0.1, 0.2, seed=1) for n in range(3)] == ["train", "test", "train"]
    assert split_of("1 Stars!", 0.1, 0.2, seed=1) == "test"


def test_splits_of_pairs_have_about_the_shares_asked_for() -> None:
    found = Counter(partition([(f"{n} cats", f"{n} chats") for n in range(1000)], valid=0.02, test=0.02, seed=1))
    assert found == {"train": 955, "test": 26, "valid": 19}


def test_sentences_that_differ_in_punctuation_have_one_hash() -> None:
    a, b, c = hashes(["Va !", "va.", "Viens !"])
    assert a == b != c
    assert isin_sorted(np.array([3, 4, 9]), np.array([1, 4, 7])).tolist() == [False, True, False]
