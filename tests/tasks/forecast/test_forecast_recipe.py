"""The forecasting recipe: encoders, horizons and windows, intervals, evaluation, recording."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.distributed import ProcessGroup
from regard.errors import ConfigError, ModelError
from regard.progress import no_progress
from regard.run import Run, load
from regard.tasks import EvalRequest, Recipe
from regard.tasks.forecast.recipe import ForecastModel, ForecastRecipe, ForecastValidation
from regard.tasks.forecast.sources import WeatherSeries

SMALL = ["task.kind=forecast", "task.horizon=4", "task.window=12", "train.steps=4", "train.validate_every=4",
         "train.batch_tokens=96", "train.schedule.kind=constant", "train.schedule.lr=0.01"]  # fmt: skip
MLP = ["model.kind=mlp", "model.width=8"]
READERS = {
    "mlp": MLP,
    "tanh": ["model.kind=recurrent", "model.cell=tanh", "model.width=8", "model.bidirectional=false"],
    "lstm": ["model.kind=recurrent", "model.cell=lstm", "model.width=8"],
    "gru": ["model.kind=recurrent", "model.cell=gru", "model.width=8", "task.patch=4", "task.pool=mean"],
    "convolution": ["model.kind=convolution", "model.width=8", "model.layers=1"],
    "transformer": ["model.kind=transformer", "model.layers=1", "model.width=8", "model.heads=2", "model.ffn_width=16"],
}


def write_csv(folder: Path, rows: int = 200) -> Path:
    """Two columns that hang together, one that never changes, and a holiday now and then."""
    lines = ["date,load,price,still,holiday"]
    for i in range(rows):
        holiday = int(i % 9 == 4)
        load = 20 + 5 * math.sin(i / 3) + 3 * holiday
        lines.append(f"{np.datetime64('2024-01-01') + i},{load:.4f},{load / 2 + math.cos(i / 5):.4f},7,{holiday}")
    (folder / "load.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "load.csv"


def recipe(path: Path, *settings: str, model: list[str] = MLP) -> ForecastRecipe:
    found = Recipe.read(None, [*SMALL, "data.kind=csv", f"data.train={path}", *model, *settings])
    assert isinstance(found, ForecastRecipe)
    return found


def trained(folder: Path, *settings: str, model: list[str] = MLP) -> ForecastModel:
    Run(folder / "run").train(recipe(write_csv(folder), *settings, model=model))
    found = load(folder / "run")
    assert isinstance(found, ForecastModel)
    return found


FUTURE_COVARIATES = ['data.future_covariates=["holiday"]', 'data.time_features=["weekday"]']


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("covariates", [[], FUTURE_COVARIATES], ids=["past only", "known future"])
def test_every_encoder_learns_and_forecasts(reader: str, covariates: list[str], tmp_path: Path) -> None:
    model = trained(tmp_path, *covariates, model=READERS[reader])
    rows = model.read()
    if covariates:  # the last rows are made the future, of which the holidays are known
        rows = replace(rows, values=rows.values[:-8])
    found = model.forecast(rows, horizon=7)
    assert found.mean.shape == (7, 3 if covariates else 4) and np.isfinite(found.upper).all()
    scores = model.evaluate(EvalRequest(split="valid"), no_progress).scores
    assert [score.name for score in scores] == ["mase", "mae", "rmse", "coverage"]
    assert 70 <= scores[3].value <= 100  # on the very windows that the intervals were made by


@pytest.mark.parametrize(
    ("window", "horizon", "settings"),
    [
        (1, 6, []),  # one to many
        (12, 1, []),  # many to one
        (12, 6, []),  # many to many
        (1, 1, []),
        (12, 6, ["task.channels=independent"]),
        (12, 6, ["task.channels=independent", "task.linear_skip=per-column"]),
        (12, 6, ["task.head=point"]),
        (12, 6, ["task.head=laplace", "task.center=mean", "task.linear_skip=none"]),
        (0, 1, ["task.center=none", 'data.future_covariates=["holiday", "price"]', 'data.columns=["load"]']),  # a table
    ],
)
def test_every_window_and_horizon_is_forecast(window: int, horizon: int, settings: list[str], tmp_path: Path) -> None:
    model = trained(tmp_path, f"task.window={window}", f"task.horizon={horizon}", *settings)
    rows = model.read()
    if window == 0:
        rows = replace(rows, values=rows.values[:-3])
    found = model.forecast(rows)
    assert found.mean.shape == (horizon, len(model.series.names))
    assert (found.lower <= found.mean).all() and (found.mean <= found.upper).all()
    assert model.evaluate(EvalRequest(), no_progress).unit == "windows"


def test_a_table_without_a_past_is_learned_row_by_row(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    y = np.where(x[:, 0] > 0, 3.0, -3.0) + x[:, 1]  # no line can tell
    rows = "".join(f"{a:.4f},{b:.4f},{c:.4f}\n" for (a, b), c in zip(x, y, strict=True))
    (tmp_path / "t.csv").write_text("a,b,y\n" + rows)
    table = [
        "task.window=0",
        "task.horizon=1",
        "task.center=none",
        'data.future_covariates=["a", "b"]',
        "train.steps=300",
        "train.validate_every=300",
    ]
    Run(tmp_path / "run").train(recipe(tmp_path / "t.csv", *table, model=["model.kind=mlp", "model.width=32"]))
    found = load(tmp_path / "run").evaluate(EvalRequest(), no_progress)
    assert found.detail["MAE"]["model"][0] < 0.6 * found.detail["MAE"]["linear"][0]


def test_rows_with_only_covariates_are_forecast(tmp_path: Path) -> None:
    model = trained(tmp_path, 'data.future_covariates=["holiday"]', 'data.columns=["load"]')
    text = write_csv(tmp_path).read_text()
    future = "".join(f"{np.datetime64('2024-01-01') + i},,,,{int(i == 201)}\n" for i in range(200, 204))
    (tmp_path / "next.csv").write_text(text + future)
    found = model.forecast(tmp_path / "next.csv")
    assert found.index.format_times(found.timestamps) == ["2024-07-19", "2024-07-20", "2024-07-21", "2024-07-22"]
    (tmp_path / "other.csv").write_text(text + future.replace(",1\n", ",0\n"))
    assert not np.allclose(model.forecast(tmp_path / "other.csv").mean, found.mean)


def test_validation_is_the_same_for_any_number_of_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of three processes evaluates its own windows; together they give all windows, in order."""
    built = recipe(write_csv(tmp_path), "task.channels=independent")
    Run(tmp_path / "run").prepare(built)
    objective, loader, validate = built.training_parts(tmp_path / "run", ProcessGroup())
    objective.eval()
    single, _ = validate()
    quantiles, messages = objective.model.error_quantiles.clone(), {}

    def send(group: ProcessGroup, message: bytes) -> list[bytes]:
        messages[group.rank] = message
        raise InterruptedError  # the other ranks have not run yet

    monkeypatch.setattr(ProcessGroup, "gather", send)
    ranks = [
        ForecastValidation(objective, replace(loader, group=ProcessGroup(rank, 3)), validate.series)
        for rank in range(3)
    ]
    for rank in ranks:
        with pytest.raises(InterruptedError):
            rank()
    monkeypatch.setattr(ProcessGroup, "gather", lambda group, message: [messages[rank] for rank in range(3)])
    monkeypatch.setattr(ProcessGroup, "sum", lambda group, values: values)
    for rank in ranks:
        metrics, _ = rank()
        assert metrics["mae"] == pytest.approx(single["mae"]) and metrics["mase"] == pytest.approx(single["mase"])
        torch.testing.assert_close(objective.model.error_quantiles, quantiles)


