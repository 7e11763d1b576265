"""Which sentence pairs are worth learning from, and how many were dropped why.

    pairs --clean--> pairs --encode--> rows of ids --> shards

Everything streams. What must be remembered to find duplicates lies in a temporary file, not in memory.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import numpy as np

from regard.data.splits import among, hashes
from regard.errors import ConfigError, DataError, OutputError
from regard.tasks.translate.sources import Pair

REASONS = (
    "also in training",
    "also in validation",
    "empty",
    "too long",
    "length ratio",
    "identical sides",
    "duplicates",
)
"""Why a pair is dropped, in the order in which it is tested; "read" counts them all."""
SLACK = 10
"""Characters that the ratio forgives, so that short sentences may differ: "Go." and "Vas-y maintenant."."""
CHUNK = 4096
"""Pairs that are looked up, or encoded, at once."""

Encode = Callable[[list[str]], Sequence[Sequence[int]]]
"""Many texts in, the ids of each out."""


@dataclass(frozen=True)
class Filter:
    """Which sentence pairs are kept.

    >>> Filter(characters=20).reason("a far too long sentence", "short")
    'too long'
    """

    characters: int = 1000
    """the most characters a side may have"""
    tokens: int = 256
    """the most tokens a side may have"""
    ratio: float = 4.0
    """how many times longer one side may be than the other, in characters, after adding 10 to the shorter"""
    identical: bool = True
    """drop a pair whose two sides are the same"""
    duplicates: bool = True
    """drop a pair that came before"""

    def __post_init__(self) -> None:
        for name, value in (("characters", self.characters), ("tokens", self.tokens), ("ratio", self.ratio)):
            if not value >= 1:
                raise ConfigError(f"{name}: expected 1 or more, got {value}")

    def reason(self, source: str, target: str) -> str | None:
        """Why the pair is dropped, as far as the pair alone can tell; None: it is kept."""
        if not source.strip() or not target.strip():
            return "empty"
        shorter, longer = sorted((len(source), len(target)))
        if longer > self.characters:
            return "too long"
        if longer > self.ratio * (shorter + SLACK):
            return "length ratio"
        if self.identical and source == target:
            return "identical sides"
        return None


def clean(pairs: Iterable[Pair], rules: Filter, counts: Counter[str], folder: Path | None = None) -> Iterator[Pair]:
    """The pairs that pass, in order; `counts` grows by what was read and what was dropped why.

    The hashes of the pairs that came before lie in a temporary file in `folder` (the system's own, if None).

    >>> counts: Counter[str] = Counter()
    >>> pairs = [("oui", "yes"), ("", "no"), ("oui", "yes"), ("ok", "ok")]
    >>> list(clean(pairs, Filter(), counts))
    [('oui', 'yes')]
    >>> summary(counts)
    'read 4 pairs, kept 1; dropped: 1 empty, 1 identical sides, 1 duplicates'
    """
    before = counts.copy()
    kept = False
    sound = _sound(pairs, rules, counts)
    for pair in _fresh(sound, counts, folder) if rules.duplicates else sound:
        kept = True
        yield pair
    if not kept:
        raise DataError(f"no pair is left: {summary(counts - before)}; check the data, or loosen the filter")


def unseen(pairs: Iterable[Pair], known: np.ndarray, reason: str, counts: Counter[str]) -> Iterator[Pair]:
    """The pairs whose target is not among known ones, given as sorted hashes; the others are counted as dropped.

    >>> counts: Counter[str] = Counter()
    >>> list(unseen([("vas-y", "Go!"), ("viens", "Come!")], hashes(["go"]), "also in training", counts))
    [('viens', 'Come!')]
    >>> summary(counts)
    'read 1 pairs, kept 0; dropped: 1 also in training'
    """
    for chunk in _chunks(pairs):
        seen = among(hashes(pair[1] for pair in chunk), known)
        counts[reason] += int(seen.sum())
        counts["read"] += int(seen.sum())  # whoever takes the others counts them
        yield from (pair for pair, known_one in zip(chunk, seen.tolist()) if not known_one)


def encode(
    pairs: Iterable[Pair], source: Encode, target: Encode, rules: Filter, counts: Counter[str]
) -> Iterator[list[tuple[Sequence[int], Sequence[int]]]]:
    """The pairs as ids, a list of many rows at a time; pairs with too many tokens are dropped and counted.

    >>> counts: Counter[str] = Counter()
    >>> spell = lambda texts: [[ord(character) for character in text] for text in texts]
    >>> list(encode([("a", "b"), ("aaaa", "b")], spell, spell, Filter(tokens=3), counts))
    [[([97], [98])]]
    >>> counts["too long"]
    1
    """
    for chunk in encode_pairs(pairs, source, target, rules, counts):
        yield [row for _, row in chunk]


def encode_pairs(
    pairs: Iterable[Pair], source: Encode, target: Encode, rules: Filter, counts: Counter[str]
) -> Iterator[list[tuple[Pair, tuple[Sequence[int], Sequence[int]]]]]:
    """As `encode`, each row with the pair that it was.

    >>> spell = lambda texts: [[ord(character) for character in text] for text in texts]
    >>> list(encode_pairs([("a", "b")], spell, spell, Filter(), Counter()))
    [[(('a', 'b'), ([97], [98]))]]
    """
    left = 0
    for chunk in _chunks(pairs):
        rows = list(zip(source([pair[0] for pair in chunk]), target([pair[1] for pair in chunk]), strict=True))
        both = zip(chunk, rows, strict=True)
        kept = [(pair, row) for pair, row in both if len(row[0]) <= rules.tokens and len(row[1]) <= rules.tokens]
        counts["too long"] += len(rows) - len(kept)
        left += len(kept)
        yield kept
    if not left:
        raise DataError(f"no pair is left: none has at most {rules.tokens} tokens on both sides; loosen the filter")


def summary(counts: Counter[str]) -> str:
    """What was read, kept and dropped, in a line.

    >>> summary(Counter({"read": 1200, "empty": 3}))
    'read 1,200 pairs, kept 1,197; dropped: 3 empty'
    """
    dropped = [f"{counts[reason]:,} {reason}" for reason in REASONS if counts[reason]]
    kept = counts["read"] - sum(counts[reason] for reason in REASONS)
    return f"read {counts['read']:,} pairs, kept {kept:,}; dropped: {', '.join(dropped) or 'none'}"


class Seen:
    """A set of 128-bit keys in a temporary file: its memory belongs to the file, not to the process.

    An open hash table, at most half full, doubled when it would become fuller.

    >>> seen = Seen()
    >>> seen.add(keys_of([("a", "b"), ("c", "d"), ("a", "b")]))
    array([ True,  True, False])
    >>> seen.add(keys_of([("c", "d"), ("e", "f")]))
    array([False,  True])
    """

    def __init__(self, folder: Path | None = None, slots: int = 1 << 16) -> None:
        self._folder = folder
        self._used = 0
        self._table = _zeros(folder, slots)

    def __len__(self) -> int:
        return self._used

    def add(self, keys: np.ndarray) -> np.ndarray:
        """Take in keys, shape (N, 2); True where a key comes for the first time."""
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
        """Put distinct keys into the table; True where a key was not there."""
        table, last = self._table, np.uint64(len(self._table) - 1)
        slots = keys[:, 0] & last
        new = np.zeros(len(keys), bool)
        open_ = np.arange(len(keys))
        while len(open_):
            found = table[slots[open_]]
            free = found[:, 1] == 0
            there = (found == keys[open_]).all(1)
            claiming = open_[free]
            # two keys may want one slot: one gets it, the other finds it taken in the next round
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


def keys_of(pairs: Sequence[Pair]) -> np.ndarray:
    """A 128-bit hash of each pair, as two whole numbers, shape (N, 2); the second is never 0.

    >>> keys_of([("ab", "c"), ("a", "bc")]).shape
    (2, 2)
    """
    # 0xff is in no UTF-8 text, so it ends the source
    digests = [
        blake2b(source.encode() + b"\xff" + target.encode(), digest_size=16).digest() for source, target in pairs
    ]
    keys = np.frombuffer(b"".join(digests), dtype="<u8").reshape(-1, 2).astype(np.uint64)
    keys[:, 1] |= np.uint64(1)
    return keys


def _zeros(folder: Path | None, slots: int) -> np.ndarray:
    """An empty table in a file that has no name any more: it is gone when nobody uses it."""
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


def _sound(pairs: Iterable[Pair], rules: Filter, counts: Counter[str]) -> Iterator[Pair]:
    for source, target in pairs:
        counts["read"] += 1
        reason = rules.reason(source, target)
        if reason is None:
            yield source, target
        else:
            counts[reason] += 1


def _fresh(pairs: Iterable[Pair], counts: Counter[str], folder: Path | None) -> Iterator[Pair]:
    seen = Seen(folder)
    for chunk in _chunks(pairs):
        first = seen.add(keys_of(chunk))
        counts["duplicates"] += len(chunk) - int(first.sum())
        yield from (pair for pair, is_first in zip(chunk, first.tolist()) if is_first)


def _chunks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    stream = iter(pairs)
    while chunk := list(islice(stream, CHUNK)):
        yield chunk
