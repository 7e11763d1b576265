"""Translation: where sentence pairs become batches. Preparation reads text once; training reads ids from the disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from regard.config import plain
from regard.data import Batches, Position, Shards, ShardWriter, share
from regard.data.splits import apart, in_both
from regard.distributed import World
from regard.errors import ConfigError, DataError
from regard.objective import Batch, Tell, silent
from regard.sequence import PAD, Tokens
from regard.tasks.translate.filters import Filter, clean, encode_pairs, unseen
from regard.tasks.translate.sources import Pair, PairSource
from regard.text import Dropout, Tokenizer, TokenizerConfig

SAMPLE = 30_000_000
"""Characters that a tokenizer is trained from: more would take memory and change little."""
VERSION = 2
"""Of preparation: what another one wrote is prepared anew. 2: validation has its texts, and no sentence of training"""
COMMON = 20
"""Training pairs that a target of validation may cost; one that more of them share, such as "Yes.", stays with them"""
POOL = 1 << 14
"""Rows that are sorted together when merges are left out: each pool is cut anew before its first batch"""
SIDES = ("source", "target")
TEXTS = ("source_text", "target_text")
"""Columns of validation that hold its texts as they came, in UTF-8: ids do not tell what was made normal"""


@dataclass(frozen=True)
class TranslateConfig:
    """Text in one language to text in another.

    >>> TranslateConfig().joint
    True
    """

    kind: Literal["translate"] = "translate"
    """sentence in, sentence out"""
    joint: bool = True
    """one vocabulary for both languages; needed for model.tie = "all\""""
    held_out: float = 0.02
    """share of the training pairs kept apart for validation, when the data has no valid split"""
    scored: int = 200
    """validation sentences that are translated greedily and scored at each validation; 0: none"""
    samples: int = 4
    """of these, how many are kept in samples.jsonl"""
    tried: tuple[str, ...] = ()
    """sentences of your own that are translated at each validation, shown, and kept in samples.jsonl"""

    def __post_init__(self) -> None:
        if not 0 < self.held_out < 1:
            raise ConfigError(f"held_out = {self.held_out} must be above 0 and below 1")


@dataclass(frozen=True)
class Vocabularies:
    """The tokenizers of the two sides; with a joint vocabulary they are one.

    >>> both = Tokenizer.train(["je suis", "I am"], TokenizerConfig(size=40))
    >>> Vocabularies(both, both).joint
    True
    """

    source: Tokenizer
    target: Tokenizer

    @property
    def joint(self) -> bool:
        return self.source == self.target

    def save(self, folder: Path) -> None:
        """tokenizer.json; with two vocabularies, tokenizer.source.json and tokenizer.target.json."""
        for name, tokenizer in self._files().items():
            tokenizer.save(folder / name)

    @classmethod
    def load(cls, folder: Path) -> Vocabularies:
        """What `save` wrote."""
        if (folder / "tokenizer.json").exists():
            both = Tokenizer.load(folder / "tokenizer.json")
            return cls(both, both)
        return cls(*(Tokenizer.load(folder / f"tokenizer.{side}.json") for side in ("source", "target")))

    def _files(self) -> dict[str, Tokenizer]:
        if self.joint:
            return {"tokenizer.json": self.source}
        return {"tokenizer.source.json": self.source, "tokenizer.target.json": self.target}


