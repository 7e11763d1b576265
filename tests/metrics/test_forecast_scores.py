"""Forecast metrics: by hand, by invariances, and with block-bootstrap intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from regard.errors import DataError
from regard.metrics.forecast import BaselineTable, ColumnStats, ForecastErrors

ACTUAL = np.array([[[1.0, 10.0], [2.0, 20.0]], [[2.0, 20.0], [4.0, 10.0]]])
FORECAST = np.array([[[1.5, 10.0], [2.0, 24.0]], [[1.0, 20.0], [4.0, 14.0]]])
UNITS = (ColumnStats("a", std=2.0, naive_mae=0.75), ColumnStats("b", std=10.0, naive_mae=4.0))


def drifting(n: int = 400, seed: int = 0) -> np.ndarray:
    """Autocorrelated errors: (n, 6, 1), of consecutive windows."""
    walk = np.convolve(np.random.default_rng(seed).normal(size=n + 60), np.ones(30) / 30)[30 : n + 36]
    return walk[np.arange(n)[:, None] + np.arange(6)][..., None]


def test_scores_equal_those_computed_by_hand() -> None:
    errors = ForecastErrors(UNITS, ACTUAL, season=1)
    assert errors.mae(FORECAST) == [1.5 / 4, 8 / 4]
    assert errors.rmse(FORECAST) == [math.sqrt(1.25 / 4), math.sqrt(32 / 4)]
    assert errors.mase(FORECAST) == [0.5, 0.5]
    assert errors.coverage(FORECAST - 0.5, FORECAST + 0.5) == [75.0, 50.0]
    mase, mae, rmse, coverage = errors.scores(FORECAST, FORECAST - 0.5, FORECAST + 0.5, 0.8)
    assert (mase.value, coverage.value) == (pytest.approx(0.5), 62.5)
    assert mae.value == pytest.approx((1.5 / 2 + 8 / 10) / 8)  # in deviations: the columns have units of their own
    assert rmse.value == pytest.approx(math.sqrt((1.25 / 4 + 32 / 100) / 8))
    assert mae.signature.startswith("unit:deviation|horizon:2|windows:2|")
    assert mase.signature.startswith("season:1|") and coverage.signature.startswith("level:0.8|")


def test_one_column_alone_is_scored_in_its_own_unit() -> None:
    errors = ForecastErrors(UNITS[:1], ACTUAL[..., :1], season=1)
    mae = errors.scores(FORECAST[..., :1], FORECAST[..., :1], FORECAST[..., :1], 0.8)[1]
    assert mae.value == 1.5 / 4 and mae.signature.startswith("unit:own|")


def test_another_unit_changes_mae_and_rmse_alone() -> None:
    large = tuple(ColumnStats(u.name, u.std * 7, u.naive_mae * 7) for u in UNITS)
    one, other = ForecastErrors(UNITS, ACTUAL, 1), ForecastErrors(large, ACTUAL * 7, 1)
    assert np.allclose(other.mae(FORECAST * 7), np.multiply(one.mae(FORECAST), 7))
    for a, b in zip(
        one.scores(FORECAST, FORECAST - 1, FORECAST + 1, 0.8),
        other.scores(FORECAST * 7, FORECAST * 7 - 7, FORECAST * 7 + 7, 0.8),
    ):
        assert (a.name, a.value) == (b.name, pytest.approx(b.value))


def test_a_perfect_forecast_has_zero_error_and_full_coverage() -> None:
    errors = ForecastErrors(UNITS, ACTUAL, season=1)
    assert [score.value for score in errors.scores(ACTUAL, ACTUAL, ACTUAL, 0.8)] == [0.0, 0.0, 0.0, 100.0]


def test_a_constant_column_has_no_mase_and_is_left_out_of_the_mean() -> None:
    units = (*UNITS, ColumnStats("c", 0.0, 0.0))
    actual = np.concatenate([ACTUAL, np.full((2, 2, 1), 7.0)], 2)
    forecast = np.concatenate([FORECAST, np.full((2, 2, 1), 7.0)], 2)
    errors = ForecastErrors(units, actual, season=1)
    assert math.isnan(errors.mase(forecast)[2]) and errors.mae(forecast)[2] == 0
    assert errors.scores(forecast, forecast, forecast, 0.8)[0].value == pytest.approx(0.5)
    with pytest.raises(DataError, match="all columns are constant in training; there is nothing to score"):
        ForecastErrors(units[2:], actual[..., 2:], 1).scores(
            forecast[..., 2:], forecast[..., 2:], forecast[..., 2:], 0.8
        )
    table = BaselineTable(("a", "b", "c"), {"MASE": {"model": errors.mase(forecast)}}, [80.0, 81.0, 100.0], 0.8)
    assert table.text().splitlines()[3].split() == ["c", "-", "100.0", "%"]
    assert table.text().splitlines()[4].split()[:2] == ["mean", "0.5000"]
    assert table.to_dict()["MASE"]["model"] == [0.5, 0.5, None]


def test_there_must_be_a_window() -> None:
    with pytest.raises(DataError, match="there is no complete window to score"):
        ForecastErrors(UNITS, ACTUAL[:0], 1)


def test_similar_windows_are_drawn_in_blocks_and_so_the_interval_is_wider() -> None:
    actual, units = drifting(), (ColumnStats("a", 1.0, 1.0),)
    shuffled = np.random.default_rng(1).permutation(len(actual))
    forecast = np.zeros_like(actual)
    widths = []
    for order in (np.arange(len(actual)), shuffled):
        score = ForecastErrors(units, actual[order], season=24).scores(forecast[order], forecast, forecast, 0.8)[1]
        assert score.low < score.value < score.high
        widths.append(score.high - score.low)
    assert ForecastErrors(units, actual, season=24).block == 24
    assert widths[0] > 1.5 * widths[1]


def test_few_windows_are_still_scored() -> None:
    found = ForecastErrors(UNITS, ACTUAL[:1], season=12).scores(FORECAST[:1], FORECAST[:1], FORECAST[:1], 0.8)
    assert all(score.low <= score.value <= score.high for score in found)


def test_the_table_has_one_line_per_column_and_the_mean_of_mase_only() -> None:
    measures = {"MASE": {"model": [0.5, 0.7], "naive": [1.0, 2.0]}, "MAE": {"model": [5.0, 7.0], "naive": [1e6, 2.0]}}
    lines = BaselineTable(("load", "prix d'été"), measures, [80.0, 70.5], 0.8).text().splitlines()
    assert [line.split()[0] for line in lines] == ["MASE", "load", "prix", "mean", "MAE", "load", "prix"]
    assert lines[3].split() == ["mean", "0.6000", "1.5000", "75.2", "%"]
    assert lines[5].split() == ["load", "5.0000", "1000000.0"]
