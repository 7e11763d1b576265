"""Vec2Seq, p(text | condition): preparation, loader, modality and validation. Each text is a sequence of its own, from
<SOS> to <EOS>, and no state is carried from one to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from regard.config import plain
from regard.data import Batches, RowLengths, Shards, ShardWriter
from regard.data.conditioned_texts import ConditionedExample, ConditionedTexts
from regard.data.loaders import BucketLoader
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError
from regard.objective import Batch, Objective
from regard.progress import Progress
from regard.sequence import Tokens
from regard.spaces import Space
from regard.tasks.generate.condition import CONDITION_FILE, Condition, fit_condition, load_condition
from regard.tasks.generate.config import GenerateConfig, GenerateOptions
from regard.tasks.generate.modality import TextModality
from regard.tasks.generate.predict import TextGenerator
from regard.tasks.generate.prepare import COLUMN, TextPreparation
from regard.text import Tokenizer
from regard.train.validation import validation_loss

CONDITION = "condition"
"""Shard column of the conditions"""
CHUNK = 1024
"""Texts that are tokenized together, on all cores"""


@dataclass(frozen=True)
class ConditionedPreparation(TextPreparation):
    """Trains a tokenizer, collects the conditions, and writes one row per text."""

    data: ConditionedTexts  # type: ignore[assignment]
    artifacts: ClassVar[tuple[str, ...]] = ("tokenizer.json", CONDITION_FILE)

    def identity(self) -> dict[str, Any]:
        return {"data": plain(self.data), "text": plain(self.text), "condition": True}

    def run(self, folder: Path, progress: Progress) -> Mapping[str, Mapping[str, int]]:
        """Write tokenizer.json, condition.json, and the rows of train and valid; returns the counts of each."""
        characters, values = 0, []
        for example in self.data.examples("train"):
            characters += len(example.text)
            values.append(example.condition)
        condition = fit_condition(values, self.data.number_names, "the training data")
        progress("tokenizer", 0, total=0)
        tokenizer, counts = self._tokenizer(characters), {}
        for split in ("train", "valid"):
            found = counts[split] = Counter({"texts": 0, "characters": 0, "bytes": 0, "tokens": 0, "unknown": 0})
            with ShardWriter(folder / split, {COLUMN: tokenizer.size, CONDITION: condition.column()}) as writer:
                for rows in encode_examples(self.data.examples(split), tokenizer, condition, found):
                    writer.append(rows)
                    progress(f"encoding {split}", found["texts"], total=len(values) if split == "train" else 0)
            if not found["texts"]:
                raise DataError(f"there is no text to {split} on; change data.valid_share, or give more rows")
        tokenizer.save(folder / "tokenizer.json")
        condition.save(folder)
        return counts


def encode_examples(
    examples: Iterator[ConditionedExample], tokenizer: Tokenizer, condition: Condition, counts: Counter[str]
) -> Iterator[list[tuple[list[int], np.ndarray]]]:
    """Ids and condition of many examples at a time; the end of a text counts as one character and one byte."""
    while chunk := list(islice(examples, CHUNK)):
        rows = tokenizer.encode_batch([example.text for example in chunk])
        for example, ids in zip(chunk, rows, strict=True):
            counts["texts"] += 1
            counts["characters"] += len(example.text) + 1
            counts["bytes"] += len(example.text.encode()) + 1
            counts["tokens"] += len(ids) + 1
            counts["unknown"] += ids.count(tokenizer.unk)
        yield [(ids, condition.encode(one.condition, one.where)) for one, ids in zip(chunk, rows, strict=True)]


def conditioned_batch(ids: Sequence[Any], rows: Sequence[np.ndarray], tokenizer: Tokenizer, by: Condition) -> Batch:
    """Texts from <SOS> to <EOS> as targets, their conditions as sources."""
    return Batch(by.source(rows), Tokens.pad(ids, (tokenizer.sos,), (tokenizer.eos,)), resets_state=True)


@dataclass(frozen=True)
class TextRowLengths:
    """Positions of each text in a batch: its tokens and <EOS>."""

    shards: Shards

    def __len__(self) -> int:
        return len(self.shards)

    def __getitem__(self, rows: np.ndarray, /) -> np.ndarray:
        return self.shards.lengths(COLUMN)[rows] + 1


@dataclass(frozen=True)
class ConditionedLoader(BucketLoader[Batch]):
    """Batches of texts of similar length with their conditions."""

    train: Shards
    valid: Shards
    tokenizer: Tokenizer
    condition: Condition
    batch_tokens: int = 4096
    seed: int = 1
    group: ProcessGroup = ProcessGroup()

    def plan(self, shards: Shards, epoch: int | None = None) -> Batches:
        lengths: RowLengths = TextRowLengths(shards)
        return Batches((lengths,), self.batch_tokens, self.seed)

    def batch(self, shards: Shards, rows: np.ndarray, epoch: int | None = None) -> Batch:
        return conditioned_batch(
            shards.take(rows, COLUMN), shards.take(rows, CONDITION), self.tokenizer, self.condition
        )


@dataclass(frozen=True)
class ConditionedModality(TextModality):
    """Texts with a condition each."""

    data: ConditionedTexts  # type: ignore[assignment]

    @cached_property
    def condition(self) -> Condition:
        """The condition that preparation found."""
        return load_condition(self.run)

    def preparation(self) -> ConditionedPreparation:
        return ConditionedPreparation(self.data, self.text)

    def source_space(self) -> Space:
        return self.condition.space()

    def loader(self, batch_tokens: int, seed: int, group: ProcessGroup) -> ConditionedLoader:
        """The loader of the prepared data."""
        train, valid = (Shards.open(self.run / "data" / split) for split in ("train", "valid"))
        return ConditionedLoader(train, valid, self.tokenizer, self.condition, batch_tokens, seed, group)

    def generator(self, model: Any, options: GenerateOptions, context: int | None) -> TextGenerator:
        """Generates from a condition, which must be given."""
        if options.condition is None:
            raise ConfigError(
                f"this model generates from a condition: expected {self.condition.summary}; give it with --condition, "
                "in Python condition=..."
            )
        row = self.condition.encode(options.condition, "--condition", ConfigError)
        return self.row_generator(model, options, row)

    def row_generator(self, model: Any, options: GenerateOptions, row: np.ndarray) -> TextGenerator:
        """Generates from an encoded condition; a text begins with <SOS>."""

        def source(rows: int) -> Tokens:
            return self.condition.source([row] * rows)

        found = options.decode, None, options.stop, options.sliding_window, source, self.tokenizer.sos
        return TextGenerator(model, self.tokenizer, *found, samples_are_lines=True, excluded=self.excluded_ids)


@dataclass(frozen=True)
class ConditionedValidation:
    """Loss per token, perplexity, bits per character, and texts generated from conditions of the validation data."""

    objective: Objective
    loader: ConditionedLoader
    modality: ConditionedModality
    options: GenerateOptions
    task: GenerateConfig
    counts: Mapping[str, int]

    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        loss = validation_loss(self.objective, self.loader, self.loader.group)
        metrics = self.modality.validation_metrics(loss, self.counts)
        return metrics, self.samples() if self.loader.group.is_main else ()

    def samples(self) -> list[Mapping[str, Any]]:
        """A text for each of the first different conditions of the validation data, beside one that has it."""
        chosen: dict[str, int] = {}
        for i in range(len(self.loader.valid)):
            if len(chosen) >= self.task.samples:
                break
            chosen.setdefault(self.modality.condition.describe(self.loader.valid.row(i)[1]), i)
        made: list[Mapping[str, Any]] = []
        for name, i in chosen.items():
            ids, row = self.loader.valid.row(i)
            generator = self.modality.row_generator(self.objective.model, self.options, row)
            output = generator.generate(self.task.prompt, self.task.length)[0].text
            made.append({CONDITION: name, "output": output, "reference": self.modality.tokenizer.decode(ids.tolist())})
        return made


def read_rows(
    modality: ConditionedModality, data: Any, split: str
) -> tuple[list[tuple[list[int], np.ndarray]], Mapping[str, int]]:
    """Ids and condition of each text of a split of raw data, and its counts."""
    counts: Counter[str] = Counter()
    rows = encode_examples(data.examples(split), modality.tokenizer, modality.condition, counts)
    return list(chain.from_iterable(rows)), counts


def check_condition(condition: str, data: Any) -> None:
    """Refuse a conditional model on data without conditions."""
    if condition != "none" and not isinstance(data, ConditionedTexts):
        raise ConfigError(
            f'model.condition = "{condition}" expects a condition with every text, and data.kind = "{data.kind}" has '
            'none; use data.kind = "conditioned", or model.condition = "none"'
        )
