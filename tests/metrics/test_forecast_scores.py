"""Scores of forecasts: by hand, by their laws, and with intervals that know that neighbours are alike."""

from __future__ import annotations

import math

import numpy as np
import pytest

from regard.errors import DataError
from regard.metrics.forecast import Beside, Rolling, Unit

CAME = np.array([[[1.0, 10.0], [2.0, 20.0]], [[2.0, 20.0], [4.0, 10.0]]])
SAID = np.array([[[1.5, 10.0], [2.0, 24.0]], [[1.0, 20.0], [4.0, 14.0]]])
UNITS = (Unit("a", deviation=2.0, apart=0.75), Unit("b", deviation=10.0, apart=4.0))


def drifting(n: int = 400, seed: int = 0) -> np.ndarray:
    """Errors that hang together: (n, 6, 1), each window one row after the one before."""
    walk = np.convolve(np.random.default_rng(seed).normal(size=n + 60), np.ones(30) / 30)[30 : n + 36]
    return walk[np.arange(n)[:, None] + np.arange(6)][..., None]


def test_scores_are_what_a_hand_finds() -> None:
    rolled = Rolling(UNITS, CAME, season=1)
    assert rolled.mae(SAID) == [1.5 / 4, 8 / 4]
    assert rolled.rmse(SAID) == [math.sqrt(1.25 / 4), math.sqrt(32 / 4)]
    assert rolled.mase(SAID) == [0.5, 0.5]
    assert rolled.coverage(SAID - 0.5, SAID + 0.5) == [75.0, 50.0]
    mase, mae, rmse, coverage = rolled.scores(SAID, SAID - 0.5, SAID + 0.5, 0.8)
    assert (mase.value, coverage.value) == (pytest.approx(0.5), 62.5)
    assert mae.value == pytest.approx((1.5 / 2 + 8 / 10) / 8)  # in deviations: the columns have units of their own
    assert rmse.value == pytest.approx(math.sqrt((1.25 / 4 + 32 / 100) / 8))
    assert mae.signature.startswith("unit:deviation|horizon:2|windows:2|")
    assert mase.signature.startswith("season:1|") and coverage.signature.startswith("level:0.8|")


def test_one_column_alone_is_scored_in_its_own_unit() -> None:
    rolled = Rolling(UNITS[:1], CAME[..., :1], season=1)
    mae = rolled.scores(SAID[..., :1], SAID[..., :1], SAID[..., :1], 0.8)[1]
    assert mae.value == 1.5 / 4 and mae.signature.startswith("unit:own|")


def test_another_unit_changes_mae_and_rmse_alone() -> None:
    large = tuple(Unit(u.name, u.deviation * 7, u.apart * 7) for u in UNITS)
    one, other = Rolling(UNITS, CAME, 1), Rolling(large, CAME * 7, 1)
    assert np.allclose(other.mae(SAID * 7), np.multiply(one.mae(SAID), 7))
    for a, b in zip(one.scores(SAID, SAID - 1, SAID + 1, 0.8), other.scores(SAID * 7, SAID * 7 - 7, SAID * 7 + 7, 0.8)):
        assert (a.name, a.value) == (b.name, pytest.approx(b.value))


def test_a_perfect_forecast_scores_nothing_and_holds_always() -> None:
    rolled = Rolling(UNITS, CAME, season=1)
    assert [score.value for score in rolled.scores(CAME, CAME, CAME, 0.8)] == [0.0, 0.0, 0.0, 100.0]


def test_a_column_that_never_changed_has_no_mase_and_spoils_no_mean() -> None:
    still = (*UNITS, Unit("c", 0.0, 0.0))
    came = np.concatenate([CAME, np.full((2, 2, 1), 7.0)], 2)
    said = np.concatenate([SAID, np.full((2, 2, 1), 7.0)], 2)
    rolled = Rolling(still, came, season=1)
    assert math.isnan(rolled.mase(said)[2]) and rolled.mae(said)[2] == 0
    assert rolled.scores(said, said, said, 0.8)[0].value == pytest.approx(0.5)
    with pytest.raises(DataError, match="no column changed in training; there is nothing to score by"):
        Rolling(still[2:], came[..., 2:], 1).scores(said[..., 2:], said[..., 2:], said[..., 2:], 0.8)
    table = Beside(("a", "b", "c"), {"MASE": {"model": rolled.mase(said)}}, [80.0, 81.0, 100.0], 0.8)
    assert table.text().splitlines()[3].split() == ["c", "-", "100.0", "%"]
    assert table.text().splitlines()[4].split()[:2] == ["mean", "0.5000"]
    assert table.to_dict()["MASE"]["model"] == [0.5, 0.5, None]


def test_there_must_be_a_window() -> None:
    with pytest.raises(DataError, match="there is not one whole window to score"):
        Rolling(UNITS, CAME[:0], 1)


def test_windows_that_are_alike_are_drawn_together_and_so_the_interval_is_wider() -> None:
    came, units = drifting(), (Unit("a", 1.0, 1.0),)
    apart = np.random.default_rng(1).permutation(len(came))
    said = np.zeros_like(came)
    widths = []
    for order in (np.arange(len(came)), apart):
        score = Rolling(units, came[order], season=24).scores(said[order], said, said, 0.8)[1]
        assert score.low < score.value < score.high
        widths.append(score.high - score.low)
    assert Rolling(units, came, season=24).block == 24
    assert widths[0] > 1.5 * widths[1]


def test_few_windows_are_still_scored() -> None:
    found = Rolling(UNITS, CAME[:1], season=12).scores(SAID[:1], SAID[:1], SAID[:1], 0.8)
    assert all(score.low <= score.value <= score.high for score in found)


def test_the_table_has_a_line_a_column_and_the_mean_of_mase_alone() -> None:
    measures = {"MASE": {"model": [0.5, 0.7], "naive": [1.0, 2.0]}, "MAE": {"model": [5.0, 7.0], "naive": [1e6, 2.0]}}
    lines = Beside(("load", "prix d'été"), measures, [80.0, 70.5], 0.8).text().splitlines()
    assert [line.split()[0] for line in lines] == ["MASE", "load", "prix", "mean", "MAE", "load", "prix"]
    assert lines[3].split() == ["mean", "0.6000", "1.5000", "75.2", "%"]
    assert lines[5].split() == ["load", "5.0000", "1000000.0"]
