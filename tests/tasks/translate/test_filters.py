from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import ConfigError, DataError, OutputError
from regard.tasks.translate.filters import (
    CHUNK,
    DiskHashSet,
    FilterConfig,
    encode_pairs,
    filter_pairs,
    format_filter_counts,
    pair_keys,
)


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (("oui", "yes"), None),
        (("", "yes"), "empty"),
        (("oui", " \u00a0\t"), "empty"),
        (("x" * 1000, "y" * 1000), None),
        (("x" * 1001, "y" * 1000), "too long"),
        (("x" * 400, "y" * 90), None),
        (("x" * 401, "y" * 90), "length ratio"),
        (("y" * 90, "x" * 401), "length ratio"),
        (("Go.", "Vas-y maintenant, je t'en prie."), None),
        (("Berlin", "Berlin"), "identical sides"),
        (("Berlin", "berlin"), None),
    ],
)
def test_a_pair_is_dropped_for_the_first_reason_that_holds(pair: tuple[str, str], reason: str | None) -> None:
    assert FilterConfig().reason(*pair) == reason


def test_every_pair_is_counted_once() -> None:
    pairs = [
        ("a", "b"),
        ("", "b"),
        ("a", "b"),
        ("x" * 30, "y"),
        ("a" * 99, "b" * 99),
        ("q", "q"),
        ("b", "a"),
        ("a", "b"),
    ]
    counts: Counter[str] = Counter()
    pairs_left = list(filter_pairs(pairs, FilterConfig(max_characters=50, max_length_ratio=2), counts))
    assert pairs_left == [("a", "b"), ("b", "a")]
    assert counts == {
        "read": 8, "empty": 1, "too long": 1, "length ratio": 1, "identical sides": 1, "duplicates": 2
    }  # fmt: skip
    assert format_filter_counts(counts) == (
        "read 8 pairs, kept 2; dropped: 1 empty, 1 too long, 1 length ratio, 1 identical sides, 2 duplicates"
    )


def test_switched_off_rules_drop_nothing() -> None:
    pairs = [("a", "a"), ("a", "a")]
    counts: Counter[str] = Counter()
    assert list(filter_pairs(pairs, FilterConfig(identical=False, duplicates=False), counts)) == pairs
    assert format_filter_counts(counts) == "read 2 pairs, kept 2; dropped: none"


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.sampled_from("abcé"), st.sampled_from("vwxyz")), min_size=1, max_size=200))
def test_of_equal_pairs_the_first_is_kept_and_the_order_stays(pairs: list[tuple[str, str]]) -> None:
    counts: Counter[str] = Counter()
    assert list(filter_pairs(pairs, FilterConfig(), counts)) == list(dict.fromkeys(pairs))
    assert counts["duplicates"] == len(pairs) - len(set(pairs))


def test_duplicates_are_found_over_chunks_and_growing_tables() -> None:
    def pairs() -> Iterator[tuple[str, str]]:
        for i in range(25 * CHUNK):
            yield f"source {i % 70_001}", f"target {i % 70_001}"

    counts: Counter[str] = Counter()
    pairs_left = list(filter_pairs(pairs(), FilterConfig(), counts))
    assert pairs_left == [(f"source {i}", f"target {i}") for i in range(70_001)]
    assert counts["duplicates"] == 25 * CHUNK - 70_001


def test_moving_a_letter_to_the_other_side_makes_another_pair() -> None:
    first, second = pair_keys([("ab", "c"), ("a", "bc")])
    assert (first != second).any()


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.integers(0, 30), max_size=20), max_size=8), st.sampled_from([2, 64]))
def test_a_set_on_the_disk_is_a_set(batches: list[list[int]], slots: int) -> None:
    # keys that all want the same slot, so that every probe collides
    seen, reference = DiskHashSet(slots=slots), set()
    for batch in batches:
        keys = np.array([[7, 2 * value + 1] for value in batch], np.uint64).reshape(-1, 2)
        expected = [value not in reference and value not in batch[:i] for i, value in enumerate(batch)]
        assert seen.add(keys).tolist() == expected
        reference.update(batch)
    assert len(seen) == len(reference)


def test_a_full_disk_is_named_before_anything_is_lost(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OutputError) as caught:
            DiskHashSet(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(caught.value) == (
        f"{tmp_path}: cannot write a temporary file of 1 MB to find duplicates: File too large"
    )


def test_nothing_left_is_an_error_with_the_reasons() -> None:
    with pytest.raises(DataError) as caught:
        list(filter_pairs([("", "a"), ("b", "b")], FilterConfig(), Counter()))
    assert str(caught.value) == (
        "no pair is left: read 2 pairs, kept 0; dropped: 1 empty, 1 identical sides; "
        "check the data or the filter settings"
    )


def test_two_equal_files_are_named_as_the_reason() -> None:
    with pytest.raises(DataError) as caught:
        list(filter_pairs([("a", "a"), ("b", "b")], FilterConfig(), Counter()))
    assert str(caught.value) == (
        "no pair is left: read 2 pairs, kept 0; dropped: 2 identical sides; source and target are the same text: name "
        "two files, or set filter.identical=false"
    )


def test_pairs_with_too_many_tokens_are_dropped_and_counted() -> None:
    def lengths(texts: list[str]) -> list[list[int]]:
        return [[0] * len(text) for text in texts]

    counts: Counter[str] = Counter()
    pairs = [("aa", "b"), ("aaa", "b"), ("a", "bbb"), ("a", "bb")]
    chunks = encode_pairs(pairs, lengths, lengths, FilterConfig(max_tokens=2), counts)
    rows = [row for chunk in chunks for _, row in chunk]
    assert rows == [([0, 0], [0]), ([0], [0, 0])]
    assert counts["too long"] == 2


def test_no_pair_short_enough_in_tokens_is_an_error() -> None:
    def three(texts: list[str]) -> list[list[int]]:
        return [[1, 2, 3] for _ in texts]

    with pytest.raises(DataError) as caught:
        list(encode_pairs([("a", "b")], three, three, FilterConfig(max_tokens=2), Counter()))
    assert str(caught.value) == "no pair is left: none has at most 2 tokens on both sides; loosen the filter"


@pytest.mark.parametrize("field", ["max_characters", "max_tokens", "max_length_ratio"])
def test_a_limit_below_one_is_refused(field: str) -> None:
    with pytest.raises(ConfigError, match=f"^{field}: expected 1 or more, got 0$"):
        FilterConfig(**{field: 0})  # type: ignore[arg-type]
