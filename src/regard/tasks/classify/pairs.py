"""Pairs of texts as lines: joined by a tab, split at it, and truncated from the longer text first."""

from __future__ import annotations

from regard.errors import DataError

SEPARATORS = ("\t", "[SEP]")
"""between the texts of a pair on one line; a line with a tab is split there and nowhere else"""


def join_pair(first: str, second: str) -> str:
    """A pair as one line: the first text, a tab, the second; white space inside of them becomes spaces.

    >>> join_pair("a dog\\tbarks ", "an animal")
    'a dog barks\\tan animal'
    """
    return "\t".join(" ".join(half.split()) for half in (first, second))


def split_pair(line: str, where: str) -> tuple[str, str] | None:
    """The two texts of a line; None if both are empty.

    >>> split_pair("a dog barks [SEP] an animal", "line 1")
    ('a dog barks', 'an animal')
    """
    sign = next((sign for sign in SEPARATORS if sign in line), None)
    halves = [half.strip() for half in (line.split(sign) if sign else [line])]
    if not any(halves):
        return None
    if len(halves) != 2:
        found = "one text" if len(halves) == 1 else f"{len(halves)} texts"
        raise DataError(f"{where}: expected a pair, two texts with a tab or [SEP] between them, found {found}")
    if not all(halves):
        raise DataError(f"{where}: the {'second' if halves[0] else 'first'} text of the pair is empty")
    return halves[0], halves[1]


def truncated_lengths(first: int, second: int, most: int) -> tuple[int, int]:
    """Lengths of two texts after truncation to `most` tokens, taken from the longer one first.

    >>> truncated_lengths(9, 2, 8), truncated_lengths(9, 7, 8), truncated_lengths(2, 2, 8)
    ((6, 2), (4, 4), (2, 2))
    """
    if first > second:
        return truncated_lengths(second, first, most)[::-1]
    shorter = min(first, most // 2)
    return shorter, min(second, most - shorter)
