"""Windows of a series: what is read, what is wanted, in which order; and that nothing of the future is ever seen."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.data.time_series import Timeline, Wanted, parse_timeline
from regard.data.timestamps import Clock, Step
from regard.distributed import World
from regard.errors import ConfigError, DataError, ModelError
from regard.models.forecaster import Forecaster
from regard.models.mlp import MLPConfig
from regard.objective import silent
from regard.sequence import last
from regard.spaces import Values
from regard.tasks.forecast.baselines import Linear, ahead, inputs, naive, seasonal_naive
from regard.tasks.forecast.linear_init import straighten
from regard.tasks.forecast.predict import Forecast, Foreteller, answers
from regard.tasks.forecast.prepare import ForecastConfig, Gauge, TimedPreparation
from regard.tasks.forecast.sources import Stretch, Timed
from regard.tasks.forecast.windows import WindowFeed, Windows
from regard.tasks.generate.numbers import Scale

TASK = ForecastConfig(horizon=3, window=5)


def table(rows: int = 40, columns: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)


def windows(task: ForecastConfig = TASK, rows: int = 40, known: int = 0, first: int = 0) -> Windows:
    return Windows(task, table(rows), table(rows, known, seed=1), first)


def timeline(rows: int = 30, more: str = "") -> Timeline:
    lines = ["day,load,still,price"]
    lines += [f"2024-01-{i + 1:02},{np.sin(i / 2) * 10 + 50:.4f},7,{i % 3}" for i in range(rows)]
    return parse_timeline([*lines, *filter(None, [more])], "a.csv", Wanted())


def model_of(task: ForecastConfig, gauge: Gauge, patch: int) -> Forecaster:
    torch.manual_seed(0)
    shape = gauge.shape(task, patch)
    encoder = MLPConfig(width=8).build_encoder(Values(shape.inputs))
    return Forecaster(encoder, last, task.space(shape.answers), shape).eval()


# What is read, and what is wanted


@pytest.mark.parametrize("columns", ["together", "apart"])
@pytest.mark.parametrize("around", ["last", "mean", "nothing"])
@pytest.mark.parametrize("unit", ["series", "window"])
@pytest.mark.parametrize("known", [0, 2])
def test_no_window_sees_what_comes_after_it(columns: str, around: str, unit: str, known: int) -> None:
    task = replace(TASK, columns=columns, around=around, unit=unit)
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


@pytest.mark.parametrize("around", ["last", "mean"])
def test_a_series_that_has_drifted_away_looks_the_same(around: str) -> None:
    found = windows(replace(TASK, around=around))
    drifted = replace(found, values=found.values + 1000)
    rows = np.arange(len(found))
    one, other = found.batch(rows), drifted.batch(rows)
    torch.testing.assert_close(one.source.data, other.source.data, atol=1e-3, rtol=0)
    torch.testing.assert_close(one.target, other.target, atol=1e-3, rtol=0)


@pytest.mark.parametrize("around", ["last", "mean"])
@pytest.mark.parametrize("columns", ["together", "apart"])
def test_counted_in_its_own_deviation_a_livelier_series_looks_the_same(around: str, columns: str) -> None:
    found = windows(replace(TASK, around=around, unit="window", columns=columns))
    livelier = replace(found, values=found.values * 1000)
    found = replace(found, values=found.values * 100)  # both far above what counts as still
    rows = np.arange(len(found))
    one, other = found.batch(rows), livelier.batch(rows)
    torch.testing.assert_close(one.source.data, other.source.data, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(one.target, other.target, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found.units(rows) * 10, livelier.units(rows), atol=0, rtol=1e-4)
    assert one.target.shape == found.units(rows).shape


@pytest.mark.parametrize("unit", ["series", "window"])
@pytest.mark.parametrize("columns", ["together", "apart"])
def test_what_is_said_comes_back_in_units_of_training(unit: str, columns: str) -> None:
    task = replace(TASK, unit=unit, columns=columns, head="gaussian")
    rows = timeline()
    gauge = Gauge.of(Stretch(rows), season=3)
    model, found = model_of(task, gauge, patch=5), Windows(task, *gauge.scaled(Stretch(rows)))
    middle, doubt = answers(model, found, found.origins)
    batch = found.batch(np.arange(len(found)))
    said, sure = task.parts(model.readout(model(batch.source)))
    off = ((batch.target - said) * found.units(np.arange(len(found)))).abs()
    off_NHC, sure_NHC = (
        part.detach().numpy().reshape(len(found.origins), found.apart, task.horizon, -1).swapaxes(1, 2)
        for part in (off, sure)
    )
    off_NHC, sure_NHC = off_NHC.reshape(middle.shape), sure_NHC.reshape(middle.shape)
    wanted = found.values[found.origins[:, None] + np.arange(task.horizon)]
    np.testing.assert_allclose(np.abs(wanted - middle), off_NHC, atol=1e-5)
    spread = (doubt / sure_NHC).std((0, 1))
    assert (spread > 1e-3).all() if unit == "window" else (spread < 1e-6).all()


def test_a_still_window_is_not_blown_up_and_one_row_has_no_deviation() -> None:
    task = replace(TASK, unit="window")
    still = Windows(task, np.zeros((20, 1), np.float32), np.zeros((20, 0), np.float32))
    assert still.units(np.array([0])).unique().tolist() == [pytest.approx(0.1)]
    with pytest.raises(ConfigError) as caught:
        ForecastConfig(window=1, unit="window")
    assert str(caught.value) == 'window = 1 has no deviation to count in; use unit = "series"'


def test_columns_apart_are_the_columns_one_by_one() -> None:
    together, apart = windows(), windows(replace(TASK, columns="apart"))
    assert len(apart) == 2 * len(together)
    whole = together.batch(np.array([7]))
    for column in range(2):
        one = apart.batch(np.array([2 * 7 + column]))
        assert one.source.data[..., 0].equal(whole.source.data[..., column])
        assert one.target.equal(whole.target.view(1, 3, 2)[..., column])
        assert one.source.data.shape == (1, 5, 1) and one.source.segments.tolist() == [[column] * 5]


def test_what_is_known_of_the_horizon_is_read_with_its_numbers_left_empty() -> None:
    found = windows(known=2)
    source = found.source(np.array([9]), np.array([0]))[0].data[0]
    assert source.shape == (5 + 3, 2 + 2 + 1)
    assert not source[5:, :2].any()
    assert source[:, 2:4].equal(torch.from_numpy(found.known[4:12]))
    assert source[:, 4].tolist() == [0.0] * 5 + [1.0] * 3


def test_a_window_of_nothing_reads_what_is_known_alone() -> None:
    found = windows(ForecastConfig(horizon=1, window=0, around="nothing"), known=2)
    batch = found.batch(np.array([4]))
    assert batch.source.data.shape == (1, 1, 2 + 2 + 1) and not batch.source.data[..., :2].any()
    assert batch.target.equal(torch.from_numpy(found.values[4:5]))
    with pytest.raises(ConfigError) as caught:
        ForecastConfig(window=0)
    assert str(caught.value) == 'window = 0 has no row to be measured from; use around = "nothing", not "last"'


def test_only_rows_that_are_asked_for_are_wanted_and_all_of_them_are() -> None:
    assert windows(first=20).origins.tolist() == list(range(20, 38))
    assert windows().origins[0] == 5
    assert windows(rows=8).origins.tolist() == [5]
    assert len(windows(rows=7)) == 0


# The order


def test_every_window_comes_once_an_epoch_in_an_order_of_its_own() -> None:
    feed = WindowFeed(windows(), windows(), rows=7, seed=3)
    epochs = [
        torch.cat([batch.target for batch, _ in islice(feed.stream({"epoch": epoch, "batch": 0}), feed.epoch())])
        for epoch in (0, 1)
    ]
    wanted = windows().batch(np.arange(len(windows()))).target
    for epoch in epochs:
        assert sorted(map(tuple, epoch.tolist())) == sorted(map(tuple, wanted.tolist()))
    assert not epochs[0].equal(epochs[1]) and not epochs[0].equal(wanted)


def test_a_position_goes_on_where_it_was() -> None:
    feed = WindowFeed(windows(), windows(), rows=7)
    whole = list(islice(feed.stream(None), 12))
    for i in (0, 4, 9):
        again = list(islice(feed.stream(whole[i][1]), 2))
        assert again[0][0].target.equal(whole[i + 1][0].target) and again[1][1] == whole[i + 2][1]


@pytest.mark.parametrize("size", [2, 3])
def test_the_shares_of_processes_are_the_batch(size: int) -> None:
    alone = WindowFeed(windows(), windows(rows=12), rows=7)
    ranks = [replace(alone, world=World(rank, size)) for rank in range(size)]
    whole = alone.batch(1, 2).target
    for rank, feed in enumerate(ranks):
        assert feed.batch(1, 2).target.equal(whole[rank::size])
    held_out = torch.cat([batch.target for batch in alone.valid()])
    shares = [torch.cat([batch.target for batch in feed.valid()]) for feed in ranks]
    for rank, share in enumerate(shares):
        assert share.equal(held_out[rank::size])


@pytest.mark.parametrize(("train", "valid", "message"), [
    (7, 40, "there are 7 rows to learn from, and one window takes 8: 5 of the past and 3 of the horizon; lower "
     "task.window or task.horizon, or give more data"),
    (40, 7, "there are 7 rows to validate on, and one window takes 8: 5 of the past and 3 of the horizon; lower "
     "task.window or task.horizon, or give data.split a larger second part"),
])  # fmt: skip
def test_too_few_rows_for_one_window_are_told(train: int, valid: int, message: str) -> None:
    with pytest.raises(DataError) as caught:
        WindowFeed(windows(rows=train), windows(rows=valid))
    assert str(caught.value) == message


# What is kept of a series


def test_what_scales_a_series_has_seen_training_only(tmp_path: Path) -> None:
    made = []
    for name, later in (("a", 0.0), ("b", 1e6)):
        lines = [f"{np.sin(i):.6f},{i % 4}\n" if i < 70 else f"{later + i},{i * 3}\n" for i in range(100)]
        (tmp_path / f"{name}.csv").write_text("".join(lines))
        data = Timed(train=str(tmp_path / f"{name}.csv"), split=(70, 10, 20))
        TimedPreparation(data, TASK).run(tmp_path / name, silent)
        made.append((tmp_path / name / "series.json").read_text())
    assert made[0] == made[1]


def test_a_column_that_never_changes_divides_nothing_and_is_carried_on() -> None:
    rows = timeline()
    gauge = Gauge.of(Stretch(rows), season=3)
    assert gauge.moving == (0, 2) and gauge.apart[1] == 0
    values, _ = gauge.scaled(Stretch(rows))
    assert np.isfinite(values).all() and values.shape == (30, 2)
    found = Foreteller(model_of(TASK, gauge, 5), TASK, gauge).forecast(rows, horizon=7)
    assert found.middle[:, 1].tolist() == found.lower[:, 1].tolist() == found.upper[:, 1].tolist() == [7.0] * 7


def test_a_series_in_which_nothing_changes_is_refused() -> None:
    rows = parse_timeline(["1,7"] * 30, "a.csv", Wanted())
    with pytest.raises(DataError) as caught:
        Gauge.of(Stretch(rows), season=1)
    assert str(caught.value) == "no column ever changes in training (1, 2); there is nothing to foretell"
    with pytest.raises(DataError) as caught:
        Gauge.of(Stretch(timeline(5)), season=None)
    assert str(caught.value) == ("there are 5 rows to learn from, not one season of 7; set task.season, or give more")


def test_the_gauge_is_read_as_it_was_written(tmp_path: Path) -> None:
    gauge = Gauge.of(Stretch(timeline()), season=3)
    gauge.save(tmp_path / "series.json")
    assert Gauge.load(tmp_path / "series.json") == gauge
    (tmp_path / "series.json").write_text("{}")
    with pytest.raises(ModelError, match=r"series\.json cannot be read: expected what preparation knows of the series"):
        Gauge.load(tmp_path / "series.json")


# Foretelling


def test_a_longer_forecast_begins_with_the_shorter_one_and_goes_on_from_it() -> None:
    rows = timeline()
    gauge = Gauge.of(Stretch(rows), season=3)
    model = model_of(TASK, gauge, 5)
    model.learn_off(torch.rand(50, 6, generator=torch.Generator().manual_seed(1)))
    teller = Foreteller(model, TASK, gauge)
    short, long = teller.forecast(rows), teller.forecast(rows, horizon=8)
    np.testing.assert_allclose(long.middle[:3], short.middle)
    going_on = replace(
        rows,
        values=np.concatenate([rows.values, short.middle]),
        known=np.zeros((33, 0)),
        stamps=np.concatenate([rows.stamps, short.stamps]),
    )
    np.testing.assert_allclose(long.middle[3:6], teller.forecast(going_on).middle, rtol=1e-4)
    half = long.upper - long.middle
    assert (half[3:6, [0, 2]] > half[2, [0, 2]]).all() and len(long.stamps) == 8
    assert long.clock.written(long.stamps)[:3] == ["2024-01-31", "2024-02-01", "2024-02-02"]


def test_a_forecast_that_grows_beyond_all_numbers_is_told_and_not_written() -> None:
    rows = timeline()
    gauge = Gauge.of(Stretch(rows), season=3)
    model = model_of(TASK, gauge, 5)
    model.learn_off(torch.rand(50, 6, generator=torch.Generator().manual_seed(1)))
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1e4)
    with pytest.raises(ModelError) as caught:
        Foreteller(model, TASK, gauge).forecast(rows, horizon=3000)
    assert re.fullmatch(
        r"the forecast grows beyond all numbers after [\d,]+ rows: this model cannot go on so far from what it said "
        "itself; ask for a shorter horizon, or train it for longer",
        str(caught.value),
    )


def test_numbers_are_written_with_the_digits_that_a_model_counts_with() -> None:
    clock, one = Clock("row", "", Step(1)), np.array([[31.51403659, 1234567.89]])
    half = np.array([[31.514036593, 5e4]])
    found = Forecast(clock, np.array([9]), ("load", "people"), one, one - half, one + half, 0.8)
    assert found.csv().splitlines()[1] == "9,31.51404,0,63.02807,1234568,1184568,1284568"


@pytest.mark.parametrize("head", ["point", "gaussian", "laplace"])
@pytest.mark.parametrize("columns", ["together", "apart"])
def test_answers_do_not_hang_on_their_neighbours(head: str, columns: str) -> None:
    rows = timeline()
    task = replace(TASK, head=head, columns=columns)
    gauge = Gauge.of(Stretch(rows), season=3)
    model, whole = model_of(task, gauge, 5), Windows(task, *gauge.scaled(Stretch(rows)))
    middle, doubt = answers(model, whole, whole.origins)
    assert middle.shape == doubt.shape == (len(whole.origins), 3, 2) and (doubt > 0).all()
    for i, origin in enumerate(whole.origins):
        one = answers(model, whole, np.array([origin]))
        np.testing.assert_allclose(one[0][0], middle[i], atol=1e-5)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.8, 0.95])
def test_an_interval_is_as_wide_as_so_many_answers_were_off(level: float) -> None:
    gauge = Gauge.of(Stretch(timeline()), season=3)
    model = model_of(TASK, gauge, 5)
    off = torch.rand(2000, 6, generator=torch.Generator().manual_seed(0)).square() * torch.arange(1, 7)
    model.learn_off(off)
    inside = (off <= model.reach(level)).double().mean(0)
    torch.testing.assert_close(inside, torch.full((6,), level, dtype=torch.double), atol=0.006, rtol=0)


def test_with_few_answers_an_interval_is_rather_too_wide_than_too_narrow() -> None:
    gauge = Gauge.of(Stretch(timeline()), season=3)
    model, held = model_of(TASK, gauge, 5), []
    draw = torch.Generator().manual_seed(0)
    for _ in range(2000):
        off = torch.rand(10, 6, generator=draw)
        model.learn_off(off[:9])
        held.append((off[9] <= model.reach(0.8)).double().mean())
    assert 0.79 < torch.stack(held).mean() < 0.85


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"horizon": 0}, ConfigError, "horizon = 0 must be at least 1 and at most 100,000"),
        ({"horizon": 10**9}, ConfigError, "horizon = 1000000000 must be at least 1 and at most 100,000"),
        ({"level": 1.0}, ConfigError, "level = 1.0 must be above 0 and below 1, such as 0.8"),
    ],
)
def test_a_forecast_that_cannot_be_is_refused(given: dict, kind: type[Exception], message: str) -> None:
    gauge = Gauge.of(Stretch(timeline()), season=3)
    with pytest.raises(kind) as caught:
        Foreteller(model_of(TASK, gauge, 5), TASK, gauge).forecast(timeline(), **given)
    assert str(caught.value) == message


def test_a_series_that_does_not_fit_the_model_is_told() -> None:
    gauge = Gauge.of(Stretch(timeline()), season=3)
    teller = Foreteller(model_of(TASK, gauge, 5), TASK, gauge)

    def refusal(rows: Timeline) -> str:
        with pytest.raises(DataError) as caught:
            teller.forecast(rows)
        return str(caught.value)

    assert refusal(timeline(4)) == "there are 4 rows, and this model reads the last 5; give it as many"
    other = parse_timeline([f"{i}" for i in range(9)], "b.csv", Wanted())
    assert refusal(other) == (
        "the series has the columns 1, training had load, still, price; name those that both have in data.columns"
    )
    hours = ["day,load,still,price", *(f"2024-01-01 {i:02}:00,1,2,{i}" for i in range(9))]
    assert refusal(parse_timeline(hours, "c.csv", Wanted())) == "rows are 1 hour apart, in training they were 1 day"


# What anybody could say


def test_naive_is_the_last_row_and_seasonal_naive_the_row_a_season_ago() -> None:
    found = windows()
    origins = np.array([7, 12])
    for i, origin in enumerate(origins):
        assert (naive(found, origins)[i] == found.values[origin - 1]).all()
        for step in range(3):
            assert (seasonal_naive(found, origins, 4)[i, step] == found.values[origin + step - 4]).all()
            assert (seasonal_naive(found, origins, 2)[i, step] == found.values[origin - 2 + step % 2]).all()


def test_the_line_is_the_one_that_least_squares_gives() -> None:
    values = table(300, 2).astype(float).cumsum(0)
    train, valid = (Windows(TASK, part, np.zeros((len(part), 0))) for part in (values[:200], values[200:]))
    wanted = ahead(train, train.origins) - values[train.origins - 1][:, None]
    for column, line in enumerate(Linear.fit(train, valid).lines):
        x, y = inputs(train, train.origins, line.reads), wanted[..., column]
        held = np.sqrt(line.strength) * np.eye(x.shape[1])[:-1]  # all but what is added
        least = np.linalg.lstsq(np.concatenate([x, held]), np.concatenate([y, np.zeros((len(held), 3))]), rcond=None)
        np.testing.assert_allclose(line.weights, least[0], atol=1e-7)


def test_a_line_reads_other_columns_where_that_helps_on_validation() -> None:
    rng = np.random.default_rng(1)
    leads = rng.normal(size=500)
    both = np.stack([leads, np.concatenate([[0.0], leads[:-1]])], 1)  # the second is the first, a row later
    task = ForecastConfig(horizon=1, window=3)
    train, valid = (Windows(task, part, np.zeros((len(part), 0))) for part in (both[:400], both[400:]))
    linear = Linear.fit(train, valid)
    assert len(linear.lines[1].reads) == 2
    assert np.abs(linear.predict(valid, valid.origins) - ahead(valid, valid.origins))[..., 1].mean() < 0.05


def test_every_weight_of_a_forecaster_learns_and_the_line_reaches_the_answer() -> None:
    gauge = Gauge.of(Stretch(timeline()), season=3)
    model, found = model_of(TASK, gauge, 5).train(), windows()
    batch = found.batch(np.arange(8))
    loss: Tensor = TASK.space(6).loss(model.readout(model(batch.source)), batch.target)
    loss.backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
    assert model.readout.weight.shape[1] == 8 + 5 * 2
    bare = replace(TASK, line="none")
    assert model_of(bare, gauge, 5).readout.weight.shape[1] == 8


def test_a_line_of_its_own_is_moved_by_one_column_alone() -> None:
    gauge = Gauge.of(Stretch(timeline()), season=3)
    task = replace(TASK, columns="apart", line="each", head="point")
    model, found = model_of(task, gauge, 5).train(), windows(task)
    batch = found.batch(np.arange(0, len(found), 2))  # windows of the first column
    task.space(3).loss(model.readout(model(batch.source)), batch.target).backward()
    own = model.readout.weight.grad[:, -2 * 5 :].abs().sum(0)
    assert (own[:4] > 0).all() and not own[5:].any()  # the last row, measured from itself, is 0


# Where training begins


@pytest.mark.parametrize("line", ["beside", "each"])
@pytest.mark.parametrize("unit", ["series", "window"])
@pytest.mark.parametrize("columns", ["together", "apart"])
@pytest.mark.parametrize("head", ["point", "gaussian", "laplace"])
def test_training_begins_no_worse_than_a_line(line: str, unit: str, columns: str, head: str) -> None:
    task = replace(TASK, line=line, unit=unit, columns=columns, head=head)
    steps = np.arange(300)[:, None] * np.array([[0.3, 0.7]])
    values = (np.sin(steps) + 0.01 * table(300)).astype(np.float32)
    train, valid = (Windows(task, part, np.zeros((len(part), 0), np.float32)) for part in (values[:200], values[200:]))
    clock = timeline().clock
    gauge = Gauge(Scale(("a", "b"), (0.0, 0.0), (1.0, 1.0)), Scale((), (), ()), (0, 1), clock, 9, (1.0, 1.0))
    model = model_of(task, gauge, patch=5)
    straighten(model, train, valid)
    said, doubt = answers(model, valid, valid.origins)
    off = np.abs(said - ahead(valid, valid.origins))
    best = np.abs(Linear.fit(train, valid).predict(valid, valid.origins) - ahead(valid, valid.origins)).mean()
    if columns == "apart" and line == "beside":  # one line for two waves cannot be as good as one for each
        best = np.abs(naive(valid, valid.origins) - ahead(valid, valid.origins)).mean() / 2
    assert off.mean() < 1.3 * best + 0.01
    if head != "point":
        assert 0.3 < doubt.mean() / off.mean() < 3


def test_without_a_line_weights_start_as_they_were_drawn() -> None:
    task = replace(TASK, line="none", columns="apart")
    gauge = Gauge.of(Stretch(timeline()), season=3)
    found = Windows(task, *gauge.scaled(Stretch(timeline())))
    model, drawn = model_of(task, gauge, patch=5), model_of(task, gauge, patch=5)
    straighten(model, found, found)
    assert all(a.equal(b) for a, b in zip(model.parameters(), drawn.parameters(), strict=True))
