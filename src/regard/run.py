"""A run: a recipe, a directory, and what training leaves in it. Running the same command again goes on."""

from __future__ import annotations

import json
import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch

import regard
from regard import config, score
from regard.data import Files, Filter, Jsonl, Shards, Tsv
from regard.data.phrases import Phrases
from regard.data.tatoeba import Tatoeba
from regard.decode import DecodeConfig
from regard.errors import ConfigError, ModelError
from regard.look import Recording
from regard.models import PRESETS, ModelConfig
from regard.models.base import EncoderDecoder, parameters
from regard.nn.inference import prepare
from regard.spaces import Words
from regard.tasks.base import Continue, Objective
from regard.tasks.translate import PairFeed, Preparation, Tell, TranslateConfig, Vocabularies
from regard.tasks.translator import Translation, Translator
from regard.text import TokenizerConfig
from regard.trace import record as tracing
from regard.train import checkpoint, commit
from regard.train.durable import cannot_write, write_text_atomically
from regard.train.events import Listener
from regard.train.settings import MAY_CHANGE, TrainConfig
from regard.train.trainer import Report, surprise, train
from regard.train.weights import load_weights
from regard.world import World

DataConfig = Files | Tsv | Jsonl | Tatoeba | Phrases


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what a run learns.

    >>> Recipe.read(None, ["data.kind=phrases", "model.preset=transformer-tiny"]).model.width
    128
    """

    data: DataConfig
    """where the sentence pairs come from"""
    model: ModelConfig
    """what learns"""
    task: TranslateConfig = TranslateConfig()
    """what is asked"""
    filter: Filter = Filter()
    """which pairs are kept"""
    text: TokenizerConfig = TokenizerConfig()
    """how text becomes tokens"""
    train: TrainConfig = TrainConfig()
    """how it learns"""
    decode: DecodeConfig = DecodeConfig()
    """how outputs are found"""
    seed: int = 1
    """another seed, another run"""

    def __post_init__(self) -> None:
        self.model.check_translates(self.task.joint)
        if self.train.select == "bleu" and not self.task.scored:
            raise ConfigError('train.select = "bleu" needs sentences to score; task.scored = 0 asks for none')

    @classmethod
    def read(cls, path: Path | None, settings: Sequence[str] = ()) -> Recipe:
        """A recipe from a TOML file with settings on top; defaults < preset < file < settings."""
        table = config.override(_without_budget(config.read(path), settings) if path else {}, settings)
        table["data"] = _expanded(table.get("data", {}))
        model = table.get("model", {})
        if isinstance(model, dict) and "preset" in model:
            name = model.pop("preset")
            if not isinstance(name, str) or name not in PRESETS:
                raise ConfigError(f'model.preset: there is no "{name}"; there are {", ".join(PRESETS)}')
            table["model"] = {**config.plain(PRESETS[name].config), **model}
        try:
            return config.parse(cls, table)
        except config.UnknownSetting as error:
            given = [setting.partition("=")[0].strip() for setting in settings]
            here = any(f"{key}.".startswith(f"{error.key}.") for key in given)
            raise ConfigError(error.told("given on the command line" if here else f"in {path}")) from None

    def preparation(self) -> Preparation:
        return Preparation(self.data, self.filter, self.text, self.task)

    def build(self, vocabularies: Vocabularies) -> EncoderDecoder:
        """The model with fresh weights, drawn by the seed."""
        torch.manual_seed(self.seed)
        return self.model.build(*self.spaces(vocabularies))

    def spaces(self, vocabularies: Vocabularies) -> tuple[Words, Words]:
        smoothing = self.train.smoothing
        return Words(vocabularies.source.size, smoothing), Words(vocabularies.target.size, smoothing)


def _expanded(value: Any) -> Any:
    """Paths may hold ~ and $VARIABLES."""
    if isinstance(value, dict):
        return {key: _expanded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_expanded(item) for item in value]
    return os.path.expanduser(os.path.expandvars(value)) if isinstance(value, str) else value  # noqa: PTH111


def _without_budget(table: config.Table, settings: Sequence[str]) -> config.Table:
    """A budget that is given on top replaces the file's, whatever it is counted in."""
    names = {"steps", "epochs", "minutes"}
    asked = {setting.partition("=")[0].strip() for setting in settings}
    train = table.get("train")
    if isinstance(train, dict) and asked & {f"train.{name}" for name in names}:
        return {**table, "train": {key: value for key, value in train.items() if key not in names}}
    return table


