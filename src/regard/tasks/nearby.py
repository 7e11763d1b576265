"""Words that stand near one another: where running text becomes words that are read and words that are guessed.

As in word2vec: very common words are left out more often than not, before windows are cut, so that a window reaches
further; a window is as wide as a number drawn from 1 to `window`; noise words are drawn by their frequency to the
power of 3/4. Different here: the noise words of a batch are drawn once and shared by all its pairs, each counting
for `negatives / shared` of a word. The expected loss is the same, and their scores are one matrix product.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data import Shards
from regard.data.batches import Order
from regard.errors import ConfigError, DataError
from regard.loss import Loss
from regard.sequence import EOS, PAD, Rows, Tokens
from regard.tasks.base import Batch, Task, Tell, flat
from regard.tasks.generate import COLUMN, TextPreparation
from regard.text import Tokenizer
from regard.world import World

SEGMENT = 128
"""consecutive words that windows are cut from; a batch has segments from all over the text"""
FILE = "frequencies.json"
COMMON, LEAST = 0.75, 4
"""the power of a frequency by which noise is drawn; ids below the second are no words"""


@dataclass(frozen=True)
class NearbyConfig:
    """Vectors for words, learnt from the words around them.

    >>> NearbyConfig(window=0)
    Traceback (most recent call last):
    regard.errors.ConfigError: window = 0 must be at least 1
    """

    kind: Literal["vectors"] = "vectors"
    """a vector for each word"""
    method: Literal["skipgram", "cbow"] = "skipgram"
    """skipgram: read a word, guess those around it; cbow: read those around it, guess the word"""
    window: int = 5
    """words on either side that count as near, at most"""
    negatives: int = 5
    """noise words that count against each word that is guessed"""
    shared: int = 256
    """noise words drawn for a batch; all its guesses share them, each counting negatives / shared"""
    common: float = 1e-4
    """words that make up more of the text than this share are often left out; 0: none are"""
    tried: tuple[str, ...] = ()
    """words whose neighbours are shown at each validation; none: some of the commoner ones"""

    def __post_init__(self) -> None:
        for name, least in (("window", 1), ("negatives", 1), ("shared", 1), ("common", 0)):
            if not getattr(self, name) >= least:
                raise ConfigError(f"{name} = {getattr(self, name)} must be at least {least}")


@dataclass(frozen=True)
class Guessed(Rows):
    """What is guessed from each thing that is read, and the noise that it should be told from.

    >>> len(Guessed(Tokens.of([[5], [6]]), torch.tensor([[7, 8], [7, 8]])))
    2
    """

    words: Tokens
    noise: Tensor
    """(B, K): the same words in each row"""


@dataclass(frozen=True)
class Nearby(Task):
    """Tell the words that stand near from noise: -log s(h.w) - negatives * mean over the noise of log s(-h.n).

    >>> from regard.models.word2vec import Word2VecConfig
    >>> from regard.spaces import Words
    >>> batch = Batch(Tokens.of([[5], [6]]), Guessed(Tokens.of([[6, 7], [5]]), torch.tensor([[8], [8]])))
    >>> model = Word2VecConfig(width=4).build(Words(9))
    >>> loss, _ = Nearby(Words(9), negatives=5).loss(model, batch, Words(9).loss)
    >>> round(loss.totals["near"].item() / (3 * 6 * torch.tensor(2.0).log().item()), 4)
    1.0
    """

    negatives: int = 5

    def asked(self, batch: Batch) -> Mapping[str, tuple[Tensor, Tensor]]:
        return {"near": (batch.target.words.mask, batch.target.words.data)}

    def features(self, model: Any, batch: Batch, carry: Any) -> tuple[Mapping[str, Tensor], Any]:
        return {"near": model(batch.source)}, None

    def loss(
        self, model: Any, batch: Batch, score: Callable[[Tensor, Tensor], Tensor], carry: Any = None
    ) -> tuple[Loss, Any]:
        """The sum over all guesses; `score`, which would ask for all words of the vocabulary, is not needed."""
        read_ND, table_VD, words = model(batch.source), model.readout.weight, batch.target.words
        real_NS, noise_K = words.mask, batch.target.noise[0]
        if words.ragged or words.data.shape[1] > 1:
            each_PD = read_ND.index_select(0, real_NS.nonzero()[:, 0])
        else:
            each_PD = read_ND
        near_P = (each_PD * F.embedding(flat(words.data, real_NS), table_VD)).sum(1)
        noise_NK = read_ND @ F.embedding(noise_K, table_VD).T
        against = (F.softplus(noise_NK).sum(1) * words.lengths).sum() * (self.negatives / len(noise_K))
        return Loss({"near": F.softplus(-near_P).sum() + against}), None


@dataclass(frozen=True)
class Frequencies:
    """How often each word stands in a text, and what follows from it.

    >>> found = Frequencies.of(np.array([4, 4, 4, 5, 3]), size=6)
    >>> found.counts.tolist(), found.kept(common=0.25).round(2).tolist()
    ([0, 0, 0, 0, 3, 1], [0.0, 0.0, 0.0, 0.0, 0.91, 1.0])
    """

    counts: np.ndarray
    """(V,), zero for what is no word"""

    @classmethod
    def of(cls, ids: np.ndarray, size: int) -> Frequencies:
        """Counted in a text."""
        counts = np.bincount(ids, minlength=size)
        counts[:LEAST] = 0
        return cls(counts)

    def save(self, folder: Path) -> None:
        """Write a JSON file."""
        (folder / FILE).write_text(json.dumps(self.counts.tolist()), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Frequencies:
        """What `save` wrote."""
        try:
            return cls(np.array(json.loads((folder / FILE).read_text(encoding="utf-8")), np.int64))
        except (OSError, ValueError):
            raise DataError(f"{folder / FILE} cannot be read; prepare the data again") from None

    def kept(self, common: float) -> np.ndarray:
        """(V,): how likely each word is to be kept, sqrt(t / f) + t / f as word2vec's program has it."""
        share = self.counts / max(1, self.counts.sum())
        seldom = np.divide(common, share, out=np.full(share.shape, np.inf), where=share > 0) if common else np.inf
        return np.where(self.counts > 0, np.minimum(1.0, np.sqrt(seldom) + seldom), 0.0)

    @cached_property
    def drawn(self) -> np.ndarray:
        """(V,): a number from 0 to 1 falls on a word as often as noise does."""
        powers = np.cumsum(self.counts**COMMON)
        made: np.ndarray = powers / powers[-1]
        return made


