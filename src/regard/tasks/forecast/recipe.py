"""The job of forecasting: its recipe, how it is tried while it trains, and the model that is used."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from regard.data.time_series import Timeline, Wanted, parse_timeline
from regard.distributed import World
from regard.errors import ConfigError
from regard.look import Saliency
from regard.look.forecasts import ForecastView, Panel
from regard.look.saliency import by_numbers
from regard.models import ReaderConfig
from regard.models.forecaster import Forecaster
from regard.models.pooling import pool_of
from regard.objective import Objective, Tell, Whole
from regard.sequence import Tokens
from regard.spaces import Values
from regard.tasks.base import Asked, Evaluation, Fetching, Model, Recipe, Starter, filled
from regard.tasks.forecast.backtest import Track, fitted, scored
from regard.tasks.forecast.linear_init import straighten
from regard.tasks.forecast.predict import Forecast, Foreteller
from regard.tasks.forecast.prepare import FILE, ForecastConfig, Gauge, TimedPreparation
from regard.tasks.forecast.sources import Stretch, Timed, Weather, read_timeline
from regard.tasks.forecast.windows import WindowFeed, Windows
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.schedule import Cosine

DataConfig = Timed | Weather
SHOWN = 3
"""horizons of the past that a picture shows"""


@dataclass(frozen=True)
class ForecastRecipe(Recipe):
    """Everything that decides how a forecaster learns.

    >>> ForecastRecipe.kind()
    'forecast'
    """

    verb: ClassVar[str] = "forecast"
    metrics: ClassVar[tuple[str, ...]] = ("loss", "mae", "mase")
    scores: ClassVar[tuple[str, ...]] = ("mase", "mae", "rmse", "coverage")
    kept: ClassVar[tuple[str, ...]] = (FILE,)

    data: DataConfig
    """where the series comes from"""
    model: ReaderConfig
    """what reads the past"""
    task: ForecastConfig = ForecastConfig()
    """what is asked"""
    train: TrainConfig = TrainConfig(smoothing=0.0, select="mase", schedule=Cosine(lr=1e-3, warmup=100))
    """how it learns"""
    seed: int = 1
    """another seed, another run"""

    def __post_init__(self) -> None:
        rows, patch, reach = self.rows, self.patch, self.model.reach
        if not rows:
            raise ConfigError("task.window = 0 reads nothing but what is known; name columns in data.known")
        if rows % patch:
            raise ConfigError(f"task.patch = {patch} does not divide the {rows} rows that are read{self.why()}")
        if self.model.scope == "itself" and patch != rows:
            raise ConfigError(
                f"task.patch = {patch}: an mlp sees one place alone, and would know nothing of the other "
                f"{rows - patch} rows; leave it out"
            )
        if reach is not None and reach < rows // patch:
            raise ConfigError(
                f"{rows // patch} places are read, and model.longest = {reach} has learned positions for fewer; make "
                "them equal, or raise task.patch"
            )
        self.check()

    def why(self) -> str:
        """Where the number of rows that are read comes from, if the horizon is among them."""
        task = self.task
        return f" (window {task.window} + horizon {task.horizon}, of which something is known)" if self.foreseen else ""

    @property
    def foreseen(self) -> bool:
        """Whether something of the future is known."""
        return bool(self.data.wanted.known or self.data.wanted.calendar)

    @property
    def rows(self) -> int:
        """Rows that are read: the window, and the horizon where something of it is known."""
        return self.task.window + (self.task.horizon if self.foreseen else 0)

    @property
    def patch(self) -> int:
        """Rows at a place."""
        return self.task.patch or (self.rows if self.model.scope == "itself" else 1)

    def preparation(self) -> TimedPreparation:
        return TimedPreparation(self.data, self.task)

    def build(self, gauge: Gauge) -> Forecaster:
        """The model with fresh weights, drawn by the seed."""
        torch.manual_seed(self.seed)
        shape = gauge.shape(self.task, self.patch)
        encoder = self.model.build_encoder(Values(shape.inputs))
        return Forecaster(encoder, pool_of(self.task.pool, encoder), self.task.space(shape.answers), shape)

    def feed(self, run: Path, world: World = World()) -> WindowFeed:  # noqa: B008
        """The windows of data that is prepared."""
        gauge, counts = Gauge.load(run / FILE), counted(run)
        train, valid = (
            Windows.opened(self.task, gauge, run / "data" / split, counts[split]["past"])
            for split in ("train", "valid")
        )
        batch = max(1, self.train.tokens // (self.rows // self.patch))
        return WindowFeed(train, valid, batch, self.seed, world)

    def parts(self, run: Path, world: World) -> tuple[Objective, WindowFeed, Validation]:
        gauge, feed = Gauge.load(run / FILE), self.feed(run, world)
        model = self.build(gauge)
        straighten(model, feed.train, feed.held_out)
        objective = Objective(model, Whole(self.task.space(model.shape.answers)))
        return objective, feed, Validation(objective, feed, gauge)

    def open(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> ForecastModel:
        gauge = Gauge.load(run / FILE)
        return ForecastModel(filled(self.build(gauge), saved), gauge, self, saved.step, refused)

    @classmethod
    def starter(cls, languages: tuple[str, str] | None) -> Starter:
        if languages is not None:
            raise ConfigError("a series has no language; --source-lang and --target-lang are for translate")
        return Starter(
            "a series that goes on",
            {"data": "csv", "model": "recurrent", "train.optimizer": "adam", "train.schedule": "cosine"},
            {"data.train": "data/series.csv"} | STARTING,
            hints=["data/series.csv is a row a time, with names on top; its end is kept apart for validation and test"],
        )

    def statistics(self, run: Path) -> dict[str, Any]:
        feed, gauge = self.feed(run), Gauge.load(run / FILE)
        still = [name for i, name in enumerate(gauge.names) if i not in gauge.moving]
        return {
            "columns": list(gauge.names),
            "known": list(gauge.known.names),
            "never change": still,
            "step": str(gauge.clock.step),
            "season": gauge.season,
            **counted(run),
            "epoch": {"windows": len(feed.train), "rows": feed.rows, "batches": feed.epoch()},
        }

    def told(self, statistics: Mapping[str, Any]) -> list[str]:
        epoch, lines = statistics["epoch"], [f"columns  {', '.join(statistics['columns'])}"]
        for name in ("known", "never change"):
            lines += [f"{name:<7}  {', '.join(statistics[name])}"] if statistics[name] else []
        lines += [f"step     {statistics['step']}, a season is {statistics['season']}"]
        for split in ("train", "valid"):
            counts = statistics[split]
            filled = f", {counts['carried']:,} empty cells filled" if counts["carried"] else ""
            lines.append(f"{split:<7}  {counts['rows']:,} rows{filled}")
        batches = f"{epoch['batches']:,} batches of {epoch['rows']}"
        return [*lines, f"epoch    {epoch['windows']:,} windows in {batches}"]

    def described(self, run: Path) -> str:
        counts, gauge = counted(run), Gauge.load(run / FILE)
        rows = f"{counts['train']['rows']:,} train, {counts['valid']['rows']:,} valid rows, {gauge.clock.step} apart"
        return f"{rows}       columns  {', '.join(gauge.names)}"

    def origin(self) -> str:
        return self.data.attribution()

    def fetch(self, progress: Fetching | None = None) -> None:
        if isinstance(self.data, Weather):
            self.data.fetch(progress)

    def usage(self, run: Path) -> str:
        return f"regard {self.verb} {run}"


STARTING: dict[str, Any] = {
    "model.bidirectional": False,
    "model.width": 64,
    "model.dropout": 0.1,
    "train.epochs": 20.0,
    "train.schedule.lr": 1e-3,
    "train.schedule.warmup": 100,
    "train.patience": 5,
}
"""Where a new recipe leaves the defaults."""


def counted(run: Path) -> dict[str, dict[str, int]]:
    """What preparation counted in each split.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as run:
    ...     Path(run, "data").mkdir()
    ...     _ = Path(run, "data", "counts.json").write_text('{"valid": {"rows": 7, "past": 3}}')
    ...     counted(Path(run))["valid"]["past"]
    3
    """
    found: dict[str, dict[str, int]] = json.loads((run / "data" / "counts.json").read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True)
class Validation:
    """Loss, MAE in deviations of training, MASE; and how far answers were off, for the intervals.

    >>> Validation.__dataclass_fields__["gauge"].type
    'Gauge'
    """

    objective: Objective
    feed: WindowFeed
    gauge: Gauge

    @torch.no_grad()
    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        model: Any = self.objective.model
        task, space = self.feed.train.task, self.objective.task.space
        loss, found, world = torch.zeros((), dtype=torch.double), [], self.feed.world
        for numbers in self.feed.valid_rows():
            batch, unit = self.feed.held_out.batch(numbers), self.feed.held_out.units(numbers)
            out = model.readout(model(batch.source))
            loss += space.surprise(out, batch.target).double()
            middle, doubt = task.parts(out)
            found.append(torch.stack([(batch.target - middle).abs() * unit, doubt * unit]))
        rows, answers = len(self.feed.held_out), model.shape.answers
        mine = torch.cat(found, 1) if found else torch.zeros(2, 0, answers)
        whole = torch.empty(2, rows, answers)
        for rank, part in enumerate(world.gather(mine.numpy().tobytes())):
            theirs = np.frombuffer(part, np.float32).reshape(2, -1, answers)
            whole[:, rank :: world.size] = torch.from_numpy(theirs.copy())
        off, doubt = whole.view(2, rows // model.shape.apart, model.shape.apart, task.horizon, -1).transpose(2, 3)
        model.learn_off((off / doubt).flatten(1))
        total = float(world.sum({"loss": loss})["loss"]) / rows
        off_C = off.flatten(2).double().mean((0, 1)).tolist()
        return {"loss": total, "mae": sum(off_C) / len(off_C), "mase": self.gauge.mase(off_C)}, ()


class ForecastModel(Model):
    """A trained forecaster: a series in, what comes next out.

    >>> import regard
    >>> regard.load("runs/none").forecast("load.csv")
    Traceback (most recent call last):
    regard.errors.ModelError: runs/none is not a run: there is no such directory
    """

    module: Forecaster
    recipe: ForecastRecipe

    def __init__(
        self, module: Forecaster, gauge: Gauge, recipe: ForecastRecipe, step: int, refused: Sequence[str] = ()
    ) -> None:
        super().__init__(module, recipe, step, refused)
        self.gauge = gauge

    def forecast(
        self, series: str | Path | Timeline | None = None, horizon: int | None = None, level: float = 0.8
    ) -> Forecast:
        """What comes after the end of a series: a CSV file, or rows of one; none: after all of the recipe's data."""
        rows = series if isinstance(series, Timeline) else self.read(series)
        return self.foreteller().forecast(rows, horizon, level)

    def foreteller(self) -> Foreteller:
        """What forecasts behind `forecast`."""
        return Foreteller(self.ready, self.recipe.task, self.gauge, self.recipe.data.wanted.calendar)

    @property
    def wanted(self) -> Wanted:
        """The columns that this model reads, by the names they had in training."""
        given = self.recipe.data.wanted
        return replace(given, columns=self.gauge.names)

    def read(self, series: str | Path | None = None) -> Timeline:
        """A CSV file as this model reads it; none: all of the recipe's data."""
        return self.recipe.data.whole() if series is None else read_timeline(series, self.wanted)

    def parsed(self, text: str) -> Timeline:
        """The lines of a CSV file, or the name of one."""
        name = text.strip()
        if "\n" not in name and name and Path(name).is_file():
            return self.read(name)
        return parse_timeline(text.splitlines(), "the text", self.wanted)

    def view(self, rows: Timeline, found: Forecast) -> ForecastView:
        """A forecast with the end of the past that it goes on from."""
        past = min(len(rows), max(SHOWN * len(found.stamps), self.recipe.task.window, 1))
        stamps = np.concatenate([rows.stamps[len(rows) - past : len(rows)], found.stamps])
        ends = rows.values[-past:].T.tolist()
        sides = (found.middle.T.tolist(), found.lower.T.tolist(), found.upper.T.tolist())
        panels = tuple(Panel(*panel) for panel in zip(found.names, ends, *sides, strict=True))
        title = f"{', '.join(found.names)}: {len(found.stamps)} rows ahead"
        return ForecastView(title, found.clock.column, tuple(found.clock.written(stamps)), panels, found.level)

    def answer(self, text: str) -> str:
        return self.forecast(self.parsed(text)).csv()

    def observe(self, text: str) -> str:
        """Forecast; what is looked at is how."""
        self.answer(text)
        return text

    def saliency(self, text: str) -> Saliency:
        """What each row that was read did for the mean of the horizon, of each column, in the column's own unit."""
        rows = self.parsed(text)
        task, moving = self.recipe.task, self.gauge.moving
        rows = rows.ahead(task.horizon, self.recipe.data.wanted.calendar)
        windows = Windows(task, *self.gauge.scaled(Stretch(rows)))
        found = []
        for column in range(windows.apart):
            source, measure = windows.source(np.array([len(rows)]), np.array([column]))
            found.append(by_numbers(self.meant, source).sum(2) * measure.unit[0].T)
        unit = np.array([self.gauge.values.deviation[i] for i in moving])
        places = [str(i - task.window) for i in range(task.window)]
        places += [f"+{i + 1}" for i in range(self.recipe.rows - task.window)]
        names = [self.gauge.names[i] for i in moving]
        title = f"{', '.join(names)}, the mean of {task.horizon} rows"
        return Saliency(title, places, np.concatenate(found) * unit[:, None], names, ("column", "row"))

    def meant(self, source: Tokens) -> Any:
        """(C,): the mean of the horizon that is expected of each column of one window."""
        middle_1A, _ = self.recipe.task.parts(self.module.readout(self.module(source)))
        return middle_1A.view(self.recipe.task.horizon, -1).mean(0)

    def initial(self) -> Forecaster:
        return self.recipe.build(self.gauge).eval()

    def spell(self) -> Mapping[str, Callable[[int], str]]:
        return {}

    def evaluate(self, asked: Asked, tell: Tell) -> Evaluation:
        """MASE, MAE, RMSE and coverage of forecasts from one row after the other, beside those of simple ones."""
        if asked.beam is not None:
            raise ConfigError("--beam: a forecast is said at once, nothing is searched for")
        if len(asked.files) > 1:
            raise ConfigError(f"--data: expected one file, got {len(asked.files)}")
        data = self.recipe.data.scored_on(asked.files[0]) if asked.files else self.recipe.data
        split = asked.split or ("test" if "test" in data.splits() else "valid")
        name = str(asked.files[0]) if asked.files else split
        before = max(self.recipe.task.window, self.gauge.season)
        track = Track(self.recipe.task, self.gauge, data.stretch(split, before), name)
        linear = fitted(self.recipe.data, self.recipe.task, self.gauge, tell)
        scores, beside = scored(self.ready, track, linear, tell)
        return Evaluation(name, scores, told=beside.text().splitlines(), detail=beside.to_dict(), unit="windows")
