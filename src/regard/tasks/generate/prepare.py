"""Generation: where running text becomes streams of windows. Preparation reads text once; training reads ids.

The slide's windows of "This is a ...": "Thi" -> "s", "his" -> " ", "is " -> "i". Each asks for one letter. A model that
reads one letter after the other is asked at every place at once: the window "This" is read as "Thi", wanted is "his".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from regard.config import plain
from regard.data import ShardWriter
from regard.data.texts import Piece, TextSource
from regard.distributed import World
from regard.errors import ConfigError, DataError
from regard.loss import projected
from regard.objective import Batch, Stream, Tell
from regard.sequence import PAD, Tokens
from regard.tasks.translate.prepare import SAMPLE
from regard.text import Tokenizer, TokenizerConfig

CHUNK = 1 << 16
"""Characters that are cut into tokens at once: memory stays small, however long a text is."""
BATCH = 16
"""Chunks that are cut into tokens together, on all cores."""
COLUMN = "text"


@dataclass(frozen=True)
class GenerateConfig:
    """Text that goes on, one token after the other.

    >>> GenerateConfig().window
    64
    """

    kind: Literal["generate"] = "generate"
    """a beginning in, what follows out"""
    window: int = 64
    """tokens read between two updates: gradients go no further back. A batch is train.tokens / window streams, each of
    which goes on where it stopped, with the model's state if it has one to hand on"""
    prompt: str = ""
    """what the samples of validation go on from; empty: the beginning of the validation text"""
    samples: int = 1
    """samples written at each validation, into samples.jsonl; 0: none"""
    length: int = 200
    """tokens of a sample, and of an answer that does not say how long it should be"""

    def __post_init__(self) -> None:
        for name, least in (("window", 1), ("samples", 0), ("length", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} = {getattr(self, name)} must be at least {least}")


@dataclass(frozen=True)
class TextPreparation:
    """Text files in, a tokenizer and one long row of ids a split out.

    >>> from regard.data.texts import Texts
    >>> TextPreparation(Texts(train="book.txt"), TokenizerConfig(kind="char")).identity()["text"]["kind"]
    'char'
    """

    data: TextSource
    text: TokenizerConfig

    def identity(self) -> dict[str, Any]:
        """The settings that what is prepared depends on."""
        return {"data": plain(self.data), "text": plain(self.text)}

    def run(self, folder: Path, tell: Tell) -> Mapping[str, Mapping[str, int]]:
        """Write tokenizer.json, and the ids of train and valid, into `folder`; characters and tokens of each."""
        characters = sum(len(piece) for piece in self.data.pieces("train") if piece is not None)
        stride = max(1, -(-characters // SAMPLE))
        tell("tokenizer", 0, total=0)
        chunks = (chunk.text for chunk in chunked(self.data.pieces("train")))
        tokenizer = Tokenizer.train(islice(chunks, 0, None, stride), self.text)
        counts = {}
        for split, total in (("train", characters), ("valid", 0)):
            counts[split] = Counter({"texts": 0, "characters": 0, "tokens": 0, "unknown": 0})
            with ShardWriter(folder / split, {COLUMN: tokenizer.size}) as writer:
                for ids in encoded(self.data.pieces(split), tokenizer, counts[split]):
                    writer.append([(ids,)])
                    tell(f"encoding {split}", counts[split]["characters"], total=total)
        tokenizer.save(folder / "tokenizer.json")
        return counts


@dataclass(frozen=True)
class Chunk:
    """Some of a text.

    >>> Chunk("To be", begins=True, ends=False).text
    'To be'
    """

    text: str
    begins: bool
    """whether it is the beginning of its text"""
    ends: bool
    """whether its text ends with it"""


def chunked(pieces: Iterable[Piece], size: int = CHUNK) -> Iterator[Chunk]:
    """Pieces put together, and cut before a word, so that no token would have reached over the cut.

    >>> [(chunk.text, chunk.ends) for chunk in chunked(["To be, or ", "not to be", None, "Ay", None], size=12)]
    [('To be, or not to', False), (' be', True), ('Ay', True)]
    """
    waiting, length, begins = [""], 0, True
    for piece in pieces:
        if piece is None:
            yield Chunk("".join(waiting), begins, True)
            waiting, length, begins = [""], 0, True
            continue
        waiting.append(piece)
        length += len(piece)
        if length >= size:
            text = "".join(waiting)
            at = _before_a_word(text)
            yield Chunk(text[:at], begins, False)
            waiting, length, begins = [text[at:]], len(text) - at, at == len(text)
    if length:
        yield Chunk("".join(waiting), begins, False)


def _before_a_word(text: str) -> int:
    """Where the last lone space is; a script without spaces is cut at the end."""
    at = text.rfind(" ", 1, len(text) - 1)
    while at > 0 and (text[at - 1].isspace() or text[at + 1].isspace()):
        at = text.rfind(" ", 1, at)
    return at if at > 0 else len(text)


def encoded(pieces: Iterable[Piece], tokenizer: Tokenizer, counts: Counter[str] | None = None) -> Iterator[list[int]]:
    """The ids of a text, many at a time; <EOS> after each text that ends. `counts` is told what was read.

    A text's end counts as a character: somebody who reads sees it too.

    >>> tokenizer = Tokenizer.train(["Anna", "Bob"], TokenizerConfig(kind="char"))
    >>> [tokenizer.tokens(ids) for ids in encoded(["Bob", None], tokenizer)]
    [['B', 'o', 'b', '<EOS>']]
    """
    counts = Counter() if counts is None else counts
    # some tokenizers put a space in front of a text; where a text goes on, that is the one before its word
    spaced = "".join(tokenizer.encode("a").tokens).startswith(" ")
    chunks = chunked(pieces)
    while some := list(islice(chunks, BATCH)):
        rows = tokenizer.encode_batch([c.text[1:] if spaced and not c.begins else c.text for c in some])
        rows = [[*ids, tokenizer.eos] if c.ends else ids for c, ids in zip(some, rows, strict=True)]
        for c, ids in zip(some, rows, strict=True):
            counts["texts"] += c.ends
            counts["characters"] += len(c.text) + c.ends
            counts["tokens"] += len(ids)
            counts["unknown"] += ids.count(tokenizer.unk)
        yield list(chain.from_iterable(rows))


@dataclass(frozen=True)
class StreamFeed:
    """Windows of a long sequence: `rows` streams side by side, each window goes on where the one before stopped.

    Each epoch begins at another of the first places, so that windows are cut elsewhere. Keeps the Feed contract.

    >>> feed = StreamFeed(np.arange(30, dtype=np.uint16), np.arange(5, dtype=np.uint16), window=3, rows=2)
    >>> batches = [batch for batch, _ in islice(feed.stream(None), 2)]
    >>> [batch.target.data.tolist() for batch in batches], [batch.begins for batch in batches]
    ([[[0, 1, 2, 3], [14, 15, 16, 17]], [[3, 4, 5, 6], [17, 18, 19, 20]]], [True, False])
    """

    train: np.ndarray
    """(N,) ids, or (N, F) values"""
    held_out: np.ndarray
    window: int = 64
    rows: int = 64
    seed: int = 1
    world: World = World()

    def __post_init__(self) -> None:
        needed = (self.rows + 1) * self.window
        if len(self.train) < needed:
            raise DataError(
                f"there are {len(self.train):,} places to learn from, and one batch takes {needed:,}: {self.rows} "
                f"streams with windows of {self.window}; lower train.tokens or task.window, or give more data"
            )
        if len(self.held_out) < 2:
            raise DataError(
                f"there are {len(self.held_out)} places to validate on, and two are needed; raise data.held_out, or "
                "give more data"
            )

    def offset(self, epoch: int) -> int:
        """How many of the first places an epoch leaves out."""
        return int.from_bytes(blake2b(f"{self.seed} {epoch}".encode(), digest_size=7).digest()) % self.window

    def windows(self, epoch: int) -> int:
        """How many windows each stream has."""
        return (len(self.train) - 1 - self.offset(epoch)) // self.rows // self.window

    def batch(self, epoch: int, number: int) -> Batch:
        """Window `number` of each of this process's streams: a pure function of seed, epoch and number."""
        offset = self.offset(epoch)
        starts = offset + np.arange(self.rows) * (len(self.train) - 1 - offset) // self.rows
        mine = starts[self.world.rank :: self.world.size] + number * self.window
        return read(self.train, mine, np.full(len(mine), self.window + 1), number == 0)

    def stream(self, position: Mapping[str, int] | None) -> Iterator[tuple[Batch, Mapping[str, int]]]:
        at = dict(position or {"epoch": 0, "batch": 0})
        while True:
            batch = self.batch(at["epoch"], at["batch"])
            at["batch"] += 1
            if at["batch"] == self.windows(at["epoch"]):
                at = {"epoch": at["epoch"] + 1, "batch": 0}
            yield batch, dict(at)

    def valid(self) -> Iterator[Batch]:
        """The validation text, every place but the first predicted once: streams of equal length, to their ends."""
        return through(self.held_out, self.window, self.rows, self.world)

    def epoch(self) -> int:
        return self.windows(0)


def through(sequence: np.ndarray, window: int, rows: int, world: World = World()) -> Iterator[Batch]:  # noqa: B008
    """A sequence once, in at most `rows` streams of at least a window; this process's streams of them.

    >>> [batch.target.data.tolist() for batch in through(np.arange(6, dtype=np.uint16), window=2, rows=2)]
    [[[0, 1, 2], [2, 3, 4]], [[2, 0], [4, 5]]]
    """
    asked = len(sequence) - 1
    rows = max(1, min(rows, asked // window))
    ends = np.arange(rows + 1) * asked // rows
    mine, until = ends[:-1][world.rank :: world.size], ends[1:][world.rank :: world.size]
    for number in range(-(-int(np.diff(ends).max()) // window)):
        starts = mine + number * window
        yield read(sequence, starts, (until - starts).clip(0, window) + 1, number == 0)


@torch.no_grad()
def surprises(model: Any, task: Stream, batch: Batch, carry: Any) -> tuple[list[tuple[float, int]], Any]:
    """Nats and predictions of each window of a batch that has some, and what the next batch goes on from.

    >>> from regard.models.gpt import GPTConfig
    >>> from regard.spaces import Words
    >>> words = Words(8)
    >>> model = GPTConfig(layers=1, width=8, heads=2, longest=8).build(words, words).eval()
    >>> batch = read(np.array([4, 5, 6, 7]), np.array([0, 1, 3]), np.array([3, 2, 1]), True)
    >>> [count for _, count in surprises(model, Stream(words), batch, None)[0]]
    [2, 1]
    """
    (features, carry), (real_BT, wanted_BT) = task.features(model, batch, carry), task.asked(batch)["next"]
    found = []
    for features_TD, wanted_T, real_T in zip(features["next"], wanted_BT, real_BT, strict=True):
        if count := int(real_T.sum()):
            nats = projected(model.readout, task.space.surprise, features_TD[real_T], wanted_T[real_T])
            found.append((float(nats), count))
    return found, carry


def read(sequence: np.ndarray, starts: np.ndarray, lengths: np.ndarray, begins: bool) -> Batch:
    """Parts of a sequence as a batch without a source.

    >>> read(np.array([4, 5, 6, 7]), np.array([0, 2]), np.array([2, 2]), True).target.data
    tensor([[4, 5],
            [6, 7]])
    """
    longest = int(lengths.max(initial=0))
    places = starts[:, None] + np.arange(longest)
    there = np.arange(longest) < lengths[:, None]
    found = sequence[places.clip(max=len(sequence) - 1)]
    data = torch.from_numpy(found.astype(np.float32 if found.dtype.kind == "f" else np.int64))
    ragged = not there.all()
    if ragged:
        data[torch.from_numpy(~there)] = PAD
    target = Tokens(data, torch.from_numpy(lengths.astype(np.int64)), ragged)
    return Batch(nothing(len(starts)), target, begins)


def nothing(rows: int) -> Tokens:
    """The source of what has no source.

    >>> len(nothing(3))
    3
    """
    return Tokens(torch.zeros(rows, 0, dtype=torch.long), torch.zeros(rows, dtype=torch.long), ragged=False)
