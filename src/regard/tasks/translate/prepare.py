"""Preparation of the translate task: sentence pairs become tokenizers and shards of ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

from regard.config import plain
from regard.data import ColumnKind, ShardWriter
from regard.errors import ConfigError
from regard.progress import Progress, no_progress
from regard.tasks.init_recipe import load_pretrained_tokenizer
from regard.tasks.translate.config import TranslateConfig
from regard.tasks.translate.filters import FilterConfig, encode_pairs, filter_pairs
from regard.tasks.translate.mix import MixedPairs
from regard.tasks.translate.pair_splits import PairSplits, open_splits
from regard.tasks.translate.sources import Pair, PairSource
from regard.tasks.translate.tags import SourceTags
from regard.text import Tokenizer, TokenizerConfig
from regard.text.tokenizer_training import TRAIN_CHARACTERS

VERSION = 2
"""Of the prepared data; data of another version is prepared again. 2: validation has texts, and no training sentence"""
SIDES = ("source", "target")
TEXTS = ("source_text", "target_text")
"""Columns of validation with the original texts, tags included: ids are of normalized text"""
PART = "part"
"""Column with the number of the part, in a mix of several"""


@dataclass(frozen=True)
class Vocabularies:
    """The tokenizers of source and target, which may be the same."""

    source: Tokenizer
    target: Tokenizer

    @property
    def is_shared(self) -> bool:
        """Whether both sides have one vocabulary; they may still cut texts in two ways, as Marian's tokenizers do."""
        return self.source == self.target or self.source.vocabulary == self.target.vocabulary

    def with_tags(self, tags: SourceTags) -> Vocabularies:
        """The same with each tag as a token of the source, and of a shared vocabulary."""
        return Vocabularies(tags.extend(self.source), tags.extend(self.target) if self.is_shared else self.target)

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

    data: PairSource | MixedPairs
    filter: FilterConfig = FilterConfig()
    text: TokenizerConfig = TokenizerConfig()
    task: TranslateConfig = TranslateConfig()

    def identity(self) -> dict[str, Any]:
        parts = {"data": self.data, "filter": self.filter, "text": self.text, "task": self.task}
        table = {name: plain(part) for name, part in parts.items()}
        table["text"].pop("dropout")
        for key in ("samples", "bleu_sentences", "sample_inputs"):
            table["task"].pop(key)
        for part in table["data"].get("parts", ()):
            part.pop("weight")  # the loader samples by it
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

    @cached_property
    def splits(self) -> PairSplits:
        """The splits of the data."""
        return open_splits(self.data)

    def part_pairs(self, split: str) -> Iterator[tuple[int, list[Pair]]]:
        """The pairs of each part that has the split, with the tag before each source; part 0 is the first."""
        splits, names = self.splits, self.data.splits()
        if isinstance(self.data, MixedPairs) and split not in names:
            raise ConfigError(f'there is no split "{split}" (splits: {", ".join(names)}); name its files in the recipe')
        for part in range(splits.parts):
            with splits.naming(part):
                found = list(splits.part_pairs(part, split))
            if found:
                yield part, [(splits.tags.join(splits.tag(part), source), target) for source, target in found]

    def _count(self, progress: Progress) -> tuple[int, int]:
        """Number of training pairs and characters, for the progress of what follows."""
        pairs, characters, counts = 0, 0, Counter[str]()
        for source, target in self.splits.pairs("train", counts):
            pairs, characters = pairs + 1, characters + len(source) + len(target)
            if not pairs % 50_000:
                progress("reading", pairs, total=0)
        return pairs + counts["read"], characters

    def train_tokenizers(self, characters: int, progress: Progress = no_progress) -> Vocabularies:
        """Tokenizers trained on the training pairs: all of them, or evenly spaced ones if there are very many."""
        if self.text.tokenizer is not None:
            return self.pretrained_tokenizers(self.text.tokenizer).with_tags(self.splits.tags)
        stride = max(1, -(-characters // TRAIN_CHARACTERS))
        progress("tokenizer", 0, total=0)

        def lines(*sides: int) -> Iterator[str]:
            read = islice(self.splits.pairs("train"), 0, None, stride)
            for pair in filter_pairs(read, replace(self.filter, duplicates=False), Counter()):
                yield from (pair[side] for side in sides)

        if self.task.share_vocab:
            both = Tokenizer.train(lines(0, 1), self.text)
            return Vocabularies(both, both).with_tags(self.splits.tags)
        sides = Tokenizer.train(lines(0), self.text), Tokenizer.train(lines(1), self.text)
        return Vocabularies(*sides).with_tags(self.splits.tags)

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
        if self.splits.parts > 1:
            columns[PART] = self.splits.parts
        with ShardWriter(folder, columns, metadata=self.identity()) as writer:
            for part in range(self.splits.parts):
                if split == "train" or self.splits.has(part, split):
                    with self.splits.naming(part):
                        for rows in self._rows(part, split, vocabularies, counts):
                            writer.append(rows)
                            progress(f"encoding {split}", counts["read"])
        return counts

    def _rows(
        self, part: int, split: str, vocabularies: Vocabularies, counts: Counter[str]
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Rows of a part for the shards: the ids of both sides, the texts of validation, and the number of the part."""
        # duplicates stay in validation: its distribution is not changed
        rules = self.filter if split == "train" else replace(self.filter, duplicates=False)
        splits, target = self.splits, vocabularies.target.encode_batch
        tag = splits.tag(part)
        pairs = filter_pairs(splits.part_pairs(part, split, counts), rules, counts)
        tagged = ((splits.tags.join(tag, source), other) for source, other in pairs)
        number = ((part,),) if splits.parts > 1 else ()

        def encode(texts: list[str]) -> Sequence[Sequence[int]]:
            return splits.tags.encode_batch(vocabularies.source, texts)

        for chunk in encode_pairs(tagged, encode, target, rules, counts):
            yield [(*row, *(pair if split == "valid" else ()), *number) for pair, row in chunk]
