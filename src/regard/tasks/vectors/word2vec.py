"""Words that stand near one another: where running text becomes words that are read and words that are guessed.

As in word2vec: very common words are left out more often than not, before windows are cut, so that a window reaches
further; a window is as wide as a number drawn from 1 to `window`; noise words are drawn by their frequency to the
power of 3/4. Different here: the noise words of a batch are drawn once and shared by all its guesses, each counting
for `negatives / shared` of a word, also where it is the word that is guessed: the paper's loss on average, and all
scores are matrix products, of a segment's words with one another and with the noise. A window ends where its segment
of 128 words does, and each epoch cuts elsewhere. CBOW's gradient is that of the mean; the optimiser is the recipe's.
"""

from __future__ import annotations

import json
from abc import abstractmethod
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
from regard.distributed import World
from regard.errors import ConfigError, DataError
from regard.loss import Loss
from regard.objective import Batch, Task, Tell
from regard.sequence import EOS, Rows, Tokens
from regard.tasks.generate.prepare import COLUMN, TextPreparation
from regard.text import Tokenizer

SEGMENT = 128
"""consecutive words that windows are cut from; a batch has segments from all over the text"""
FILE = "frequencies.json"
POWER, LEAST = 0.75, 4
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
        if self.window >= SEGMENT:
            raise ConfigError(
                f"window = {self.window} must be below {SEGMENT}: a text is read in segments of so many words"
            )


@dataclass(frozen=True)
class Company(Rows):
    """Which words of each row stand near which, and the noise that these should be told from.

    >>> len(Company(torch.ones(2, 3, 3, dtype=torch.bool), torch.tensor([[7, 8], [7, 8]])))
    2
    """

    near: Tensor
    """(B, L, L): whether the window around the first has the second"""
    noise: Tensor
    """(B, K): the same words in each row"""


@dataclass(frozen=True)
class Nearby(Task):
    """Tell what stands near from noise: -log s(h.w) - negatives * mean over the noise of log s(-h.n), h what is read.

    All scores are products of matrices: those of a row's words with one another, and those with the batch's noise.
    """

    negatives: int = 5

    @abstractmethod
    def scores(self, read_BLD: Tensor, guessed_BLD: Tensor) -> Tensor:
        """(B, L, G): how sure each guess at each place is, in the order in which they are asked."""

    def loss(
        self, model: Any, batch: Batch, score: Callable[[Tensor, Tensor], Tensor], carry: Any = None
    ) -> tuple[Loss, Any]:
        """The sum over all guesses; `score`, which would ask for all words of the vocabulary, is not needed."""
        ids_BL, noise_K = batch.source.data, batch.target.noise[0]
        read_BLD = self.features(model, batch, carry)[0]["near"]
        words_ND = F.embedding(torch.cat([ids_BL.flatten(), noise_K]), model.readout.weight)  # one gradient for both
        guessed_BLD, noise_KD = words_ND[: ids_BL.numel()].view(read_BLD.shape), words_ND[ids_BL.numel() :]
        scores_BLG, where_BLG = self.scores(read_BLD, guessed_BLD), self.asked(batch)["near"][0]
        near = (F.softplus(-scores_BLG) * where_BLG).sum()
        against = (F.softplus(read_BLD.flatten(0, 1) @ noise_KD.T).sum(1) * where_BLG.sum(-1).flatten()).sum()
        return Loss({"near": near + against * (self.negatives / len(noise_K))}), None


class SkipGram(Nearby):
    """A word is read, each word around it is guessed.

    >>> from regard.models.word2vec import Word2VecConfig
    >>> from regard.spaces import Words
    >>> near = torch.tensor([[[False, True], [True, False]]])
    >>> batch = Batch(Tokens.of([[5, 6]]), Company(near, torch.tensor([[8]])))
    >>> loss, _ = SkipGram(Words(9), negatives=5).loss(Word2VecConfig(width=4).build(Words(9)), batch, Words(9).loss)
    >>> round(loss.totals["near"].item() / (2 * 6 * torch.tensor(2.0).log().item()), 4)  # a fresh model knows nothing
    1.0
    """

    def asked(self, batch: Batch) -> Mapping[str, tuple[Tensor, Tensor]]:
        return {"near": (batch.target.near, batch.source.data[:, None].expand_as(batch.target.near))}

    def scores(self, read_BLD: Tensor, guessed_BLD: Tensor) -> Tensor:
        return read_BLD @ guessed_BLD.mT

    def features(self, model: Any, batch: Batch, carry: Any) -> tuple[Mapping[str, Tensor], Any]:
        return {"near": model(batch.source)}, None


class CBOW(Nearby):
    """The words around it are read, their mean guesses the word.

    >>> from regard.spaces import Words
    >>> near = torch.tensor([[[False, True, True], [True, False, True], [False, False, False]]])
    >>> CBOW(Words(9)).counts(Batch(Tokens.of([[5, 6, 7]]), Company(near, torch.tensor([[8]]))))
    {'near': tensor(2)}
    """

    def asked(self, batch: Batch) -> Mapping[str, tuple[Tensor, Tensor]]:
        return {"near": (batch.target.near.any(-1, keepdim=True), batch.source.data[:, :, None])}

    def scores(self, read_BLD: Tensor, guessed_BLD: Tensor) -> Tensor:
        return (read_BLD * guessed_BLD).sum(-1, keepdim=True)

    def features(self, model: Any, batch: Batch, carry: Any) -> tuple[Mapping[str, Tensor], Any]:
        return {"near": model(batch.source, batch.target.near)}, None


