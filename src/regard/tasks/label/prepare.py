"""Preparation of tagged sentences: vocabulary, targets, baseline and shards, in two passes over the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from regard.config import plain
from regard.data import ColumnKind, ShardWriter
from regard.errors import DataError
from regard.metrics.spans import is_span_tag, repair_tags
from regard.progress import Progress, no_progress
from regard.tasks.init_recipe import load_pretrained_tokenizer
from regard.tasks.label import vocab as word_vocab
from regard.tasks.label.baseline import BaselineCounter
from regard.tasks.label.config import LabelConfig, NoCharEncoder
from regard.tasks.label.sources import TaggedSentence, TaggedSource
from regard.tasks.label.subwords import FILE as TOKENIZER
from regard.tasks.label.subwords import SubwordEncoder
from regard.tasks.label.targets import AngleTarget, NumberTarget, TagTarget, TargetKind
from regard.tasks.label.vocab import WordVocab
from regard.text import Tokenizer, TokenizerConfig

VERSION = 1
"""Of preparation: files of another version are prepared again."""
CHUNK = 1024
"""Sentences that are written at once."""
REPAIRED, UNSEEN, TOO_LONG = "repaired tags", "with tags that are not in training", "too long"
TRUNCATED = "truncated"
"""Names of what preparation counts, besides the sentences and tokens."""


@dataclass(frozen=True)
class LabelPreparation:
    """Prepares tagged sentences."""

    data: TaggedSource
    task: LabelConfig = LabelConfig()
    text: TokenizerConfig = TokenizerConfig()
    spelled: bool = False
    """whether the model reads words by their spellings"""

    def identity(self) -> dict[str, Any]:
        """The settings that the prepared files depend on."""
        names = ("scheme", "strict", "min_count", "lowercase", "max_length")
        task = {name: getattr(self.task, name) for name in names}
        found = {"data": plain(self.data), "task": task, "chars": self.with_chars, "version": VERSION}
        found |= {"text": plain(self.text)} if self.task.tokens == "subwords" else {}
        return found | ({"spelled": True} if self.spelled else {})

    @property
    def with_chars(self) -> bool:
        """Whether the characters of words are read."""
        return not isinstance(self.task.char_encoder, NoCharEncoder)

    def run(self, folder: Path, progress: Progress = no_progress) -> Mapping[str, Counter[str]]:
        """Write everything into `folder`; per split, how many sentences were read, repaired and dropped."""
        words, counter, tags = self._count(progress)
        target = self._target(counter, tags)
        vocab = WordVocab.count(words, self.task.min_count, self.task.lowercase, self.with_chars, self.spelled)
        types, subwords = dict[str, int](), self._subwords(progress)
        counts = {
            split: self._write(split, folder / split, (types, subwords), target, progress)
            for split in ("train", "valid")
        }
        size = max(vocab.size, vocab.char_size) if subwords is None else subwords.tokenizer.size + 1
        with ShardWriter(folder / "types", {"ids": size, "text": "text"}) as writer:
            writer.append([((subwords or vocab).encode(word), word) for word in types])
        if subwords is not None:
            subwords.tokenizer.save(folder / TOKENIZER)
        vocab.save(folder / word_vocab.FILE)
        target.save(folder)
        counter.baseline().save(folder)
        return counts

    def _subwords(self, progress: Progress) -> SubwordEncoder | None:
        """The tokenizer that text.tokenizer names, or one that is trained on the sentences; None: words are read."""
        if self.task.tokens == "words":
            return None
        if self.text.tokenizer is not None:
            return SubwordEncoder(load_pretrained_tokenizer(self.text.tokenizer, "source"))
        progress("tokenizer", 0, 0)
        lines = (" ".join(sentence.words) for sentence in self.sentences("train", Counter()))
        return SubwordEncoder(Tokenizer.train(lines, self.text))

    def sentences(
        self, split: str, counts: Counter[str], subwords: SubwordEncoder | None = None
    ) -> Iterator[TaggedSentence]:
        """The repaired sentences of a split; too long ones are left out, or of subwords truncated; updates `counts`."""
        for sentence in self.data.sentences(split):
            counts["read"] += 1
            if subwords is not None:
                yield self.repair(self.truncate(sentence, subwords, counts), counts)
            elif len(sentence.words) > self.task.max_length and self.task.tokens == "words":
                counts[TOO_LONG] += 1
            else:
                yield self.repair(sentence, counts)

    def truncate(self, sentence: TaggedSentence, subwords: SubwordEncoder, counts: Counter[str]) -> TaggedSentence:
        """The words of a sentence whose pieces fit into task.max_length."""
        size = subwords.fitting(sentence.words, self.task.max_length)
        if size >= len(sentence.words):
            return sentence
        counts[TRUNCATED] += 1
        return replace(sentence, words=sentence.words[:size], tags=sentence.tags[:size])

    def repair(self, sentence: TaggedSentence, counts: Counter[str]) -> TaggedSentence:
        """A sentence whose span tags are valid in the scheme; updates `counts`, or refuses if the task is strict."""
        scheme = self.task.span_scheme
        if scheme is None:
            return sentence
        for i, tag in enumerate(sentence.tags):
            if not is_span_tag(tag, scheme):
                prefixes = {"bio": "B-X and I-X", "bioes": "B-X, I-X, E-X and S-X"}[scheme]
                raise DataError(
                    f'{sentence.location(i)}: "{tag}" is not a tag of task.scheme = "{scheme}", which has {prefixes} '
                    'and O; if tags are not spans, use task.scheme = "none"'
                )
        repaired, changed = repair_tags(sentence.tags, scheme)
        if changed and self.task.strict:
            i = changed[0]
            raise DataError(
                f'{sentence.location(i)}: "{sentence.tags[i]}" is not allowed there in {scheme.upper()}, '
                f'"{repaired[i]}" would be valid; fix the data, or let it be repaired with task.strict = false'
            )
        counts[REPAIRED] += len(changed)
        return replace(sentence, tags=tuple(repaired))

    def has_unseen_tag(self, sentence: TaggedSentence, target: TagTarget) -> bool:
        """Whether a sentence has a tag that is not in training; refused if the task is strict."""
        for i, tag in enumerate(sentence.tags):
            if tag not in target:
                if self.task.strict:
                    raise DataError(
                        f'{sentence.location(i)}: the tag "{tag}" was never seen in training; fix the data, or let it '
                        "count as an error with task.strict = false"
                    )
                return True
        return False

    def _count(self, progress: Progress) -> tuple[Counter[str], BaselineCounter, list[str]]:
        """The words, baseline counts and tags of train, the tags in order of occurrence."""
        words, tags, counts = Counter[str](), dict[str, None](), Counter[str]()
        counter = BaselineCounter(self.data.label_type)
        for sentence in self.sentences("train", counts):
            words.update(sentence.words)
            counter.update(sentence)
            tags.update(dict.fromkeys(sentence.tags))
            if not counts["read"] % CHUNK:
                progress("reading", counts["read"], 0)
        if not words:
            raise DataError(
                f"each of the {counts['read']:,} sentences of train has more than {self.task.max_length} tokens; raise "
                "task.max_length"
            )
        return words, counter, list(tags)

    def _target(self, counter: BaselineCounter, tags: list[str]) -> TargetKind:
        if self.data.label_type == "angles":
            return AngleTarget()
        if self.data.label_type == "numbers":
            values = np.array(counter.numbers)
            return NumberTarget(float(values.mean()), float(values.std()) or 1.0)
        if len(tags) == 1:
            raise DataError(
                f'every token of train has the tag "{tags[0]}"; there is nothing to learn; is data.tag the right '
                "column?"
            )
        return TagTarget(tuple(tags))

    def _write(
        self,
        split: str,
        folder: Path,
        words: tuple[dict[str, int], SubwordEncoder | None],
        target: TargetKind,
        progress: Progress,
    ) -> Counter[str]:
        (types, subwords), positions = words, dict[str, ColumnKind]()
        if subwords is not None:
            positions["positions"] = 1 << 32
        counts = Counter({"read": 0, "tokens": 0, TOO_LONG: 0, REPAIRED: 0, UNSEEN: 0})
        with ShardWriter(folder, {"words": 1 << 32, "tags": target.column, **positions}) as writer:
            rows = list[tuple[Any, ...]]()
            for sentence in self.sentences(split, counts, subwords):
                if isinstance(target, TagTarget) and self.has_unseen_tag(sentence, target):
                    counts[UNSEEN] += 1
                    continue
                counts["tokens"] += len(sentence.words)
                numbers = [types.setdefault(word, len(types)) for word in sentence.words]
                size = () if subwords is None else ([subwords.positions(sentence.words)],)
                rows.append((numbers, target.encode(sentence), *size))
                if len(rows) == CHUNK:
                    writer.append(rows)
                    rows = []
                    progress(f"encoding {split}", counts["read"], 0)
            writer.append(rows)
        return counts
