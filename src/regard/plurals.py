"""Counts with their noun, singular or plural, for summaries and messages."""

from __future__ import annotations


def count_noun(count: int, noun: str) -> str:
    """A count and its noun, which takes an s unless the count is 1.

    >>> count_noun(1, "layer"), count_noun(2, "head"), count_noun(2000, "line")
    ('1 layer', '2 heads', '2,000 lines')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
