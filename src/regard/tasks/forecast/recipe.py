"""Forecasting: the recipe, validation during training, and the trained model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from regard.device import module_device
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError
from regard.look import Saliency
from regard.look.saliency import feature_saliency
from regard.models import EncoderOnlyConfig
from regard.models.forecaster import Forecaster
from regard.models.pooling import make_pooling
from regard.objective import Objective, PerSequence
from regard.program import quote_path
from regard.progress import Progress
from regard.sequence import Tokens
from regard.spaces import Values
from regard.tasks.base import EvalRequest, Evaluation, Model, Recipe, RecipeTemplate, read_counts, with_weights
from regard.tasks.forecast import stats
from regard.tasks.forecast.backtest import Backtest, fit_linear
from regard.tasks.forecast.config import ForecastConfig
from regard.tasks.forecast.linear_init import init_from_ridge
from regard.tasks.forecast.loader import WindowLoader
from regard.tasks.forecast.plot import ForecastView, Panel
from regard.tasks.forecast.predict import Forecast, ForecastPredictor
from regard.tasks.forecast.prepare import FILE, ForecastPreparation, SeriesStats
from regard.tasks.forecast.sources import CsvSeries, SeriesSlice, WeatherSeries, read_series
from regard.tasks.forecast.time_series import ColumnSpec, MissingColumn, TimeSeries, parse_time_series
from regard.tasks.forecast.windows import Windows
from regard.train.checkpoint import Checkpoint
from regard.train.config import TrainConfig
from regard.train.schedule import CosineDecay

DataConfig = CsvSeries | WeatherSeries
SHOWN_HORIZONS = 3
"""Length of the past in a picture, in horizons."""


@dataclass(frozen=True)
class ForecastRecipe(Recipe):
    """Recipe of a forecaster."""

    verb: ClassVar[str] = "forecast"
    metrics: ClassVar[tuple[str, ...]] = ("loss", "mae", "mase")
    scores: ClassVar[tuple[str, ...]] = ("mase", "mae", "rmse", "coverage")
    artifacts: ClassVar[tuple[str, ...]] = (FILE,)

    data: DataConfig
    """source of the series"""
    model: EncoderOnlyConfig
    """the encoder"""
    task: ForecastConfig = ForecastConfig()
    """horizon, window, normalization, output distribution"""
    train: TrainConfig = TrainConfig(label_smoothing=0.0, best_metric="mase", schedule=CosineDecay(lr=1e-3, warmup=100))
    """training"""
    seed: int = 1
    """random seed"""

    def __post_init__(self) -> None:
        rows, patch, limit = self.rows, self.patch, self.model.position_limit
        if not rows:
            raise ConfigError(
                "task.window = 0 reads nothing but future covariates; name columns in data.future_covariates"
            )
        if rows % patch:
            horizon = f" (window {self.task.window} + horizon {self.task.horizon})" if self.has_covariates else ""
            raise ConfigError(f"task.patch = {patch} does not divide the {rows} rows that are read{horizon}")
        if self.model.receptive_field == "position" and patch != rows:
            raise ConfigError(
                f"task.patch = {patch}: an mlp reads each position alone, and would see nothing of the other "
                f"{rows - patch} rows; leave it out"
            )
        if limit is not None and limit < rows // patch:
            raise ConfigError(
                f"{rows // patch} positions are read, and model.max_positions = {limit} has learned positions for "
                "fewer; make them equal, or raise task.patch"
            )
        self.check()

    @property
    def has_covariates(self) -> bool:
        """Whether there are future covariates or time features."""
        return bool(self.data.future_covariates or self.data.time_features)

    @property
    def rows(self) -> int:
        """Rows that are read: the window, and the horizon if there are future covariates."""
        return self.task.window + (self.task.horizon if self.has_covariates else 0)

    @property
    def patch(self) -> int:
        """Rows per position."""
        return self.task.patch or (self.rows if self.model.receptive_field == "position" else 1)

    def preparation(self) -> ForecastPreparation:
        return ForecastPreparation(self.data, self.task)

    def build(self, series: SeriesStats) -> Forecaster:
        """The model with initial weights drawn from the seed."""
        torch.manual_seed(self.seed)
        shape = series.shape(self.task, self.patch)
        encoder = self.model.build_encoder(Values(shape.inputs))
        return Forecaster(encoder, make_pooling(self.task.pool, encoder), self.task.space(shape.outputs), shape)

    def loader(self, run: Path, group: ProcessGroup = ProcessGroup()) -> WindowLoader:  # noqa: B008
        """The loader of the prepared data."""
        series, counts = SeriesStats.load(run / FILE), read_counts(run)
        train, valid = (
            Windows.open(self.task, series, run / "data" / split, counts[split]["context"])
            for split in ("train", "valid")
        )
        batch = max(1, self.train.batch_tokens // (self.rows // self.patch))
        return WindowLoader(train, valid, batch, self.seed, group)

    def training_parts(self, run: Path, group: ProcessGroup) -> tuple[Objective, WindowLoader, ForecastValidation]:
        series, loader = SeriesStats.load(run / FILE), self.loader(run, group)
        model = self.build(series)
        init_from_ridge(model, loader.train, loader.valid)
        objective = Objective(model, PerSequence(self.task.space(model.shape.outputs)))
        return objective, loader, ForecastValidation(objective, loader, series)

    def load_model(self, run: Path, saved: Checkpoint, refused: Sequence[str] = ()) -> ForecastModel:
        series = SeriesStats.load(run / FILE)
        return ForecastModel(with_weights(self.build(series), saved), series, self, saved.step, refused)

    def statistics(self, run: Path) -> dict[str, Any]:
        return stats.statistics(SeriesStats.load(run / FILE), self.loader(run), read_counts(run))

    def format_statistics(self, statistics: Mapping[str, Any]) -> list[str]:
        return stats.format_statistics(statistics)

    def speed_unit(self) -> str:
        return "windows"

    def summary(self, run: Path) -> str:
        counts, series = read_counts(run), SeriesStats.load(run / FILE)
        rows = f"{counts['train']['rows']:,} train, {counts['valid']['rows']:,} valid rows"
        return f"{rows}, {series.index.frequency} apart       columns  {', '.join(series.names)}"

    @classmethod
    def template(cls, languages: tuple[str, str] | None) -> RecipeTemplate:
        if languages is not None:
            raise ConfigError("a series has no language; --source-lang and --target-lang are for translate")
        return RecipeTemplate(
            "the future of a series",
            {"data": "csv", "model": "recurrent", "train.optimizer": "adam", "train.schedule": "cosine"},
            {"data.train": "data/series.csv"} | STARTING,
            hints=["data/series.csv has a header and one row per time step; its end is for validation and test"],
        )

    def usage(self, run: Path) -> str:
        return f"regard {self.verb} {quote_path(run)}"


STARTING: dict[str, Any] = {
    "model.bidirectional": False,
    "model.width": 64,
    "model.dropout": 0.1,
    "train.epochs": 20.0,
    "train.schedule.lr": 1e-3,
    "train.schedule.warmup": 100,
    "train.patience": 5,
}
"""Settings of a new recipe that differ from the defaults."""


@dataclass(frozen=True)
class ForecastValidation:
    """Loss, standardized MAE and MASE on the validation data; also calibrates the intervals."""

    objective: Objective
    loader: WindowLoader
    series: SeriesStats

    @torch.no_grad()
    def __call__(self) -> tuple[Mapping[str, float], Sequence[Mapping[str, Any]]]:
        model: Any = self.objective.model
        task, space = self.loader.train.task, self.objective.task.space
        loss, found, group = torch.zeros((), dtype=torch.double), [], self.loader.group
        for numbers in self.loader.valid_rows():
            batch, unit = self.loader.valid.batch(numbers), self.loader.valid.target_scale(numbers)
            out = model.readout(model(batch.source.to(module_device(model)))).cpu()
            loss += space.nll(out, batch.target).double()
            mean, scale = task.mean_and_scale(out)
            found.append(torch.stack([(batch.target - mean).abs() * unit, scale * unit]))
        rows, outputs = len(self.loader.valid), model.shape.outputs
        mine = torch.cat(found, 1) if found else torch.zeros(2, 0, outputs)
        whole = torch.empty(2, rows, outputs)
        for rank, part in enumerate(group.gather(mine.numpy().tobytes())):
            theirs = np.frombuffer(part, np.float32).reshape(2, -1, outputs)
            whole[:, rank :: group.size] = torch.from_numpy(theirs.copy())
        channels = model.shape.channels
        error, scale = whole.view(2, rows // channels, channels, task.horizon, -1).transpose(2, 3)
        model.fit_error_quantiles((error / scale).flatten(1))
        total = float(group.sum({"loss": loss})["loss"]) / rows
        mae_C = error.flatten(2).double().mean((0, 1)).tolist()
        return {"loss": total, "mae": sum(mae_C) / len(mae_C), "mase": self.series.mase(mae_C)}, ()


class ForecastModel(Model):
    """Trained forecaster: a series in, its future rows out."""

    module: Forecaster
    recipe: ForecastRecipe

    def __init__(
        self, module: Forecaster, series: SeriesStats, recipe: ForecastRecipe, step: int, refused: Sequence[str] = ()
    ) -> None:
        super().__init__(module, recipe, step, refused)
        self.series = series

    def forecast(
        self, series: str | Path | TimeSeries | None = None, horizon: int | None = None, level: float = 0.8
    ) -> Forecast:
        """Forecast the rows after a series: a CSV file, or a TimeSeries; None: the recipe's data."""
        rows = series if isinstance(series, TimeSeries) else self.read(series)
        return self.predictor().forecast(rows, horizon, level)

    def predictor(self) -> ForecastPredictor:
        """The predictor behind `forecast`."""
        return ForecastPredictor(self.inference_module, self.recipe.task, self.series, self.recipe.data.time_features)

    @property
    def column_spec(self) -> ColumnSpec:
        """The columns that this model reads, by their names in training."""
        return replace(self.recipe.data.column_spec, columns=self.series.names)

    def read(self, series: str | Path | None = None) -> TimeSeries:
        """Read a CSV file for this model; None: the recipe's data."""
        if series is None:
            return self.recipe.data.read_all()
        with self.report_columns():
            return read_series(series, self.column_spec)

    def parse(self, text: str) -> TimeSeries:
        """Parse the lines of a CSV file, or read the file of this name."""
        name = text.strip()
        if "\n" not in name and name and Path(name).is_file():
            return self.read(name)
        return self.parse_lines(text.splitlines(), "the text")

    def parse_lines(self, lines: Iterable[str], name: str) -> TimeSeries:
        """Parse the lines of a CSV file; `name` is for messages."""
        with self.report_columns():
            return parse_time_series(lines, name, self.column_spec)

    @contextmanager
    def report_columns(self) -> Iterator[None]:
        """Context in which a file without the columns of this model is a fault of the data, not of a setting."""
        try:
            yield
        except MissingColumn as error:
            raise DataError(f"{error.fault}; this model was trained on {', '.join(self.series.names)}") from None

    def view(self, rows: TimeSeries, found: Forecast) -> ForecastView:
        """A picture of a forecast after the last rows of the past."""
        past = min(len(rows), max(SHOWN_HORIZONS * len(found.timestamps), self.recipe.task.window, 1))
        times = np.concatenate([rows.timestamps[len(rows) - past : len(rows)], found.timestamps])
        history = rows.values[-past:].T.tolist()
        sides = (found.mean.T.tolist(), found.lower.T.tolist(), found.upper.T.tolist())
        panels = tuple(Panel(*panel) for panel in zip(found.names, history, *sides, strict=True))
        title = f"{', '.join(found.names)}: {len(found.timestamps)} rows ahead"
        return ForecastView(title, found.index.column, tuple(found.index.format_times(times)), panels, found.level)

    def predict_text(self, text: str) -> str:
        return self.forecast(self.parse(text)).csv()

    def predict_parts(self, text: str) -> tuple[str, dict[str, Any]]:
        """The forecast as CSV; and past, expected values and intervals of each column."""
        rows = self.parse(text)
        found = self.forecast(rows)
        return found.csv(), {"window": self.recipe.task.window, **self.view(rows, found).to_dict()}

    def run_for_trace(self, text: str) -> str:
        self.predict_text(text)
        return text

    def saliency(self, text: str) -> Saliency:
        """Attribution of each column's mean over the horizon to the rows that were read, in the column's own unit."""
        rows = self.parse(text)
        task, series = self.recipe.task, self.series
        rows = rows.extend(task.horizon, self.recipe.data.time_features)
        windows = Windows(task, *series.transform(SeriesSlice(rows)))
        found = []
        for column in range(windows.channels):
            source, normalizer = windows.source(np.array([len(rows)]), np.array([column]))
            source = source.to(module_device(self.module))
            found.append(feature_saliency(self.horizon_mean, source).sum(2) * normalizer.scale[0].T)
        unit = np.array([series.target_scaler.scale[i] for i in series.varying])
        positions = [str(i - task.window) for i in range(task.window)]
        positions += [f"+{i + 1}" for i in range(self.recipe.rows - task.window)]
        names = [series.names[i] for i in series.varying]
        title = f"{', '.join(names)}, the mean of {task.horizon} rows"
        return Saliency(title, positions, np.concatenate(found) * unit[:, None], names, ("column", "row"))

    def horizon_mean(self, source: Tokens) -> Tensor:
        """(C,): the mean forecast over the horizon for each column of one window."""
        mean_1A, _ = self.recipe.task.mean_and_scale(self.module.readout(self.module(source)))
        return mean_1A.view(self.recipe.task.horizon, -1).mean(0)

    def untrained_module(self) -> Forecaster:
        return self.recipe.build(self.series).eval()

    def id_to_token(self) -> Mapping[str, Callable[[int], str]]:
        return {}

    def evaluate(self, request: EvalRequest, progress: Progress) -> Evaluation:
        """MASE, MAE, RMSE and coverage of a backtest, next to those of the baselines."""
        file, task = request.one_file(), self.recipe.task
        data = self.recipe.data.scored_on(file) if file else self.recipe.data
        split = request.choose_split(data.splits())
        name = str(file) if file else split
        with self.report_columns() if file else nullcontext():
            rows = data.read_split(split, max(task.window, self.series.season))
        linear = fit_linear(self.recipe.data, task, self.series, progress)
        backtest = Backtest(task, self.series, rows, name)
        scores, table = backtest.evaluate(self.inference_module, linear, progress)
        lines = table.text().splitlines()
        return Evaluation(name, scores, summary_lines=lines, detail=table.to_dict(), unit="windows")
