"""The job of labelling: its recipe, how it is tried while it trains, and the model that is used."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, overload

import numpy as np
import torch
from torch import Tensor

from regard.distributed import World
from regard.errors import ConfigError, DataError
from regard.look import Saliency
from regard.look.saliency import by_words, log_odds
from regard.models import ReaderConfig
from regard.models.base import Tagger
from regard.models.crf_tagger import ChainTagger
from regard.objective import Each, Objective, Tell
from regard.sequence import Tokens
from regard.tasks.base import Answer, Asked, Evaluation, Fetching, Model, Recipe, Starter, filled
from regard.tasks.label import baseline, stats
from regard.tasks.label import targets as said_at
from regard.tasks.label.chains import Chains
from regard.tasks.label.letters import NoLetters, Types, space_of
from regard.tasks.label.predict import Labelled, Labeller
from regard.tasks.label.prepare import REPAIRED, SPELLING, Chain, LabelConfig, LabelFeed, LabelPreparation
from regard.tasks.label.restore import Restore
from regard.tasks.label.sources import Columns, Lines, Scored, Sentence
from regard.tasks.label.targets import Answers, Tags
from regard.text.word_vocab import Spelling
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.schedule import Cosine
from regard.train.trainer import surprise

DataConfig = Columns | Lines | Restore | Chains
CHUNK = 1024
"""sentences that are labelled together while a model is scored"""


@dataclass(frozen=True)
class LabelRecipe(Recipe):
    """Everything that decides how a labeller learns.

    >>> LabelRecipe.kind()
    'label'
    """

    verb: ClassVar[str] = "label"
    metrics: ClassVar[tuple[str, ...]] = ("loss", "accuracy", "f1", "words", "mae")
    scores: ClassVar[tuple[str, ...]] = ("accuracy", "f1", "precision", "recall", "words", "mae", "baseline")
    kept: ClassVar[tuple[str, ...]] = (SPELLING, said_at.FILE, baseline.FILE)

    data: DataConfig
    """where the sentences come from"""
    model: ReaderConfig
    """what reads"""
    task: LabelConfig = LabelConfig()
    """what is asked"""
    train: TrainConfig = TrainConfig(smoothing=0.0, tokens=2048, schedule=Cosine(lr=2e-3, warmup=100))
    """how it learns"""
    seed: int = 1
    """another seed, another run"""

    def __post_init__(self) -> None:
        check_answer(self.data, self.task, self.train)
        if self.model.reach is not None and self.model.reach < self.task.longest:
            raise ConfigError(
                f"task.longest = {self.task.longest} lets sentences of so many places through, and model.longest = "
                f"{self.model.reach} has learned positions for fewer; make them equal"
            )
        if self.task.letters.width >= self.model.width:
            raise ConfigError(
                f"task.letters.width = {self.task.letters.width} leaves nothing of model.width = {self.model.width} "
                "for the word itself"
            )
        self.check()

    def preparation(self) -> LabelPreparation:
        return LabelPreparation(self.data, self.task)

    def answers(self, run: Path) -> Answers:
        """What may be said at a place, as preparation found it."""
        chained = self.task.crf == "linear"
        return said_at.load(run, self.data.answer, self.data.unit, self.task.spans, chained)

    def build(self, spelling: Spelling, answers: Answers) -> Tagger | ChainTagger:
        """The model with fresh weights, drawn by the seed."""
        torch.manual_seed(self.seed)
        encoder = self.model.build_encoder(space_of(spelling, self.task.letters))
        if isinstance(answers, Tags) and self.task.crf == "linear":
            return ChainTagger(encoder, answers.space(), encoder.width)
        return Tagger(encoder, answers.space(), encoder.width)

    def feed(self, run: Path, world: World = World()) -> LabelFeed:  # noqa: B008
        """The batches of data that is prepared."""
        return LabelFeed.open(run / "data", self.answers(run), self.train.tokens, self.seed, world)

    def parts(self, run: Path, world: World) -> tuple[Objective, LabelFeed, Validation]:
        feed, spelling = self.feed(run, world), Spelling.load(run / SPELLING)
        model, space = self.build(spelling, feed.answers), feed.answers.space(self.train.smoothing)
        objective = Objective(model, Chain(space) if self.task.crf == "linear" else Each(space))
        return objective, feed, Validation(objective, feed, self.labeller(model, spelling, feed.answers), self.task)

    def labeller(self, model: Any, spelling: Spelling, answers: Answers) -> Labeller:
        """What labels with a model."""
        phrases = self.task.spans is not None
        return Labeller(model, spelling, answers, self.data.unit, self.data.answer, phrases, self.task.longest)

    def open(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> LabelModel:
        spelling, answers = Spelling.load(run / SPELLING), self.answers(run)
        kept = Kept(spelling, answers, baseline.load(run, self.data.answer))
        return LabelModel(filled(self.build(spelling, answers), saved), kept, self, saved.step, refused)

    @classmethod
    def starter(cls, languages: tuple[str, str] | None) -> Starter:
        if languages is not None:
            raise ConfigError("tags have no language; --source-lang and --target-lang are for translate")
        kinds = {"data": "conll", "model": "recurrent", "task.letters": "convolution"}
        files = {f"data.{split}": f"data/{split}.conll" for split in ("train", "valid", "test")}
        return Starter(
            "a tag for each word",
            kinds | {"train.optimizer": "adam", "train.schedule": "cosine"},
            files | STARTING,
            later=("data.valid", "data.test"),
            hints=["data/train.conll has a word a line, its tag in the last column, and a blank line after a sentence"],
        )

    def statistics(self, run: Path) -> dict[str, Any]:
        return stats.counted(run, self.feed(run), Spelling.load(run / SPELLING))

    def told(self, statistics: Mapping[str, Any]) -> list[str]:
        return stats.told(statistics, self.data.unit, self.task.scheme)

    def described(self, run: Path) -> str:
        feed, spelling = self.feed(run), Spelling.load(run / SPELLING)
        words = f"{len(spelling.words):,} {self.data.unit}s"
        said = f", {len(feed.answers.names)} tags" if isinstance(feed.answers, Tags) else ""
        counts = f"{len(feed.train):,} train, {len(feed.held_out):,} valid sentences{stats.noted(run)}"
        return f"{counts}       {words}{said}"

    def origin(self) -> str:
        return self.data.attribution()

    def fetch(self, progress: Fetching | None = None) -> None:
        if isinstance(self.data, Restore):
            self.data.fetch(progress)


STARTING: dict[str, Any] = {"model.width": 200, "model.dropout": 0.4, "task.least": 2, "train.epochs": 10.0}
"""Where a new recipe leaves the defaults."""
MEASURED = {"tags": {"loss", "accuracy"}, "text": {"loss", "accuracy", "words"}}
"""Of what is wanted, what validation measures; of all others loss and mae."""


def check_answer(data: DataConfig, task: LabelConfig, train: TrainConfig) -> None:
    """Refuse settings that what is wanted at a place does not go with.

    >>> check_answer(Chains(), LabelConfig(crf="linear"), TrainConfig(smoothing=0.0))
    Traceback (most recent call last):
    regard.errors.ConfigError: task.crf = "linear" chooses among tags, and what is wanted here are angles; use ...
    """
    wanted = {"tags": "tags", "text": "the forms of characters"}.get(data.answer, data.answer)
    if data.answer in ("numbers", "angles") and task.crf != "none":
        raise ConfigError(
            f'task.crf = "linear" chooses among tags, and what is wanted here are {wanted}; use task.crf = "none"'
        )
    if data.answer != "tags" and task.scheme != "none":
        raise ConfigError(
            f'task.scheme = "{task.scheme}" reads spans from tags, and what is wanted here are {wanted}; use '
            'task.scheme = "none"'
        )
    if data.unit == "character" and not isinstance(task.letters, NoLetters):
        raise ConfigError(
            f'task.letters.kind = "{task.letters.kind}": what is read here are single characters, which have no '
            'letters; use "none"'
        )
    if task.crf == "linear" and train.smoothing:
        raise ConfigError(
            f"train.smoothing = {train.smoothing}: a chain scores whole sequences of tags, there is nothing to smooth; "
            "set it to 0"
        )
    measured = MEASURED.get(data.answer, {"loss", "mae"}) | ({"f1"} if task.scheme != "none" else set())
    if train.select in LabelRecipe.metrics and train.select not in measured:
        hint = "; task.scheme says how tags write spans" if train.select == "f1" else ""
        raise ConfigError(
            f"train.select: validation measures {', '.join(sorted(measured))} here, got {train.select!r}{hint}"
        )


@dataclass(frozen=True)
class Validation:
    """Loss, what the task measures over all validation sentences, and what the model says about some of them.

    >>> import tempfile
    >>> from regard.run import Run
    >>> settings = ["data.kind=chains", "data.count=20", "task.kind=label", "model.kind=mlp", "task.samples=1"]
    >>> recipe = Recipe.read(None, settings)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Run(Path(folder)).prepare(recipe)
    ...     metrics, samples = recipe.parts(Path(folder), World())[2]()
    >>> list(metrics), [list(sample) for sample in samples]
    (['loss', 'mae'], [['text', 'output', 'reference']])
    """

    objective: Objective
    feed: LabelFeed
    labeller: Labeller
    task: LabelConfig

    @torch.no_grad()
    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        feed, world, measure = self.feed, self.feed.world, self.feed.answers.measure
        sums, empty = Counter[str](), measure.tally((), (), ())
        rows = np.arange(len(feed.held_out))[world.rank :: world.size]
        for start in range(0, len(rows), CHUNK):
            for one in zip(*self.labelled(rows[start : start + CHUNK]), strict=True):
                sums.update(measure.tally(*one))
        total = world.sum({name: torch.tensor(float(sums[name]), dtype=torch.double) for name in empty})
        loss = surprise(self.objective, feed, world)["loss"]
        metrics = {"loss": loss, **measure.metrics({name: float(value) for name, value in total.items()})}
        return metrics, self.sampled() if world.leads else ()

    def labelled(self, rows: np.ndarray) -> tuple[list[list[str]], list[list[str]], list[list[str]]]:
        """Of some validation sentences: the words, what is said, what is wanted."""
        words = self.feed.words(self.feed.held_out, rows)
        said = [[answer.label for answer in row] for row in self.labeller.say(words)]
        return words, said, self.feed.wanted(self.feed.held_out, rows)

    def sampled(self) -> list[dict[str, str]]:
        """Some sentences from all over: many files begin with their shortest."""
        size = len(self.feed.held_out)
        rows = np.arange(min(size, self.task.samples)) * size // max(1, min(size, self.task.samples))
        between = "" if self.labeller.unit == "character" and self.labeller.kind == "text" else " "
        return [
            {"text": between.join(words), "output": between.join(said), "reference": between.join(wanted)}
            for words, said, wanted in zip(*self.labelled(rows), strict=True)
        ]


@dataclass(frozen=True)
class Kept:
    """What preparation found and a model needs for ever.

    >>> Kept(Spelling(("a",), ()), Tags(("X", "Y")), baseline.Usual("X", {})).spelling.size
    3
    """

    spelling: Spelling
    answers: Answers
    habits: baseline.Habits


class LabelModel(Model):
    """A trained labeller: a text in, a label for each of its places out.

    >>> recipe = Recipe.read(None, ["data={kind='conll', train='a'}", "task.kind=label", "model.kind=mlp"])
    >>> kept = Kept(Spelling(("the", "cat"), ()), Tags(("D", "N")), baseline.Usual("N", {"the": "D"}))
    >>> model = LabelModel(recipe.build(kept.spelling, kept.answers), kept, recipe, step=0)
    >>> found = model.label("the cat, asleep")
    >>> [(token.text, token.start, token.end) for token in found.tokens]
    [('the', 0, 3), ('cat', 4, 7), (',', 7, 8), ('asleep', 9, 15)]
    """

    module: Tagger | ChainTagger
    recipe: LabelRecipe

    def __init__(
        self, module: Tagger | ChainTagger, kept: Kept, recipe: LabelRecipe, step: int, refused: Sequence[str] = ()
    ) -> None:
        super().__init__(module, recipe, step, refused)
        self.kept = kept

    @overload
    def label(self, text: str) -> Labelled: ...  # type: ignore[overload-overlap]  # a str is a sequence of str

    @overload
    def label(self, text: Sequence[str]) -> list[Labelled]: ...

    def label(self, text: str | Sequence[str]) -> Any:
        """A text, or each text of a list, with its labels: tokens with offsets and probabilities, and spans."""
        texts = [text] if isinstance(text, str) else list(text)
        found = self.labeller().label(texts)
        return found[0] if isinstance(text, str) else found

    def labeller(self) -> Labeller:
        """What labels behind `label`, for whole files and for words that are cut already."""
        return self.recipe.labeller(self.ready, self.kept.spelling, self.kept.answers)

    def answer(self, text: str) -> str:
        return self.label(text).output

    def spell(self) -> Mapping[str, Callable[[int], str]]:
        return {"source": self.kept.spelling.spelled}

    def saliency(self, text: str) -> Saliency:
        """What each word did for each label: a row a place, of log-odds, or of the number that is said there."""
        labeller = self.labeller()
        words = [place.read for place in labeller.places(text)]
        if not words:
            raise DataError("the text is empty; there is nothing that an answer could hang on")
        if len(words) > stats.SHOWN:
            raise DataError(
                f"the text has {len(words):,} places, and {stats.SHOWN} can be drawn against one another; shorten it"
            )
        said = [answer.label for answer in labeller.say([words])[0]]
        source = Types.of(words, self.kept.spelling).tokens([np.arange(len(words))])

        def scores(source: Tokens) -> Tensor:
            out_LC = self.module.readout(self.module(source))[0]
            return stats.asked(out_LC, self.kept.answers, said, log_odds)

        embed: Any = self.module.encoder.embed
        rows = [f"{word} {label}" for word, label in zip(words, said, strict=True)]
        return Saliency("each label", words, by_words(scores, embed, source), rows, ("label", "read"))

    def evaluate(self, asked: Asked, tell: Tell) -> Evaluation:
        """Accuracy, F1 of spans, whole words or errors, as the task has it, beside those of the usual answers."""
        if asked.beam is not None:
            raise ConfigError("--beam: labels are chosen at once, nothing is searched for")
        if len(asked.files) > 1:
            raise ConfigError(f"--data: expected one file, got {len(asked.files)}")
        name, sentences, amiss = self.asked_sentences(asked)
        labeller, said = self.labeller(), list[list[str]]()
        began = time.perf_counter()
        for start in range(0, len(sentences), CHUNK):
            part = labeller.say([sentence.words for sentence in sentences[start : start + CHUNK]])
            said += [[answer.label for answer in row] for row in part]
            tell("labelling", len(said), len(sentences))
        seconds = time.perf_counter() - began
        words, wanted = [s.words for s in sentences], [s.tags for s in sentences]
        usual = [self.kept.habits.said(row) for row in words]
        measure = self.kept.answers.measure
        scores = measure.scores(words, said, wanted, usual)
        parts = [measure.part(measure.tally(*rows)) for rows in zip(words, said, wanted, strict=True)]
        answers = [Answer(*map(" ".join, rows)) for rows in zip(words, said, wanted, strict=True)]
        lines, detail = stats.details(said, wanted, self.recipe.task.spans, amiss)
        return Evaluation(name, scores, answers, seconds, lines, detail, parts=parts)

    def asked_sentences(self, asked: Asked) -> tuple[str, list[Sentence], stats.Amiss]:
        """What is scored: its name, the sentences, and what had to be repaired or was never seen."""
        data: Scored = self.recipe.data.scored_on(asked.files[0]) if asked.files else self.recipe.data
        split = "test" if asked.files else asked.split or ("test" if "test" in data.splits() else "valid")
        name, counts, unseen = str(asked.files[0]) if asked.files else split, Counter[str](), Counter[str]()
        preparation = self.recipe.preparation()
        sentences = [preparation.mended(sentence, counts) for sentence in data.sentences(split)]
        if not sentences:
            raise DataError(f"{name}: there is no sentence to score")
        if isinstance(self.kept.answers, Tags):
            for sentence in sentences:
                preparation.unseen(sentence, self.kept.answers)  # refuses, if the task is strict
                unseen.update(tag for tag in sentence.tags if not self.kept.answers.knows(tag))
        return name, sentences, stats.Amiss(counts[REPAIRED], unseen)
