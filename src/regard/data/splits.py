"""Train, validation and test splits without leaks: no sentence of either side is in two splits.

Sentences are the nodes of a graph and pairs its edges: "Run!" has several French translations, some of which translate
other English sentences too. Whole connected components go to one split. Splitting by one side alone leaves the other
side's sentences in both (11 % of Tatoeba's held-out French sentences).

The graph needs all pairs in memory. Where pairs are streamed, a share is held out by a hash of one side
(`is_held_out`), and pairs whose other side is in both parts (`overlap`) are dropped from one of them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import numpy as np

from regard.errors import ConfigError

T = TypeVar("T")
SPLITS = ("train", "valid", "test")
ENDINGS = " .!?…;:,\"'«»()-"
CHUNK = 4096
"""Sentences or pairs hashed, looked up or encoded at once."""


def normalize_sentence(sentence: str) -> str:
    """Normalized form by which sentences are compared: case, outer quotes, final punctuation and the kind of apostrophe
    do not count.

    >>> normalize_sentence("Va !") == normalize_sentence("va.")
    True
    >>> normalize_sentence("C’est vrai ?")
    "c'est vrai"
    """
    return " ".join(sentence.casefold().replace("’", "'").split()).strip(ENDINGS)


def connected_components(pairs: Sequence[tuple[str, str]]) -> list[int]:
    """Connected component of each pair: the index of the first pair that belongs to it.

    >>> connected_components([("Go.", "Va !"), ("Hi.", "Salut !"), ("Move.", "Bouge !"), ("Go!", "Bouge.")])
    [0, 1, 0, 0]
    """
    parent = list(range(len(pairs)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for side in (0, 1):
        first: dict[str, int] = {}
        for i, pair in enumerate(pairs):
            one, other = root(first.setdefault(normalize_sentence(pair[side]), i)), root(i)
            if one != other:
                parent[max(one, other)] = min(one, other)
    return [root(i) for i in range(len(pairs))]


def partition(
    pairs: Sequence[tuple[str, str]], valid: float, test: float, seed: int, keep: Iterable[str] = ()
) -> list[str]:
    """Split of each pair, chosen by a hash of the smallest sentence of its connected component.

    The same pairs in any order give the same splits, and a pair that is added moves none but those it connects.
    A component with more than a hundredth of all pairs goes to train: held out, it would fill a split by itself.
    So does a component with a sentence of `keep`.
    """
    numbers = connected_components(pairs)
    sizes = Counter(numbers)
    names: dict[int, str] = {}
    for number, pair in zip(numbers, pairs):
        name = min(map(normalize_sentence, pair))
        names[number] = min(names.get(number, name), name)
    chosen = {number: _split(name, valid, test, seed) for number, name in names.items()}
    chosen |= {number: "train" for number, size in sizes.items() if size > max(1, len(pairs) // 100)}
    kept = set(map(normalize_sentence, keep))
    if kept:
        chosen |= {n: "train" for n, pair in zip(numbers, pairs) if not kept.isdisjoint(map(normalize_sentence, pair))}
    return [chosen[number] for number in numbers]


def _split(name: str, valid: float, test: float, seed: int) -> str:
    place = _hash_fraction(name, seed)
    if place < valid:
        return "valid"
    return "test" if place < valid + test else "train"


def _hash_fraction(name: str, seed: int) -> float:
    """A hash as a number from 0 to 1."""
    hashed = hashlib.blake2b(f"{seed}\n{name}".encode(), digest_size=8).digest()
    return int.from_bytes(hashed, "big") / 2**64


def split_of(text: str, valid: float, test: float, seed: int) -> str:
    """Split of a text by its own hash, so that repetitions are in one split."""
    place = _hash_fraction(normalize_sentence(text), seed)
    if place < test:
        return "test"
    return "valid" if place < test + valid else "train"


def is_held_out(sentence: str, share: float) -> bool:
    """Whether a sentence is in the held-out share, by its own hash, so that repetitions stay together."""
    hashed = hashlib.blake2b(normalize_sentence(sentence).encode(), digest_size=4).digest()
    return int.from_bytes(hashed, "big") < share * 2**32


def held_out_split(sentence: str, valid: float, test: float) -> str:
    """Split of a sentence by its own hash: test if it is in the test share, then valid, else train."""
    return "test" if is_held_out(sentence, test) else "valid" if is_held_out(sentence, test + valid) else "train"


def hashes(sentences: Iterable[str]) -> np.ndarray:
    """64-bit hashes of the normalized sentences."""
    digests = (hashlib.blake2b(normalize_sentence(sentence).encode(), digest_size=8).digest() for sentence in sentences)
    return np.frombuffer(b"".join(digests), "<u8")


def overlap(few: Iterable[str], many: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Sentences of `few` that are also in `many`: sorted hashes, and counts in `many`; 16 bytes for each of the few."""
    wanted = np.unique(np.concatenate([np.zeros(0, "<u8"), *(hashes(chunk) for chunk in chunked(few))]))
    times = np.zeros(len(wanted), np.int64)
    for chunk in chunked(many):
        asked = hashes(chunk)
        np.add.at(times, np.searchsorted(wanted, asked[isin_sorted(asked, wanted)]), 1)
    return wanted[times > 0], times[times > 0]


def isin_sorted(asked: np.ndarray, known: np.ndarray) -> np.ndarray:
    """True where a hash is among the known ones, which are sorted; `numpy.isin` would sort them again."""
    if not len(known):
        return np.zeros(len(asked), bool)
    return known[np.searchsorted(known, asked).clip(max=len(known) - 1)] == asked


def chunked(items: Iterable[T]) -> Iterator[list[T]]:
    """Items in lists of CHUNK."""
    stream = iter(items)
    while chunk := list(islice(stream, CHUNK)):
        yield chunk


def check_valid_share(valid_share: float) -> None:
    """Refuse a validation share that leaves nothing to train on or nothing to validate on."""
    if not 0 < valid_share < 1:
        raise ConfigError(f"valid_share = {valid_share} must be above 0 and below 1")
