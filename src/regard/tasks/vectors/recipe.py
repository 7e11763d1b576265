"""The job of learning word vectors: its recipe, how it is tried while it trains, and the table that comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from regard.data import Shards
from regard.data.lines import read_lines
from regard.data.texts import Reviews, Shakespeare, Texts
from regard.distributed import World
from regard.errors import ConfigError, DataError
from regard.metrics import Parts, Score
from regard.metrics.analogies import ask, read_questions
from regard.metrics.perplexity import mean_loss
from regard.models.word2vec import Word2Vec, Word2VecConfig
from regard.objective import Objective, Tell
from regard.spaces import Words
from regard.tasks.base import Asked, Evaluation, Fetching, Model, Preparation, Recipe, Starter, filled
from regard.tasks.generate.modality import Letters
from regard.tasks.generate.prepare import COLUMN
from regard.tasks.generate.recipe import counted
from regard.tasks.vectors.word2vec import FILE as FREQUENCIES
from regard.tasks.vectors.word2vec import (
    METHODS,
    SEGMENT,
    Frequencies,
    Nearby,
    NearbyConfig,
    NearbyFeed,
    WordPreparation,
)
from regard.text import Tokenizer, TokenizerConfig
from regard.text.kinds import SPECIAL
from regard.text.word_table import Near, WordMap, WordTable
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.optim import Adam
from regard.train.schedule import Cosine
from regard.train.trainer import surprise

DataConfig = Texts | Shakespeare | Reviews
SHOWN = 5
"""neighbours of a word that validation tells"""
TRIED = (100, 200, 400, 800)
"""where the words stand whose neighbours are shown if none are named: neither the commonest nor rare"""


@dataclass(frozen=True)
class VectorsRecipe(Recipe):
    """Everything that decides how word vectors are learnt.

    >>> VectorsRecipe.kind(), VectorsRecipe().model.width
    ('vectors', 100)
    """

    verb: ClassVar[str] = "vectors"
    metrics: ClassVar[tuple[str, ...]] = ("loss",)
    scores: ClassVar[tuple[str, ...]] = ("loss", "analogies")
    kept: ClassVar[tuple[str, ...]] = ("tokenizer.json", FREQUENCIES)

    data: DataConfig = field(default_factory=Reviews)
    """where the text comes from; without this section, film reviews"""
    model: Word2VecConfig = Word2VecConfig()
    """what learns"""
    task: NearbyConfig = NearbyConfig()
    """what is asked"""
    text: TokenizerConfig = TokenizerConfig(kind="word", size=20_000, lowercase=True)
    """how text becomes words"""
    train: TrainConfig = TrainConfig(
        smoothing=0.0, tokens=4096, optimizer=Adam(betas=(0.9, 0.999), eps=1e-8), schedule=Cosine(lr=1e-2, warmup=100)
    )
    """how it learns"""
    seed: int = 1
    """another seed, another run"""

    def __post_init__(self) -> None:
        if self.train.tokens < SEGMENT:
            raise ConfigError(f"train.tokens = {self.train.tokens}: a batch has at least {SEGMENT} words")
        if self.text.dropout:
            raise ConfigError(f"text.dropout = {self.text.dropout}: a word has one vector, so it is cut in one way")
        if self.train.probe is not None:
            raise ConfigError(
                "train.probe: words have vectors, and no sentence is read; task.tried names words to show"
            )
        if self.train.smoothing:
            raise ConfigError(f"train.smoothing = {self.train.smoothing}: guesses are told from noise, so set it to 0")
        self.check()

    def preparation(self) -> Preparation:
        return WordPreparation(self.data, self.text)

    def build(self, size: int) -> Word2Vec:
        """The model with fresh weights, drawn by the seed."""
        torch.manual_seed(self.seed)
        return self.model.build(Words(size))

    def asks(self, size: int) -> Nearby:
        """What is read and what is guessed, by the method."""
        return METHODS[self.task.method](Words(size), self.task.negatives)

    def feed(self, run: Path, world: World = World()) -> NearbyFeed:  # noqa: B008
        """The windows of text that is prepared."""
        train, valid = (Shards.open(run / "data" / split).flat(COLUMN) for split in ("train", "valid"))
        rows = self.train.tokens // SEGMENT
        return NearbyFeed(train, valid, Frequencies.load(run), self.task, rows, self.seed, world)

    def parts(self, run: Path, world: World) -> tuple[Objective, NearbyFeed, Validation]:
        tokenizer, feed = Tokenizer.load(run / "tokenizer.json"), self.feed(run, world)
        objective = Objective(self.build(tokenizer.size), self.asks(tokenizer.size))
        validation = Validation(objective, feed, tokenizer, self.task.tried)
        validation.words(validation.table())  # a word that is tried and unknown is told before anything is learnt
        return objective, feed, validation

    def open(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> VectorsModel:
        tokenizer, frequencies = Tokenizer.load(run / "tokenizer.json"), Frequencies.load(run)
        module = filled(self.build(tokenizer.size), saved)
        return VectorsModel(module, tokenizer, frequencies, self, saved.step, refused)

    @classmethod
    def starter(cls, languages: tuple[str, str] | None) -> Starter:
        if languages is not None:
            raise ConfigError("a text has one language; --source-lang and --target-lang are for translate")
        return Starter(
            "a vector for each word",
            {"data": "text", "train.optimizer": "adam", "train.schedule": "cosine"},
            {"data.train": "data/book.txt", "train.epochs": 5.0},
            hints=["data/book.txt is the text to learn from; its last tenth is kept apart for validation"],
        )

    def statistics(self, run: Path) -> dict[str, Any]:
        feed = self.feed(run)
        size = int(np.count_nonzero(feed.frequencies.counts))
        kept = float((feed.keep * feed.frequencies.counts).sum() / max(1, feed.frequencies.counts.sum()))
        batches = {"words": feed.rows * SEGMENT, "batches": feed.epoch(), "kept": kept}
        return {"vocabulary": {"kind": self.text.kind, "size": size}, **counted(run), "epoch": batches}

    def told(self, statistics: Mapping[str, Any]) -> list[str]:
        words, epoch = statistics["vocabulary"], statistics["epoch"]
        return [
            f"vocabulary  {words['kind']} {words['size']:,}",
            *(Letters.told(split, statistics[split]) for split in ("train", "valid")),
            f"epoch       {epoch['batches']:,} batches of {epoch['words']:,} words, of which {epoch['kept']:.0%} are "
            "kept: common ones are often left out",
        ]

    def described(self, run: Path) -> str:
        feed = self.feed(run)
        size = int(np.count_nonzero(feed.frequencies.counts))
        return f"{len(feed.train):,} train, {len(feed.held_out):,} valid words       {size:,} different ones"

    def origin(self) -> str:
        return self.data.attribution()

    def fetch(self, progress: Fetching | None = None) -> None:
        if not isinstance(self.data, Texts):
            self.data.fetch(progress)

    def usage(self, run: Path) -> str:
        return f'regard vectors neighbours {run} "..."'


def table_of(embed: nn.Embedding, vocabulary: Sequence[str]) -> WordTable:
    """The vectors of a vocabulary's words; what is no word, such as <PAD>, is left out.

    >>> table_of(nn.Embedding(6, 2), ["<PAD>", "<UNK>", "<SOS>", "<EOS>", "sea", "sky"]).words
    ('sea', 'sky')
    """
    chosen = [i for i, word in enumerate(vocabulary) if word not in SPECIAL]
    return WordTable(tuple(vocabulary[i] for i in chosen), embed.weight.detach().float().cpu().numpy()[chosen])


@dataclass(frozen=True)
class Validation:
    """The loss over the validation text, and the neighbours of some words.

    >>> import tempfile, regard
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = Path(folder, "sea.txt")
    ...     _ = text.write_text("the sea is deep and the sky is high. " * 300)
    ...     settings = ["task.kind=vectors", "data.kind=text", f"data.train={text}", "task.tried=['sea']"]
    ...     run, recipe = regard.Run(Path(folder, "run")), regard.Recipe.read(None, settings)
    ...     run.prepare(recipe)
    ...     metrics, samples = run.parts(recipe)[2]()
    >>> list(metrics), samples[0]["word"], len(samples[0]["output"].split())
    (['loss'], 'sea', 5)
    """

    objective: Objective
    feed: NearbyFeed
    tokenizer: Tokenizer
    tried: Sequence[str] = ()

    def words(self, table: WordTable) -> list[str]:
        """Whose neighbours are shown."""
        places = [table.place(word) for word in self.tried]
        whole = table.whole or range(len(table))
        return [table.spelled(at) for at in places or dict.fromkeys(whole[min(at, len(whole) - 1)] for at in TRIED)]

    def table(self) -> WordTable:
        """The vectors as they are now."""
        return table_of(self.objective.model.embed, self.tokenizer.vocabulary)  # type: ignore[arg-type]

    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        metrics = {"loss": surprise(self.objective, self.feed, self.feed.world)["loss"]}
        if not self.feed.world.leads:
            return metrics, ()
        table = self.table()
        near = {word: table.neighbours(word, SHOWN) for word in self.words(table)}
        return metrics, [
            {"word": word, "output": " ".join(found.word for found in neighbours)} for word, neighbours in near.items()
        ]


class VectorsModel(Model):
    """Word vectors that were learnt here: neighbours, sums, maps.

    >>> import tempfile, regard
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = Path(folder, "sea.txt")
    ...     _ = text.write_text("the sea is deep and the sky is high. " * 300)
    ...     settings = ["task.kind=vectors", "data.kind=text", f"data.train={text}", "train.steps=1"]
    ...     _ = regard.Run(Path(folder, "run")).train(regard.Recipe.read(None, settings))
    ...     model = regard.load(Path(folder, "run"))
    >>> len(model.neighbours("sea", 3)), model.table.numbers.shape
    (3, (8, 100))
    """

    module: Word2Vec
    recipe: VectorsRecipe

    def __init__(
        self,
        module: Word2Vec,
        tokenizer: Tokenizer,
        frequencies: Frequencies,
        recipe: VectorsRecipe,
        step: int,
        refused: Sequence[str] = (),
    ) -> None:
        super().__init__(module, recipe, step, refused)
        self.tokenizer, self.frequencies = tokenizer, frequencies

    @cached_property
    def table(self) -> WordTable:
        """The words with their vectors, the commonest first."""
        return table_of(self.module.embed, self.tokenizer.vocabulary)

    def neighbours(self, word: str, count: int = 10) -> list[Near]:
        """The words that point most nearly the same way."""
        return self.table.neighbours(word, count)

    def calculate(self, sum_of_words: str, count: int = 10) -> list[Near]:
        """The words nearest to a sum such as "king - man + woman"."""
        return self.table.calculate(sum_of_words, count)

    def map(self, words: Sequence[str] = ()) -> WordMap:
        """Words on a plane, by principal components."""
        return self.table.map(words)

    def answer(self, text: str) -> str:
        found = self.neighbours(text.strip()) if len(text.split()) == 1 else self.calculate(text)
        return " ".join(near.word for near in found)

    def observe(self, text: str) -> str:
        raise ConfigError(
            "word vectors read no sentence: nothing to look into; use regard vectors neighbours, analogy or map"
        )

    def spell(self) -> Mapping[str, Callable[[int], str]]:
        return {"source": self.tokenizer.vocabulary.__getitem__}

    def evaluate(self, asked: Asked, tell: Tell) -> Evaluation:
        """Given a file, the share of its analogies that are answered right; else the loss on a split."""
        if asked.beam is not None:
            raise ConfigError("--beam: words have vectors, nothing is searched for")
        if len(asked.files) > 1:
            raise ConfigError(f"--data: expected one file of questions, got {len(asked.files)}")
        if asked.files:
            name = str(asked.files[0])
            questions = read_questions(read_lines(asked.files[0]), name)
            table, total = self.table, len(questions)
            found = ask(questions, table.find, lambda q: table.answers(q, lambda done: tell("answering", done, total)))
            detail = {"sections": {section: list(counts) for section, counts in found.sections().items()}}
            return Evaluation(name, [found.score()], told=found.told(), detail=detail, unit="questions")
        split = asked.split or ("test" if "test" in self.recipe.data.splits() else "valid")
        score, parts = self._loss(split, tell)
        return Evaluation(split, [score], unit="segments", parts=parts)

    @torch.no_grad()
    def _loss(self, split: str, tell: Tell) -> tuple[Score, Parts]:
        """The loss of a split, in windows and beside noise drawn as for validation; and that of each segment."""
        ids, recipe, parts = Letters(self.tokenizer).read(self.recipe.data, split)[0], self.recipe, []
        if len(ids) < SEGMENT:
            raise DataError(f"{split}: there are {len(ids):,} words to score; at least {SEGMENT} are needed")
        rows = recipe.train.tokens // SEGMENT
        feed = NearbyFeed(ids, ids, self.frequencies, recipe.task, rows, recipe.seed)
        objective = Objective(self.module, recipe.asks(self.tokenizer.size)).eval()
        for number, batch in enumerate(feed.valid()):
            for segment in (batch.select(torch.tensor([row])) for row in range(len(batch))):
                count = int(objective.task.counts(segment)["near"])
                parts.append((float(objective(segment)[0].totals["near"]), count))
            tell("scoring", number + 1, -(-len(ids) // SEGMENT // feed.rows))
        if not parts:
            raise DataError(
                f"{split}: no two known words stand together; is it a text like that which was learnt from?"
            )
        task = recipe.task
        how = f"unit:guess|method:{task.method}|window:{task.window}|negatives:{task.negatives}|common:{task.common:g}"
        return mean_loss(parts, how), parts
