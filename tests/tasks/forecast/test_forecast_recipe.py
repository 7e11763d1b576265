"""The job of forecasting from Python: every shape of question, every reader, what is kept, and what is recorded."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.distributed import World
from regard.errors import ConfigError, ModelError
from regard.objective import silent
from regard.run import Run, load
from regard.tasks import Asked, Recipe
from regard.tasks.forecast.recipe import ForecastModel, ForecastRecipe, Validation
from regard.tasks.forecast.sources import Weather

SMALL = ["task.kind=forecast", "task.horizon=4", "task.window=12", "train.steps=4", "train.every=4", "train.tokens=96",
         "train.schedule.kind=constant", "train.schedule.lr=0.01"]  # fmt: skip
MLP = ["model.kind=mlp", "model.width=8"]
READERS = {
    "mlp": MLP,
    "tanh": ["model.kind=recurrent", "model.cell=tanh", "model.width=8", "model.bidirectional=false"],
    "lstm": ["model.kind=recurrent", "model.cell=lstm", "model.width=8"],
    "gru": ["model.kind=recurrent", "model.cell=gru", "model.width=8", "task.patch=4", "task.pool=mean"],
    "convolution": ["model.kind=convolution", "model.width=8", "model.layers=1"],
    "transformer": ["model.kind=transformer", "model.layers=1", "model.width=8", "model.heads=2", "model.inner=16"],
}


def written(folder: Path, rows: int = 200) -> Path:
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
    Run(folder / "run").train(recipe(written(folder), *settings, model=model))
    found = load(folder / "run")
    assert isinstance(found, ForecastModel)
    return found


KNOWN = ['data.known=["holiday"]', 'data.calendar=["weekday"]']


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("known", [[], KNOWN], ids=["past alone", "known future"])
def test_every_reader_learns_and_foretells(reader: str, known: list[str], tmp_path: Path) -> None:
    model = trained(tmp_path, *known, model=READERS[reader])
    rows = model.read()
    if known:  # the last rows are made the future, of which the holidays are known
        rows = replace(rows, values=rows.values[:-8])
    found = model.forecast(rows, horizon=7)
    assert found.middle.shape == (7, 3 if known else 4) and np.isfinite(found.upper).all()
    scores = model.evaluate(Asked(split="valid"), silent).scores
    assert [score.name for score in scores] == ["mase", "mae", "rmse", "coverage"]
    assert 70 <= scores[3].value <= 100  # on the very windows that the intervals were made by


@pytest.mark.parametrize(
    ("window", "horizon", "settings"),
    [
        (1, 6, []),  # one to many
        (12, 1, []),  # many to one
        (12, 6, []),  # many to many
        (1, 1, []),
        (12, 6, ["task.columns=apart"]),
        (12, 6, ["task.columns=apart", "task.line=each"]),
        (12, 6, ["task.head=point"]),
        (12, 6, ["task.head=laplace", "task.around=mean", "task.line=none"]),
        (0, 1, ["task.around=nothing", 'data.known=["holiday", "price"]', 'data.columns=["load"]']),  # a table
    ],
)
def test_every_shape_of_question_is_answered(window: int, horizon: int, settings: list[str], tmp_path: Path) -> None:
    model = trained(tmp_path, f"task.window={window}", f"task.horizon={horizon}", *settings)
    rows = model.read()
    if window == 0:
        rows = replace(rows, values=rows.values[:-3])
    found = model.forecast(rows)
    assert found.middle.shape == (horizon, len(model.gauge.names))
    assert (found.lower <= found.middle).all() and (found.middle <= found.upper).all()
    assert model.evaluate(Asked(), silent).unit == "windows"


def test_a_table_without_a_past_is_learnt_row_by_row(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    y = np.where(x[:, 0] > 0, 3.0, -3.0) + x[:, 1]  # no line can tell
    rows = "".join(f"{a:.4f},{b:.4f},{c:.4f}\n" for (a, b), c in zip(x, y, strict=True))
    (tmp_path / "t.csv").write_text("a,b,y\n" + rows)
    table = [
        "task.window=0",
        "task.horizon=1",
        "task.around=nothing",
        'data.known=["a", "b"]',
        "train.steps=300",
        "train.every=300",
    ]
    Run(tmp_path / "run").train(recipe(tmp_path / "t.csv", *table, model=["model.kind=mlp", "model.width=32"]))
    found = load(tmp_path / "run").evaluate(Asked(), silent)
    assert found.detail["MAE"]["model"][0] < 0.6 * found.detail["MAE"]["linear"][0]


def test_rows_that_have_only_what_is_known_are_foretold(tmp_path: Path) -> None:
    model = trained(tmp_path, 'data.known=["holiday"]', 'data.columns=["load"]')
    text = written(tmp_path).read_text()
    future = "".join(f"{np.datetime64('2024-01-01') + i},,,,{int(i == 201)}\n" for i in range(200, 204))
    (tmp_path / "next.csv").write_text(text + future)
    found = model.forecast(tmp_path / "next.csv")
    assert found.clock.written(found.stamps) == ["2024-07-19", "2024-07-20", "2024-07-21", "2024-07-22"]
    (tmp_path / "other.csv").write_text(text + future.replace(",1\n", ",0\n"))
    assert not np.allclose(model.forecast(tmp_path / "other.csv").middle, found.middle)


def test_validation_is_the_same_for_any_number_of_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of three processes tries its own windows; put together they are all of them, in their order."""
    made = recipe(written(tmp_path), "task.columns=apart")
    Run(tmp_path / "run").prepare(made)
    objective, feed, validate = made.parts(tmp_path / "run", World())
    objective.eval()
    alone, _ = validate()
    kept, sent = objective.model.off.clone(), {}

    def send(world: World, message: bytes) -> list[bytes]:
        sent[world.rank] = message
        raise InterruptedError  # nobody is there to gather with yet

    monkeypatch.setattr(World, "gather", send)
    ranks = [Validation(objective, replace(feed, world=World(rank, 3)), validate.gauge) for rank in range(3)]
    for rank in ranks:
        with pytest.raises(InterruptedError):
            rank()
    monkeypatch.setattr(World, "gather", lambda world, message: [sent[rank] for rank in range(3)])
    monkeypatch.setattr(World, "sum", lambda world, values: values)
    for rank in ranks:
        metrics, _ = rank()
        assert metrics["mae"] == pytest.approx(alone["mae"]) and metrics["mase"] == pytest.approx(alone["mase"])
        torch.testing.assert_close(objective.model.off, kept)


