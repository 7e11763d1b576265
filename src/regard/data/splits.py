"""Splits without leaks: no sentence of either side is in two splits.

Sentences are the nodes of a graph and pairs its edges: "Run!" has several French translations, some of which translate
other English sentences too. Whole connected components go to one split. Splitting by one side alone leaves the other
side's sentences in both (11 % of Tatoeba's held-out French sentences).

The graph needs all pairs in memory. Where they only stream by, a share is chosen by one side (`apart`), and pairs are
left out of one part or of the other where the other side is `in_both`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

SPLITS = ("train", "valid", "test")
ENDINGS = " .!?…;:,\"'«»()-"
CHUNK = 4096
"""Sentences that are hashed at once."""


def identity(sentence: str) -> str:
    """What makes two sentences the same: case, quotes at the ends, final punctuation and apostrophes do not count.

    >>> identity("Va !") == identity("va.")
    True
    >>> identity("C’est vrai ?")
    "c'est vrai"
    """
    return " ".join(sentence.casefold().replace("’", "'").split()).strip(ENDINGS)


def components(pairs: Sequence[tuple[str, str]]) -> list[int]:
    """For each pair the number of its connected component: the place of the first pair that belongs to it.

    >>> components([("Go.", "Va !"), ("Hi.", "Salut !"), ("Move.", "Bouge !"), ("Go!", "Bouge.")])
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
            one, other = root(first.setdefault(identity(pair[side]), i)), root(i)
            if one != other:
                parent[max(one, other)] = min(one, other)
    return [root(i) for i in range(len(pairs))]


def partition(
    pairs: Sequence[tuple[str, str]], valid: float, test: float, seed: int, keep: Iterable[str] = ()
) -> list[str]:
    """For each pair its split, chosen by a hash of the smallest sentence of its component.

    The same pairs in any order give the same splits, and a pair that is added moves none but those it connects.
    A component with more than a hundredth of all pairs goes to train: held out, it would fill a split by itself.
    So does a component with a sentence of `keep`.

    >>> pairs = [(f"{n} cats", f"{n} chats") for n in range(1000)]
    >>> Counter(partition(pairs, valid=0.02, test=0.02, seed=1))
    Counter({'train': 955, 'test': 26, 'valid': 19})
    """
    numbers = components(pairs)
    sizes = Counter(numbers)
    names: dict[int, str] = {}
    for number, pair in zip(numbers, pairs):
        name = min(map(identity, pair))
        names[number] = min(names.get(number, name), name)
    chosen = {number: _split(name, valid, test, seed) for number, name in names.items()}
    chosen |= {number: "train" for number, size in sizes.items() if size > max(1, len(pairs) // 100)}
    kept = set(map(identity, keep))
    if kept:
        chosen |= {n: "train" for n, pair in zip(numbers, pairs) if not kept.isdisjoint(map(identity, pair))}
    return [chosen[number] for number in numbers]


def _split(name: str, valid: float, test: float, seed: int) -> str:
    hashed = hashlib.blake2b(f"{seed}\n{name}".encode(), digest_size=8).digest()
    place = int.from_bytes(hashed, "big") / 2**64
    if place < valid:
        return "valid"
    return "test" if place < valid + test else "train"


def split_of(text: str, valid: float, test: float, seed: int) -> str:
    """The split of a text, by its own hash: wherever it stands, and however often it comes.

    >>> [split_of(f"{n} stars", 0.1, 0.2, seed=1) for n in range(3)], split_of("1 Stars!", 0.1, 0.2, seed=1)
    (['train', 'test', 'train'], 'test')
    """
    digest = hashlib.blake2b(f"{seed}\n{identity(text)}".encode(), digest_size=8).digest()
    place = int.from_bytes(digest, "big") / 2**64
    if place < test:
        return "test"
    return "valid" if place < test + valid else "train"


def apart(sentence: str, share: float) -> bool:
    """Whether a sentence is of the share that is kept apart: by its own hash, so that repeated ones stay together.

    >>> [n for n in range(100) if apart(f"{n} cats", 0.05)]
    [10, 14, 17, 28, 46, 60, 63]
    >>> apart("Va !", 0.5) == apart("va.", 0.5)
    True
    """
    hashed = hashlib.blake2b(identity(sentence).encode(), digest_size=4).digest()
    return int.from_bytes(hashed, "big") < share * 2**32


def hashes(sentences: Iterable[str]) -> np.ndarray:
    """64 bits of each sentence; the same for sentences that are the same.

    >>> a, b, c = hashes(["Va !", "va.", "Viens !"])
    >>> bool(a == b), bool(a == c)
    (True, False)
    """
    digests = (hashlib.blake2b(identity(sentence).encode(), digest_size=8).digest() for sentence in sentences)
    return np.frombuffer(b"".join(digests), "<u8")


def in_both(few: Iterable[str], many: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Of `few` sentences those that are among `many`: their hashes, sorted, and how often each is there.

    It takes 16 bytes of memory for each of the few, and none for the many.

    >>> found, times = in_both(["Va !", "Viens !"], ["Salut !", "Va.", "Va."])
    >>> found.tolist() == hashes(["va"]).tolist(), times.tolist()
    (True, [2])
    """
    wanted = np.unique(np.concatenate([np.zeros(0, "<u8"), *(hashes(chunk) for chunk in _chunks(few))]))
    times = np.zeros(len(wanted), np.int64)
    for chunk in _chunks(many):
        asked = hashes(chunk)
        np.add.at(times, np.searchsorted(wanted, asked[among(asked, wanted)]), 1)
    return wanted[times > 0], times[times > 0]


def among(asked: np.ndarray, known: np.ndarray) -> np.ndarray:
    """True where a hash is among the known ones, which are sorted.

    >>> among(np.array([3, 4, 9]), np.array([1, 4, 7]))
    array([False,  True, False])
    """
    if not len(known):
        return np.zeros(len(asked), bool)
    return known[np.searchsorted(known, asked).clip(max=len(known) - 1)] == asked


def _chunks(sentences: Iterable[str]) -> Iterator[list[str]]:
    stream = iter(sentences)
    while chunk := list(islice(stream, CHUNK)):
        yield chunk