METHODS: dict[str, type[SkipGram] | type[CBOW]] = {"skipgram": SkipGram, "cbow": CBOW}


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
        powers = np.cumsum(self.counts**POWER)
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
    """Segments of a text from all over it, and which of their words stand near which. Keeps the Feed contract.

    >>> text = np.array([4, 5, 6, 7] * 64)
    >>> feed = NearbyFeed(text, text, Frequencies.of(text, 8), NearbyConfig(window=1, common=0), rows=1)
    >>> batch = next(feed.valid())
    >>> batch.source.data[0, :5].tolist(), batch.target.near[0, 1, :5].int().tolist()
    ([4, 5, 6, 7, 4], [1, 0, 1, 0, 0])
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
        counts = self.frequencies.counts
        if np.count_nonzero(counts) < 2:
            raise DataError("the text has fewer than two words that are known; give more text, or a larger text.size")
        left = SEGMENT * float((self.keep * counts).sum() / counts.sum())
        if left < 2:
            raise DataError(
                f"task.common = {self.task.common} leaves {left:.1f} words of {SEGMENT}: none have company; raise it"
            )

    @cached_property
    def keep(self) -> np.ndarray:
        """(V,): how likely each word is to be kept."""
        return self.frequencies.kept(self.task.common)

    def segments(self, text: np.ndarray) -> int:
        """How many whole segments a text has, wherever the first begins."""
        return max(1, (len(text) - SEGMENT + 1) // SEGMENT)

    def offset(self, epoch: int) -> int:
        """Where the first segment of an epoch begins, so that the next is cut elsewhere."""
        room = min(SEGMENT, len(self.train) - self.segments(self.train) * SEGMENT + 1)
        return int(np.random.default_rng((0, self.seed, epoch)).integers(room))

    def batch(self, text: np.ndarray, starts: np.ndarray, key: tuple[int, ...]) -> Batch:
        """This process's share of the segments that begin there; all that is drawn depends on the key alone.

        Segments of which no two words are left together are left out.
        """
        drawn = np.random.default_rng(key)
        shape = (len(starts), SEGMENT)
        chance, reach = drawn.random(shape), drawn.integers(1, self.task.window, shape, endpoint=True)
        noise = np.searchsorted(self.frequencies.drawn, drawn.random(self.task.shared), side="right")
        mine = slice(self.world.rank, None, self.world.size)
        ids = text[starts[mine][:, None] + np.arange(SEGMENT)].astype(np.int64)
        kept = chance[mine] < self.keep[ids]
        words, texts, reaches = (justified(x, kept) for x in (ids, (ids == EOS).cumsum(1), reach[mine]))
        near = company(texts, reaches, kept.sum(1))
        some = near.any((1, 2))
        lengths = torch.from_numpy(kept.sum(1)[some])
        source = Tokens(
            torch.from_numpy(words[some]), lengths, bool(len(lengths)) and bool(lengths.amin() < words.shape[1])
        )
        return Batch(source, Company(torch.from_numpy(near[some]), torch.from_numpy(noise).expand(len(lengths), -1)))

    def stream(self, position: Mapping[str, int] | None) -> Iterator[tuple[Batch, Mapping[str, int]]]:
        at = dict(position or {"epoch": 0, "batch": 0})
        while True:
            order = Order(self.segments(self.train), (self.seed, at["epoch"]))
            rows = min(self.rows, order.n)
            chosen = order.at(np.arange(at["batch"] * rows, (at["batch"] + 1) * rows))
            starts = self.offset(at["epoch"]) + chosen * SEGMENT
            batch = self.batch(self.train, starts, (1, self.seed, at["epoch"], at["batch"]))
            at["batch"] += 1
            if at["batch"] == self.epoch():
                at = {"epoch": at["epoch"] + 1, "batch": 0}
            yield batch, dict(at)

    def valid(self) -> Iterator[Batch]:
        """The validation text once, with what is left out and drawn the same each time."""
        total = len(self.held_out) // SEGMENT
        for number, start in enumerate(range(0, total, self.rows)):
            starts = SEGMENT * np.arange(start, min(total, start + self.rows))
            yield self.batch(self.held_out, starts, (2, self.seed, number))

    def epoch(self) -> int:
        return max(1, self.segments(self.train) // self.rows)


def company(texts_BL: np.ndarray, reach_BL: np.ndarray, lengths_B: np.ndarray) -> np.ndarray:
    """(B, L, L): whether a word is in the window around another: near enough, of the same text, and not itself.

    >>> company(np.array([[0, 0, 1]]), np.array([[2, 1, 1]]), np.array([3])).astype(int).tolist()
    [[[0, 1, 0], [1, 0, 0], [0, 0, 0]]]
    """
    place_L = np.arange(texts_BL.shape[1])
    apart_LL = np.abs(place_L[:, None] - place_L)
    real_BL = place_L < lengths_B[:, None]
    near: np.ndarray = (apart_LL > 0) & (apart_LL <= reach_BL[:, :, None]) & (texts_BL[:, :, None] == texts_BL[:, None])
    return near & real_BL[:, :, None] & real_BL[:, None]


def justified(rows: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """What is kept of each row, moved to the left; the rest is zero, as <PAD> is.

    >>> justified(np.array([[4, 5, 6], [7, 8, 9]]), np.array([[False, True, True], [True, False, False]]))
    array([[5, 6],
           [7, 0]])
    """
    lengths = kept.sum(1)
    made = np.zeros((len(rows), int(lengths.max(initial=0))), np.int64)
    made[np.arange(made.shape[1]) < lengths[:, None]] = rows[kept]
    return made