@dataclass(frozen=True)
class Run:
    """A run directory.

    >>> Run(Path("runs/none")).recipe()
    Traceback (most recent call last):
    regard.errors.ModelError: runs/none is not a run: there is no such directory
    """

    path: Path

    def recipe(self) -> Recipe:
        """The recipe that this run was started with."""
        if not (self.path / "recipe.toml").is_file():
            why = "it has no recipe.toml" if self.path.is_dir() else "there is no such directory"
            raise ModelError(f"{self.path} is not a run: {why}")
        return config.parse(Recipe, config.read(self.path / "recipe.toml"))

    def train(
        self,
        recipe: Recipe,
        *,
        world: World = World(),  # noqa: B008
        listeners: Sequence[Listener] = (),
        tell: Tell | None = None,
        fresh: bool = False,
    ) -> Report:
        """Train by the recipe, or go on where this run stopped."""
        if world.leads:
            self.begin(recipe, fresh)
            self.prepare(recipe, tell)
        world.any(0)  # the others wait until the leader has prepared
        objective, feed, validation = self.parts(recipe, world)
        return train(objective, feed, recipe.train, self.path, world, listeners, validation, recipe.seed)

    def parts(
        self,
        recipe: Recipe,
        world: World = World(),  # noqa: B008
    ) -> tuple[Objective, PairFeed, Validation]:
        """What learns, what from, and how it is tried, from data that is prepared."""
        vocabularies, feed = self.vocabularies(), self.feed(recipe, world)
        model = recipe.build(vocabularies)
        objective = Objective(model, Continue(recipe.spaces(vocabularies)[1]))
        translator = Translator(model, vocabularies, recipe.decode).greedy()
        return objective, feed, Validation(objective, feed, translator, recipe.task)

    def feed(
        self,
        recipe: Recipe,
        world: World = World(),  # noqa: B008
    ) -> PairFeed:
        """The batches of data that is prepared."""
        shards = Shards.open(self.path / "data" / "train"), Shards.open(self.path / "data" / "valid")
        vocabularies = self.vocabularies()
        return PairFeed(*shards, vocabularies, recipe.train.tokens, recipe.seed, recipe.text.dropout, world)

    def begin(self, recipe: Recipe, fresh: bool = False) -> None:
        """Make the directory, or make sure that it is this recipe's."""
        if fresh and self.path.exists():
            self.recipe()  # never remove what is not a run
            shutil.rmtree(self.path)
        if (self.path / "recipe.toml").exists() and commit.checkpoints(self.path):
            self.check_same(recipe)  # before the first checkpoint there is nothing that could be spoilt
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(self.path, 0, error) from error
        write_text_atomically(self.path / "recipe.toml", config.dump(recipe))
        if not (self.path / "environment.json").exists():
            write_text_atomically(self.path / "environment.json", json.dumps(environment(), indent=1) + "\n")

    def check_same(self, recipe: Recipe) -> None:
        """Resuming with a changed recipe is an error that lists what differs."""
        differing = config.differences(self.recipe(), recipe)
        wrong = [line for line in differing if line.split(" ", 1)[0] not in MAY_CHANGE]
        wrong = [line for line in wrong if not line.startswith("decode.")]
        if wrong:
            may = ", ".join(sorted(MAY_CHANGE))
            raise ConfigError(
                f"{self.path} was started with another recipe: {'; '.join(wrong)}. Use --out for a new run or "
                f"--fresh to start this one anew (a run that goes on may change {may} and decode)"
            )

    def prepare(self, recipe: Recipe, tell: Tell | None = None) -> None:
        """Tokenizers and shards, unless they are there already."""
        if self.prepared(recipe):
            return
        folder = self.path / "data"
        for place in (self.path, folder):  # never beside shards that another one wrote
            for old in place.glob("tokenizer*.json"):
                old.unlink()
        counts = recipe.preparation().run(folder, *([tell] if tell else []))
        write_text_atomically(folder / "counts.json", json.dumps(counts, indent=1) + "\n")
        for file in folder.glob("tokenizer*.json"):
            file.replace(self.path / file.name)

    def prepared(self, recipe: Recipe) -> bool:
        """Whether tokenizers and shards are there, made by the settings of this recipe."""
        folder = self.path / "data"
        ready = (folder / "valid").exists() and (folder / "train").exists() and any(self.path.glob("tokenizer*.json"))
        ready = ready and not any(folder.glob("tokenizer*.json"))  # one that still lies there was on its way
        return ready and dict(Shards.open(folder / "train").about) == recipe.preparation().identity()

    def vocabularies(self) -> Vocabularies:
        """The tokenizers of this run."""
        return Vocabularies.load(self.path)


@dataclass(frozen=True)
class Validation:
    """Loss, perplexity, and the scores of translations of some validation sentences."""

    objective: Objective
    feed: PairFeed
    translator: Translator
    task: TranslateConfig

    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        metrics = surprise(self.objective, self.feed, self.feed.world)
        size = len(self.feed.held_out)
        # from all over: many files begin with their shortest sentences
        rows = np.arange(size) if size <= self.task.scored else np.arange(self.task.scored) * size // self.task.scored
        if not len(rows):
            return metrics, ()
        bleu, samples = torch.zeros(()), []
        if self.feed.world.leads:
            ours, theirs = self.feed.vocabularies.source, self.feed.vocabularies.target
            sources = [ours.decode(ids.tolist()) for ids in self.feed.held_out.take(rows, "source")]
            references = [theirs.decode(ids.tolist()) for ids in self.feed.held_out.take(rows, "target")]
            outputs = [found[0].text for found in self.translator.translate(sources)]
            bleu = torch.tensor(score.bleu(outputs, references).value)
            told = zip(sources, outputs, references, strict=True)
            samples = [{"source": a, "output": b, "reference": c} for a, b, c in told][: self.task.samples]
        # all ranks decide the same from the same numbers
        return {**metrics, "bleu": float(self.feed.world.sum({"bleu": bleu})["bleu"])}, samples


