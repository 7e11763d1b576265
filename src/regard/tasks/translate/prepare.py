"""Preparation of the translate task: sentence pairs become tokenizers and shards of ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from regard.config import plain
from regard.data import ColumnKind, ShardWriter
from regard.data.splits import is_held_out, overlap
from regard.errors import ConfigError, DataError
from regard.progress import Progress, no_progress
from regard.tasks.init_recipe import load_pretrained_tokenizer
from regard.tasks.translate.config import TranslateConfig
from regard.tasks.translate.filters import FilterConfig, drop_known_targets, encode_pairs, filter_pairs
from regard.tasks.translate.sources import VALID_SHARE, FilePairs, Pair, PairSource
from regard.text import Tokenizer, TokenizerConfig
from regard.text.tokenizer_training import TRAIN_CHARACTERS

VERSION = 2
"""Of the prepared data; data of another version is prepared again. 2: validation has texts, and no training sentence"""
MAX_SHARED = 20
"""Training pairs that are dropped for a target they share with validation; a more frequent target, such as "Yes.",
is dropped from validation instead"""
SIDES = ("source", "target")
TEXTS = ("source_text", "target_text")
"""Columns of validation with the original texts: ids are of normalized text"""


@dataclass(frozen=True)
class Vocabularies:
    """The tokenizers of source and target, which may be the same."""

    source: Tokenizer
    target: Tokenizer

    @property
    def is_shared(self) -> bool:
        """Whether both sides have one vocabulary; they may still cut texts in two ways, as Marian's tokenizers do."""
        return self.source == self.target or self.source.vocabulary == self.target.vocabulary

    def save(self, folder: Path) -> None:
        """Write tokenizer.json; with two vocabularies, tokenizer.source.json and tokenizer.target.json."""
        sides = {".source": self.source, ".target": self.target}
        for suffix, tokenizer in ({"": self.source} if self.source == self.target else sides).items():
            tokenizer.save(folder / f"tokenizer{suffix}.json")

    @classmethod
    def load(cls, folder: Path) -> Vocabularies:
        """Read what `save` wrote."""
        files = [folder / f"tokenizer.{side}.json" for side in SIDES]
        if not any(file.exists() for file in files):  # shared, or missing: then it is this file that the error names
            both = Tokenizer.load(folder / "tokenizer.json")
            return cls(both, both)
        return cls(*map(Tokenizer.load, files))


