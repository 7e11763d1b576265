"""Contract of a task (translate, generate, classify, ...): what Run and the command line need from each of them.

To add a task, write a folder beside this file, or a package of your own (docs/add-a-task.md builds a whole one):

1. A recipe: a frozen dataclass derived from `Recipe`. Its fields are the sections of the TOML file, and only those that
   the task needs: model, task, train and seed always; data, text, filter, decode where they apply. A section that a
   task does not have is an unknown setting. `task` is a config with `kind: Literal["..."] = "..."`, the task's name.
   Each field has its documentation under it; `__post_init__` ends with `self.check()`.
2. The abstract methods of `Recipe`: preparation of the data, what is trained and validated (`training_parts`), loading
   a checkpoint (`load_model`), and a few summaries.
3. A `Model` with a method of its own (`translate`, `generate`, ...), `predict_text` for callers that handle any task,
   and `evaluate` for `regard eval`.
4. One more line in TASKS in tasks/__init__.py, or an entry point of a package of your own; and a command that loads its
   run by `loading.load_model_as`.

Training, resuming, validation, model cards, dry runs, averaging, `regard new`, `config`, `data`, `eval`, `runs` and
`record` need nothing more.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, get_args, get_type_hints

import torch
from torch import Tensor, nn

from regard import config
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError
from regard.files import parse_json, read_bounded
from regard.manifest import MAX_KEPT
from regard.models import ModelConfig, preset_tables
from regard.models.base import parameters
from regard.nn.inference import optimize_for_inference
from regard.objective import Loader, Objective
from regard.program import quote_path
from regard.progress import DownloadProgress, Progress
from regard.recipe_tables import read_tables, task_name, with_origin, with_preset, with_started_init
from regard.sequence import Tokens
from regard.tasks.batching import check_lines as check_lines
from regard.tasks.batching import length_batches as length_batches
from regard.tasks.evaluation import EvalRequest as EvalRequest
from regard.tasks.evaluation import Evaluation as Evaluation
from regard.tasks.evaluation import ScoredExample as ScoredExample
from regard.tasks.init_recipe import InitFields, check_taken_kind, with_source_sections
from regard.tasks.sentence_vectors import SentenceReader
from regard.text.token_rows import TokenStrings
from regard.text.tokenizer import Tokenizer
from regard.trace import record as tracing
from regard.trace import tap, trace_context
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.trainer import Validate
from regard.train.weights import load_weights

if TYPE_CHECKING:
    from regard.look import PixelSaliency, Recording, Saliency, TeacherForcedPass
    from regard.look.replay import Replay
    from regard.tasks.contextual import ContextualText

M = TypeVar("M", bound=nn.Module)


class Preparation(Protocol):
    """Turns raw data into the files that training reads: tokenizers and shards."""

    def identity(self) -> Mapping[str, Any]:
        """Settings that the prepared files depend on, as plain JSON; if they change, the data is prepared again."""

    def run(self, folder: Path, progress: Progress) -> Mapping[str, Mapping[str, int]]:
        """Write all files into `folder`; returns the counts of each split (read, dropped by reason)."""


@dataclass(frozen=True)
class RecipeTemplate:
    """Contents of the recipe that `regard new` writes, as far as they differ from the defaults."""

    title: str
    """the first line of the file"""
    kinds: Mapping[str, str]
    """the kind of each section that has kinds, such as {"model": "transformer"}"""
    settings: Mapping[str, Any]
    """settings that differ from their default, such as {"model.width": 256}"""
    commented_out: Sequence[str] = ()
    """which of these settings are written as comments"""
    hints: Sequence[str] = ()
    """lines that say where the data files go"""


class Recipe(InitFields, ABC):
    """Everything that decides what a run learns: the sections of a TOML file; its task.kind chooses the subclass.

    >>> Recipe.read(None, ["data.kind=phrases", "model.preset=transformer-tiny"]).model.width
    128
    """

    verb: ClassVar[str]
    """the command that uses a model of this task: regard VERB RUN"""
    metrics: ClassVar[tuple[str, ...]]
    """metrics of validation; train.best_metric is one of them"""
    scores: ClassVar[tuple[str, ...]]
    """scores of `regard eval`; --min names one of them"""
    artifacts: ClassVar[tuple[str, ...]] = ("tokenizer*.json",)
    """prepared files that the trained model needs, as patterns: they move to the run's folder"""

    data: Any
    model: Any
    task: Any
    train: TrainConfig
    seed: int

    @classmethod
    def kind(cls) -> str:
        """The task's name, the value of task.kind."""
        return str(get_args(get_type_hints(get_type_hints(cls)["task"])["kind"])[0])

    @staticmethod
    def classes() -> tuple[type[Recipe], ...]:
        """The recipe classes of all tasks: those of tasks/__init__.py and of other installed packages."""
        found: tuple[type[Recipe], ...] = importlib.import_module("regard.tasks").recipe_classes()
        return found

    @classmethod
    def read(cls, path: str | Path | None, settings: Sequence[str] = (), started: Path | None = None) -> Self:
        """Read a TOML file and apply `settings`; precedence: defaults < model.init < preset < file < settings.

        `started` is the run that the recipe is for: if it exists already, the run of model.init is not needed.
        """
        path = Path(path) if path is not None else None
        table = with_started_init(read_tables(path, settings), started)
        try:
            return cls.parse(table, started)
        except config.UnknownSetting as error:
            raise with_origin(error, path, settings) from None

    @classmethod
    def parse(cls, table: config.Table, started: Path | None = None) -> Self:
        """A recipe from tables; task.kind chooses the class; model.preset is expanded, and so is model.init."""
        recipe_class = cls.class_for(table)
        taken = with_source_sections(table, recipe_class.reads_text(table), started)
        check_taken_kind(recipe_class, table, taken)
        return config.parse(recipe_class, {**taken, "model": with_preset(taken.get("model", {}), preset_tables())})

    @classmethod
    def class_for(cls, table: config.Table) -> type[Self]:
        """The recipe class that a table's task.kind names; the first of the list if it names none."""
        tasks = importlib.import_module("regard.tasks")
        names = tasks.task_names() if inspect.isabstract(cls) else [cls.kind()]
        name = task_name(table, names)
        found: type[Self] = tasks.recipe_class(name) if inspect.isabstract(cls) else cls
        return found

    def check(self) -> None:
        """Checks that all tasks share; a task's __post_init__ makes its own checks first, then calls this."""
        config.check_numbers(self.model, "model")
        if self.train.best_metric not in self.metrics:
            close = difflib.get_close_matches(self.train.best_metric, self.metrics, n=1)
            guess = f"; did you mean {close[0]}?" if close else ""
            names = ", ".join(self.metrics)
            raise ConfigError(f"train.best_metric: expected one of {names}, got {self.train.best_metric!r}{guess}")

    @abstractmethod
    def preparation(self) -> Preparation:
        """Turns raw data into the files that training reads."""

    @abstractmethod
    def training_parts(self, run: Path, group: ProcessGroup) -> tuple[Objective, Loader, Validate]:
        """Objective, loader and validation of a run: `run` holds the artifacts, `run/data` the prepared data."""

    @abstractmethod
    def load_model(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> Model:
        """The model of a checkpoint; `refused`: why better or newer checkpoints could not be used."""

    @classmethod
    @abstractmethod
    def template(cls, languages: tuple[str, str] | None) -> RecipeTemplate:
        """The recipe that `regard new` writes; tasks without a pair of languages refuse `languages`."""

    @abstractmethod
    def statistics(self, run: Path) -> dict[str, Any]:
        """Statistics of the prepared data of `run` (`regard data stats`), as plain JSON."""

    @abstractmethod
    def format_statistics(self, statistics: Mapping[str, Any]) -> list[str]:
        """The same as lines of text."""

    @abstractmethod
    def summary(self, run: Path) -> str:
        """Size of the prepared data and the vocabulary, in part of a line."""

    def data_warnings(self, run: Path) -> list[str]:
        """What a user should know about the prepared data before training."""
        return []

    def vocabularies(self, run: Path) -> Mapping[str, TokenStrings]:
        """The vocabulary of each weight that has one row per token or label, by the weight's name: for model.init."""
        return {}

    def data_credit(self) -> str:
        """Origin and license of the data: for the model card."""
        return str(self.data.credit())

    def fetch(self, progress: DownloadProgress | None = None) -> None:
        """Download the data, if the recipe has a source that is downloaded."""
        data: Any = getattr(self, "data", None)
        if hasattr(data, "fetch"):
            data.fetch(progress)

    def speed_unit(self) -> str:
        """What training predicts, in the plural: the speed is reported as so many per second."""
        return "tokens"

    def usage(self, run: Path) -> str:
        """Example command that uses the trained model."""
        return f'regard {self.verb} {quote_path(run)} "..."'

    def eval_usage(self, run: Path) -> str:
        """Example command that scores the trained model; an imported one has no data of its own."""
        data: Any = getattr(self, "data", None)
        is_imported = data is not None and not data.splits()
        return f"regard eval {quote_path(run)}{' --data FILE' if is_imported else ''}"


class Model(SentenceReader, ABC):
    """A trained model: `regard.load(path)` returns the subclass of the run's task."""

    module: Any
    """the network, with its weights"""
    recipe: Recipe
    """the recipe it was trained with"""
    engine: Any = None
    """another library that searches, see regard.engines; None: the model itself"""

    def __init__(self, module: nn.Module, recipe: Recipe, step: int, refused: Sequence[str] = ()) -> None:
        self.module, self.recipe, self.step = module, recipe, step
        self.refused = refused  # why better or newer checkpoints could not be used
        self.inference_module: Any = optimize_for_inference(module)  # the same weights, laid out for inference

    def to(self, device: torch.device | str) -> Self:
        """Move the model to another device, in place; inputs follow it, and outputs come back to the CPU."""
        is_optimized = self.inference_module is not self.module
        self.inference_module = (
            self.module
        )  # the optimized copy shares its weights: it is made again from the moved ones
        self.module.to(device)
        if is_optimized:
            self.inference_module = optimize_for_inference(self.module)
        return self

    def make_trainable(self) -> None:
        """Prepare the network for a training loop: train mode, gradients, and predictions by the trained weights."""
        self.module.train().requires_grad_(True)
        self.inference_module = self.module  # the optimized copy would keep the weights from before

    @abstractmethod
    def predict_text(self, text: str) -> str:
        """The output for one text, as the task's command prints it."""

    def predict_parts(self, text: str) -> tuple[str, dict[str, Any]]:
        """The output for one text, and its parts as plain JSON where a page can draw more than a text."""
        return self.predict_text(text), {}

    def run_for_trace(self, text: str) -> str:
        """Run the forward pass that `regard look` records; returns the output."""
        return self.predict_text(text)

    def input_warning(self, text: str) -> str:
        """What a user should know about how an input was read; empty if there is nothing."""
        return ""

    def teacher_forced(self, text: str) -> TeacherForcedPass:
        """A teacher-forced pass over a text, with the target of each position: for losses and gradients."""
        raise ConfigError(
            "gradients through time need a model that predicts one token after another, and this one was trained "
            f"to {self.recipe.kind()}; use --view saliency or --view states"
        )

    def saliency(self, text: str) -> Saliency | PixelSaliency:
        """Gradient x input attribution of an output: for tasks with one output per text or per token."""
        raise ConfigError(
            f"a model that was trained to {self.recipe.kind()} has no single output to attribute to its input; "
            "use --view attention, states or gradients"
        )

    def replay(self, text: str) -> Replay:
        """The pass that leads to the output for a text, to be run again with changes; see regard.look.replay."""
        from regard.tasks.replay import replay

        with self.record() as recording:
            self.run_for_trace(text)
        return replay(self, recording.condense(), lambda: self.run_for_trace(text))

    def replay_of_text(self, replay: Replay, text: str) -> Replay:
        """The same pass over another text, with the same answer: for patching between two texts."""
        from regard.tasks.replay import replay_of_text

        return replay_of_text(replay, self, lambda: self.run_for_trace(text))

    def contextual_layers(self, text: str) -> ContextualText:
        """The vectors of every layer at each position of a text: those of a word depend on its sentence."""
        raise ConfigError(
            f"a model that was trained to {self.recipe.kind()} on these data reads no words, so there are no vectors "
            "of words in their sentence; use a run that reads texts"
        )

    def untrained_module(self) -> nn.Module:
        """The network with its initial weights."""
        raise ConfigError(f"the initial weights of a model that was trained to {self.recipe.kind()} are not available")

    @abstractmethod
    def evaluate(self, request: EvalRequest, progress: Progress) -> Evaluation:
        """Scores on held-out data."""

    @abstractmethod
    def id_to_token(self) -> Mapping[str, Callable[[int], str]]:
        """For each recorded side ("source", "target"), the function from token id to token."""

    @contextmanager
    def record(self, replace: Mapping[str, Callable[[Tensor], Tensor]] | None = None) -> Iterator[Recording]:
        """Record all tapped tensors of forward passes inside the block; see `regard.record`.

        Inside an engine, which is another library, none are seen.
        """
        if self.engine is not None:
            raise ConfigError(
                f"nothing inside the engine {self.engine.name} can be recorded; load the run without an engine"
            )
        from regard.look import Recording  # an answer alone needs no views
        from regard.tasks.lens_head import lens_head

        with tracing(self.inference_module, replace) as trace:
            yield Recording(trace, self.id_to_token(), lens_head(self.inference_module, self.id_to_token()))

    def __repr__(self) -> str:
        shape = f"{self.recipe.model.kind}, {parameters(self.module):,} parameters, step {self.step}"
        return f"Model({shape}; {self.recipe.kind()})"


def with_weights(module: M, saved: Checkpoint) -> M:
    """Load the weights of a checkpoint into a module and prepare it for inference (eval mode, no gradients)."""
    load_weights(module, saved.tensors("model"), str(saved.path))
    return module.eval().requires_grad_(False)


def check_max_positions(model: ModelConfig, tokens: int) -> None:
    """Refuse a filter that lets through longer texts than the model has learned positions for."""
    most = model.position_limit
    if most is not None and most < tokens + 1:
        raise ConfigError(
            f"filter.max_tokens = {tokens} lets through texts of {tokens + 1} positions, <EOS> included, but "
            f"model.max_positions = {most} has learned positions for fewer; use filter.max_tokens = {most - 1} or a "
            "larger model.max_positions"
        )


def read_counts(run: Path) -> dict[str, dict[str, int]]:
    """The counts of each split that preparation wrote."""
    path = run / "data" / "counts.json"
    try:
        found = parse_json(read_bounded(path, MAX_KEPT))
        return {split: {name: int(count) for name, count in counts.items()} for split, counts in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        raise DataError(f"{path} cannot be read: expected the counts of each split; prepare the data again") from None


def tap_output(model: nn.Module, tokenizer: Tokenizer, outputs: Sequence[Sequence[int]]) -> None:
    """Record the ids of outputs, so that a view can join the decoding steps that led to them."""
    with trace_context(target=[tokenizer.tokens(row) for row in outputs], sources=torch.arange(len(outputs))):
        tap(model, "answer", Tokens.pad(outputs).data, "batch position:target")
