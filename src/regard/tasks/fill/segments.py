"""Segments of next-sentence prediction: where a sequence is cut in two, and which second segment it is read with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from regard.data import Shards
from regard.data.splitmix import row_seeds, splitmix64_uniform
from regard.tasks.fill.prepare import COLUMN, SENTENCES, TEXT

TRIES = 8
"""draws of another sequence for the second segment, until one is of another text"""


class Segments(NamedTuple):
    """One or two segments of a sequence, as ids."""

    first: np.ndarray
    second: np.ndarray
    """empty: a sequence of one sentence has no second segment"""
    follows: int
    """1: the second segment follows the first in the text; 0: it is from elsewhere; -1: there is none"""


@dataclass(frozen=True)
class SegmentPairs:
    """Draws the segments of each row of an epoch: in half of them the second is that of a row of another text.

    A row is cut between two of its sentences. The second segment of another row loses sentences at its end if both
    would be longer than a sequence.
    """

    shards: Shards
    room: int
    """most tokens of both segments"""
    key: tuple[int | str, ...]
    """what all draws depend on, beside the row: seed and epoch"""

    def draw(self, rows: np.ndarray) -> list[Segments]:
        """The segments of these rows."""
        chance = splitmix64_uniform(row_seeds(rows, *self.key, "pair"), TRIES + 1)
        partners = (chance[:, 1:] * len(self.shards)).astype(np.int64)
        return [
            self._draw_one(row, is_random, some) for row, is_random, some in zip(rows, chance[:, 0] < 0.5, partners)
        ]

    def _draw_one(self, row: int, is_random: bool, partners: np.ndarray) -> Segments:
        ids, lengths, text = self._read(row)
        if len(lengths) < 2:
            return Segments(ids, ids[:0], -1)
        at = self._cut(row, len(lengths))
        first, second = ids[: lengths[:at].sum()], ids[lengths[:at].sum() :]
        if not is_random:
            return Segments(first, second, 1)
        for partner in partners.tolist():
            other, theirs, origin = self._read(partner)
            if len(theirs) > 1 and partner != row and origin != text:
                at = self._cut(partner, len(theirs))
                ends = theirs[:at].sum() + np.cumsum(theirs[at:])
                fitting = ends[ends - theirs[:at].sum() <= self.room - len(first)]
                end = int(fitting[-1]) if len(fitting) else int(theirs[:at].sum()) + self.room - len(first)
                return Segments(first, other[int(theirs[:at].sum()) : end], 0)
        return Segments(first, second, 1)

    def _read(self, row: int) -> tuple[np.ndarray, np.ndarray, int]:
        ids, lengths, text = (self.shards.take(np.array([row]), name)[0] for name in (COLUMN, SENTENCES, TEXT))
        return ids, lengths.astype(np.int64), int(text[0])

    def _cut(self, row: int, sentences: int) -> int:
        """The number of sentences of the first segment."""
        seed = row_seeds(np.array([row]), *self.key, "cut")[0]
        return 1 + int(splitmix64_uniform(seed, 1)[0] * (sentences - 1))


@dataclass(frozen=True)
class SegmentPairLengths:
    """Positions of each sequence of two segments, three special tokens included."""

    pairs: SegmentPairs

    def __len__(self) -> int:
        return len(self.pairs.shards)

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray:
        found = self.pairs.draw(np.atleast_1d(rows))
        return np.array([len(s.first) + len(s.second) + (3 if s.follows >= 0 else 2) for s in found])


@dataclass(frozen=True)
class SequenceLengths:
    """Positions of each sequence of one segment, [CLS] and [SEP] included."""

    shards: Shards

    def __len__(self) -> int:
        return len(self.shards)

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray:
        return self.shards.lengths(COLUMN)[rows] + 2