@dataclass(frozen=True)
class TranslatePreparation:
    """Splits, filters and tokenizes sentence pairs, and writes tokenizers and shards."""

    data: PairSource
    filter: FilterConfig = FilterConfig()
    text: TokenizerConfig = TokenizerConfig()
    task: TranslateConfig = TranslateConfig()

    def identity(self) -> dict[str, Any]:
        parts = {"data": self.data, "filter": self.filter, "text": self.text, "task": self.task}
        table = {name: plain(part) for name, part in parts.items()}
        table["text"].pop("dropout")
        for key in ("samples", "bleu_sentences", "sample_inputs"):
            table["task"].pop(key)
        return {**table, "version": VERSION}

    def run(self, folder: Path, progress: Progress = no_progress) -> Mapping[str, Counter[str]]:
        """Write tokenizers, and the shards of train and valid; returns the counts of the filter."""
        pairs, characters = self._count(progress)
        vocabularies = self.train_tokenizers(characters, progress)
        counts = {}
        for split, total in (("train", pairs), ("valid", 0)):
            counts[split] = self._write(split, vocabularies, folder / split, partial(progress, total=total))
        vocabularies.save(folder)
        return counts

    def pairs(self, split: str, counts: Counter[str] | None = None) -> Iterator[Pair]:
        """A split of the data; without a valid split, a share of train is held out.

        The share is chosen by a hash of the source. A target that is in both parts is dropped from train, or from valid
        if it is too frequent for that (MAX_SHARED): so no sentence of either side is in both, up to case and final
        punctuation. The split depends on the pairs alone, not on their order. `counts` is updated with what is dropped.
        """
        if "valid" in self.data.splits() or split not in ("train", "valid"):
            yield from self.data.pairs(split)
            return
        counts, kept = Counter() if counts is None else counts, False
        known, reason = self._overlap[split], {"train": "also in validation", "valid": "also in training"}[split]
        for pair in drop_known_targets(self._part(split), known, reason, counts):
            kept = True
            yield pair
        if not kept:
            raise DataError(
                f"each of the {counts[reason]:,} pairs of {split} has a target that is {reason}; name files for "
                "data.valid"
            )

    @cached_property
    def _overlap(self) -> Mapping[str, np.ndarray]:
        """Hashes of the targets that are in both parts: those to drop from train, and those to drop from valid."""
        targets = ((pair[1] for pair in self._part(split)) for split in ("valid", "train"))
        found, times = overlap(*targets)
        return {"train": found[times <= MAX_SHARED], "valid": found[times > MAX_SHARED]}

    def _part(self, split: str) -> Iterator[Pair]:
        """The pairs whose source belongs to train, or to valid, before targets are compared."""
        read = kept = 0
        share = self.data.valid_share if isinstance(self.data, FilePairs) else VALID_SHARE
        for pair in self.data.pairs("train"):
            read += 1
            if is_held_out(pair[0], share) == (split == "valid"):
                kept += 1
                yield pair
        if not kept:
            raise DataError(
                f"none of the {read:,} pairs belongs to {split} if a share of {share} is held out for validation; "
                "name files for data.valid, or change data.valid_share"
            )

    def _count(self, progress: Progress) -> tuple[int, int]:
        """Number of training pairs and characters, for the progress of what follows."""
        pairs, characters, counts = 0, 0, Counter[str]()
        for source, target in self.pairs("train", counts):
            pairs, characters = pairs + 1, characters + len(source) + len(target)
            if not pairs % 50_000:
                progress("reading", pairs, total=0)
        return pairs + counts["read"], characters

    def train_tokenizers(self, characters: int, progress: Progress = no_progress) -> Vocabularies:
        """Tokenizers trained on the training pairs: all of them, or evenly spaced ones if there are very many."""
        if self.text.tokenizer is not None:
            return self.pretrained_tokenizers(self.text.tokenizer)
        stride = max(1, -(-characters // TRAIN_CHARACTERS))
        progress("tokenizer", 0, total=0)

        def lines(*sides: int) -> Iterator[str]:
            read = islice(self.pairs("train"), 0, None, stride)
            for pair in filter_pairs(read, replace(self.filter, duplicates=False), Counter()):
                yield from (pair[side] for side in sides)

        if self.task.share_vocab:
            both = Tokenizer.train(lines(0, 1), self.text)
            return Vocabularies(both, both)
        return Vocabularies(Tokenizer.train(lines(0), self.text), Tokenizer.train(lines(1), self.text))

    def pretrained_tokenizers(self, path: Path) -> Vocabularies:
        """The tokenizers of a run; as many vocabularies as the task wants."""
        lowercase = self.text.lowercase
        found = Vocabularies(*(load_pretrained_tokenizer(path, side, lowercase) for side in ("source", "target")))
        if self.task.share_vocab and not found.is_shared:
            raise ConfigError(
                f"task.share_vocab = true needs one vocabulary, and {path} has two; set it to false (model.tie = "
                '"target" for a transformer), or train a tokenizer by a [text] section of its own'
            )
        return found

    def _write(
        self, split: str, vocabularies: Vocabularies, folder: Path, progress: Callable[[str, int], None]
    ) -> Counter[str]:
        counts: Counter[str] = Counter()
        columns: dict[str, ColumnKind] = {"source": vocabularies.source.size, "target": vocabularies.target.size}
        if split == "valid":
            columns |= dict.fromkeys(TEXTS, "text")
        # duplicates stay in validation: its distribution is not changed
        rules = self.filter if split == "train" else replace(self.filter, duplicates=False)
        with ShardWriter(folder, columns, metadata=self.identity()) as writer:
            pairs = filter_pairs(self.pairs(split, counts), rules, counts)
            encode = vocabularies.source.encode_batch, vocabularies.target.encode_batch
            for chunk in encode_pairs(pairs, *encode, rules, counts):
                writer.append([(*row, *pair) if split == "valid" else row for pair, row in chunk])
                progress(f"encoding {split}", counts["read"])
        return counts
