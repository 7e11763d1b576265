"""Say it again: a task without data that every encoder-decoder should learn in seconds. Try a new model on it first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from regard.distributed import World
from regard.objective import Batch
from regard.sequence import EOS, SOS, Tokens


@dataclass(frozen=True)
class Copying:
    """Random sentences of words 4 .. size - 1, to be repeated, or said backwards. Keeps the Feed contract.

    >>> batch, after = next(Copying(rows=2, longest=3).stream(None))
    >>> len(batch), after
    (2, {'batch': 1})
    """

    size: int = 8
    """words in the vocabulary, the four special ones included"""
    rows: int = 16
    """sentences in a batch"""
    longest: int = 4
    """words in a sentence, at most"""
    backwards: bool = False
    seed: int = 1
    world: World = World()

    def batch(self, number: int) -> Batch:
        """Batch `number`: a pure function of it and the seed; this process's share."""
        draw = torch.Generator().manual_seed(self.seed * 1_000_003 + number)
        lengths = torch.randint(1, self.longest + 1, (self.rows,), generator=draw).tolist()
        rows = [torch.randint(4, self.size, (n,), generator=draw).tolist() for n in lengths]
        rows = rows[self.world.rank :: self.world.size]
        wanted = [row[::-1] if self.backwards else row for row in rows]
        return Batch(Tokens.of(rows), Tokens.of([[SOS, *row, EOS] for row in wanted]))

    def stream(self, position: Mapping[str, int] | None) -> Iterator[tuple[Batch, Mapping[str, int]]]:
        number = (position or {"batch": 0})["batch"]
        while True:
            yield self.batch(number), {"batch": number + 1}
            number += 1

    def valid(self) -> Iterator[Batch]:
        yield from (self.batch(-1 - i) for i in range(2))

    def epoch(self) -> int:
        return 10
