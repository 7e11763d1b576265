"""The contract of a job: to translate, to generate, to classify, so that one Run and one command line do them all.

How to add a job, in one file beside this one (docs/add-a-job.md is a whole example):

1. A recipe: a frozen dataclass that is a `Recipe`. Its fields are the sections of the TOML file, and only those that
   the job needs: model, task, train and seed always; data, text, filter, decode where they mean something. A section
   that a job does not have is an unknown setting. `task` is a config with `kind: Literal["..."] = "..."`, the name of
   the job. Each field has its documentation under it; `__post_init__` ends with `self.check()`.
2. The abstract methods of `Recipe`: how data is prepared, what is trained on it and tried (`parts`), how a checkpoint
   becomes a model (`open`), and some sentences for people.
3. A model that is used: a `Model` with a method of the job's own (`translate`, `generate`, ...), with `answer` for
   whoever has a text and does not care, and with `evaluate` for `regard eval`.
4. One name more in the union in jobs/__init__.py, and a verb in cli/ that opens its run by `choosing.load_for`.

Training, resuming, validation, cards, dry runs, averages, `regard new`, `config`, `data`, `eval`, `runs` and `record`
follow from these.
"""

from __future__ import annotations

import difflib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar, get_args, get_type_hints

from torch import Tensor, nn

from regard import config
from regard.distributed import World
from regard.errors import ConfigError
from regard.look import Reading, Recording, Saliency
from regard.metrics import Parts, Score
from regard.models import PRESETS, ModelConfig
from regard.models.base import parameters
from regard.nn.inference import prepare
from regard.objective import Feed, Objective, Tell
from regard.trace import record as tracing
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.trainer import Validate
from regard.train.weights import load_weights

M = TypeVar("M", bound=nn.Module)
Fetching = Callable[[int, int], None]
"""Told while a file is fetched: bytes so far, bytes in all."""


class Preparation(Protocol):
    """Raw data in, files that training reads out.

    >>> recipe = Recipe.read(None, ["data.kind=phrases", "text.size=500", "model.preset=transformer-tiny"])
    >>> preparation: Preparation = recipe.preparation()
    >>> preparation.identity()["text"]["size"]
    500
    """

    def identity(self) -> Mapping[str, Any]:
        """The settings that what is prepared depends on, as plain JSON: other settings, other files."""

    def run(self, folder: Path, tell: Tell) -> Mapping[str, Mapping[str, int]]:
        """Write everything into `folder`; of each split, how many were read and dropped why."""


@dataclass(frozen=True)
class Starter:
    """Where a new recipe leaves the defaults, and what its writer is told.

    >>> Starter("a to b", {"model": "transformer"}, {"train.epochs": 20.0}).later
    ()
    """

    title: str
    """the first line of the file"""
    kinds: Mapping[str, str]
    """of each section that has kinds, the one that is written out"""
    given: Mapping[str, Any]
    """settings that are not left at their default, such as {"model.width": 256}"""
    later: Sequence[str] = ()
    """of the given ones, those that stay commented out until somebody needs them"""
    hints: Sequence[str] = ()
    """lines that say where the data goes"""


@dataclass(frozen=True)
class Asked:
    """What `regard eval` is asked to score a model on.

    >>> Asked(split="test").files
    ()
    """

    files: Sequence[Path] = ()
    """files of the user's own; as many as the job reads side by side"""
    split: str | None = None
    """or a split of the recipe's data; neither: the job's choice, test if there is one"""
    beam: int | None = None
    """hypotheses kept; a job that does not search refuses it"""


@dataclass(frozen=True)
class Answer:
    """One thing that was asked in an evaluation, what the model said, and what it should have said.

    >>> Answer("je suis", "I am", "I am").output
    'I am'
    """

    source: str
    output: str
    reference: str


@dataclass(frozen=True)
class Evaluation:
    """What `regard eval` found.

    >>> Evaluation("test", [Score("bleu", 27.3, 26.4, 28.2, "nrefs:1", n=1000)]).data
    'test'
    """

    data: str
    """the name of what was scored: a split, or files"""
    scores: Sequence[Score]
    answers: Sequence[Answer] = ()
    """one a sentence, where sentences are what is scored: for paired tests and scores by length"""
    seconds: float | None = None
    """how long the answers took; None: there are none, or they were not timed"""
    told: Sequence[str] = ()
    """what else was found, in lines for people: a confusion matrix, scores by tag or by column"""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """the same as plain JSON"""
    unit: str = "sentences"
    """what was scored, so many of them"""
    parts: Parts = ()
    """of each of them, in the order of the data, what its part of the first score is: for paired tests"""