@dataclass(frozen=True)
class WordPreparation(TextPreparation):
    """Text files in; a tokenizer, one long row of ids a split, and how often each word stands there out.

    >>> from regard.data.texts import Texts
    >>> from regard.text import TokenizerConfig
    >>> WordPreparation(Texts(train="book.txt"), TokenizerConfig(kind="word")).identity()["text"]["kind"]
    'word'
    """

    def run(self, folder: Path, tell: Tell) -> Mapping[str, Mapping[str, int]]:
        counts = super().run(folder, tell)
        size = Tokenizer.load(folder / "tokenizer.json").size
        Frequencies.of(Shards.open(folder / "train").flat(COLUMN), size).save(folder)
        return counts


@dataclass(frozen=True)
class NearbyFeed:
    """Segments of a text from all over it, made into what is read and what is guessed. Keeps the Feed contract.

    >>> text = np.array([4, 5, 6, 7] * 64)
    >>> feed = NearbyFeed(text, text, Frequencies.of(text, 8), NearbyConfig(window=1, common=0), rows=1)
    >>> batch, position = next(feed.stream(None))
    >>> batch.source.data[:3].tolist(), batch.target.words.data[:3].tolist(), position
    ([[4], [5], [6]], [[5, 0], [4, 6], [5, 7]], {'epoch': 0, 'batch': 1})
    """

    train: np.ndarray
    held_out: np.ndarray
    frequencies: Frequencies
    task: NearbyConfig = NearbyConfig()
    rows: int = 32
    """segments of a batch"""
    seed: int = 1
    world: World = World()

    def __post_init__(self) -> None:
        for name, text in (("learn from", self.train), ("validate on", self.held_out)):
            if len(text) < SEGMENT:
                raise DataError(f"there are {len(text):,} words to {name}; at least {SEGMENT} are needed")
        if np.count_nonzero(self.frequencies.counts) < 2:
            raise DataError("the text has fewer than two words that are known; give more text, or a larger text.size")

    @cached_property
    def keep(self) -> np.ndarray:
        """(V,): how likely each word is to be kept."""
        return self.frequencies.kept(self.task.common)

    def segments(self, text: np.ndarray) -> int:
        """How many whole segments a text has."""
        return len(text) // SEGMENT

    def batch(self, text: np.ndarray, chosen: np.ndarray, key: tuple[int, ...]) -> Batch:
        """This process's share of some segments; all that is drawn depends on the key alone."""
        drawn = np.random.default_rng(key)
        shape = (len(chosen), SEGMENT)
        chance, reach = drawn.random(shape), drawn.integers(1, self.task.window, shape, endpoint=True)
        noise = np.searchsorted(self.frequencies.drawn, drawn.random(self.task.shared), side="right")
        mine = slice(self.world.rank, None, self.world.size)
        ids = text[chosen[mine][:, None] * SEGMENT + np.arange(SEGMENT)].astype(np.int64)
        kept = chance[mine] < self.keep[ids]
        # words of one segment and one text: a window never reaches over an end
        whose = (ids == EOS).cumsum(1) + np.arange(len(ids))[:, None] * (SEGMENT + 1)
        centres, around, there = windows(ids[kept], whose[kept], reach[mine][kept], self.task.window)
        return self.asked(centres, around, there, torch.from_numpy(noise))

    def asked(self, centres: np.ndarray, around: np.ndarray, there: np.ndarray, noise: Tensor) -> Batch:
        """What is read and what is guessed, by the method; a word with none around it is left out."""
        some = there.any(1)
        word = Tokens.full(torch.from_numpy(centres[some][:, None]))
        near = justified(around[some], there[some])
        source, words = (word, near) if self.task.method == "skipgram" else (near, word)
        return Batch(source, Guessed(words, noise.expand(len(word), -1)))

    def stream(self, position: Mapping[str, int] | None) -> Iterator[tuple[Batch, Mapping[str, int]]]:
        at = dict(position or {"epoch": 0, "batch": 0})
        while True:
            order = Order(self.segments(self.train), (self.seed, at["epoch"]))
            rows = min(self.rows, order.n)
            chosen = order.at(np.arange(at["batch"] * rows, (at["batch"] + 1) * rows))
            batch = self.batch(self.train, chosen, (self.seed, at["epoch"], at["batch"]))
            at["batch"] += 1
            if at["batch"] == self.epoch():
                at = {"epoch": at["epoch"] + 1, "batch": 0}
            yield batch, dict(at)

    def valid(self) -> Iterator[Batch]:
        """The validation text once, with what is left out and drawn the same each time."""
        total = self.segments(self.held_out)
        for number, start in enumerate(range(0, total, self.rows)):
            yield self.batch(self.held_out, np.arange(start, min(total, start + self.rows)), (self.seed, number))

    def epoch(self) -> int:
        return max(1, self.segments(self.train) // self.rows)


def windows(
    ids_N: np.ndarray, whose_N: np.ndarray, reach_N: np.ndarray, window: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each word, those around it, and which of those are there: near enough, and of the same text.

    >>> words, around, there = windows(np.array([4, 5, 6]), np.array([0, 0, 1]), np.array([2, 1, 1]), window=2)
    >>> [row[kept].tolist() for row, kept in zip(around, there)]
    [[5], [4], []]
    """
    steps = np.array([step for step in range(-window, window + 1) if step])
    at = np.arange(len(ids_N))[:, None] + steps
    inside = (at >= 0) & (at < len(ids_N))
    at = at.clip(0, max(0, len(ids_N) - 1))
    there = inside & (whose_N[at] == whose_N[:, None]) & (np.abs(steps) <= reach_N[:, None])
    return ids_N, ids_N[at], there


def justified(words: np.ndarray, there: np.ndarray) -> Tokens:
    """The words that are there, moved to the left, as tokens.

    >>> justified(np.array([[4, 5, 6], [7, 8, 9]]), np.array([[False, True, True], [True, False, False]])).data
    tensor([[5, 6],
            [7, 0]])
    """
    lengths = there.sum(1)
    longest = int(lengths.max(initial=0))
    data = np.full((len(words), longest), PAD, np.int64)
    data[np.arange(longest) < lengths[:, None]] = words[there]
    ragged = bool(len(lengths)) and int(lengths.min()) < longest
    return Tokens(torch.from_numpy(data), torch.from_numpy(lengths), ragged)
