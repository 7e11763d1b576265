"""Windows of a series: inputs, targets and order; baselines; no window sees the future."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.data.scaling import StandardScaler
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError, ModelError
from regard.models.forecaster import Forecaster
from regard.models.mlp import MLPConfig
from regard.progress import no_progress
from regard.sequence import last
from regard.spaces import Values
from regard.tasks.forecast.baselines import LinearBaseline, inputs, naive, seasonal_naive, targets
from regard.tasks.forecast.config import ForecastConfig
from regard.tasks.forecast.linear_init import init_from_ridge
from regard.tasks.forecast.loader import WindowLoader
from regard.tasks.forecast.predict import Forecast, ForecastPredictor, predict_windows
from regard.tasks.forecast.prepare import ForecastPreparation, SeriesStats
from regard.tasks.forecast.sources import CsvSeries, SeriesSlice
from regard.tasks.forecast.time_series import ColumnSpec, TimeSeries, parse_time_series
from regard.tasks.forecast.timestamps import Frequency, TimeIndex
from regard.tasks.forecast.windows import Windows

TASK = ForecastConfig(horizon=3, window=5)


def table(rows: int = 40, columns: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)


def windows(task: ForecastConfig = TASK, rows: int = 40, known: int = 0, first: int = 0) -> Windows:
    return Windows(task, table(rows), table(rows, known, seed=1), first)


def make_series(rows: int = 30, more: str = "") -> TimeSeries:
    lines = ["day,load,still,price"]
    lines += [f"2024-01-{i + 1:02},{np.sin(i / 2) * 10 + 50:.4f},7,{i % 3}" for i in range(rows)]
    return parse_time_series([*lines, *filter(None, [more])], "a.csv", ColumnSpec())


def model_of(task: ForecastConfig, stats: SeriesStats, patch: int) -> Forecaster:
    torch.manual_seed(0)
    shape = stats.shape(task, patch)
    encoder = MLPConfig(width=8).build_encoder(Values(shape.inputs))
    return Forecaster(encoder, last, task.space(shape.outputs), shape).eval()


# Inputs and targets


@pytest.mark.parametrize("channels", ["joint", "independent"])
@pytest.mark.parametrize("center", ["last", "mean", "none"])
@pytest.mark.parametrize("unit", ["series", "window"])
@pytest.mark.parametrize("known", [0, 2])
def test_no_window_sees_the_future(channels: str, center: str, unit: str, known: int) -> None:
    task = replace(TASK, channels=channels, center=center, scale_by=unit)
    found = windows(task, known=known)
    origins, column = np.array([5, 20]), np.array([0, 1])
    before = found.source(origins, column)[0].data
    changed = found.values.copy()
    for origin in origins:
        changed[origin : origin + task.horizon] += 100
    after = replace(found, values=changed).source(origins, column)[0].data
    assert before.equal(after)
    changed[origins - 1] += 1
    assert not replace(found, values=changed).source(origins, column)[0].data.equal(before)


@pytest.mark.parametrize("center", ["last", "mean"])
def test_centering_removes_drift(center: str) -> None:
    found = windows(replace(TASK, center=center))
    drifted = replace(found, values=found.values + 1000)
    rows = np.arange(len(found))
    one, other = found.batch(rows), drifted.batch(rows)
    torch.testing.assert_close(one.source.data, other.source.data, atol=1e-3, rtol=0)
    torch.testing.assert_close(one.target, other.target, atol=1e-3, rtol=0)


@pytest.mark.parametrize("center", ["last", "mean"])
@pytest.mark.parametrize("channels", ["joint", "independent"])
def test_scaling_by_the_window_removes_changes_of_variance(center: str, channels: str) -> None:
    found = windows(replace(TASK, center=center, scale_by="window", channels=channels))
    livelier = replace(found, values=found.values * 1000)
    found = replace(found, values=found.values * 100)  # both far above the smallest scale
    rows = np.arange(len(found))
    one, other = found.batch(rows), livelier.batch(rows)
    torch.testing.assert_close(one.source.data, other.source.data, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(one.target, other.target, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found.target_scale(rows) * 10, livelier.target_scale(rows), atol=0, rtol=1e-4)
    assert one.target.shape == found.target_scale(rows).shape


@pytest.mark.parametrize("unit", ["series", "window"])
@pytest.mark.parametrize("channels", ["joint", "independent"])
def test_forecasts_are_denormalized_to_units_of_training(unit: str, channels: str) -> None:
    task = replace(TASK, scale_by=unit, channels=channels, head="gaussian")
    rows = make_series()
    stats = SeriesStats.fit(SeriesSlice(rows), season=3)
    model, found = model_of(task, stats, patch=5), Windows(task, *stats.transform(SeriesSlice(rows)))
    middle, scale = predict_windows(model, found, found.origins)
    batch = found.batch(np.arange(len(found)))
    mean, scale_out = task.mean_and_scale(model.readout(model(batch.source)))
    off = ((batch.target - mean) * found.target_scale(np.arange(len(found)))).abs()
    off_NHC, sure_NHC = (
        part.detach().numpy().reshape(len(found.origins), found.channels, task.horizon, -1).swapaxes(1, 2)
        for part in (off, scale_out)
    )
    off_NHC, sure_NHC = off_NHC.reshape(middle.shape), sure_NHC.reshape(middle.shape)
    expected = found.values[found.origins[:, None] + np.arange(task.horizon)]
    np.testing.assert_allclose(np.abs(expected - middle), off_NHC, atol=1e-5)
    spread = (scale / sure_NHC).std((0, 1))
    assert (spread > 1e-3).all() if unit == "window" else (spread < 1e-6).all()


def test_a_constant_window_is_not_blown_up_and_one_row_has_no_deviation() -> None:
    task = replace(TASK, scale_by="window")
    constant = Windows(task, np.zeros((20, 1), np.float32), np.zeros((20, 0), np.float32))
    assert constant.target_scale(np.array([0])).unique().tolist() == [pytest.approx(0.1)]
    with pytest.raises(ConfigError) as caught:
        ForecastConfig(window=1, scale_by="window")
    assert str(caught.value) == 'window = 1 has no deviation to scale by; use scale_by = "series"'


def test_independent_channels_are_the_columns_one_by_one() -> None:
    joint, independent = windows(), windows(replace(TASK, channels="independent"))
    assert len(independent) == 2 * len(joint)
    whole = joint.batch(np.array([7]))
    for column in range(2):
        one = independent.batch(np.array([2 * 7 + column]))
        assert one.source.data[..., 0].equal(whole.source.data[..., column])
        assert one.target.equal(whole.target.view(1, 3, 2)[..., column])
        assert one.source.data.shape == (1, 5, 1) and one.source.segments.tolist() == [[column] * 5]


def test_covariates_of_the_horizon_are_read_with_empty_values() -> None:
    found = windows(known=2)
    source = found.source(np.array([9]), np.array([0]))[0].data[0]
    assert source.shape == (5 + 3, 2 + 2 + 1)
    assert not source[5:, :2].any()
    assert source[:, 2:4].equal(torch.from_numpy(found.covariates[4:12]))
    assert source[:, 4].tolist() == [0.0] * 5 + [1.0] * 3


def test_an_empty_window_reads_covariates_alone() -> None:
    found = windows(ForecastConfig(horizon=1, window=0, center="none"), known=2)
    batch = found.batch(np.array([4]))
    assert batch.source.data.shape == (1, 1, 2 + 2 + 1) and not batch.source.data[..., :2].any()
    assert batch.target.equal(torch.from_numpy(found.values[4:5]))
    with pytest.raises(ConfigError) as caught:
        ForecastConfig(window=0)
    assert str(caught.value) == 'window = 0 has no row to center on; use center = "none", not "last"'


def test_every_row_of_the_split_is_a_target_and_no_context_row_is() -> None:
    assert windows(first=20).origins.tolist() == list(range(20, 38))
    assert windows().origins[0] == 5
    assert windows(rows=8).origins.tolist() == [5]
    assert len(windows(rows=7)) == 0


# Order of the windows


def test_every_window_comes_once_per_epoch_in_a_new_order() -> None:
    loader = WindowLoader(windows(), windows(), rows=7, seed=3)
    epochs = [
        torch.cat(
            [
                batch.target
                for batch, _ in islice(loader.train_batches({"epoch": epoch, "batch": 0}), loader.batches_per_epoch())
            ]
        )
        for epoch in (0, 1)
    ]
    expected = windows().batch(np.arange(len(windows()))).target
    for epoch in epochs:
        assert sorted(map(tuple, epoch.tolist())) == sorted(map(tuple, expected.tolist()))
    assert not epochs[0].equal(epochs[1]) and not epochs[0].equal(expected)


def test_the_loader_resumes_at_a_position() -> None:
    loader = WindowLoader(windows(), windows(), rows=7)
    whole = list(islice(loader.train_batches(None), 12))
    for i in (0, 4, 9):
        again = list(islice(loader.train_batches(whole[i][1]), 2))
        assert again[0][0].target.equal(whole[i + 1][0].target) and again[1][1] == whole[i + 2][1]


@pytest.mark.parametrize("size", [2, 3])
def test_processes_share_each_batch(size: int) -> None:
    single = WindowLoader(windows(), windows(rows=12), rows=7)
    ranks = [replace(single, group=ProcessGroup(rank, size)) for rank in range(size)]
    whole = single.batch(1, 2).target
    for rank, loader in enumerate(ranks):
        assert loader.batch(1, 2).target.equal(whole[rank::size])
    held_out = torch.cat([batch.target for batch in single.valid_batches()])
    shares = [torch.cat([batch.target for batch in loader.valid_batches()]) for loader in ranks]
    for rank, share in enumerate(shares):
        assert share.equal(held_out[rank::size])


@pytest.mark.parametrize(("train", "valid", "message"), [
    (7, 40, "there are 7 rows to train on, and one window takes 8: 5 of the past and 3 of the horizon; lower "
     "task.window or task.horizon, or give more data"),
    (40, 7, "there are 7 rows to validate on, and one window takes 8: 5 of the past and 3 of the horizon; lower "
     "task.window or task.horizon, or give data.split a larger second part"),
])  # fmt: skip
def test_too_few_rows_for_one_window_are_refused(train: int, valid: int, message: str) -> None:
    with pytest.raises(DataError) as caught:
        WindowLoader(windows(rows=train), windows(rows=valid))
    assert str(caught.value) == message


# Statistics of a series


def test_the_scaler_is_fitted_to_training_only(tmp_path: Path) -> None:
    made = []
    for name, later in (("a", 0.0), ("b", 1e6)):
        lines = [f"{np.sin(i):.6f},{i % 4}\n" if i < 70 else f"{later + i},{i * 3}\n" for i in range(100)]
        (tmp_path / f"{name}.csv").write_text("".join(lines))
        data = CsvSeries(train=str(tmp_path / f"{name}.csv"), split=(70, 10, 20))
        ForecastPreparation(data, TASK).run(tmp_path / name, no_progress)
        made.append((tmp_path / name / "series.json").read_text())
    assert made[0] == made[1]


def test_a_constant_column_is_forecast_by_its_last_value() -> None:
    rows = make_series()
    stats = SeriesStats.fit(SeriesSlice(rows), season=3)
    assert stats.varying == (0, 2) and stats.seasonal_error[1] == 0
    values, _ = stats.transform(SeriesSlice(rows))
    assert np.isfinite(values).all() and values.shape == (30, 2)
    found = ForecastPredictor(model_of(TASK, stats, 5), TASK, stats).forecast(rows, horizon=7)
    assert found.mean[:, 1].tolist() == found.lower[:, 1].tolist() == found.upper[:, 1].tolist() == [7.0] * 7


def test_a_constant_series_is_refused() -> None:
    rows = parse_time_series(["1,7"] * 30, "a.csv", ColumnSpec())
    with pytest.raises(DataError) as caught:
        SeriesStats.fit(SeriesSlice(rows), season=1)
    assert str(caught.value) == "every column is constant in training (1, 2); there is nothing to forecast"
    with pytest.raises(DataError) as caught:
        SeriesStats.fit(SeriesSlice(make_series(5)), season=None)
    assert str(caught.value) == (
        "there are 5 training rows, less than one season of 7; set task.season, or give more rows"
    )


def test_the_statistics_are_saved_and_loaded(tmp_path: Path) -> None:
    stats = SeriesStats.fit(SeriesSlice(make_series()), season=3)
    stats.save(tmp_path / "series.json")
    assert SeriesStats.load(tmp_path / "series.json") == stats
    (tmp_path / "series.json").write_text("{}")
    with pytest.raises(ModelError, match=r"series\.json cannot be read: expected the statistics of a series"):
        SeriesStats.load(tmp_path / "series.json")


# Forecasts


def test_a_longer_forecast_begins_with_the_shorter_one() -> None:
    rows = make_series()
    stats = SeriesStats.fit(SeriesSlice(rows), season=3)
    model = model_of(TASK, stats, 5)
    model.fit_error_quantiles(torch.rand(50, 6, generator=torch.Generator().manual_seed(1)))
    predictor = ForecastPredictor(model, TASK, stats)
    short, long = predictor.forecast(rows), predictor.forecast(rows, horizon=8)
    np.testing.assert_allclose(long.mean[:3], short.mean)
    going_on = replace(
        rows,
        values=np.concatenate([rows.values, short.mean]),
        covariates=np.zeros((33, 0)),
        timestamps=np.concatenate([rows.timestamps, short.timestamps]),
    )
    np.testing.assert_allclose(long.mean[3:6], predictor.forecast(going_on).mean, rtol=1e-4)
    half = long.upper - long.mean
    assert (half[3:6, [0, 2]] > half[2, [0, 2]]).all() and len(long.timestamps) == 8
    assert long.index.format_times(long.timestamps)[:3] == ["2024-01-31", "2024-02-01", "2024-02-02"]


def test_a_diverging_forecast_is_an_error() -> None:
    rows = make_series()
    stats = SeriesStats.fit(SeriesSlice(rows), season=3)
    model = model_of(TASK, stats, 5)
    model.fit_error_quantiles(torch.rand(50, 6, generator=torch.Generator().manual_seed(1)))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1e4)
    with pytest.raises(ModelError) as caught:
        ForecastPredictor(model, TASK, stats).forecast(rows, horizon=3000)
    assert re.fullmatch(
        r"the autoregressive forecast diverges after [\d,]+ rows; ask for a shorter horizon, or train the model longer",
        str(caught.value),
    )


def test_numbers_are_written_with_float32_precision() -> None:
    clock, one = TimeIndex("row", "", Frequency(1)), np.array([[31.51403659, 1234567.89]])
    half = np.array([[31.514036593, 5e4]])
    found = Forecast(clock, np.array([9]), ("load", "people"), one, one - half, one + half, 0.8)
    assert found.csv().splitlines()[1] == "9,31.51404,0,63.02807,1234568,1184568,1284568"


@pytest.mark.parametrize("head", ["point", "gaussian", "laplace"])
@pytest.mark.parametrize("channels", ["joint", "independent"])
def test_predictions_do_not_depend_on_other_rows(head: str, channels: str) -> None:
    rows = make_series()
    task = replace(TASK, head=head, channels=channels)
    stats = SeriesStats.fit(SeriesSlice(rows), season=3)
    model, whole = model_of(task, stats, 5), Windows(task, *stats.transform(SeriesSlice(rows)))
    middle, scale = predict_windows(model, whole, whole.origins)
    assert middle.shape == scale.shape == (len(whole.origins), 3, 2) and (scale > 0).all()
    for i, origin in enumerate(whole.origins):
        one = predict_windows(model, whole, np.array([origin]))
        np.testing.assert_allclose(one[0][0], middle[i], atol=1e-5)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.8, 0.95])
def test_an_interval_has_the_width_of_the_error_quantile(level: float) -> None:
    stats = SeriesStats.fit(SeriesSlice(make_series()), season=3)
    model = model_of(TASK, stats, 5)
    off = torch.rand(2000, 6, generator=torch.Generator().manual_seed(0)).square() * torch.arange(1, 7)
    model.fit_error_quantiles(off)
    inside = (off <= model.interval_half_width(level)).double().mean(0)
    torch.testing.assert_close(inside, torch.full((6,), level, dtype=torch.double), atol=0.006, rtol=0)


def test_with_few_errors_an_interval_is_conservative() -> None:
    stats = SeriesStats.fit(SeriesSlice(make_series()), season=3)
    model, held = model_of(TASK, stats, 5), []
    draw = torch.Generator().manual_seed(0)
    for _ in range(2000):
        off = torch.rand(10, 6, generator=draw)
        model.fit_error_quantiles(off[:9])
        held.append((off[9] <= model.interval_half_width(0.8)).double().mean())
    assert 0.79 < torch.stack(held).mean() < 0.85


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"horizon": 0}, ConfigError, "horizon = 0 must be at least 1 and at most 100,000"),
        ({"horizon": 10**9}, ConfigError, "horizon = 1000000000 must be at least 1 and at most 100,000"),
        ({"level": 1.0}, ConfigError, "level = 1.0 must be above 0 and below 1, such as 0.8"),
    ],
)
def test_an_invalid_forecast_is_refused(changes: dict, kind: type[Exception], message: str) -> None:
    stats = SeriesStats.fit(SeriesSlice(make_series()), season=3)
    with pytest.raises(kind) as caught:
        ForecastPredictor(model_of(TASK, stats, 5), TASK, stats).forecast(make_series(), **changes)
    assert str(caught.value) == message


def test_a_series_that_does_not_fit_the_model_is_refused() -> None:
    stats = SeriesStats.fit(SeriesSlice(make_series()), season=3)
    predictor = ForecastPredictor(model_of(TASK, stats, 5), TASK, stats)

    def refusal(rows: TimeSeries) -> str:
        with pytest.raises(DataError) as caught:
            predictor.forecast(rows)
        return str(caught.value)

    assert refusal(make_series(4)) == "there are 4 rows, and this model reads the last 5; give at least as many"
    other = parse_time_series([f"{i}" for i in range(9)], "b.csv", ColumnSpec())
    assert refusal(other) == (
        "the series has the columns 1, training had load, still, price; name those that both have in data.columns"
    )
    hours = ["day,load,still,price", *(f"2024-01-01 {i:02}:00,1,2,{i}" for i in range(9))]
    assert (
        refusal(parse_time_series(hours, "c.csv", ColumnSpec())) == "rows are 1 hour apart, in training they were 1 day"
    )


# Baselines


def test_naive_is_the_last_row_and_seasonal_naive_the_row_a_season_ago() -> None:
    found = windows()
    origins = np.array([7, 12])
    for i, origin in enumerate(origins):
        assert (naive(found, origins)[i] == found.values[origin - 1]).all()
        for step in range(3):
            assert (seasonal_naive(found, origins, 4)[i, step] == found.values[origin + step - 4]).all()
            assert (seasonal_naive(found, origins, 2)[i, step] == found.values[origin - 2 + step % 2]).all()


def test_the_regression_is_the_least_squares_solution() -> None:
    values = table(300, 2).astype(float).cumsum(0)
    train, valid = (Windows(TASK, part, np.zeros((len(part), 0))) for part in (values[:200], values[200:]))
    expected = targets(train, train.origins) - values[train.origins - 1][:, None]
    for column, line in enumerate(LinearBaseline.fit(train, valid).columns):
        x, y = inputs(train, train.origins, line.reads), expected[..., column]
        held = np.sqrt(line.penalty) * np.eye(x.shape[1])[:-1]  # all but what is added
        least = np.linalg.lstsq(np.concatenate([x, held]), np.concatenate([y, np.zeros((len(held), 3))]), rcond=None)
        np.testing.assert_allclose(line.weights, least[0], atol=1e-7)


def test_a_regression_reads_other_columns_where_that_helps_on_validation() -> None:
    rng = np.random.default_rng(1)
    leads = rng.normal(size=500)
    both = np.stack([leads, np.concatenate([[0.0], leads[:-1]])], 1)  # the second is the first, a row later
    task = ForecastConfig(horizon=1, window=3)
    train, valid = (Windows(task, part, np.zeros((len(part), 0))) for part in (both[:400], both[400:]))
    linear = LinearBaseline.fit(train, valid)
    assert len(linear.columns[1].reads) == 2
    assert np.abs(linear.predict(valid, valid.origins) - targets(valid, valid.origins))[..., 1].mean() < 0.05


def test_every_weight_of_a_forecaster_learns() -> None:
    stats = SeriesStats.fit(SeriesSlice(make_series()), season=3)
    model, found = model_of(TASK, stats, 5).train(), windows()
    batch = found.batch(np.arange(8))
    loss: Tensor = TASK.space(6).loss(model.readout(model(batch.source)), batch.target)
    loss.backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
    assert model.readout.weight.shape[1] == 8 + 5 * 2
    bare = replace(TASK, linear_skip="none")
    assert model_of(bare, stats, 5).readout.weight.shape[1] == 8


def test_a_per_column_skip_is_trained_by_its_column_alone() -> None:
    stats = SeriesStats.fit(SeriesSlice(make_series()), season=3)
    task = replace(TASK, channels="independent", linear_skip="per-column", head="point")
    model, found = model_of(task, stats, 5).train(), windows(task)
    batch = found.batch(np.arange(0, len(found), 2))  # windows of the first column
    task.space(3).loss(model.readout(model(batch.source)), batch.target).backward()
    own = model.readout.weight.grad[:, -2 * 5 :].abs().sum(0)
    assert (own[:4] > 0).all() and not own[5:].any()  # the last row, measured from itself, is 0


# Initial weights


@pytest.mark.parametrize("linear_skip", ["shared", "per-column"])
@pytest.mark.parametrize("unit", ["series", "window"])
@pytest.mark.parametrize("channels", ["joint", "independent"])
@pytest.mark.parametrize("head", ["point", "gaussian", "laplace"])
def test_training_starts_at_the_ridge_solution(linear_skip: str, unit: str, channels: str, head: str) -> None:
    task = replace(TASK, linear_skip=linear_skip, scale_by=unit, channels=channels, head=head)
    steps = np.arange(300)[:, None] * np.array([[0.3, 0.7]])
    values = (np.sin(steps) + 0.01 * table(300)).astype(np.float32)
    train, valid = (Windows(task, part, np.zeros((len(part), 0), np.float32)) for part in (values[:200], values[200:]))
    clock = make_series().index
    stats = SeriesStats(
        StandardScaler(("a", "b"), (0.0, 0.0), (1.0, 1.0)), StandardScaler((), (), ()), (0, 1), clock, 9, (1.0, 1.0)
    )
    model = model_of(task, stats, patch=5)
    init_from_ridge(model, train, valid)
    mean, scale = predict_windows(model, valid, valid.origins)
    off = np.abs(mean - targets(valid, valid.origins))
    best = np.abs(LinearBaseline.fit(train, valid).predict(valid, valid.origins) - targets(valid, valid.origins)).mean()
    if (
        channels == "independent" and linear_skip == "shared"
    ):  # one line for two waves cannot be as good as one for each
        best = np.abs(naive(valid, valid.origins) - targets(valid, valid.origins)).mean() / 2
    assert off.mean() < 1.3 * best + 0.01
    if head != "point":
        assert 0.3 < scale.mean() / off.mean() < 3


def test_without_a_linear_skip_weights_stay_random() -> None:
    task = replace(TASK, linear_skip="none", channels="independent")
    stats = SeriesStats.fit(SeriesSlice(make_series()), season=3)
    found = Windows(task, *stats.transform(SeriesSlice(make_series())))
    model, drawn = model_of(task, stats, patch=5), model_of(task, stats, patch=5)
    init_from_ridge(model, found, found)
    assert all(a.equal(b) for a, b in zip(model.parameters(), drawn.parameters(), strict=True))