def test_intervals_are_stored_with_the_weights(tmp_path: Path) -> None:
    model = trained(tmp_path)
    assert model.module.error_quantiles.shape == (100, 4 * 3) and (model.module.error_quantiles[79] > 0).all()
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy/data")  # a model directory is portable
    other = load(tmp_path / "copy")
    assert isinstance(other, ForecastModel)
    assert other.forecast(write_csv(tmp_path)).csv() == model.forecast(write_csv(tmp_path)).csv()


def test_a_text_is_lines_of_a_csv_file_or_the_name_of_one(tmp_path: Path) -> None:
    model = trained(tmp_path)
    path = write_csv(tmp_path)
    assert model.predict_text(path.read_text()) == model.predict_text(str(path)) == model.forecast(path).csv()
    assert model.run_for_trace(str(path)) == str(path)


@pytest.mark.parametrize("settings", [[], ["task.channels=independent"], FUTURE_COVARIATES])
def test_saliency_of_a_linear_model_adds_up_to_the_forecast(settings: list[str], tmp_path: Path) -> None:
    model = trained(tmp_path, *settings)
    width = model.module.encoder.width
    with torch.no_grad():
        model.module.readout.weight[:, :width] = 0  # the network says nothing
        model.module.readout.bias.zero_()
        if model.module.column_embedding is not None:  # nor the name of a column
            model.module.column_embedding.weight.zero_()
    lines = write_csv(tmp_path).read_text().splitlines()
    if settings == FUTURE_COVARIATES:
        lines[190:] = [",".join([line.split(",")[0], "", "", "", line[-1]]) for line in lines[190:]]
    text = "\n".join(lines)
    view = model.saliency(text)
    assert view.columns[0] == "-12" and (view.columns[-1] == "+4") == (settings == FUTURE_COVARIATES)
    rows = model.parse(text)
    found = replace(model.predictor(), model=model.module).forecast(rows)
    moving = list(model.series.varying)
    np.testing.assert_allclose(view.scores.sum(1), (found.mean - rows.values[-1])[:, moving].mean(0), atol=2e-4)


