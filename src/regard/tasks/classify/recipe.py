"""The job of classifying: its recipe, how it is tried while it trains, and the model that is used."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, overload

import numpy as np
import torch
from torch import Tensor

from regard.data import Shards
from regard.data.labelled import MovieReviews
from regard.data.tabular import LabelledTable
from regard.distributed import World
from regard.errors import ConfigError, DataError
from regard.look import Saliency
from regard.look.saliency import by_numbers, by_words, log_odds
from regard.metrics.classification import Judged, macro_f1
from regard.models import ReaderConfig
from regard.models.base import Classifier
from regard.models.pooling import pool_of
from regard.objective import Objective, Tell, Whole
from regard.sequence import Tokens
from regard.tasks.base import Answer, Asked, Evaluation, Fetching, Model, Preparation, Recipe, Starter, filled
from regard.tasks.classify import stats
from regard.tasks.classify.inputs import Matter, Measures, Prose
from regard.tasks.classify.labels import Labels, Weighed
from regard.tasks.classify.predict import Judge, Ruling, Verdict
from regard.tasks.classify.prepare import ClassFeed, ClassifyConfig
from regard.tasks.classify.stats import DataConfig, Material, Questions, Tabled, Written
from regard.text import TokenizerConfig
from regard.text.word_vectors import VectorsConfig
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.schedule import Cosine

CHUNK = 1024
"""examples that are read together while a model is scored"""


@dataclass(frozen=True)
class ClassifyRecipe(Recipe):
    """Everything that decides how a classifier learns.

    >>> ClassifyRecipe.kind()
    'classify'
    """

    verb: ClassVar[str] = "classify"
    metrics: ClassVar[tuple[str, ...]] = ("loss", "accuracy", "macro_f1")
    scores: ClassVar[tuple[str, ...]] = ("accuracy", "macro_f1", "micro_f1", "ece", "loss")

    data: DataConfig
    """where the examples come from"""
    model: ReaderConfig
    """what reads"""
    task: ClassifyConfig = ClassifyConfig()
    """what is asked"""
    text: TokenizerConfig = TokenizerConfig(kind="word", size=20_000, lowercase=True)
    """how text becomes tokens"""
    vectors: VectorsConfig = VectorsConfig()
    """where words start from"""
    train: TrainConfig = TrainConfig(
        smoothing=0.0, tokens=2048, select="accuracy", schedule=Cosine(lr=1e-3, warmup=100)
    )
    """how it learns"""
    seed: int = 1
    """another seed, another run"""

    def __post_init__(self) -> None:
        written = not isinstance(self.data, LabelledTable)
        if written:
            check_pool(self.model, self.task.pool)
            check_places(self.model, self.task)
        if self.vectors.path and not (written and self.text.kind == "word"):
            what = f'text.kind = "{self.text.kind}" cuts them' if written else "a table has none"
            raise ConfigError(f'vectors.path: the file holds whole words, and {what}; use text.kind = "word"')
        if self.text.dropout:
            raise ConfigError(
                f"text.dropout = {self.text.dropout}: a text is cut into tokens once and for all; set it to 0"
            )
        self.check()

    @property
    def kept(self) -> tuple[str, ...]:  # type: ignore[override]
        """Of what preparation writes, the files that a model needs for ever: texts and tables need others."""
        return self.material.kept()

    @property
    def material(self) -> Material:
        """What the examples are made of: texts, or rows of numbers."""
        if isinstance(self.data, LabelledTable):
            return Tabled(self.data, self.task)
        return Written(self.data, self.task, self.text, self.vectors)

    def preparation(self) -> Preparation:
        return self.material.preparation()

    def build(self, matter: Matter, labels: Labels) -> Classifier:
        """The model with fresh weights, drawn by the seed."""
        torch.manual_seed(self.seed)
        encoder = self.model.build_encoder(matter.space())
        pool = pool_of(self.task.pool, encoder, self.task.dropout)
        return Classifier(encoder, pool, self.space(labels), encoder.width)

    def space(self, labels: Labels) -> Weighed:
        """What is said."""
        return Weighed(len(labels.names), self.train.smoothing, self.task.weights.of(labels))

    def feed(self, run: Path, world: World = World()) -> ClassFeed:  # noqa: B008
        """The batches of data that is prepared."""
        shards = Shards.open(run / "data" / "train"), Shards.open(run / "data" / "valid")
        return ClassFeed(*shards, self.material.matter(run), self.train.tokens, self.seed, world, self.task.unknown)

    def parts(self, run: Path, world: World) -> tuple[Objective, ClassFeed, Validation]:
        feed, labels = self.feed(run, world), Labels.load(run)
        model = self.build(feed.matter, labels)
        self.material.start(model, run)
        objective = Objective(model, Whole(self.space(labels)))
        return objective, feed, Validation(objective, feed, labels, self.task.samples)

    def open(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> ClassificationModel:
        matter, labels = self.material.matter(run), Labels.load(run)
        return ClassificationModel(filled(self.build(matter, labels), saved), matter, labels, self, saved.step, refused)

    @classmethod
    def starter(cls, languages: tuple[str, str] | None) -> Starter:
        if languages is not None:
            raise ConfigError("a label has no language; --source-lang and --target-lang are for translate")
        kinds = {"data": "tsv", "model": "recurrent", "task.weights": "none"}
        return Starter(
            "a label for a text",
            kinds | {"train.optimizer": "adam", "train.schedule": "cosine"},
            {"data.train": "data/train.tsv", "data.valid": "data/valid.tsv", "data.test": "data/test.tsv"} | STARTING,
            later=("data.valid", "data.test"),
            hints=['data/train.tsv has tabs between its columns, and on top their names: "text" and "label"'],
        )

    def statistics(self, run: Path) -> dict[str, Any]:
        return stats.statistics(run, self.material, self.feed(run))

    def told(self, statistics: Mapping[str, Any]) -> list[str]:
        return stats.told(self.material, statistics)

    def described(self, run: Path) -> str:
        feed, labels, material = self.feed(run), Labels.load(run), self.material
        counts = f"{len(feed.train):,} train, {len(feed.held_out):,} valid {material.unit}, {len(labels.names)} labels"
        return f"{counts}       {material.size(feed.matter)}"

    def origin(self) -> str:
        return self.data.attribution()

    def fetch(self, progress: Fetching | None = None) -> None:
        if isinstance(self.data, MovieReviews):
            self.data.fetch(progress)


STARTING: dict[str, Any] = {"train.epochs": 10.0}
"""Where a new recipe leaves the defaults."""


def check_pool(model: ReaderConfig, pool: str) -> None:
    """Refuse to let a place speak for a whole text of which it has seen nothing.

    >>> from regard.models.recurrent import RecurrentConfig
    >>> check_pool(RecurrentConfig(bidirectional=False), "first")
    Traceback (most recent call last):
    regard.errors.ConfigError: task.pool = "first": a model that reads in one direction has seen nothing of the text ...
    """
    if pool == "first" and model.scope == "before":
        raise ConfigError(
            'task.pool = "first": a model that reads in one direction has seen nothing of the text at its first place; '
            "use last or mean, or model.bidirectional=true"
        )
    if pool in ("first", "last") and model.scope == "itself":
        raise ConfigError(
            f'task.pool = "{pool}": model.kind = "mlp" reads each word alone, and one word says little of a text; '
            "use mean or max"
        )


def check_places(model: ReaderConfig, task: ClassifyConfig) -> None:
    """Refuse texts of more places than a model has, before any work.

    >>> from regard.models.transformer import TransformerConfig
    >>> check_places(TransformerConfig(positions="learned", longest=64), ClassifyConfig(tokens=64, pool="first"))
    Traceback (most recent call last):
    regard.errors.ConfigError: task.tokens = 64 takes 65 places, and model.longest = 64 has learned positions for ...
    """
    places = task.tokens + (task.pool == "first")
    if model.reach is not None and model.reach < places:
        raise ConfigError(
            f"task.tokens = {task.tokens} takes {places} places, and model.longest = {model.reach} has learned "
            "positions for fewer; use fewer task.tokens or a larger model.longest"
        )


@dataclass(frozen=True)
class Validation:
    """Loss, accuracy and macro F1 over all validation examples, and what the model says about some of them.

    >>> import tempfile
    >>> from regard.data import ShardWriter
    >>> from regard.tasks.generate.numbers import Scale
    >>> matter, labels = Measures(Scale(("width",), (0.0,), (1.0,))), Labels(("lily", "rose"), (1, 1))
    >>> given = ["task.kind=classify", "data={kind='table', train='flowers.csv'}", "model={kind='mlp', width=4}"]
    >>> recipe = Recipe.read(None, given)
    >>> objective = Objective(recipe.build(matter, labels).eval(), Whole(recipe.space(labels)))
    >>> with tempfile.TemporaryDirectory() as home:
    ...     with ShardWriter(Path(home, "valid"), {"text": 1 << 32, "label": 2, "given": 256}) as writer:
    ...         writer.append([(matter.packed([0.5]), [1], b"0.5")])
    ...     shards = Shards.open(Path(home, "valid"))
    ...     metrics, samples = Validation(objective, ClassFeed(shards, shards, matter), labels)()
    >>> sorted(metrics), samples[0]["text"], samples[0]["reference"]
    (['accuracy', 'loss', 'macro_f1'], '0.5', 'rose')
    """

    objective: Objective
    feed: ClassFeed
    labels: Labels
    samples: int = 4

    @torch.no_grad()
    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        model, space, size = self.objective.model, self.objective.task.space, len(self.labels.names)
        found = torch.zeros(size * size + 1, dtype=torch.double)
        for batch in self.feed.valid():
            if len(batch):
                out_BC: Tensor = model.readout(model(batch.source))  # type: ignore[operator]
                found[:-1] += torch.bincount(batch.target * size + out_BC.argmax(-1), minlength=size * size)
                found[-1] += space.surprise(out_BC, batch.target).double()
        self.feed.world.add_up(found)
        counts_CC, total = found[:-1].view(size, size).numpy(), float(found[:-1].sum())
        metrics = {
            "loss": float(found[-1]) / total,
            "accuracy": 100 * float(counts_CC.trace()) / total,
            "macro_f1": macro_f1(counts_CC),
        }
        return metrics, self.sampled() if self.feed.world.leads else ()

    def sampled(self) -> list[dict[str, str]]:
        """Some examples from all over: many files are sorted by label."""
        size = len(self.feed.held_out)
        rows = np.arange(min(size, self.samples)) * size // max(1, min(size, self.samples))
        texts, wanted = self.feed.given(rows)
        rulings = Judge(self.objective.model, self.feed.matter, self.labels).rule(texts)
        said = [ruling.top(1, self.labels)[0].label for ruling in rulings]
        return [
            {"text": text, "output": output, "reference": self.labels.names[number]}
            for text, output, number in zip(texts, said, wanted, strict=True)
        ]


class ClassificationModel(Model):
    """A trained classifier: a text in, a label out.

    >>> from regard.tasks.generate.numbers import Scale
    >>> given = ["task.kind=classify", "data={kind='table', train='flowers.csv'}", "model={kind='mlp', width=4}"]
    >>> recipe, labels = Recipe.read(None, given), Labels(("lily", "rose"), (1, 1))
    >>> matter = Measures(Scale(("width", "height"), (2.0, 50.0), (1.0, 5.0)))
    >>> model = ClassificationModel(recipe.build(matter, labels).eval(), matter, labels, recipe, step=0)
    >>> sorted(verdict.label for verdict in model.classify("1.5,48", top=2)[0]), model.classify("")
    (['lily', 'rose'], '')
    """

    module: Classifier
    recipe: ClassifyRecipe

    def __init__(
        self,
        module: Classifier,
        matter: Matter,
        labels: Labels,
        recipe: ClassifyRecipe,
        step: int,
        refused: Sequence[str] = (),
    ) -> None:
        super().__init__(module, recipe, step, refused)
        self.matter, self.labels = matter, labels

    @overload
    def classify(self, text: str, top: None = ...) -> str: ...  # type: ignore[overload-overlap]  # a str is a sequence

    @overload
    def classify(self, text: Sequence[str], top: None = ...) -> list[str]: ...

    @overload
    def classify(self, text: str | Sequence[str], top: int) -> list[list[Verdict]]: ...

    def classify(self, text: str | Sequence[str], top: int | None = None) -> Any:
        """The label of a text, or of each of a list; with `top`, so many labels of each, with their probabilities.

        A text without words has no label: it gets an empty one, and no probabilities.
        """
        if top is not None and top < 1:
            raise ConfigError(f"top = {top} must be at least 1")
        texts = [text] if isinstance(text, str) else list(text)
        found = [ruling.top(top or 1, self.labels) for ruling in self.judge().rule(texts)]
        if top is not None:
            return found
        best = [verdicts[0].label if verdicts else "" for verdicts in found]
        return best[0] if isinstance(text, str) else best

    def judge(self) -> Judge:
        """What rules behind `classify`, for whole files."""
        return Judge(self.ready, self.matter, self.labels)

    def answer(self, text: str) -> str:
        verdicts = self.classify(text, top=1)[0]
        return f"{verdicts[0].label} {verdicts[0].probability:.2f}" if verdicts else ""

    def saliency(self, text: str) -> Saliency:
        """What the words of a text, or the columns of a row, did for the log-odds of its label."""
        row = self.matter.read([text])[0].row
        if not row:
            raise DataError("the text is empty; there is nothing that an answer could hang on")
        source = self.matter.tokens([row])
        with torch.no_grad():
            out_C = self.module.readout(self.module(source))[0]
        best = int(out_C.argmax())

        def odds(source: Tokens) -> Tensor:
            return log_odds(self.module.readout(self.module(source)))[:, best]

        title = f"{self.labels.names[best]} {float(out_C.softmax(-1)[best]):.2f}"
        if isinstance(self.matter, Measures):
            names = list(self.matter.scale.names)
            return Saliency(title, names, by_numbers(odds, source).reshape(1, -1))
        embed: Any = self.module.encoder.embed
        return Saliency(title, self.matter.words(row), by_words(odds, embed, source))

    def spell(self) -> Mapping[str, Callable[[int], str]]:
        matter = self.matter
        return {"source": matter.tokenizer.vocabulary.__getitem__} if isinstance(matter, Prose) else {}

    def evaluate(self, asked: Asked, tell: Tell) -> Evaluation:
        """Accuracy, F1, calibration and the confusion matrix; what has no words is left out and told."""
        questions = self.questions(asked)
        wanted = [self.labels.number(label, questions.where(i)) for i, label in enumerate(questions.labels)]
        judge, rulings = self.judge(), list[Ruling]()
        began = time.perf_counter()
        for start in range(0, len(wanted), CHUNK):
            rulings += judge.rule(questions.given[start : start + CHUNK], start + 1)
            tell("classifying", len(rulings), len(wanted))
        seconds = time.perf_counter() - began
        there = [i for i, ruling in enumerate(rulings) if ruling.share_C is not None]
        if not there:
            raise DataError(f"{questions.file}: every text is empty; there is nothing to score")
        empty = len(wanted) - len(there)
        judged = Judged(
            self.labels.names, np.array([wanted[i] for i in there]), np.array([rulings[i].share_C for i in there])
        )
        said = judged.said_N
        answers = [
            Answer(questions.given[i], self.labels.names[said[place]], questions.labels[i])
            for place, i in enumerate(there)
        ]
        name = self.name(asked) + (f" ({empty:,} without words left out)" if empty else "")
        confusion, unit = judged.confusion(), self.recipe.material.unit
        detail = {"confusion": confusion.to_dict()}
        parts = [(100.0 * right, 1) for right in (said == judged.wanted_N).tolist()]
        return Evaluation(name, judged.scores(), answers, seconds, confusion.told(), detail, unit, parts)

    def questions(self, asked: Asked) -> Questions:
        """What is asked to be scored."""
        if asked.beam is not None:
            raise ConfigError("--beam: a label is chosen at once, nothing is searched for")
        if len(asked.files) > 1:
            raise ConfigError(f"--data: expected one file, got {len(asked.files)}")
        file = asked.files[0] if asked.files else None
        return self.recipe.material.asked(self.matter, self.name(asked), file)

    def name(self, asked: Asked) -> str:
        """Of what is scored: a file, or a split."""
        if asked.files:
            return str(asked.files[0])
        return asked.split or ("test" if "test" in self.recipe.data.splits() else "valid")