@dataclass(frozen=True)
class Preparation:
    """Text files in, tokenizers and shards out.

    >>> from regard.tasks.translate.sources import Tsv
    >>> Preparation(Tsv(train="pairs.tsv")).filter.ratio
    4.0
    """

    data: PairSource
    filter: Filter = Filter()
    text: TokenizerConfig = TokenizerConfig()
    task: TranslateConfig = TranslateConfig()

    def identity(self) -> dict[str, Any]:
        """The settings that what is prepared depends on."""
        parts = {"data": self.data, "filter": self.filter, "text": self.text, "task": self.task}
        table = {name: plain(part) for name, part in parts.items()}
        for section, key in (("text", "dropout"), ("task", "samples"), ("task", "scored"), ("task", "tried")):
            table[section].pop(key)
        return {**table, "version": VERSION}

    def run(self, folder: Path, tell: Tell = silent) -> Mapping[str, Counter[str]]:
        """Write tokenizers, and the shards of train and valid, into `folder`; the counts of what was dropped why."""
        pairs, characters = self._size(tell)
        vocabularies = self.vocabularies(characters, tell)
        counts = {}
        for split, total in (("train", pairs), ("valid", 0)):
            counts[split] = self._write(split, vocabularies, folder / split, partial(tell, total=total))
        vocabularies.save(folder)
        return counts

    def pairs(self, split: str, counts: Counter[str] | None = None) -> Iterator[Pair]:
        """A split of the data; what has no valid split lends it a share of train.

        The share is chosen by the source. A target that is in both is dropped from train, or from valid if it is too
        common for that (COMMON): no sentence of either side is in both then, up to case and final punctuation. Which
        pairs are where depends on the pairs alone, not on their order. `counts` grows by what was dropped.
        """
        if self._whole or split not in ("train", "valid"):
            yield from self.data.pairs(split)
            return
        counts, kept = Counter() if counts is None else counts, False
        known, reason = self._shared[split], {"train": "also in validation", "valid": "also in training"}[split]
        for pair in unseen(self._part(split), known, reason, counts):
            kept = True
            yield pair
        if not kept:
            raise DataError(
                f"each of the {counts[reason]:,} pairs that fall to {split} has a target that is {reason}; name files "
                "for data.valid"
            )

    @property
    def _whole(self) -> bool:
        return "valid" in self.data.splits()

    @cached_property
    def _shared(self) -> Mapping[str, np.ndarray]:
        """Hashes of the targets that are in both parts: those that train does without, and those that valid does."""
        targets = ((pair[1] for pair in self._part(split)) for split in ("valid", "train"))
        found, times = in_both(*targets)
        return {"train": found[times <= COMMON], "valid": found[times > COMMON]}

    def _part(self, split: str) -> Iterator[Pair]:
        """The pairs of the one split there is whose source falls to train, or to valid."""
        read = kept = 0
        for pair in self.data.pairs("train"):
            read += 1
            if apart(pair[0], self.task.held_out) == (split == "valid"):
                kept += 1
                yield pair
        if not kept:
            raise DataError(
                f"none of the {read:,} pairs falls to {split} when a share of {self.task.held_out} is kept apart for "
                "validation; name files for data.valid, or change task.held_out"
            )

    def _size(self, tell: Tell) -> tuple[int, int]:
        """Training pairs and characters: what follows can then say how long it will take."""
        pairs, characters, counts = 0, 0, Counter[str]()
        for source, target in self.pairs("train", counts):
            pairs, characters = pairs + 1, characters + len(source) + len(target)
            if not pairs % 50_000:
                tell("reading", pairs, total=0)
        return pairs + counts["read"], characters

    def vocabularies(self, characters: int, tell: Tell = silent) -> Vocabularies:
        """Tokenizers trained on the training pairs: on all of them, or on evenly spaced ones if there are very many."""
        stride = max(1, -(-characters // SAMPLE))
        tell("tokenizer", 0, total=0)

        def lines(*sides: int) -> Iterator[str]:
            for pair in islice(self.pairs("train"), 0, None, stride):
                if self.filter.reason(*pair) is None:
                    yield from (pair[side] for side in sides)

        if self.task.joint:
            both = Tokenizer.train(lines(0, 1), self.text)
            return Vocabularies(both, both)
        return Vocabularies(Tokenizer.train(lines(0), self.text), Tokenizer.train(lines(1), self.text))

    def _write(
        self, split: str, vocabularies: Vocabularies, folder: Path, tell: Callable[[str, int], None]
    ) -> Counter[str]:
        counts: Counter[str] = Counter()
        columns = {"source": vocabularies.source.size, "target": vocabularies.target.size}
        if split == "valid":
            columns |= dict.fromkeys(TEXTS, 256)
        # validation keeps what training would drop as a repetition: it is asked as it is
        rules = self.filter if split == "train" else Filter(**{**asdict(self.filter), "duplicates": False})
        with ShardWriter(folder, columns, about=self.identity()) as writer:
            pairs = clean(self.pairs(split, counts), rules, counts)
            encode = vocabularies.source.encode_batch, vocabularies.target.encode_batch
            for chunk in encode_pairs(pairs, *encode, rules, counts):
                texts = [tuple(text.encode() for text in pair) if split == "valid" else () for pair, _ in chunk]
                writer.append([(*row, *text) for (_, row), text in zip(chunk, texts, strict=True)])
                tell(f"encoding {split}", counts["read"])
        return counts


Change = Callable[[int, np.ndarray, Sequence[Any]], Sequence[Any]]
"""Side (0: source), row numbers and their sentences -> the sentences in other pieces."""


@dataclass(frozen=True)
class WithEnd:
    """Lengths of sentences with the special word that a batch adds; of what they are changed to, if they are."""

    shards: Shards
    side: int
    change: Change | None = None

    def __len__(self) -> int:
        return len(self.shards)

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray:
        if self.change is None:
            return self.shards.lengths(SIDES[self.side])[rows] + 1
        changed = self.change(self.side, rows, self.shards.take(rows, SIDES[self.side]))
        return np.fromiter((len(ids) + 1 for ids in changed), np.int64, len(rows))


@dataclass(frozen=True)
class PairFeed:
    """Batches of prepared sentence pairs. Keeps the Feed contract.

    >>> PairFeed.__dataclass_fields__["tokens"].default
    4096
    """

    train: Shards
    held_out: Shards
    vocabularies: Vocabularies
    tokens: int = 4096
    seed: int = 1
    dropout: float = 0.0
    """share of merges left out of each sentence, anew each epoch; batches are planned with the pieces that are left"""
    world: World = World()

    def plan(self, shards: Shards, change: Change | None = None) -> Batches:
        lengths = tuple(WithEnd(shards, side, change) for side in range(len(SIDES)))
        if change is None:
            return Batches(lengths, self.tokens, self.seed)
        return Batches(lengths, self.tokens, self.seed, POOL)

    def stream(self, position: Mapping[str, int] | None) -> Iterator[tuple[Batch, Mapping[str, int]]]:
        at = Position(**(position or {}))
        while True:
            epoch, change = at.epoch, self._change(at.epoch)
            for rows, after in self.plan(self.train, change).stream(at):
                mine = share(rows, self.world.rank, self.world.size)
                yield self.batch(self.train, mine, change), asdict(after)
                at = after
                if at.epoch != epoch:
                    break

    def valid(self) -> Iterator[Batch]:
        for rows in self.plan(self.held_out).epoch(0):
            yield self.batch(self.held_out, share(rows, self.world.rank, self.world.size))

    def epoch(self) -> int:
        """Batches of an epoch; with dropout of the first one, by its first pool, which the others are like."""
        change = self._change(0)
        plan = self.plan(self.train, change)
        if change is None:
            return plan.count()
        return max(1, round(len(plan.in_pool(0, 0)) * len(self.train) / min(len(self.train), plan.pool)))

    def texts(self, rows: np.ndarray) -> tuple[list[str], list[str]]:
        """Sources and references of validation rows, as they were before anything was made normal or cut."""
        if not set(TEXTS) <= set(self.held_out.columns):
            raise DataError("the validation data was prepared without its texts; prepare the data again")
        sides = (self.held_out.take(rows, column) for column in TEXTS)
        sources, references = ([ids.astype(np.uint8).tobytes().decode() for ids in side] for side in sides)
        return sources, references

    def batch(self, shards: Shards, rows: np.ndarray, change: Change | None = None) -> Batch:
        """Sources end with <EOS>; targets stand between <SOS> and <EOS>."""
        sides: list[Sequence[Any]] = [shards.take(rows, side) for side in SIDES]
        if change is not None:
            sides = [change(i, rows, side) for i, side in enumerate(sides)]
        ours, theirs = self.vocabularies.source, self.vocabularies.target
        return Batch(tokens_of(sides[0], (), (ours.eos,)), tokens_of(sides[1], (theirs.sos,), (theirs.eos,)))

    @cached_property
    def _drop(self) -> tuple[Dropout, Dropout]:
        return Dropout(self.vocabularies.source, self.dropout), Dropout(self.vocabularies.target, self.dropout)

    def _change(self, epoch: int) -> Change | None:
        """Each sentence in pieces that depend on seed, epoch and row alone; None: in those it has."""
        if not self.dropout:
            return None

        def change(side: int, rows: np.ndarray, sentences: Sequence[Any]) -> Sequence[Any]:
            names = (f"{self.seed} {epoch} {side} {row}".encode() for row in rows.tolist())
            seeds = (int.from_bytes(blake2b(name, digest_size=8).digest()) for name in names)
            return [self._drop[side](ids.tolist(), seed) for ids, seed in zip(sentences, seeds, strict=True)]

        return change


def tokens_of(sentences: Sequence[Any], before: Sequence[int], after: Sequence[int]) -> Tokens:
    """Sentences of ids as one padded batch, each between the same special words.

    >>> tokens_of([[5, 6], [7]], [2], [3]).data
    tensor([[2, 5, 6, 3],
            [2, 7, 3, 0]])
    """
    lengths = [len(ids) + len(before) + len(after) for ids in sentences]
    data = np.full((len(sentences), max(lengths, default=0)), PAD, np.int64)
    for row, ids, length in zip(data, sentences, lengths, strict=True):
        row[: len(before)] = before
        row[len(before) : length - len(after)] = ids
        row[length - len(after) : length] = after
    return Tokens(torch.from_numpy(data), torch.tensor(lengths, dtype=torch.long), len(set(lengths)) > 1)
