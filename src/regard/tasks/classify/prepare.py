"""Preparation of classification data: labeled texts or table rows become a tokenizer or scaler, labels and shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from regard.config import plain
from regard.data import ColumnKind, ShardWriter
from regard.data.lines import read_lines
from regard.data.movie_reviews import LabeledExample
from regard.data.scaling import SCALE_FILE, StandardScaler
from regard.data.splits import is_held_out
from regard.errors import DataError
from regard.progress import Progress
from regard.tasks.classify.config import ClassifyConfig
from regard.tasks.classify.inputs import (
    COLUMN,
    VECTORS,
    InputEncoder,
    PairInput,
    SingleOrPairInput,
    TableInput,
    TextInput,
    VectorCoverage,
)
from regard.tasks.classify.labels import LABELS, Labels
from regard.tasks.classify.loader import TEXT
from regard.tasks.classify.sources import (
    ImportedLabeledTexts,
    LabeledColumns,
    LabeledReviews,
    LabeledRows,
    LabeledTable,
    LabeledTexts,
)
from regard.tasks.classify.spelled import SpelledTextInput
from regard.tasks.init_recipe import load_pretrained_tokenizer
from regard.text import Tokenizer, TokenizerConfig
from regard.text.tokenizer_training import TRAIN_CHARACTERS
from regard.text.word_vectors import PretrainedVectorsConfig, first_words, read_vectors

CHUNK = 1024
"""Texts that are tokenized together, on all cores."""


@dataclass(frozen=True)
class EvalSet:
    """Labeled inputs to score a model on, with their lines in the file."""

    file: str
    inputs: Sequence[str]
    labels: Sequence[str]
    lines: Sequence[int]

    def location(self, i: int) -> str:
        """Location of one example, for messages."""
        return f"{self.file}, line {self.lines[i]}"


@dataclass(frozen=True)
class LabeledTextPreparation:
    """Prepares labeled texts: tokenizer, labels, word vectors and shards."""

    data: LabeledTexts | LabeledReviews | ImportedLabeledTexts
    text: TokenizerConfig = TokenizerConfig(kind="word")
    task: ClassifyConfig = ClassifyConfig()
    vectors: PretrainedVectorsConfig = PretrainedVectorsConfig()
    spelled: bool = False
    """whether the model reads words by their spellings"""

    @property
    def artifacts(self) -> tuple[str, ...]:
        """Prepared files that the model needs later."""
        return (LABELS, "tokenizer.json") + ((VECTORS,) if self.vectors.path else ())

    def identity(self) -> dict[str, Any]:
        """The settings that the prepared files depend on."""
        task = {name: getattr(self.task, name) for name in ("max_length", "keep")}
        vectors = {"path": self.vectors.path, "words": self.vectors.words}
        found = {"data": plain(self.data), "text": plain(self.text), "vectors": vectors, "task": task}
        return found | ({"spelled": True} if self.spelled else {})

    def load_encoder(self, run: Path) -> TextInput:
        """The input encoder that preparation wrote."""
        vectors = VectorCoverage.load(run) if self.vectors.path else None
        return self.make_encoder(Tokenizer.load(run / "tokenizer.json"), vectors)

    def make_encoder(self, tokenizer: Tokenizer, vectors: VectorCoverage | None = None) -> TextInput:
        """The input encoder; a tokenizer of BERT puts [CLS] and [SEP] around every text, as in its pre-training."""
        task, add_eos = self.task, tokenizer.has_cls or self.is_pair
        add_sos = add_eos or task.reads_first
        found = PairInput if self.is_pair else SpelledTextInput if self.spelled else TextInput
        found = SingleOrPairInput if isinstance(self.data, ImportedLabeledTexts) else found
        return found(tokenizer, task.max_length, task.keep, add_sos, add_eos, vectors, self.text.kind)

    @property
    def is_pair(self) -> bool:
        """Whether an example is a pair of texts."""
        return isinstance(self.data, LabeledColumns) and self.data.second is not None

    def run(self, folder: Path, progress: Progress) -> Mapping[str, Mapping[str, int]]:
        """Write everything into `folder`; per split, how many texts were read, empty or truncated."""
        progress("reading", 0, total=0)
        examples = characters = 0
        counter: Counter[str] = Counter()
        for example in self.data.examples("train"):
            examples, characters = examples + 1, characters + len(example.text.strip())
            counter[example.label] += 1
        labels = Labels.count(counter, self.data.file("train"))
        if not characters:
            empty = "text is empty; is data.text the right column?"
            if self.is_pair:
                empty = "pair has an empty text; are data.text and data.second the right columns?"
            raise DataError(f"{self.data.file('train')}: every {empty}")
        progress("tokenizer", 0, total=0)
        tokenizer = self._tokenizer(characters)
        encoder, counts = self.make_encoder(tokenizer), {}
        for split, total in (("train", examples), ("valid", 0)):
            counts[split] = self._write(split, folder / split, encoder, labels, progress, total)
        labels.save(folder)
        tokenizer.save(folder / "tokenizer.json")
        self._write_vectors(folder, tokenizer, progress)
        return counts

    def _tokenizer(self, characters: int) -> Tokenizer:
        """The tokenizer that text.tokenizer names, or one that is trained on the training texts."""
        if self.text.tokenizer is not None:
            return load_pretrained_tokenizer(self.text.tokenizer, "source", self.text.lowercase)
        stride = max(1, -(-characters // TRAIN_CHARACTERS))
        examples = islice(self.examples("train"), 0, None, stride)
        texts = (
            text for example in examples for text in (example.text.split("\t") if self.is_pair else [example.text])
        )
        vocab_size = self.text.vocab_size + self.vectors.words
        return Tokenizer.train(chain(texts, self._vector_words()), replace(self.text, vocab_size=vocab_size))

    def examples(self, split: str) -> Iterator[LabeledExample]:
        """The examples of a split; without a valid split, a share of train is held out by a hash of the text."""
        if not isinstance(self.data, LabeledTexts) or not held_out_of_train(self.data.splits(), split):
            yield from self.data.examples(split)
            return
        read = kept = 0
        for example in self.data.examples("train"):
            read += 1
            if is_held_out(example.text, self.data.valid_share) == (split == "valid"):
                kept += 1
                yield example
        check_split_size(kept, read, split, self.data.valid_share, self.data.file("train"))

    def file(self, split: str) -> str:
        """The file that a split is read from."""
        return self.data.file("train" if held_out_of_train(self.data.splits(), split) else split)

    def eval_set(self, encoder: InputEncoder, split: str, file: Path | None) -> EvalSet:
        """A split of the recipe's data, or a file of the same kind, to score a model on."""
        if file is not None:
            return replace(self, data=self.data.scored_on(file)).eval_set(encoder, "test", None)
        examples = list(self.examples(split))
        texts, labels, lines = ([getattr(e, name) for e in examples] for name in ("text", "label", "line"))
        return EvalSet(self.file(split), texts, labels, lines)

    def _write(
        self, split: str, folder: Path, encoder: TextInput, labels: Labels, progress: Progress, total: int
    ) -> Mapping[str, int]:
        counts: Counter[str] = Counter({"read": 0, "empty": 0, "cut": 0})
        stream, where = self.examples(split), self.file(split)
        with ShardWriter(folder, shard_columns(encoder, labels, split), metadata=self.identity()) as writer:
            while chunk := list(islice(stream, CHUNK)):
                rows = []
                encoded = encoder.encode([e.text for e in chunk], counts["read"] + 1)
                for example, one in zip(chunk, encoded, strict=True):
                    label = labels.index(example.label, f"{where}, line {example.line}")
                    counts["empty" if not one.row else "cut" if one.truncated else "whole"] += 1
                    if one.row:
                        text = (example.text,) if split == "valid" else ()
                        rows.append((one.row, [label], *text))
                counts["read"] += len(chunk)
                writer.append(rows)
                progress(f"encoding {split}", counts["read"], total=total)
        if counts["empty"] == counts["read"]:
            raise DataError(f"{where}: every text of {split} is empty; there is nothing to learn from")
        return counts

    def _vector_words(self) -> Iterator[str]:
        """Words of the vector file that join the vocabulary even if no text has them."""
        path = self.vectors.file()
        return iter(()) if path is None else first_words(read_lines(path), self.vectors.words, path)

    def _write_vectors(self, folder: Path, tokenizer: Tokenizer, progress: Progress) -> None:
        """Write the pretrained vectors of the vocabulary, if there are any."""
        path = self.vectors.file()
        if path is None:
            return
        progress("word vectors", 0, total=0)
        words = {token: i for i, token in enumerate(tokenizer.vocabulary)}
        vectors = read_vectors(read_lines(path), path, words)
        vectors.save(folder)
        VectorCoverage(vectors.width, len(vectors), len(words)).save(folder)