def test_states_are_recorded(tmp_path: Path) -> None:
    model = trained(tmp_path, model=READERS["gru"])
    with model.record() as trace:
        model.predict_text(str(write_csv(tmp_path)))
    assert any(name.name.endswith("hidden") for name in trace.contents())
    assert trace.find("features")[0].data.shape == (1, 16 + 12 * 3)  # both directions, and three columns that move
    assert trace.states().values.shape[0] > 0


def test_other_data_under_the_same_run_is_refused(tmp_path: Path) -> None:
    built = recipe(write_csv(tmp_path))
    Run(tmp_path / "run").train(built)
    path = tmp_path / "load.csv"
    path.write_text(path.read_text().replace("2024-01-01,20.", "2024-01-01,25."))
    shutil.rmtree(tmp_path / "run/data")
    with pytest.raises(ModelError, match=r"gave another series\.json than its checkpoints were trained with"):
        Run(tmp_path / "run").train(built)


def test_beam_search_and_two_files_are_refused(tmp_path: Path) -> None:
    model = trained(tmp_path)
    for request, message in (
        (EvalRequest(beam=4), "--beam: this task does not use beam search; leave --beam out"),
        (EvalRequest((Path("a"), Path("b"))), "--data: expected one file, got 2"),
    ):
        with pytest.raises(ConfigError) as caught:
            model.evaluate(request, no_progress)
        assert str(caught.value) == message


def test_learned_positions_that_are_too_few_are_refused(tmp_path: Path) -> None:
    few = [*READERS["transformer"], "model.positions=learned", "model.max_positions=8"]
    with pytest.raises(ConfigError) as caught:
        recipe(write_csv(tmp_path), model=few)
    assert str(caught.value) == (
        "12 positions are read, and model.max_positions = 8 has learned positions for fewer; make them equal, or raise "
        "task.patch"
    )
    recipe(write_csv(tmp_path), "task.patch=2", model=few)


def test_the_weather_is_downloaded_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that holds the file that would be downloaded."""
    fetched_names: list[str] = []
    hours = "".join(f"2010/01/{1 + i // 24:02} {i % 24:02}:00,{40 + i % 24}\n" for i in range(240) if i != 26)
    (tmp_path / "t.csv").write_text("date,temp\n" + hours)

    def fake_fetch(dataset: object, cache: object = None, progress: object = None) -> Path:
        fetched_names.append(dataset.name)  # type: ignore[attr-defined]
        return tmp_path / "t.csv"

    monkeypatch.setattr("regard.data.sources.fetch_dataset", fake_fetch)
    built = Recipe.read(None, [*SMALL, "data.kind=weather", *MLP])
    built.fetch()
    assert fetched_names == ["seattle-temps"]
    run = Run(tmp_path / "run")
    run.prepare(built)
    lines = "\n".join(built.format_statistics(built.statistics(run.path)))
    assert "frequency   1 hour, a season is 24 rows" in lines and "1 empty cells filled" in lines
    assert built.data_credit() == "NOAA. License: public data"
    assert isinstance(built.data, WeatherSeries) and json.loads((run.path / "series.json").read_text())["season"] == 24
