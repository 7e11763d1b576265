"""Filtering of sentence pairs, with counts of what was dropped and why.

    pairs --filter_pairs--> pairs --encode_pairs--> rows of ids --> shards

Everything is streamed. The hashes that find duplicates are in a temporary file, not in memory.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np

from regard.data.splits import CHUNK, chunked, hashes, isin_sorted
from regard.errors import ConfigError, DataError, OutputError
from regard.tasks.translate.sources import Pair

REASONS = (
    *("also in training", "also in validation", "also held out", "empty"),
    *("too long", "length ratio", "identical sides", "duplicates"),
)
"""Why a pair is dropped, in the order of the tests; "read" counts all pairs."""
SLACK = 10
"""Characters added to the shorter side, so that short sentences may differ: "Go." and "Vas-y maintenant."."""

Encode = Callable[[list[str]], Sequence[Sequence[int]]]
"""Encodes a batch of texts as ids."""


@dataclass(frozen=True)
class FilterConfig:
    """Conditions on the sentence pairs that are kept."""

    max_characters: int = 1000
    """maximum number of characters of a side"""
    max_tokens: int = 256
    """maximum number of tokens of a side"""
    max_length_ratio: float = 4.0
    """maximum ratio of the lengths of the two sides, in characters, after adding 10 to the shorter"""
    identical: bool = True
    """drop pairs whose two sides are equal"""
    duplicates: bool = True
    """drop repeated pairs"""

    def __post_init__(self) -> None:
        for name in ("max_characters", "max_tokens", "max_length_ratio"):
            if not getattr(self, name) >= 1:
                raise ConfigError(f"{name}: expected 1 or more, got {getattr(self, name)}")

    def reason(self, source: str, target: str) -> str | None:
        """Why the pair is dropped, not counting duplicates and tokens; None: it is kept."""
        if not source.strip() or not target.strip():
            return "empty"
        shorter, longer = sorted((len(source), len(target)))
        if longer > self.max_characters:
            return "too long"
        if longer > self.max_length_ratio * (shorter + SLACK):
            return "length ratio"
        if self.identical and source == target:
            return "identical sides"
        return None


def filter_pairs(
    pairs: Iterable[Pair], rules: FilterConfig, counts: Counter[str], folder: Path | None = None
) -> Iterator[Pair]:
    """The pairs that are kept, in order; updates `counts` with what was read and dropped.

    The hashes of earlier pairs are in a temporary file in `folder` (None: the system's temporary folder).

    >>> counts: Counter[str] = Counter()
    >>> pairs = [("oui", "yes"), ("", "no"), ("oui", "yes"), ("ok", "ok")]
    >>> list(filter_pairs(pairs, FilterConfig(), counts))
    [('oui', 'yes')]
    >>> format_filter_counts(counts)
    'read 4 pairs, kept 1; dropped: 1 empty, 1 identical sides, 1 duplicates'
    """
    before = counts.copy()
    kept = False
    passing = _passing(pairs, rules, counts)
    for pair in _without_duplicates(passing, counts, folder) if rules.duplicates else passing:
        kept = True
        yield pair
    if not kept:
        found = counts - before
        advice = "check the data or the filter settings"
        if found["identical sides"] == found["read"] > 0:
            advice = "source and target are the same text: name two files, or set filter.identical=false"
        raise DataError(f"no pair is left: {format_filter_counts(found)}; {advice}")


def drop_known(
    pairs: Iterable[Pair], known: np.ndarray, sides: Sequence[int], reason: str, counts: Counter[str]
) -> Iterator[Pair]:
    """The pairs of which none of the sides (0: source) is in `known`, sorted hashes; others are counted as dropped."""
    for chunk in chunked(pairs):
        seen = np.any([isin_sorted(hashes(pair[side] for pair in chunk), known) for side in sides], axis=0)
        counts[reason] += int(seen.sum())
        counts["read"] += int(seen.sum())  # the caller counts the others
        yield from (pair for pair, drop in zip(chunk, seen.tolist()) if not drop)


def encode_pairs(
    pairs: Iterable[Pair], source: Encode, target: Encode, rules: FilterConfig, counts: Counter[str]
) -> Iterator[list[tuple[Pair, tuple[Sequence[int], Sequence[int]]]]]:
    """Pairs with their ids, many at a time; pairs with too many tokens are dropped and counted."""
    left = 0
    for chunk in chunked(pairs):
        rows = list(zip(source([pair[0] for pair in chunk]), target([pair[1] for pair in chunk]), strict=True))
        both = zip(chunk, rows, strict=True)
        kept = [
            (pair, row) for pair, row in both if len(row[0]) <= rules.max_tokens and len(row[1]) <= rules.max_tokens
        ]
        counts["too long"] += len(rows) - len(kept)
        left += len(kept)
        yield kept
    if not left:
        raise DataError(f"no pair is left: none has at most {rules.max_tokens} tokens on both sides; loosen the filter")


def format_filter_counts(counts: Counter[str]) -> str:
    """Counts of pairs read, kept and dropped, in a line."""
    dropped = [f"{counts[reason]:,} {reason}" for reason in REASONS if counts[reason]]
    kept = counts["read"] - sum(counts[reason] for reason in REASONS)
    return f"read {counts['read']:,} pairs, kept {kept:,}; dropped: {', '.join(dropped) or 'none'}"


class DiskHashSet:
    """A set of 128-bit keys in a temporary file: an open-addressing hash table, doubled when half full."""

    def __init__(self, folder: Path | None = None, slots: int = 1 << 16) -> None:
        self._folder, self._used, self._table = folder, 0, _zeros(folder, slots)

    def __len__(self) -> int:
        return self._used

    def add(self, keys: np.ndarray) -> np.ndarray:
        """Add keys, shape (N, 2); True where a key is new."""
        order = np.lexsort((keys[:, 1], keys[:, 0]))  # stable: the first of equal keys stays the first
        ordered = keys[order]
        differs = np.ones(len(keys), bool)
        differs[1:] = (ordered[1:] != ordered[:-1]).any(1)
        distinct = order[differs]
        while 2 * (self._used + len(distinct)) > len(self._table):
            self._double()
        new = self._insert(keys[distinct])
        self._used += int(new.sum())
        first = np.zeros(len(keys), bool)
        first[distinct[new]] = True
        return first

    def _insert(self, keys: np.ndarray) -> np.ndarray:
        """Insert distinct keys; True where a key is new."""
        table, last = self._table, np.uint64(len(self._table) - 1)
        slots = keys[:, 0] & last
        new = np.zeros(len(keys), bool)
        open_ = np.arange(len(keys))
        while len(open_):
            found = table[slots[open_]]
            free = found[:, 1] == 0
            there = (found == keys[open_]).all(1)
            claiming = open_[free]
            # two keys may claim one slot: one gets it, the other finds it taken in the next round
            winners = claiming[np.unique(slots[claiming], return_index=True)[1]]
            table[slots[winners]] = keys[winners]
            new[winners] = True
            passed = open_[~free & ~there]
            slots[passed] = (slots[passed] + np.uint64(1)) & last
            open_ = open_[~there & ~new[open_]]
        return new

    def _double(self) -> None:
        old = self._table
        self._table = _zeros(self._folder, 2 * len(old))
        for start in range(0, len(old), CHUNK):
            keys = np.array(old[start : start + CHUNK])
            self._insert(keys[keys[:, 1] != 0])


def pair_keys(pairs: Sequence[Pair]) -> np.ndarray:
    """A 128-bit hash of each pair as two integers, shape (N, 2); the second is never 0."""
    # 0xff is in no UTF-8 text, so it ends the source
    digests = [
        blake2b(source.encode() + b"\xff" + target.encode(), digest_size=16).digest() for source, target in pairs
    ]
    keys = np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2).astype(np.uint64)
    keys[:, 1] |= np.uint64(1)
    return keys


def _zeros(folder: Path | None, slots: int) -> np.ndarray:
    """An empty table in an unlinked file, which the system removes when it is closed."""
    size = 16 * slots
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            # written, not only reserved: a full disk is an error here, not a crash later
            for start in range(0, size, 1 << 20):
                file.write(bytes(min(1 << 20, size - start)))
            file.flush()
            return np.asarray(np.memmap(file, dtype=np.uint64, mode="r+", shape=(slots, 2)))
    except OSError as error:
        where = folder or tempfile.gettempdir()
        raise OutputError(
            f"{where}: cannot write a temporary file of {size >> 20} MB to find duplicates: {error.strerror}"
        ) from None


def _passing(pairs: Iterable[Pair], rules: FilterConfig, counts: Counter[str]) -> Iterator[Pair]:
    for source, target in pairs:
        counts["read"] += 1
        reason = rules.reason(source, target)
        if reason is None:
            yield source, target
        else:
            counts[reason] += 1


def _without_duplicates(pairs: Iterable[Pair], counts: Counter[str], folder: Path | None) -> Iterator[Pair]:
    seen = DiskHashSet(folder)
    for chunk in chunked(pairs):
        first = seen.add(pair_keys(chunk))
        counts["duplicates"] += len(chunk) - int(first.sum())
        yield from (pair for pair, is_first in zip(chunk, first.tolist()) if is_first)
