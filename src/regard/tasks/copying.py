"""The copy task: synthetic data that every encoder-decoder should learn in seconds. Try a new model on it first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch

from regard.distributed import ProcessGroup
from regard.objective import Batch
from regard.sequence import EOS, SOS, Tokens


@dataclass(frozen=True)
class CopyTask:
    """Loader of random sequences of the tokens 4 .. size - 1, to be copied or reversed."""

    size: int = 8
    """vocabulary size, the four special tokens included"""
    rows: int = 16
    """sequences per batch"""
    max_length: int = 4
    """maximum length of a sequence"""
    backwards: bool = False
    seed: int = 1
    group: ProcessGroup = ProcessGroup()

    def batch(self, number: int) -> Batch:
        """Batch `number`: a pure function of it and the seed; this process's share."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + number)
        lengths = torch.randint(1, self.max_length + 1, (self.rows,), generator=generator).tolist()
        rows = [torch.randint(4, self.size, (n,), generator=generator).tolist() for n in lengths]
        rows = rows[self.group.rank :: self.group.size]
        targets = [row[::-1] if self.backwards else row for row in rows]
        return Batch(Tokens.pad(rows), Tokens.pad(targets, (SOS,), (EOS,)))

    def train_batches(self, position: Mapping[str, int] | None) -> Iterator[tuple[Batch, Mapping[str, int]]]:
        number = (position or {"batch": 0})["batch"]
        while True:
            yield self.batch(number), {"batch": number + 1}
            number += 1

    def valid_batches(self) -> Iterator[Batch]:
        yield from (self.batch(-1 - i) for i in range(2))

    def batches_per_epoch(self) -> int:
        return 10
