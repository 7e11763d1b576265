"""Sentences of running text, and sequences that are filled with consecutive ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

END = re.compile(r"""[.!?…]+["'”’»)\]]*\s+|[。！？]+["'”’」』)\]]*\s*|\n\s*\n""")
"""the end of a sentence: its sign and the space after it, or a blank line"""


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, by their signs alone: "Mr. Gray" is cut after "Mr.".

    >>> split_sentences('He said "no." And then?  Nothing')
    ['He said "no."', 'And then?', 'Nothing']
    """
    ends = [0, *(found.end() for found in END.finditer(text)), len(text)]
    parts = (text[start:end].strip() for start, end in pairwise(ends))
    return [part for part in parts if part]


@dataclass(frozen=True)
class SequenceRow:
    """Consecutive sentences of one text."""

    ids: list[int]
    sentences: list[int]
    """number of tokens of each sentence"""
    text: int
    """number of the text"""


def fill_sequences(sentences: Iterable[tuple[list[int], int]], room: int) -> Iterator[SequenceRow]:
    """Sequences of at most `room` tokens, each filled with as many whole sentences of one text as fit.

    `sentences` are ids with the number of their text. A sentence that is longer than a sequence is cut.

    >>> [row.ids for row in fill_sequences([([1, 2], 0), ([3], 0), ([4, 5, 6, 7, 8], 0), ([9], 1)], room=4)]
    [[1, 2, 3], [4, 5, 6, 7], [8], [9]]
    """
    ids: list[int] = []
    lengths: list[int] = []
    last = 0
    for sentence, text in sentences:
        for start in range(0, len(sentence), room):
            part = sentence[start : start + room]
            if ids and (text != last or len(ids) + len(part) > room):
                yield SequenceRow(ids, lengths, last)
                ids, lengths = [], []
            ids, last = ids + part, text
            lengths.append(len(part))
    if ids:
        yield SequenceRow(ids, lengths, last)
