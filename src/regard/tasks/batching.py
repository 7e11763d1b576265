"""Batches of texts for inference: rows of similar length, and the check of lines that a user gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from regard.errors import at_line
from regard.text.tokenizer_training import check_characters


def length_batches(lengths: Sequence[int], budget: int, max_rows: int | None = None) -> Iterator[list[int]]:
    """Group rows by length for inference, longest first: at most `budget` positions per batch, padding included.

    Empty rows are left out.

    >>> list(length_batches([2, 0, 5, 2], budget=6))
    [[2], [0, 3]]
    """
    rows = sorted((i for i, length in enumerate(lengths) if length), key=lambda i: -lengths[i])
    start = 0
    while start < len(rows):
        count = max(1, min(max_rows or len(rows), budget // lengths[rows[start]]))
        yield rows[start : start + count]
        start += count


def check_lines(texts: Sequence[str], first_line: int = 1) -> None:
    """Refuse lines with invalid characters (halves of surrogate pairs); the error has the line's number."""
    for number, text in enumerate(texts, first_line):
        with at_line(number) as where:
            check_characters(text, where)