def held_out_of_train(splits: Sequence[str], split: str) -> bool:
    """Whether a split shares the file of train, since there is no valid split."""
    return "valid" not in splits and split in ("train", "valid")


def check_split_size(kept: int, read: int, split: str, valid_share: float, file: str) -> None:
    """Refuse an empty split."""
    if not kept:
        raise DataError(
            f"{file}: none of its {read:,} examples falls to {split} when a share of {valid_share} is held out for "
            "validation; name a file for data.valid, change data.valid_share, or give more examples"
        )


def shard_columns(encoder: InputEncoder, labels: Labels, split: str) -> dict[str, ColumnKind]:
    """The shard columns of a split; validation keeps the original inputs for samples."""
    columns: dict[str, ColumnKind] = {COLUMN: encoder.column(), "label": len(labels.names)}
    return columns | {TEXT: "text"} if split == "valid" else columns


@dataclass(frozen=True)
class LabeledTablePreparation:
    """Prepares labeled table rows: scaler, labels and shards."""

    data: LabeledTable

    artifacts = (LABELS, SCALE_FILE)

    def identity(self) -> dict[str, Any]:
        """The settings that the prepared files depend on."""
        return {"data": plain(self.data)}

    def load_encoder(self, run: Path) -> TableInput:
        """The input encoder that preparation wrote."""
        return TableInput(StandardScaler.load(run / SCALE_FILE))

    def run(self, folder: Path, progress: Progress) -> Mapping[str, Mapping[str, int]]:
        """Write everything into `folder`; the scaler is fitted to the training rows."""
        progress("reading", 0, total=0)
        labels = Labels.count(self.data.rows("train").labels, self.data.file("train"))
        rows = {split: self.rows(split) for split in ("train", "valid")}
        scaler = StandardScaler.fit(rows["train"].table)
        for split, found in rows.items():
            if found.table.names != scaler.names:
                raise DataError(
                    f"{split} has the columns {', '.join(found.table.names)}, train has {', '.join(scaler.names)}; "
                    "name those that both have in data.columns"
                )
            columns = shard_columns(TableInput(scaler), labels, split)
            with ShardWriter(folder / split, columns, metadata=self.identity()) as writer:
                writer.append(self._shard_rows(split, found, scaler, labels))
        labels.save(folder)
        scaler.save(folder / SCALE_FILE)
        return {split: {"read": len(found.labels)} for split, found in rows.items()}

    def _shard_rows(
        self, split: str, rows: LabeledRows, scale: StandardScaler, labels: Labels
    ) -> list[tuple[Any, ...]]:
        where, values = self.file(split), rows.table.values
        numbers = [labels.index(name, f"{where}, line {line}") for name, line in zip(rows.labels, rows.lines)]
        columns = [scale.transform(values), [[number] for number in numbers]]
        return list(zip(*columns, *([map(format_row, values)] if split == "valid" else []), strict=True))

    def rows(self, split: str) -> LabeledRows:
        """The rows of a split; without a valid split, a share of train is held out by a hash of the row."""
        if not held_out_of_train(self.data.splits(), split):
            return self.data.rows(split)
        whole, share = self.data.rows("train"), self.data.valid_share
        held_out = [is_held_out(format_row(values), share) for values in whole.table.values]
        found = whole.select([one == (split == "valid") for one in held_out])
        check_split_size(len(found.labels), len(whole.labels), split, share, self.data.file("train"))
        return found

    def file(self, split: str) -> str:
        """The file that a split is read from."""
        return self.data.file("train" if held_out_of_train(self.data.splits(), split) else split)

    def eval_set(self, encoder: InputEncoder, split: str, file: Path | None) -> EvalSet:
        """A split of the recipe's data, or a file of the same kind, to score a model on."""
        assert isinstance(encoder, TableInput)
        data = self.data if file is None else self.data.scored_on(file)
        preparation = LabeledTablePreparation(replace(data, columns=encoder.scaler.names))
        split = split if file is None else "test"
        rows = preparation.rows(split)
        return EvalSet(preparation.file(split), list(map(format_row, rows.table.values)), rows.labels, rows.lines)


def format_row(values: Sequence[float] | np.ndarray) -> str:
    """A row of numbers as a line of CSV.

    >>> format_row([5.0, 0.25])
    '5,0.25'
    """
    return ",".join(f"{value:.10g}" for value in values)
