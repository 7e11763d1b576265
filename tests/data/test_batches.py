from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import Batches, BatchPosition, Permutation, rank_share
from regard.errors import ConfigError, DataError


def corpus(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Lengths as of translations: the sides are alike, not equal."""
    numbers = np.random.default_rng(seed)
    target = 2 + numbers.poisson(12, rows)
    return np.maximum(1, target + numbers.integers(-4, 6, rows)), target


@settings(deadline=None)
@given(st.integers(1, 3000), st.integers(0, 2**70), st.integers(0, 5))
def test_a_permutation_has_every_row_once(n: int, seed: int, epoch: int) -> None:
    assert sorted(Permutation(n, (seed, epoch)).at(np.arange(n)).tolist()) == list(range(n))


@settings(deadline=None)
@given(st.integers(1, 3000), st.data())
def test_a_value_of_a_permutation_does_not_depend_on_the_other_positions(n: int, data: st.DataObject) -> None:
    places = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=5)), np.int64)
    order = Permutation(n, (3, 1))
    assert order.at(places).tolist() == order.at(np.arange(n))[places].tolist()


def test_a_permutation_of_a_huge_range_needs_no_array() -> None:
    n = 10**15 + 7
    found = Permutation(n, (0, 0)).at(np.arange(n - 1000, n))
    assert len(set(found.tolist())) == 1000 and found.min() >= 0 and found.max() < n


def test_all_permutations_of_four_are_about_equally_frequent() -> None:
    counts = Counter(tuple(Permutation(4, (seed, 0)).at(np.arange(4)).tolist()) for seed in range(4800))
    assert len(counts) == 24
    # chi-square with 23 degrees of freedom: above 49.7 in one of a thousand
    assert sum((count - 200) ** 2 / 200 for count in counts.values()) < 49.7


def test_neighbors_in_a_permutation_are_not_neighbors_in_the_data() -> None:
    n = 50_000
    order = Permutation(n, (0, 0)).at(np.arange(n))
    assert abs(np.corrcoef(order[1:], order[:-1])[0, 1]) < 0.02
    assert abs(np.corrcoef(order, np.arange(n))[0, 1]) < 0.02


def test_seed_and_epoch_both_change_the_order() -> None:
    orders = {
        tuple(Permutation(100, (seed, epoch)).at(np.arange(100)).tolist()) for seed in range(5) for epoch in range(5)
    }
    assert len(orders) == 25


def test_the_order_is_the_same_on_every_machine() -> None:
    assert Permutation(10, (0, 1)).at(np.arange(10)).tolist() == [8, 5, 7, 2, 6, 1, 9, 0, 3, 4]


sides = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=120)


@settings(deadline=None)
@given(sides, st.integers(1, 100), st.integers(1, 50), st.integers(0, 3))
def test_every_row_comes_once_per_epoch_and_no_batch_exceeds_the_budget(
    rows: list[tuple[int, int]], budget: int, pool: int, epoch: int
) -> None:
    source, target = np.array(rows).T
    batches = Batches((source, target), budget, seed=1, pool=pool)
    found = list(batches.epoch(epoch))
    assert sorted(np.concatenate(found).tolist()) == list(range(len(rows)))
    for batch in found:
        positions = len(batch) * max(source[batch].max(), target[batch].max())
        assert len(batch) == 1 or positions <= budget
    assert batches.count(epoch) == len(found)


@settings(deadline=None, max_examples=40)
@given(sides, st.integers(1, 60), st.integers(1, 50), st.integers(0, 40))
def test_resuming_at_any_position_equals_never_having_stopped(
    rows: list[tuple[int, int]], budget: int, pool: int, stop: int
) -> None:
    lengths = tuple(np.array(rows).T)
    whole = [(batch.tolist(), after) for batch, after in islice(Batches(lengths, budget, 5, pool).stream(), 60)]
    position = whole[stop][1]
    position = BatchPosition(**json.loads(json.dumps(asdict(position))))
    again = Batches(lengths, budget, 5, pool).stream(position)
    assert [(batch.tolist(), after) for batch, after in islice(again, 59 - stop)] == whole[stop + 1 :]


def test_the_next_epoch_has_another_order() -> None:
    batches = Batches(corpus(500), budget=400, pool=200)
    count = batches.count(0)
    first = [batch.tolist() for batch, _ in islice(batches.stream(), count)]
    assert first == [batch.tolist() for batch in batches.epoch(0)]
    *_, (_, after) = islice(batches.stream(), count)
    assert after == BatchPosition(epoch=1)
    second = [batch.tolist() for batch, _ in islice(batches.stream(after), batches.count(1))]
    assert second == [batch.tolist() for batch in batches.epoch(1)] != first


def test_batches_do_not_come_sorted_by_length() -> None:
    source, target = corpus(20_000)
    widths = [target[batch].max() for batch in Batches((source, target), budget=1000).epoch(0)]
    assert abs(np.corrcoef(widths, np.arange(len(widths)))[0, 1]) < 0.2


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 7))
def test_the_shares_of_all_ranks_make_the_batch(rows: int, size: int) -> None:
    batch = np.random.default_rng(0).permutation(rows)
    shares = [rank_share(batch, rank, size) for rank in range(size)]
    assert sorted(np.concatenate(shares).tolist()) == sorted(batch.tolist())
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_row_longer_than_the_budget_is_a_batch_of_its_own() -> None:
    batches = Batches((np.array([2, 900, 2]), np.array([3, 3, 3])), budget=10)
    assert {tuple(sorted(batch.tolist())) for batch in batches.epoch(0)} == {(0, 2), (1,)}


def test_one_column_is_enough() -> None:
    lengths = np.array([5, 1, 5, 1, 5, 1])
    assert {tuple(sorted(batch.tolist())) for batch in Batches((lengths,), budget=15).epoch(0)} == {
        (1, 3, 5),
        (0, 2, 4),
    }


def test_both_sides_are_padded_little() -> None:
    source, target = corpus(29_000)
    batches = list(Batches((source, target), budget=4096).epoch(0))
    assert padding(target, batches) < 0.02
    assert padding(source, batches) < 0.08


def padding(side: np.ndarray, batches: list[np.ndarray]) -> float:
    return 1 - side.sum() / sum(len(batch) * side[batch].max() for batch in batches)


def test_a_position_of_other_data_is_refused() -> None:
    batches = Batches(corpus(100), budget=400)
    for position in (BatchPosition(0, 1, 0), BatchPosition(2, 0, 5000)):
        with pytest.raises(DataError) as caught:
            next(batches.stream(position))
        assert str(caught.value) == (
            f"epoch {position.epoch} has no batch {position.batch} in pool {position.pool}; "
            "the data or the budget has changed"
        )


def test_no_rows_are_refused() -> None:
    with pytest.raises(DataError, match=r"^there are no rows to make batches of$"):
        Batches((np.array([], np.int64),), budget=10)


@pytest.mark.parametrize("field", ["budget", "pool"])
def test_a_size_below_one_is_refused(field: str) -> None:
    sizes = {"budget": 10, "pool": 10, field: 0}
    with pytest.raises(ConfigError, match=f"^{field}: expected 1 or more, got 0$"):
        Batches((np.array([1]),), **sizes)