def _best_or_newest(run: Path) -> checkpoint.Found:
    """The best checkpoint of a run if it is whole, else the newest that is, and why others were refused."""
    refused: tuple[str, ...] = ()
    try:
        found = checkpoint.Found(checkpoint.best(run), ())
    except ModelError as error:
        found, refused = checkpoint.Found(None, ()), (str(error),)
    if found.checkpoint is None:
        newest = checkpoint.newest(run)
        found = checkpoint.Found(newest.checkpoint, tuple(dict.fromkeys((*refused, *newest.refused))))
    if found.checkpoint is None:
        why = f": {found.refused[0]}" if found.refused else "; train it first"
        raise ModelError(f"{run} has no finished checkpoint{why}")
    return found


class Model:
    """A trained model, ready to be used: `regard.load(path)` makes one.

    >>> Model.load("runs/none")
    Traceback (most recent call last):
    regard.errors.ModelError: runs/none is not a run: there is no such directory
    """

    def __init__(
        self,
        module: EncoderDecoder,
        vocabularies: Vocabularies,
        recipe: Recipe,
        step: int,
        refused: Sequence[str] = (),
    ) -> None:
        self.module, self.vocabularies, self.recipe, self.step = module, vocabularies, recipe, step
        self.refused = refused  # why a better or newer checkpoint could not be used
        self.ready = prepare(module)  # the same weights, laid out for use

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """The best checkpoint of a run, else its newest good one; or one checkpoint inside a run."""
        at = Path(path)
        run = at
        if not (at / "recipe.toml").exists():  # a run may itself be called "best", or lie in "checkpoints"
            run = at.parents[1] if at.parent.name == "checkpoints" else at.parent if at.name in ("best", "last") else at
        recipe = Run(run).recipe()
        found = _best_or_newest(run) if run == at else checkpoint.Found(checkpoint.read(at), ())
        chosen = found.checkpoint
        assert chosen is not None  # else a ModelError was raised
        vocabularies = Vocabularies.load(run)
        module = recipe.build(vocabularies)
        load_weights(module, chosen.tensors("model"), str(chosen.path))
        return cls(module.eval().requires_grad_(False), vocabularies, recipe, chosen.step, found.refused)

    @overload
    def translate(  # type: ignore[overload-overlap]  # a str is a sequence of str
        self, text: str, beam: int | None = ..., nbest: None = ...
    ) -> str: ...

    @overload
    def translate(self, text: Sequence[str], beam: int | None = ..., nbest: None = ...) -> list[str]: ...

    @overload
    def translate(
        self, text: str | Sequence[str], beam: int | None = ..., *, nbest: int
    ) -> list[list[Translation]]: ...

    def translate(self, text: str | Sequence[str], beam: int | None = None, nbest: int | None = None) -> Any:
        """A text, or each text of a list; with `nbest`, that many translations of each, with their scores."""
        texts = [text] if isinstance(text, str) else list(text)
        found = self.translator(beam, nbest or 1).translate(texts)
        if nbest is not None:
            return found
        best = [translations[0].text for translations in found]
        return best[0] if isinstance(text, str) else best

    def translator(self, beam: int | None = None, nbest: int = 1) -> Translator:
        """The translator behind `translate`, for prefixes, constraints and whole files."""
        beam = beam if beam is not None else max(self.recipe.decode.beam, nbest)
        return Translator(self.ready, self.vocabularies, replace(self.recipe.decode, beam=beam, n_best=nbest))

    def __repr__(self) -> str:
        shape = f"{self.recipe.model.kind}, {parameters(self.module):,} parameters, step {self.step}"
        return f"Model({shape}; {self.recipe.task.kind})"


@contextmanager
def record(
    model: Model, replace: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] | None = None
) -> Iterator[Recording]:
    """Keep every attention weight, query, key, value, score, state and logit of what `model` does inside.

    `replace` maps patterns of names to functions: what if this head saw nothing?

    >>> with record(Model.load("runs/none")) as trace:
    ...     pass
    Traceback (most recent call last):
    regard.errors.ModelError: runs/none is not a run: there is no such directory
    """
    sides = {"source": model.vocabularies.source, "target": model.vocabularies.target}
    tables = {side: tokenizer.vocabulary for side, tokenizer in sides.items()}
    spell = {side: table.__getitem__ for side, table in tables.items()}
    with tracing(model.ready, replace) as trace:
        yield Recording(trace, spell)


def environment() -> dict[str, Any]:
    """What a run was made with: versions, processor, threads.

    >>> environment()["regard"] == regard.__version__
    True
    """
    return {
        "regard": regard.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "processor": platform.machine(),
        "threads": torch.get_num_threads(),
    }