def test_intervals_belong_to_the_weights_and_are_kept_with_them(tmp_path: Path) -> None:
    model = trained(tmp_path)
    assert model.module.off.shape == (100, 4 * 3) and (model.module.off[79] > 0).all()
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy/data")  # a model directory is portable
    other = load(tmp_path / "copy")
    assert isinstance(other, ForecastModel)
    assert other.forecast(written(tmp_path)).csv() == model.forecast(written(tmp_path)).csv()


def test_a_text_is_lines_of_a_csv_file_or_the_name_of_one(tmp_path: Path) -> None:
    model = trained(tmp_path)
    path = written(tmp_path)
    assert model.answer(path.read_text()) == model.answer(str(path)) == model.forecast(path).csv()
    assert model.observe(str(path)) == str(path)


@pytest.mark.parametrize("settings", [[], ["task.columns=apart"], KNOWN])
def test_saliency_adds_up_to_the_forecast_where_the_model_is_a_line(settings: list[str], tmp_path: Path) -> None:
    model = trained(tmp_path, *settings)
    width = model.module.encoder.width
    with torch.no_grad():
        model.module.readout.weight[:, :width] = 0  # the network says nothing
        model.module.readout.bias.zero_()
        if model.module.which is not None:  # nor the name of a column
            model.module.which.weight.zero_()
    lines = written(tmp_path).read_text().splitlines()
    if settings == KNOWN:
        lines[190:] = [",".join([line.split(",")[0], "", "", "", line[-1]]) for line in lines[190:]]
    text = "\n".join(lines)
    view = model.saliency(text)
    assert view.columns[0] == "-12" and (view.columns[-1] == "+4") == (settings == KNOWN)
    rows = model.parsed(text)
    found = replace(model.foreteller(), model=model.module).forecast(rows)
    moving = list(model.gauge.moving)
    np.testing.assert_allclose(view.scores.sum(1), (found.middle - rows.values[-1])[:, moving].mean(0), atol=2e-4)


def test_what_a_reader_held_is_recorded(tmp_path: Path) -> None:
    model = trained(tmp_path, model=READERS["gru"])
    with model.record() as trace:
        model.answer(str(written(tmp_path)))
    assert any(name.name.endswith("hidden") for name in trace.names())
    assert trace.find("features")[0].data.shape == (1, 16 + 12 * 3)  # both directions, and three columns that move
    assert trace.states().values.shape[0] > 0


def test_other_data_under_the_same_run_is_refused(tmp_path: Path) -> None:
    made = recipe(written(tmp_path))
    Run(tmp_path / "run").train(made)
    path = tmp_path / "load.csv"
    path.write_text(path.read_text().replace("2024-01-01,20.", "2024-01-01,25."))
    shutil.rmtree(tmp_path / "run/data")
    with pytest.raises(ModelError, match=r"gives another series\.json than its checkpoints were trained with"):
        Run(tmp_path / "run").train(made)


def test_a_search_and_two_files_are_refused(tmp_path: Path) -> None:
    model = trained(tmp_path)
    for asked, message in (
        (Asked(beam=4), "--beam: a forecast is said at once, nothing is searched for"),
        (Asked((Path("a"), Path("b"))), "--data: expected one file, got 2"),
    ):
        with pytest.raises(ConfigError) as caught:
            model.evaluate(asked, silent)
        assert str(caught.value) == message


def test_learned_positions_that_are_too_few_are_refused(tmp_path: Path) -> None:
    few = [*READERS["transformer"], "model.positions=learned", "model.longest=8"]
    with pytest.raises(ConfigError) as caught:
        recipe(written(tmp_path), model=few)
    assert str(caught.value) == (
        "12 places are read, and model.longest = 8 has learned positions for fewer; make them equal, or raise "
        "task.patch"
    )
    recipe(written(tmp_path), "task.patch=2", model=few)


def test_the_weather_is_fetched_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that holds what the registry would have sent."""
    asked: list[str] = []
    hours = "".join(f"2010/01/{1 + i // 24:02} {i % 24:02}:00,{40 + i % 24}\n" for i in range(240) if i != 26)
    (tmp_path / "t.csv").write_text("date,temp\n" + hours)

    def fetched(dataset: object, cache: object = None, progress: object = None) -> Path:
        asked.append(dataset.name)  # type: ignore[attr-defined]
        return tmp_path / "t.csv"

    monkeypatch.setattr("regard.tasks.forecast.sources.fetch", fetched)
    made = Recipe.read(None, [*SMALL, "data.kind=weather", *MLP])
    made.fetch()
    assert asked == ["seattle-temps"]
    run = Run(tmp_path / "run")
    run.prepare(made)
    told = "\n".join(made.told(made.statistics(run.path)))
    assert "step     1 hour, a season is 24" in told and "1 empty cells filled" in told
    assert made.origin() == "NOAA. Licence: public data"
    assert isinstance(made.data, Weather) and json.loads((run.path / "series.json").read_text())["season"] == 24