class Recipe(ABC):
    """Everything that decides what a run learns: the sections of a TOML file, by the job that its task.kind names.

    >>> Recipe.read(None, ["data.kind=phrases", "model.preset=transformer-tiny"]).model.width
    128
    """

    jobs: ClassVar[tuple[type[Recipe], ...]] = ()
    """what `read` chooses from; the union in jobs/__init__.py"""
    verb: ClassVar[str]
    """how a model of this job is used: regard VERB RUN"""
    metrics: ClassVar[tuple[str, ...]]
    """what validation measures, and train.select may name"""
    scores: ClassVar[tuple[str, ...]]
    """what `regard eval` measures, and --min may name"""
    kept: ClassVar[tuple[str, ...]] = ("tokenizer*.json",)
    """of what preparation writes, the files that a model needs for ever: they move to the run's root"""

    model: Any
    task: Any
    train: TrainConfig
    seed: int

    @classmethod
    def kind(cls) -> str:
        """The job's name, as task.kind gives it."""
        return str(get_args(get_type_hints(get_type_hints(cls)["task"])["kind"])[0])

    @classmethod
    def read(cls, path: Path | None, settings: Sequence[str] = ()) -> Self:
        """A recipe from a TOML file with settings on top; defaults < preset < file < settings."""
        table = config.override(without_budget(config.read(path), settings) if path else {}, settings)
        if "data" in table:
            table["data"] = expanded(table["data"])
        try:
            return cls.parse(table)
        except config.UnknownSetting as error:
            given = [setting.partition("=")[0].strip() for setting in settings]
            here = any(f"{key}.".startswith(f"{error.key}.") for key in given)
            raise ConfigError(error.told("given on the command line" if here else f"in {path}")) from None

    @classmethod
    def parse(cls, table: config.Table) -> Self:
        """A recipe from tables: of the job that task.kind names, with its model's preset filled in."""
        return config.parse(cls.named(table), {**table, "model": with_preset(table.get("model", {}))})

    @classmethod
    def named(cls, table: config.Table) -> type[Self]:
        """The job that a table's task.kind names; the first one if it names none."""
        jobs = {job.kind(): job for job in cls.jobs if issubclass(job, cls)}
        task = table.get("task", {})
        name = task.get("kind", next(iter(jobs))) if isinstance(task, dict) else None
        if name not in jobs:
            close = difflib.get_close_matches(str(name), jobs, n=1)
            guess = f"; did you mean {close[0]}?" if close else ""
            raise ConfigError(f"task.kind: expected one of {', '.join(jobs)}, got {name!r}{guess}")
        return jobs[name]

    def check(self) -> None:
        """What any job's sections must agree on; a job's own __post_init__ checks its own first, then calls this."""
        if self.train.select not in self.metrics:
            close = difflib.get_close_matches(self.train.select, self.metrics, n=1)
            guess = f"; did you mean {close[0]}?" if close else ""
            names = ", ".join(self.metrics)
            raise ConfigError(f"train.select: expected one of {names}, got {self.train.select!r}{guess}")

    @abstractmethod
    def preparation(self) -> Preparation:
        """How raw data becomes what training reads."""

    @abstractmethod
    def parts(self, run: Path, world: World) -> tuple[Objective, Feed, Validate]:
        """What learns, what from, and how it is tried; `run` holds the kept files, `run/data` all else."""

    @abstractmethod
    def open(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> Model:
        """The model of a checkpoint, ready to be used; `refused`: why a better or newer one could not be."""

    @classmethod
    @abstractmethod
    def starter(cls, languages: tuple[str, str] | None) -> Starter:
        """What `regard new` writes; a job that knows no pair of languages refuses them."""

    @abstractmethod
    def statistics(self, run: Path) -> dict[str, Any]:
        """What `regard data stats` tells of what is prepared in `run`, as plain JSON."""

    @abstractmethod
    def told(self, statistics: Mapping[str, Any]) -> list[str]:
        """The same for people, in lines."""

    @abstractmethod
    def described(self, run: Path) -> str:
        """The data and the tokens of a prepared run, in less than a line."""

    @abstractmethod
    def origin(self) -> str:
        """Where the data is from, and whom to credit: for the model card."""

    def fetch(self, progress: Fetching | None = None) -> None:
        """Bring data that lives in a registry; most data is there already."""
        return

    def usage(self, run: Path) -> str:
        """The command that uses a model of this job, to be read and changed."""
        return f'regard {self.verb} {run} "..."'


class Model(ABC):
    """A trained model, ready to be used: `regard.load(path)` makes one, of the kind that its run's job has.

    >>> import regard
    >>> regard.load("runs/none")
    Traceback (most recent call last):
    regard.errors.ModelError: runs/none is not a run: there is no such directory
    """

    module: Any
    """the network, with its weights"""
    recipe: Recipe
    """what it was trained by; a job's own model says which job's"""

    def __init__(self, module: nn.Module, recipe: Recipe, step: int, refused: Sequence[str] = ()) -> None:
        self.module, self.recipe, self.step = module, recipe, step
        self.refused = refused  # why a better or newer checkpoint could not be used
        self.ready: Any = prepare(module)  # the same weights, laid out for use

    @abstractmethod
    def answer(self, text: str) -> str:
        """What the model makes of one text, as its verb would say it: for whoever looks at it while it works."""

    def observe(self, text: str) -> str:
        """Do with a text what `regard look` shows, and say what came of it: the answer, unless a job shows another."""
        return self.answer(text)

    def reading(self, text: str) -> Reading:
        """A text as it would be read in training, with what is wanted after each token: for losses and gradients."""
        raise ConfigError(
            "gradients through time are those of a model that says one word after another, and this one was trained "
            f"to {self.recipe.kind()}; look at --view saliency or --view states"
        )

    def saliency(self, text: str) -> Saliency:
        """What an answer hung on: for a job that gives one answer for a text, or one for each of its places."""
        raise ConfigError(
            f"a model that was trained to {self.recipe.kind()} has no one answer that could hang on words; "
            "look at its attention, its states or its gradients: --view attention, states or gradients"
        )

    def initial(self) -> nn.Module:
        """The network as it was before it learnt anything."""
        raise ConfigError(f"a model that was trained to {self.recipe.kind()} cannot be had as it began")

    @abstractmethod
    def evaluate(self, asked: Asked, tell: Tell) -> Evaluation:
        """Scores on data it has not seen; `tell` is told how far it is."""

    @abstractmethod
    def spell(self) -> Mapping[str, Callable[[int], str]]:
        """Of each side whose ids are recorded ("source", "target"): id -> token."""

    @contextmanager
    def record(self, replace: Mapping[str, Callable[[Tensor], Tensor]] | None = None) -> Iterator[Recording]:
        """Keep all that is seen while the model works inside the block; see `regard.record`."""
        with tracing(self.ready, replace) as trace:
            yield Recording(trace, self.spell())

    def __repr__(self) -> str:
        shape = f"{self.recipe.model.kind}, {parameters(self.module):,} parameters, step {self.step}"
        return f"Model({shape}; {self.recipe.kind()})"


def filled(module: M, saved: Checkpoint) -> M:
    """A module with the weights of a checkpoint, for use and not for training.

    >>> import tempfile
    >>> from regard.train import checkpoint
    >>> learnt, fresh = nn.Linear(2, 1), nn.Linear(2, 1)
    >>> with tempfile.TemporaryDirectory() as run:
    ...     path = checkpoint.save(Path(run), 800, {"model": learnt.state_dict()}, {})
    ...     used = filled(fresh, checkpoint.read(path))
    >>> bool((used.weight == learnt.weight).all()), used.weight.requires_grad
    (True, False)
    """
    load_weights(module, saved.tensors("model"), str(saved.path))
    return module.eval().requires_grad_(False)


def with_preset(model: Any) -> Any:
    """A model's table with its preset, if it names one, under what else it says.

    >>> with_preset({"preset": "transformer-tiny", "layers": 2})["layers"]
    2
    """
    if not isinstance(model, dict) or "preset" not in model:
        return model
    name = model["preset"]
    if not isinstance(name, str) or name not in PRESETS:
        raise ConfigError(f'model.preset: there is no "{name}"; there are {", ".join(PRESETS)}')
    shape, rest = config.plain(PRESETS[name].config), {key: value for key, value in model.items() if key != "preset"}
    if rest.get("kind", shape["kind"]) != shape["kind"]:
        raise ConfigError(
            f'model.preset = "{name}" is a {shape["kind"]}, and model.kind says {rest["kind"]}; leave one of them out'
        )
    return {**shape, **rest}


def check_reach(model: ModelConfig, tokens: int) -> None:
    """Refuse texts of more tokens than a model has places for, before any work.

    >>> from regard.models.transformer import TransformerConfig
    >>> check_reach(TransformerConfig(positions="learned", longest=64), 256)
    Traceback (most recent call last):
    regard.errors.ConfigError: filter.tokens = 256 lets texts of 257 places through, the end included, and ...
    """
    reach = model.reach
    if reach is not None and reach < tokens + 1:
        raise ConfigError(
            f"filter.tokens = {tokens} lets texts of {tokens + 1} places through, the end included, and "
            f"model.longest = {reach} has learned positions for fewer; use filter.tokens = {reach - 1} or a larger "
            "model.longest"
        )


def expanded(value: Any) -> Any:
    """Tables whose texts may hold ~ and $VARIABLES, filled in.

    >>> expanded({"train": ["$NO_SUCH_VARIABLE/a"]})
    {'train': ['$NO_SUCH_VARIABLE/a']}
    """
    if isinstance(value, dict):
        return {key: expanded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [expanded(item) for item in value]
    return os.path.expanduser(os.path.expandvars(value)) if isinstance(value, str) else value  # noqa: PTH111


def without_budget(table: config.Table, settings: Sequence[str]) -> config.Table:
    """A budget that is given on top replaces the file's, whatever it is counted in."""
    names = {"steps", "epochs", "minutes"}
    asked = {setting.partition("=")[0].strip() for setting in settings}
    train = table.get("train")
    if isinstance(train, dict) and asked & {f"train.{name}" for name in names}:
        return {**table, "train": {key: value for key, value in train.items() if key not in names}}
    return table
