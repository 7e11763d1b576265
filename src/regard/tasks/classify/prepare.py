"""Classification: where labelled texts, or rows of numbers, become batches with one answer each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from regard.config import plain
from regard.data import Batches, Position, Shards, ShardWriter, share
from regard.data.labelled import Example, LabelledSource
from regard.data.lines import read_lines
from regard.data.splits import apart
from regard.data.tabular import LabelledRows, LabelledTable
from regard.distributed import World
from regard.errors import ConfigError, DataError
from regard.objective import Batch, Tell
from regard.tasks.classify.inputs import COLUMN, Matter, Measures, Prose
from regard.tasks.classify.labels import Even, Labels, Weights
from regard.tasks.generate.numbers import FILE as SCALE
from regard.tasks.generate.numbers import Scale
from regard.tasks.translate.prepare import SAMPLE
from regard.text import Tokenizer, TokenizerConfig
from regard.text.word_vectors import VectorsConfig, WordVectors, first_words, read_vectors

VECTORS = "vectors.json"
TEXT = "given"
"""Column of validation that holds what was given as it came, in UTF-8."""
CHUNK = 1024
"""Texts that are cut into tokens together, on all cores."""


@dataclass(frozen=True)
class ClassifyConfig:
    """A text or a row in, one label out.

    >>> ClassifyConfig().pool
    'mean'
    """

    kind: Literal["classify"] = "classify"
    """a text in, a label out"""
    pool: Literal["last", "mean", "max", "first"] = "mean"
    """what speaks for the whole text: the last state (of both directions, if the model reads in both), the mean or the
    largest of all, or the first place, where a start token is put as BERT's [CLS]"""
    dropout: float = 0.3
    """share of numbers dropped from the vector that speaks for the text"""
    unknown: float = 0.1
    """share of the words that are read as unknown in training, others in each epoch: a model then knows what to make of
    words that it has never seen"""
    weights: Weights = Even()
    """how much the examples of each label count"""
    tokens: int = 256
    """the most tokens that are read of a text"""
    keep: Literal["beginning", "end"] = "beginning"
    """which tokens of a longer text are read"""
    held_out: float = 0.1
    """share of the training examples kept apart for validation, when the data has no valid split"""
    samples: int = 4
    """validation examples that are kept with their answers in samples.jsonl"""

    def __post_init__(self) -> None:
        for name, least in (("tokens", 1), ("samples", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} = {getattr(self, name)} must be at least {least}")
        if not 0 < self.held_out < 1:
            raise ConfigError(f"held_out = {self.held_out} must be above 0 and below 1")
        for name in ("dropout", "unknown"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} = {getattr(self, name)} must be at least 0 and below 1")


@dataclass(frozen=True)
class TextPreparation:
    """Labelled texts in; tokenizer, labels, vectors and shards out.

    >>> from regard.data.labelled import LabelledTsv
    >>> TextPreparation(LabelledTsv(train="a.tsv")).identity()["task"]
    {'tokens': 256, 'keep': 'beginning', 'held_out': 0.1}
    """

    data: LabelledSource
    text: TokenizerConfig = TokenizerConfig(kind="word")
    task: ClassifyConfig = ClassifyConfig()
    vectors: VectorsConfig = VectorsConfig()

    def identity(self) -> dict[str, Any]:
        """The settings that what is prepared depends on."""
        asked = {name: getattr(self.task, name) for name in ("tokens", "keep", "held_out")}
        vectors = {"path": self.vectors.path, "words": self.vectors.words}
        return {"data": plain(self.data), "text": plain(self.text), "vectors": vectors, "task": asked}

    def run(self, folder: Path, tell: Tell) -> Mapping[str, Mapping[str, int]]:
        """Write everything into `folder`; of each split, how many were read, empty or cut."""
        tell("reading", 0, total=0)
        examples = characters = 0
        found: Counter[str] = Counter()
        for example in self.data.examples("train"):
            examples, characters = examples + 1, characters + len(example.text.strip())
            found[example.label] += 1
        labels = Labels.of(found, self.data.file("train"))
        if not characters:
            raise DataError(f"{self.data.file('train')}: every text is empty; is data.text the right column?")
        stride = max(1, -(-characters // SAMPLE))
        tell("tokenizer", 0, total=0)
        texts = (example.text for example in islice(self.examples("train"), 0, None, stride))
        tokenizer = Tokenizer.train(chain(texts, self._added()), replace(self.text, size=self.size))
        matter, counts = Prose(tokenizer, self.task.tokens, self.task.keep), {}
        for split, total in (("train", examples), ("valid", 0)):
            counts[split] = self._write(split, folder / split, matter, labels, tell, total)
        labels.save(folder)
        tokenizer.save(folder / "tokenizer.json")
        self._start(folder, tokenizer, tell)
        return counts

    def examples(self, split: str) -> Iterator[Example]:
        """A split of the data; what has no valid split lends it a share of train, chosen by the texts themselves."""
        if "valid" in self.data.splits() or split not in ("train", "valid"):
            yield from self.data.examples(split)
            return
        read = kept = 0
        for example in self.data.examples("train"):
            read += 1
            if apart(example.text, self.task.held_out) == (split == "valid"):
                kept += 1
                yield example
        check_kept(kept, read, split, self.task.held_out, self.data.file("train"))

    def _write(
        self, split: str, folder: Path, matter: Prose, labels: Labels, tell: Tell, total: int
    ) -> Mapping[str, int]:
        counts: Counter[str] = Counter({"read": 0, "empty": 0, "cut": 0})
        columns = {COLUMN: matter.vocabulary(), "label": len(labels.names)} | ({TEXT: 256} if split == "valid" else {})
        stream, where = self.examples(split), self.data.file("train" if self._lent(split) else split)
        with ShardWriter(folder, columns, about=self.identity()) as writer:
            while some := list(islice(stream, CHUNK)):
                rows = []
                for example, piece in zip(some, matter.read([e.text for e in some], counts["read"] + 1), strict=True):
                    number = labels.number(example.label, f"{where}, line {example.line}")
                    counts["empty" if not piece.row else "cut" if piece.left_out else "whole"] += 1
                    if piece.row:
                        given = (example.text.encode(),) if split == "valid" else ()
                        rows.append((matter.packed(piece.row), [number], *given))
                counts["read"] += len(some)
                writer.append(rows)
                tell(f"encoding {split}", counts["read"], total=total)
        if counts["empty"] == counts["read"]:
            raise DataError(f"{where}: every text of {split} is empty; there is nothing to learn from")
        return counts

    @property
    def size(self) -> int:
        """The largest vocabulary."""
        return self.text.size + self.vectors.words

    def _added(self) -> Iterator[str]:
        """Words that join the vocabulary whether or not a text has them."""
        path = self.vectors.file()
        return iter(()) if path is None else first_words(read_lines(path), self.vectors.words, path)

    def _lent(self, split: str) -> bool:
        return split == "valid" and "valid" not in self.data.splits()

    def _start(self, folder: Path, tokenizer: Tokenizer, tell: Tell) -> None:
        """The vectors that words start from, if there are any."""
        path = self.vectors.file()
        if path is None:
            return
        tell("word vectors", 0, total=0)
        words = {token: i for i, token in enumerate(tokenizer.vocabulary)}
        found = read_vectors(read_lines(path), path, words)
        found.save(folder)
        told = {"width": found.width, "found": len(found), "words": len(words)}
        (folder / VECTORS).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def check_kept(kept: int, read: int, split: str, held_out: float, file: str) -> None:
    """Refuse a split that nothing falls to.

    >>> check_kept(0, 5, "valid", 0.1, "a.tsv")
    Traceback (most recent call last):
    regard.errors.DataError: a.tsv: none of its 5 examples falls to valid when a share of 0.1 is kept apart for ...
    """
    if not kept:
        raise DataError(
            f"{file}: none of its {read:,} examples falls to {split} when a share of {held_out} is kept apart for "
            "validation; name a file for data.valid, change task.held_out, or give more examples"
        )


@dataclass(frozen=True)
class TablePreparation:
    """Rows of numbers with labels in; their scale, labels and shards out.

    >>> TablePreparation(LabelledTable(train="a.csv")).identity()["task"]
    {'held_out': 0.1}
    """

    data: LabelledTable
    task: ClassifyConfig = ClassifyConfig()

    def identity(self) -> dict[str, Any]:
        """The settings that what is prepared depends on."""
        return {"data": plain(self.data), "task": {"held_out": self.task.held_out}}

    def run(self, folder: Path, tell: Tell) -> Mapping[str, Mapping[str, int]]:
        """Write everything into `folder`; the scale is that of the rows that are learnt from."""
        tell("reading", 0, total=0)
        labels = Labels.of(self.data.rows("train").labels, self.data.file("train"))
        rows = {split: self.rows(split) for split in ("train", "valid")}
        scale = Scale.of(rows["train"].table)
        matter, counts = Measures(scale), {}
        for split, found in rows.items():
            if found.table.names != scale.names:
                raise DataError(
                    f"{split} has the columns {', '.join(found.table.names)}, train has {', '.join(scale.names)}; "
                    "name those that both have in data.columns"
                )
            where = self.data.file(split if split in self.data.splits() else "train")
            columns = {COLUMN: matter.vocabulary(), "label": len(labels.names)}
            columns |= {TEXT: 256} if split == "valid" else {}
            with ShardWriter(folder / split, columns, about=self.identity()) as writer:
                writer.append(
                    [
                        (
                            matter.packed(values),
                            [labels.number(label, f"{where}, line {line}")],
                            *((spelled(raw).encode(),) if split == "valid" else ()),
                        )
                        for values, raw, label, line in zip(
                            scale.apply(found.table.values), found.table.values, found.labels, found.lines, strict=True
                        )
                    ]
                )
            counts[split] = {"read": len(found.labels)}
        labels.save(folder)
        scale.save(folder / SCALE)
        return counts

    def rows(self, split: str) -> LabelledRows:
        """A split of the data; what has no valid split lends it a share of train, chosen by the rows themselves."""
        if "valid" in self.data.splits() or split not in ("train", "valid"):
            return self.data.rows(split)
        whole = self.data.rows("train")
        apart_ = [apart(spelled(values), self.task.held_out) for values in whole.table.values]
        found = whole.only([kept == (split == "valid") for kept in apart_])
        check_kept(len(found.labels), len(whole.labels), split, self.task.held_out, self.data.file("train"))
        return found


def spelled(values: Sequence[float] | np.ndarray) -> str:
    """A row of numbers as it would be given.

    >>> spelled([5.0, 0.25])
    '5,0.25'
    """
    return ",".join(f"{value:.10g}" for value in values)


@dataclass(frozen=True)
class ClassFeed:
    """Batches of prepared examples, those of like length together. Keeps the Feed contract.

    >>> import tempfile
    >>> matter = Measures(Scale(("width",), (0.0,), (1.0,)))
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with ShardWriter(Path(home, "train"), {"text": 1 << 32, "label": 2}) as writer:
    ...         writer.append([(matter.packed([value]), [label]) for value, label in ((0.5, 1), (-0.5, 0))])
    ...     shards = Shards.open(Path(home, "train"))
    ...     batch, after = next(ClassFeed(shards, shards, matter).stream(None))
    >>> sorted(zip(batch.source.data.flatten().tolist(), batch.target.tolist())), after
    ([(-0.5, 0), (0.5, 1)], {'epoch': 1, 'pool': 0, 'batch': 0})
    """

    train: Shards
    held_out: Shards
    matter: Matter
    tokens: int = 4096
    seed: int = 1
    world: World = World()
    unknown: float = 0.0
    """share of the words of training that are read as unknown; which ones depends on seed, epoch and row alone"""

    def plan(self, shards: Shards) -> Batches:
        """Which rows make a batch."""
        return Batches((self.matter.lengths(shards),), self.tokens, self.seed)

    def stream(self, position: Mapping[str, int] | None) -> Iterator[tuple[Batch, Mapping[str, int]]]:
        at = Position(**(position or {}))
        for rows, after in self.plan(self.train).stream(at):
            mine = share(rows, self.world.rank, self.world.size)
            yield self.batch(self.train, mine, at.epoch), asdict(after)
            at = after

    def valid(self) -> Iterator[Batch]:
        for rows in self.plan(self.held_out).epoch(0):
            yield self.batch(self.held_out, share(rows, self.world.rank, self.world.size))

    def epoch(self) -> int:
        return self.plan(self.train).count()

    def batch(self, shards: Shards, rows: np.ndarray, epoch: int | None = None) -> Batch:
        """Rows as a model reads them, in an epoch of training or as they are, and the number of each one's label."""
        wanted_B = torch.from_numpy(shards.flat("label")[rows].astype(np.int64))
        given: Sequence[Any] = self.matter.stored(shards, rows)
        if self.unknown and epoch is not None:
            given = self.matter.forgotten(given, self.seeds(rows, epoch), self.unknown)
        return Batch(self.matter.tokens(given), wanted_B)

    def seeds(self, rows: np.ndarray, epoch: int) -> np.ndarray:
        """One number for each row in an epoch."""
        names = (f"{self.seed} {epoch} {row}".encode() for row in rows.tolist())
        return np.array([int.from_bytes(blake2b(name, digest_size=8).digest()) for name in names], np.uint64)

    def given(self, rows: np.ndarray) -> tuple[list[str], list[int]]:
        """What validation rows were before anything was cut, and their labels."""
        texts = [ids.astype(np.uint8).tobytes().decode() for ids in self.held_out.take(rows, TEXT)]
        return texts, self.held_out.flat("label")[rows].tolist()


def started(table_VD: Tensor, vectors: WordVectors, scale: float) -> Tensor:
    """A table of word vectors that starts from given ones.

    >>> given = WordVectors(np.array([1]), np.array([[5.0, -5.0]], np.float32))
    >>> started(torch.ones(2, 2), given, scale=2.0)[1]
    tensor([ 2., -2.])
    """
    return torch.from_numpy(vectors.into(table_VD.numpy(), scale))
