"""Loader of language models: parallel streams of consecutive windows of one long sequence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np
import torch
from torch import Tensor

from regard.data.loaders import IndexLoader
from regard.distributed import ProcessGroup
from regard.errors import DataError
from regard.objective import Batch
from regard.sequence import PAD, Tokens
from regard.tasks.generate.packing import PackedDocuments, TokenRow


@dataclass(frozen=True)
class StreamLoader(IndexLoader[Batch]):
    """Windows of a long sequence: `rows` parallel streams, each window continues where the previous one ended.

    Each epoch starts at a different offset, so that the windows are cut elsewhere.

    >>> from itertools import islice
    >>> loader = StreamLoader(np.arange(30, dtype=np.uint16), np.arange(5, dtype=np.uint16), window=3, rows=2)
    >>> batches = [batch for batch, _ in islice(loader.train_batches(None), 2)]
    >>> [batch.target.data.tolist() for batch in batches], [batch.resets_state for batch in batches]
    ([[[0, 1, 2, 3], [14, 15, 16, 17]], [[3, 4, 5, 6], [17, 18, 19, 20]]], [True, False])
    """

    train: TokenRow
    """(N,) ids, (N, F) values, or packed documents"""
    valid: TokenRow
    window: int = 64
    rows: int = 64
    seed: int = 1
    group: ProcessGroup = ProcessGroup()

    def __post_init__(self) -> None:
        needed = (self.rows + 1) * self.window
        if len(self.train) < needed:
            raise DataError(
                f"the training data has {len(self.train):,} positions, and one batch takes {needed:,}: {self.rows} "
                f"streams with windows of {self.window}; lower train.batch_tokens or task.window, or give more data"
            )
        if len(self.valid) < 2:
            raise DataError(
                f"the validation data has {len(self.valid)} positions, and two are needed; raise data.valid_share, or "
                "give more data"
            )

    def offset(self, epoch: int) -> int:
        """The number of leading positions that an epoch skips."""
        return int.from_bytes(blake2b(f"{self.seed} {epoch}".encode(), digest_size=7).digest()) % self.window

    def epoch_size(self, epoch: int) -> int:
        """The number of windows of each stream."""
        return (len(self.train) - 1 - self.offset(epoch)) // self.rows // self.window

    def batch(self, epoch: int, number: int) -> Batch:
        """Window `number` of each of this process's streams: a pure function of seed, epoch and number."""
        offset = self.offset(epoch)
        starts = offset + np.arange(self.rows) * (len(self.train) - 1 - offset) // self.rows
        mine = starts[self.group.rank :: self.group.size] + number * self.window
        return window_batch(self.train, mine, np.full(len(mine), self.window + 1), number == 0)

    def valid_batches(self) -> Iterator[Batch]:
        """The validation data once: every position but the first is predicted once."""
        return stream_windows(self.valid, self.window, self.rows, self.group)


@dataclass(frozen=True)
class ShuffledWindowLoader(StreamLoader):
    """Windows of a long sequence in random order: every epoch has all of them once, cut at another offset.

    >>> loader = ShuffledWindowLoader(np.arange(31, dtype=np.uint16), np.arange(5, dtype=np.uint16), window=3, rows=2)
    >>> first = [loader.batch(0, number).target.data[:, 0].tolist() for number in range(loader.epoch_size(0))]
    >>> first, loader.batch(0, 1).resets_state
    ([[24, 12], [21, 0], [3, 6], [15, 27], [18, 9]], True)
    """

    def batch(self, epoch: int, number: int) -> Batch:
        """A batch of windows of this process: a pure function of seed, epoch and number."""
        count = (len(self.train) - 1 - self.offset(epoch)) // self.window
        chosen = shuffle(self.seed, epoch, count)[number * self.rows : (number + 1) * self.rows]
        mine = self.offset(epoch) + chosen[self.group.rank :: self.group.size] * self.window
        return window_batch(self.train, mine, np.full(len(mine), self.window + 1), True)


@lru_cache(maxsize=2)
def shuffle(seed: int, epoch: int, count: int) -> np.ndarray:
    """The numbers below `count` in the random order of an epoch."""
    return np.random.default_rng([seed, epoch]).permutation(count)


def stream_windows(
    sequence: TokenRow,
    window: int,
    rows: int,
    group: ProcessGroup = ProcessGroup(),  # noqa: B008
) -> Iterator[Batch]:
    """A sequence once, in at most `rows` streams of equal length and at least one window; this process's share."""
    begin, end = stream_bounds(len(sequence) - 1, window, rows)
    mine, until = begin[group.rank :: group.size], end[group.rank :: group.size]
    for number in range(-(-int((end - begin).max()) // window)):
        starts = mine + number * window
        yield window_batch(sequence, starts, (until - starts).clip(0, window) + 1, number == 0)


def sliding_windows(sequence: TokenRow, window: int, stride: int, rows: int) -> Iterator[tuple[Batch, Tensor]]:
    """A sequence once, in the streams of `stream_windows`, with a window that slides by `stride`.

    Each window scores its last `stride` targets, from up to `window` inputs; the tensor (B,) counts the targets before
    them, which are context. A stride as long as the window gives the windows of `stream_windows`.

    >>> [(batch.target.data.tolist(), n.tolist()) for batch, n in sliding_windows(np.arange(7), 4, 2, rows=1)]
    [([[0, 1, 2]], [0]), ([[0, 1, 2, 3, 4]], [2]), ([[2, 3, 4, 5, 6]], [2])]
    """
    starts, until = stream_bounds(len(sequence) - 1, window, rows)
    for number in range(-(-int((until - starts).max()) // stride)):
        scored = starts + number * stride
        first = (scored + stride - window).clip(0)
        lengths = np.where(scored < until, (scored + stride).clip(max=until) - first + 1, 1)
        yield window_batch(sequence, first, lengths, True), torch.from_numpy(scored - first)


def stream_bounds(targets: int, window: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of at most `rows` streams of equal length and at least one window."""
    rows = max(1, min(rows, targets // window))
    ends = np.arange(rows + 1) * targets // rows
    return ends[:-1], ends[1:]


def window_batch(sequence: TokenRow, starts: np.ndarray, lengths: np.ndarray, resets_state: bool) -> Batch:
    """Slices of a sequence as a batch without a source."""
    longest = int(lengths.max(initial=0))
    positions = (starts[:, None] + np.arange(longest)).clip(max=len(sequence) - 1)
    real = np.arange(longest) < lengths[:, None]
    documents = inside = None
    if isinstance(sequence, PackedDocuments):
        values, *numbers = sequence.at(positions)
        numbers[1] = np.minimum(numbers[1], np.arange(longest))  # a document that a border cut counts from it
        documents, inside = map(torch.from_numpy, numbers)
    else:
        values = sequence[positions]
    data = torch.from_numpy(values.astype(np.float32 if values.dtype.kind == "f" else np.int64))
    ragged = not real.all()
    if ragged:
        data[torch.from_numpy(~real)] = PAD
    target = Tokens(data, torch.from_numpy(lengths.astype(np.int64)), ragged, positions=inside, documents=documents)
    return Batch(empty_source(len(starts)), target, resets_state)


def empty_source(rows: int) -> Tokens:
    """The source of a decoder-only model: rows of length 0."""
    return Tokens(torch.zeros(rows, 0, dtype=torch.long), torch.zeros(rows, dtype=torch.long), ragged=False)
