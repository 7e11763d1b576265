"""The job of generating: its recipe, how it is tried while it trains, and the model that is used."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from regard.config import plain
from regard.data import Shards
from regard.data.series import Numbers
from regard.data.texts import Shakespeare, Texts
from regard.decode import DecodeConfig
from regard.distributed import World
from regard.errors import ConfigError, DataError
from regard.look import Reading
from regard.metrics import perplexity
from regard.models import ModelConfig
from regard.models.base import EncoderDecoder
from regard.objective import Objective, Stream, Tell
from regard.spaces import Words
from regard.tasks.base import Asked, Evaluation, Fetching, Model, Preparation, Recipe, Starter, filled
from regard.tasks.generate.material import Material, Measured, Written
from regard.tasks.generate.modality import Script
from regard.tasks.generate.numbers import FILE
from regard.tasks.generate.predict import Writer
from regard.tasks.generate.prepare import GenerateConfig, StreamFeed, nothing, surprises, through
from regard.text import TokenizerConfig
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.trainer import surprise

DataConfig = Texts | Shakespeare | Numbers


@dataclass(frozen=True)
class GenerateRecipe(Recipe):
    """Everything that decides how a language model, or a model of a series, learns.

    >>> GenerateRecipe.kind()
    'generate'
    """

    verb: ClassVar[str] = "generate"
    metrics: ClassVar[tuple[str, ...]] = ("loss", "ppl", "bits")
    scores: ClassVar[tuple[str, ...]] = ("perplexity", "bits", "loss")
    kept: ClassVar[tuple[str, ...]] = ("tokenizer*.json", FILE)

    data: DataConfig = field(default_factory=Shakespeare)
    """where the text, or the series, comes from; without this section, Shakespeare's plays"""
    model: ModelConfig = field(kw_only=True)
    """what learns"""
    task: GenerateConfig = GenerateConfig()
    """what is asked"""
    text: TokenizerConfig = TokenizerConfig(kind="char", normal="none")
    """how text becomes tokens"""
    train: TrainConfig = TrainConfig(smoothing=0.0)
    """how it learns"""
    decode: DecodeConfig = DecodeConfig(sample=True, beam=1)
    """how what follows is drawn"""
    seed: int = 1
    """another seed, another run"""

    def __post_init__(self) -> None:
        window, tokens, reach = self.task.window, self.train.tokens, self.model.reach
        if tokens < window:
            raise ConfigError(
                f"train.tokens = {tokens} is less than task.window = {window}: not one stream fits into a batch"
            )
        if reach is not None and reach < window:
            raise ConfigError(
                f"task.window = {window} is more than the {reach} places of model.longest; make them equal"
            )
        if self.text.dropout:
            raise ConfigError(
                f"text.dropout = {self.text.dropout}: a running text is cut into tokens once and for all; set it to 0"
            )
        self.material.check_select(self.train.select)
        self.material.check_drawn(self.decode)
        condition = plain(self.model).get("condition", "none")
        if condition != "none":
            raise ConfigError(
                f'model.condition = "{condition}" waits for a vector to go on from, and what is generated goes on from '
                'its prompt alone; use "none"'
            )
        with torch.device("meta"):
            model = self.model.build(Words(8), Words(8))
        if model.encoder.width:
            raise ConfigError(
                f'model.kind = "{self.model.kind}" reads a source, and what is generated has none; use rnnlm or gpt'
            )
        self.check()

    @property
    def material(self) -> Material:
        """What the data is made of: text, or numbers."""
        return Measured(self.data) if isinstance(self.data, Numbers) else Written(self.data, self.text)

    def preparation(self) -> Preparation:
        return self.material.preparation()

    def script(self, run: Path) -> Script:
        """What stands at each place."""
        return self.material.script(run)

    def build(self, script: Script) -> EncoderDecoder:
        """The model with fresh weights, drawn by the seed."""
        torch.manual_seed(self.seed)
        space = script.space(self.train.smoothing)
        return self.model.build(space, space)

    def feed(self, run: Path, world: World = World()) -> StreamFeed:  # noqa: B008
        """The windows of data that is prepared."""
        script, window = self.script(run), self.task.window
        train, valid = (script.sequence(Shards.open(run / "data" / split)) for split in ("train", "valid"))
        return StreamFeed(train, valid, window, self.rows, self.seed, world)

    @property
    def rows(self) -> int:
        """Streams side by side."""
        return self.train.tokens // self.task.window

    def parts(self, run: Path, world: World) -> tuple[Objective, StreamFeed, Validation]:
        script, feed = self.script(run), self.feed(run, world)
        objective = Objective(self.build(script), Stream(script.space(self.train.smoothing)))
        writer = self.writer(objective.model, script, self.decode)
        if self.task.prompt:
            writer.check(self.task.prompt)  # else it would be told after the first epoch
        return objective, feed, Validation(objective, feed, script, writer, self.task, counted(run)["valid"])

    def writer(self, model: Any, script: Script, config: DecodeConfig) -> Writer:
        """What writes with a model; one that can hand nothing on reads windows as long as those it was trained on."""
        carries = model.decoder.carry(model.start(nothing(1))) is not None
        return script.writer(model, config, None if carries else self.task.window)

    def open(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> GenerationModel:
        script = self.script(run)
        return GenerationModel(filled(self.build(script), saved), script, self, saved.step, refused)

    @classmethod
    def starter(cls, languages: tuple[str, str] | None) -> Starter:
        if languages is not None:
            raise ConfigError("a text that goes on has one language; --source-lang and --target-lang are for translate")
        return Starter(
            "text that goes on",
            {"data": "text", "model": "rnnlm", "train.optimizer": "adam", "train.schedule": "cosine"},
            {"data.train": "data/book.txt"} | STARTING,
            hints=["data/book.txt is the text to learn from; its last tenth is kept apart for validation"],
        )

    def statistics(self, run: Path) -> dict[str, Any]:
        feed = self.feed(run)
        batches = {"rows": feed.rows, "window": feed.window, "batches": feed.epoch()}
        return {"vocabulary": {"kind": self.unit, "size": self.script(run).size}, **counted(run), "epoch": batches}

    def told(self, statistics: Mapping[str, Any]) -> list[str]:
        words, epoch = statistics["vocabulary"], statistics["epoch"]
        return [
            f"vocabulary  {words['kind']} {words['size']}",
            *(self.material.told(split, statistics[split]) for split in ("train", "valid")),
            f"epoch       {epoch['batches']:,} batches of {epoch['rows']} windows of {epoch['window']} places",
        ]

    @property
    def unit(self) -> str:
        """What stands at a place, in a word."""
        return self.material.unit

    def described(self, run: Path) -> str:
        feed = self.feed(run)
        size = self.script(run).size
        return f"{len(feed.train):,} train, {len(feed.held_out):,} valid places       tokens  {self.unit} {size}"

    def origin(self) -> str:
        return self.data.attribution()

    def fetch(self, progress: Fetching | None = None) -> None:
        if isinstance(self.data, Shakespeare):
            self.data.fetch(progress)


STARTING: dict[str, Any] = {
    "model.width": 256,
    "model.dropout": 0.2,
    "train.epochs": 20.0,
    "train.schedule.lr": 2e-3,
    "train.schedule.warmup": 100,
}
"""Where a new recipe leaves the defaults."""


def counted(run: Path) -> dict[str, dict[str, int]]:
    """What preparation counted in each split.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as run:
    ...     Path(run, "data").mkdir()
    ...     _ = Path(run, "data", "counts.json").write_text('{"train": {"places": 7}}')
    ...     counted(Path(run))["train"]["places"]
    7
    """
    found: dict[str, dict[str, int]] = json.loads((run / "data" / "counts.json").read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True)
class Validation:
    """Nats a token, perplexity, bits a character, and samples of what the model writes.

    >>> import tempfile, regard
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = Path(folder, "sea.txt")
    ...     _ = text.write_text("the sea, the sea, " * 400)
    ...     settings = ["task.kind=generate", "data.kind=text", f"data.train={text}", "model.kind=rnnlm"]
    ...     recipe = regard.Recipe.read(None, [*settings, "model.width=8", "train.tokens=512", "task.length=5"])
    ...     run = regard.Run(Path(folder, "run"))
    ...     run.prepare(recipe)
    ...     metrics, samples = run.parts(recipe)[2]()
    >>> list(metrics), list(samples[0])
    (['loss', 'ppl', 'bits'], ['prompt', 'output'])
    """

    objective: Objective
    feed: StreamFeed
    script: Script
    writer: Writer
    task: GenerateConfig
    counts: Mapping[str, int]

    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        metrics = self.script.metrics(surprise(self.objective, self.feed, self.feed.world), self.counts)
        if not self.feed.world.leads or not self.task.samples:
            return metrics, ()
        prompt = self.task.prompt or self.script.opening(self.feed.held_out)
        written = self.writer.generate(prompt, self.task.length, self.task.samples)
        return metrics, [{"prompt": prompt, "output": found.text} for found in written]


class GenerationModel(Model):
    """A trained language model, or a model of a series: a beginning in, what follows out.

    >>> import tempfile, regard
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = Path(folder, "sea.txt")
    ...     _ = text.write_text("the sea, the sea, " * 400)
    ...     settings = ["task.kind=generate", "data.kind=text", f"data.train={text}", "model.kind=rnnlm"]
    ...     recipe = regard.Recipe.read(None, [*settings, "model.width=8", "train.tokens=512", "train.steps=1"])
    ...     _ = regard.Run(Path(folder, "run")).train(recipe)
    ...     model = regard.load(Path(folder, "run"))
    >>> len(model.generate("the", length=7, seed=1))
    7
    """

    module: EncoderDecoder
    recipe: GenerateRecipe

    def __init__(
        self,
        module: EncoderDecoder,
        script: Script,
        recipe: GenerateRecipe,
        step: int,
        refused: Sequence[str] = (),
    ) -> None:
        super().__init__(module, recipe, step, refused)
        self.script = script

    def generate(
        self,
        prompt: str = "",
        length: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> str:
        """What follows a prompt: at most `length` places, drawn by the recipe's settings where nothing else is said."""
        writer = self.writer(temperature, top_k, top_p, seed)
        return writer.generate(prompt, length or self.recipe.task.length)[0].text

    def stream(
        self,
        prompt: str = "",
        length: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> Iterator[str]:
        """The same, piece by piece, as it is written."""
        return self.writer(temperature, top_k, top_p, seed).stream(prompt, length or self.recipe.task.length)

    def writer(
        self,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> Writer:
        """What writes behind `generate`, for many samples and their scores; a temperature of 0 takes the likeliest."""
        if temperature is not None and not temperature >= 0:
            raise ConfigError(f"temperature = {temperature} must be at least 0, which takes the likeliest")
        given: dict[str, Any] = {"temperature": temperature or None, "top_k": top_k, "top_p": top_p, "seed": seed}
        config = replace(self.recipe.decode, **{name: value for name, value in given.items() if value is not None})
        if temperature == 0:
            config = replace(config, sample=False)
        self.recipe.material.check_drawn(config)
        return self.recipe.writer(self.ready, self.script, config)

    def answer(self, text: str) -> str:
        return self.generate(text)

    def reading(self, text: str) -> Reading:
        """A text as it is: nothing is written."""
        tokens, words = self.writer().read(text)
        return Reading(nothing(1), tokens, self.script.space(), {"target": [words]})

    def observe(self, text: str) -> str:
        self.reading(text).read(self.ready)
        return text

    def initial(self) -> EncoderDecoder:
        return self.recipe.build(self.script).eval()

    def spell(self) -> Mapping[str, Callable[[int], str]]:
        return self.script.spell()

    @torch.no_grad()
    def evaluate(self, asked: Asked, tell: Tell) -> Evaluation:
        """Perplexity and bits a character; of numbers, nats a place. In streams as validation has them."""
        if asked.beam is not None:
            raise ConfigError("--beam: a text is scored as it is, nothing is searched for")
        if len(asked.files) > 1:
            raise ConfigError(f"--data: expected one file, got {len(asked.files)}")
        data = self.recipe.data.scored_on(asked.files[0]) if asked.files else self.recipe.data
        split = asked.split or ("test" if "test" in data.splits() else "valid")
        name = str(asked.files[0]) if asked.files else split
        sequence, counts = self.script.read(data, split)
        if len(sequence) < 2:
            raise DataError(f"{name}: there are {len(sequence)} places to score; at least 2 are needed")
        unread = self.recipe.material.unread(name, counts, self.met(sequence))
        task, carry, windows, places = Stream(self.script.space()), None, [], []
        for number, batch in enumerate(through(sequence, self.recipe.task.window, self.recipe.rows)):
            found, carry = surprises(self.module, task, batch, carry)
            windows += found
            places += [(row, number) for row, length in enumerate(batch.target.lengths.tolist()) if length > 1]
            tell("scoring", sum(count for _, count in windows), len(sequence) - 1)
        nats, asked_for = zip(*windows, strict=True)
        scores = self.script.scores(perplexity(nats, asked_for), counts)
        detail = {"unknown": counts["unknown"]} if unread else {}
        parts = [window for _, window in sorted(zip(places, windows, strict=True))]  # stream by stream is the text
        return Evaluation(name, scores, told=unread, detail=detail, unit="windows", parts=parts)

    def met(self, sequence: np.ndarray) -> set[str]:
        """The tokens that stand in a sequence, as they are spelled; numbers are not."""
        return {spell(int(id)) for spell in self.spell().values() for id in np.unique(sequence)}
