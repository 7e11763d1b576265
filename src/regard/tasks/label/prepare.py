"""Labelling: where tagged sentences become batches. Preparation reads text twice; training reads ids from the disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from regard.config import plain
from regard.data import Batches, Position, Shards, ShardWriter, share
from regard.distributed import World
from regard.errors import ConfigError, DataError
from regard.loss import Loss
from regard.metrics.spans import Scheme, is_span_tag, repaired
from regard.objective import Batch, Each, Tell, silent
from regard.tasks.label.baseline import Watching
from regard.tasks.label.letters import LettersConfig, NoLetters, Types
from regard.tasks.label.sources import Sentence, TaggedSource
from regard.tasks.label.targets import Answers, Directions, Numbers, Tags
from regard.text.word_vocab import Spelling

SPELLING = "spelling.json"
VERSION = 1
"""Of preparation: what another one wrote is prepared anew."""
CHUNK = 1024
"""Sentences that are written, and told of, at once."""
REPAIRED, UNSEEN, TOO_LONG = "repaired tags", "with tags that training never had", "too long"
"""What preparation counts, besides all that it reads."""


@dataclass(frozen=True)
class LabelConfig:
    """A label at each place of what is read.

    >>> LabelConfig(scheme="bio").spans
    'bio'
    """

    kind: Literal["label"] = "label"
    """words in, a tag for each of them out"""
    scheme: Literal["none", "bio", "bioes"] = "none"
    """how tags write spans such as names: B-X I-X, or B-X I-X E-X and S-X; none: they are no spans"""
    strict: bool = False
    """refuse tags that break the scheme, and tags that training never had, instead of repairing and counting them"""
    crf: Literal["none", "linear"] = "none"
    """linear: a chain over the tags, which are chosen together (Viterbi); none: each place by itself"""
    letters: LettersConfig = NoLetters()
    """what a word's letters say, beside its own vector"""
    least: int = 1
    """words that training has less often are unknown: their letters must do"""
    lowercase: bool = False
    """a word's own vector forgets capitals; its letters do not"""
    longest: int = 512
    """places of the longest sentence that is learnt from; a longer text is labelled in windows of so many"""
    samples: int = 4
    """validation sentences that are kept in samples.jsonl"""

    def __post_init__(self) -> None:
        for name, least in (("least", 1), ("longest", 1), ("samples", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} = {getattr(self, name)} must be at least {least}")

    @property
    def spans(self) -> Scheme | None:
        """The scheme of spans, if tags are spans."""
        return None if self.scheme == "none" else self.scheme


class Chain(Each):
    """A label a place, all of a sentence scored at once. The model is a ChainTagger.

    >>> from regard.models.crf_tagger import ChainTagger
    >>> from regard.models.mlp import MLPConfig
    >>> from regard.sequence import Tokens
    >>> from regard.spaces import Classes, Words
    >>> model = ChainTagger(MLPConfig(width=8).build_encoder(Words(9)), Classes(3), 8)
    >>> batch = Batch(Tokens.of([[4, 5], [6]]), Tokens.of([[0, 2], [1]]))
    >>> loss, _ = Chain(Classes(3)).loss(model, batch, Classes(3).loss)
    >>> list(loss.totals), Chain(Classes(3)).counts(batch)
    (['each'], {'each': tensor(3)})
    """

    def loss(
        self, model: Any, batch: Batch, score: Callable[[Tensor, Tensor], Tensor], carry: Any = None
    ) -> tuple[Loss, Any]:
        """-log p of all labels, summed: a space's own loss knows nothing of chains."""
        emissions = batch.target.like(model.readout(model(batch.source)))
        return Loss({"each": model.chain.surprise(emissions, batch.target.data).sum()}), None


@dataclass(frozen=True)
class LabelPreparation:
    """Tagged sentences in; a vocabulary, what may be said, what usually is, and the ids of each split out.

    >>> from regard.tasks.label.sources import Columns
    >>> LabelPreparation(Columns(train="a.conll")).identity()["data"]["kind"]
    'conll'
    """

    data: TaggedSource
    task: LabelConfig = LabelConfig()

    def identity(self) -> dict[str, Any]:
        """The settings that what is prepared depends on."""
        task = {name: getattr(self.task, name) for name in ("scheme", "strict", "least", "lowercase", "longest")}
        return {"data": plain(self.data), "task": task, "letters": self.spelled, "version": VERSION}

    @property
    def spelled(self) -> bool:
        """Whether words have letters."""
        return not isinstance(self.task.letters, NoLetters)

    def run(self, folder: Path, tell: Tell = silent) -> Mapping[str, Counter[str]]:
        """Write everything into `folder`; of each split, how much was read, repaired and dropped."""
        words, watching, tags = self._survey(tell)
        answers = self._answers(watching, tags)
        spelling = Spelling.of(words, self.task.least, lowercase=self.task.lowercase, spelled=self.spelled)
        types: dict[str, int] = {}
        counts = {split: self._write(split, folder / split, types, answers, tell) for split in ("train", "valid")}
        with ShardWriter(folder / "types", {"ids": max(spelling.size, spelling.letter_size), "text": 256}) as writer:
            writer.append([(spelling.row(word), word.encode()) for word in types])
        spelling.save(folder / SPELLING)
        answers.save(folder)
        watching.habits().save(folder)
        return counts

    def kept(self, split: str, counts: Counter[str]) -> Iterator[Sentence]:
        """The sentences of a split that are learnt from or validated on, mended; `counts` grows."""
        for sentence in self.data.sentences(split):
            counts["read"] += 1
            if len(sentence.words) > self.task.longest:
                counts[TOO_LONG] += 1
            else:
                yield self.mended(sentence, counts)

    def mended(self, sentence: Sentence, counts: Counter[str]) -> Sentence:
        """A sentence whose spans begin and end as the scheme has it; `counts` grows by what was repaired."""
        scheme = self.task.spans
        if scheme is None:
            return sentence
        for place, tag in enumerate(sentence.tags):
            if not is_span_tag(tag, scheme):
                letters = {"bio": "B-X and I-X", "bioes": "B-X, I-X, E-X and S-X"}[scheme]
                raise DataError(
                    f'{sentence.at(place)}: "{tag}" is no tag of task.scheme = "{scheme}", which has {letters} and O; '
                    'if tags are no spans, use task.scheme = "none"'
                )
        whole, changed = repaired(sentence.tags, scheme)
        if changed and self.task.strict:
            place = changed[0]
            raise DataError(
                f'{sentence.at(place)}: "{sentence.tags[place]}" cannot stand there in {scheme.upper()}, '
                f'"{whole[place]}" would be right; mend the data, or let it be repaired with task.strict = false'
            )
        counts[REPAIRED] += len(changed)
        return replace(sentence, tags=tuple(whole))

    def _survey(self, tell: Tell) -> tuple[Counter[str], Watching, list[str]]:
        """What there is in train: words, usual answers, tags in the order in which they come."""
        words, watching, tags, counts = Counter[str](), Watching(self.data.answer), dict[str, None](), Counter[str]()
        for sentence in self.kept("train", counts):
            words.update(sentence.words)
            watching.see(sentence)
            tags.update(dict.fromkeys(sentence.tags))
            if not counts["read"] % CHUNK:
                tell("reading", counts["read"], 0)
        if not words:
            raise DataError(
                f"each of the {counts['read']:,} sentences of train has more than {self.task.longest} places; raise "
                "task.longest"
            )
        return words, watching, list(tags)

    def _answers(self, watching: Watching, tags: list[str]) -> Answers:
        """What may be said, from what was seen in training."""
        if self.data.answer == "angles":
            return Directions()
        if self.data.answer == "numbers":
            values = np.array(watching.numbers)
            return Numbers(float(values.mean()), float(values.std()) or 1.0)
        if len(tags) == 1:
            raise DataError(
                f'every place of train has the tag "{tags[0]}"; there is nothing to choose from, is data.tag the right '
                "column?"
            )
        return Tags(tuple(tags))

    def _write(self, split: str, folder: Path, types: dict[str, int], answers: Answers, tell: Tell) -> Counter[str]:
        counts = Counter({"read": 0, "places": 0, TOO_LONG: 0, REPAIRED: 0, UNSEEN: 0})
        with ShardWriter(folder, {"words": 1 << 32, "tags": answers.size}) as writer:
            rows = []
            for sentence in self.kept(split, counts):
                if isinstance(answers, Tags) and self.unseen(sentence, answers):
                    counts[UNSEEN] += 1
                    continue
                counts["places"] += len(sentence.words)
                numbers = [types.setdefault(word, len(types)) for word in sentence.words]
                rows.append((numbers, answers.encoded(sentence)))
                if len(rows) == CHUNK:
                    writer.append(rows)
                    rows = []
                    tell(f"encoding {split}", counts["read"], 0)
            writer.append(rows)
        return counts

    def unseen(self, sentence: Sentence, answers: Tags) -> bool:
        """Whether a sentence has a tag that training never had; refused if the task is strict."""
        for place, tag in enumerate(sentence.tags):
            if not answers.knows(tag):
                if self.task.strict:
                    raise DataError(
                        f'{sentence.at(place)}: the tag "{tag}" was never seen in training; mend the data, or let it '
                        "count as a fault with task.strict = false"
                    )
                return True
        return False


@dataclass(frozen=True)
class LabelFeed:
    """Batches of prepared sentences. Keeps the Feed contract.

    >>> import tempfile
    >>> from regard.tasks.label.chains import Chains
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = LabelPreparation(Chains(count=20, shortest=5, longest=5)).run(Path(folder))
    ...     feed = LabelFeed.open(Path(folder), Directions(), tokens=50, seed=1)
    ...     batch, after = next(feed.stream(None))
    >>> batch.source.data.shape, batch.target.data.shape, feed.epoch(), after["batch"]
    (torch.Size([10, 5]), torch.Size([10, 5, 1]), 2, 1)
    """

    train: Shards
    held_out: Shards
    types: Shards
    """every word of both: its ids, and its text"""
    answers: Answers
    tokens: int = 4096
    seed: int = 1
    world: World = World()

    @classmethod
    def open(cls, folder: Path, answers: Answers, tokens: int, seed: int, world: World = World()) -> LabelFeed:  # noqa: B008
        """What preparation wrote."""
        train, valid, types = (Shards.open(folder / name) for name in ("train", "valid", "types"))
        return cls(train, valid, types, answers, tokens, seed, world)

    @cached_property
    def table(self) -> Types:
        """Every word as a row of ids."""
        return Types.of_rows(self.types.take(np.arange(len(self.types)), "ids"))

    @property
    def longest(self) -> int:
        """Places of the longest sentence."""
        return max(int(s.lengths("words")[np.arange(len(s))].max()) for s in (self.train, self.held_out))

    def plan(self, shards: Shards) -> Batches:
        return Batches((shards.lengths("words"),), self.tokens, self.seed)

    def stream(self, position: Mapping[str, int] | None) -> Iterator[tuple[Batch, Mapping[str, int]]]:
        for rows, after in self.plan(self.train).stream(Position(**(position or {}))):
            yield self.batch(self.train, share(rows, self.world.rank, self.world.size)), asdict(after)

    def valid(self) -> Iterator[Batch]:
        for rows in self.plan(self.held_out).epoch(0):
            yield self.batch(self.held_out, share(rows, self.world.rank, self.world.size))

    def epoch(self) -> int:
        """Batches of an epoch."""
        return self.plan(self.train).count()

    def batch(self, shards: Shards, rows: np.ndarray) -> Batch:
        """Words and what is wanted at each of them."""
        return Batch(self.table.tokens(shards.take(rows, "words")), self.answers.wanted(shards.take(rows, "tags")))

    def words(self, shards: Shards, rows: np.ndarray) -> list[list[str]]:
        """The words of some sentences."""
        numbers = shards.take(rows, "words")
        texts = self.types.take(np.concatenate([np.zeros(0, np.int64), *numbers]).astype(np.int64), "text")
        spelled = iter(text.astype(np.uint8).tobytes().decode() for text in texts)
        return [[next(spelled) for _ in row] for row in numbers]

    def wanted(self, shards: Shards, rows: np.ndarray) -> list[list[str]]:
        """What is wanted at each of their words."""
        return [self.answers.decoded(row) for row in shards.take(rows, "tags")]
