"""regard forecast, and training, scoring, describing and looking into what it uses."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.cli import invoke

RECIPE = """
[task]
kind = "forecast"
horizon = 6
window = 24
[data]
kind = "csv"
train = "waves.csv"
[model]
kind = "mlp"
width = 16
[train]
steps = 60
validate_every = 30
batch_tokens = 64
schedule.kind = "constant"
schedule.lr = 0.01
"""
RunCli = Callable[..., Any]


def load(hour: int) -> float:
    return 20 + 5 * math.sin(hour * math.pi / 12) + math.sin(hour / 7)


def waves(rows: int = 360, first: int = 0) -> str:
    lines = ["date,load,still"]
    for i in range(first, first + rows):
        day, hour = divmod(i, 24)
        lines.append(f"2024-01-{1 + day:02} {hour:02}:00,{load(i):.3f},7")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def teller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("teller")
    (folder / "waves.csv").write_text(waves(), encoding="utf-8")
    (folder / "waves.toml").write_text(RECIPE.replace("waves.csv", str(folder / "waves.csv")), encoding="utf-8")
    assert invoke(["train", str(folder / "waves.toml"), "--out", str(folder / "run"), "--quiet"]) == 0
    return folder / "run"


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# Forecasts


def test_timestamps_continue_and_every_column_has_an_interval(run_cli: RunCli, teller: Path) -> None:
    result = run_cli("forecast", teller, teller.parent / "waves.csv")
    assert result.code == 0
    rows = table(result.out)
    assert list(rows[0]) == ["date", "load", "load_lower", "load_upper", "still", "still_lower", "still_upper"]
    assert [row["date"] for row in rows] == [f"2024-01-16 {hour:02}:00" for hour in range(6)]
    for i, row in enumerate(rows):
        assert float(row["load_lower"]) <= float(row["load"]) <= float(row["load_upper"])
        assert abs(float(row["load"]) - load(360 + i)) < 2.5
        assert (row["still"], row["still_lower"], row["still_upper"]) == ("7", "7", "7")


def test_without_a_file_the_forecast_continues_the_data_of_the_recipe(run_cli: RunCli, teller: Path) -> None:
    assert run_cli("forecast", teller).out == run_cli("forecast", teller, teller.parent / "waves.csv").out


def test_a_file_may_come_from_stdin(run_cli: RunCli, teller: Path) -> None:
    typed = b"\xef\xbb\xbf" + waves().replace("\n", "\r\n").encode()
    assert run_cli("forecast", teller, "-", typed=typed).out == run_cli("forecast", teller).out


def test_a_plot_is_drawn_on_stderr_unless_quiet(run_cli: RunCli, teller: Path) -> None:
    result = run_cli("forecast", teller)
    assert "load, 80 % interval" in result.err and "• past   * expected   ░ interval" in result.err
    assert run_cli("forecast", teller, "-q").err == ""


def test_forecast_and_picture_go_into_files(run_cli: RunCli, teller: Path, tmp_path: Path) -> None:
    out, plot = tmp_path / "next.csv", tmp_path / "next.svg"
    result = run_cli("forecast", teller, "--horizon", 20, "--level", 0.5, "-o", out, "--plot", plot)
    assert result.out == f"{out}\n{plot}\n"
    rows = table(out.read_text())
    assert len(rows) == 20 and rows[-1]["date"] == "2024-01-16 19:00"
    svg = plot.read_text()
    assert svg.startswith("<svg xmlns") and "load, 50 % interval" in svg and "still, 50 % interval" in svg
    wide = table(run_cli("forecast", teller, "--level", 0.95).out)
    for narrow, row in zip(rows, wide):
        assert float(row["load_upper"]) >= float(narrow["load_upper"])
        assert row["load"] == narrow["load"]


def test_json_equals_csv(run_cli: RunCli, teller: Path) -> None:
    found, rows = json.loads(run_cli("forecast", teller, "--json").out), table(run_cli("forecast", teller).out)
    assert (found["level"], found["times"]) == (0.8, [row["date"] for row in rows])
    assert [column["name"] for column in found["columns"]] == ["load", "still"]
    for key, name in (("expected", "load"), ("lower", "load_lower"), ("upper", "load_upper")):
        assert found["columns"][0][key] == pytest.approx([float(row[name]) for row in rows])


# Scores


def test_eval_prints_baselines_beside_the_model(run_cli: RunCli, teller: Path) -> None:
    result = run_cli("eval", teller, "--split", "test")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0].endswith(" on test, 67 windows")
    assert [line.split()[0] for line in lines[1:5]] == ["MASE", "MAE", "RMSE", "coverage"]
    assert lines[5].split() == ["MASE", "model", "naive", "seasonal", "linear", "80", "%", "holds"]
    assert [line.split()[0] for line in lines[5:9]] == ["MASE", "load", "still", "mean"]
    found = json.loads(run_cli("eval", teller, "--json").out)
    assert found["data"] == "test" and found["scores"][0]["name"] == "mase"
    detail = found["detail"]
    assert detail["columns"] == ["load", "still"] and detail["MASE"]["model"][1] is None
    assert set(detail["MASE"]) == {"model", "naive", "seasonal", "linear"}
    assert detail["MASE"]["linear"][0] < detail["MASE"]["naive"][0]


def test_a_missed_minimum_score_ends_with_6(run_cli: RunCli, teller: Path) -> None:
    assert run_cli("eval", teller, "--min", "mae=100").code == 0
    failed = run_cli("eval", teller, "--min", "mae=0.0001")
    assert failed.code == 6 and "above the required 0.0001" in failed.err
    assert run_cli("eval", teller, "--min", "coverage=101").code == 6
    assert run_cli("eval", teller, "--min", "bleu=1").err == (
        'error: --min bleu=1: there is no score "bleu" here; there are mase, mae, rmse, coverage\n'
    )


def test_another_file_is_scored(run_cli: RunCli, teller: Path, tmp_path: Path) -> None:
    (tmp_path / "later.csv").write_text(waves(100, 384))
    found = json.loads(run_cli("eval", teller, "--data", tmp_path / "later.csv", "--json").out)
    assert found["data"] == str(tmp_path / "later.csv") and found["scores"][0]["n"] == 71


# Other commands


def test_stats_dry_run_and_card_describe_a_series(run_cli: RunCli, teller: Path) -> None:
    stats = run_cli("data", "stats", teller.parent / "waves.toml").out.splitlines()
    assert stats[0] == "columns     load, still"
    assert stats[1] == "constant    still"
    assert stats[2] == "frequency   1 hour, a season is 24 rows"
    assert stats[3:5] == ["train       252 rows", "valid       36 rows"]
    assert stats[5] == "epoch       223 windows in 4 batches of 64"
    dry = run_cli("train", teller.parent / "waves.toml", "--dry-run")
    assert dry.code == 0 and "252 train, 36 valid rows, 1 hour apart" in dry.out
    card = (teller / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "to forecast" in card and f"regard forecast {teller}" in card


def test_new_writes_a_recipe_that_trains(run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_cli("new", "mine", "--task", "forecast").code == 0
    (tmp_path / "data").mkdir()
    (tmp_path / "data/series.csv").write_text(waves())
    small = ["task.window=12", "task.horizon=3", "model.width=8", "train.steps=3"]
    assert run_cli("train", "mine.toml", "-q", *small).code == 0
    assert len(table(run_cli("forecast", "runs/mine").out)) == 3
    result = run_cli("new", "other", "--task", "forecast", "--source-lang", "de")
    assert (result.code, result.err) == (
        2,
        "error: a series has no language; --source-lang and --target-lang are for translate\n",
    )


def test_a_resumed_run_equals_one_that_was_never_stopped(run_cli: RunCli, teller: Path, tmp_path: Path) -> None:
    from regard.train import checkpoint

    for steps in (7, 30, 60):
        done = run_cli("train", teller.parent / "waves.toml", "--out", tmp_path / "run", f"train.steps={steps}", "-q")
        assert done.code == 0
    one, other = (checkpoint.newest(path).checkpoint for path in (teller, tmp_path / "run"))
    assert one is not None and other is not None
    for group in ("model", "optimizer"):
        for name, tensor in one.tensors(group).items():
            assert tensor.equal(other.tensors(group)[name]), f"{group} {name}"


def test_a_forecast_has_no_lens(run_cli: RunCli, teller: Path) -> None:
    refused = run_cli("look", teller, waves(), "--view", "lens")
    assert refused.code == 3 and "no logit lens: this model predicts numbers" in refused.err


def test_the_saliency_of_a_forecast_is_shown(run_cli: RunCli, teller: Path, tmp_path: Path) -> None:
    result = run_cli("look", teller, teller.parent / "waves.csv", "--view", "saliency")
    assert result.code == 0 and "load, the mean of 6 rows: gradient x input" in result.out
    assert run_cli("look", teller, waves(), "--view", "saliency", "-o", tmp_path / "s.svg").code == 0
    assert (tmp_path / "s.svg").read_text().startswith("<svg")
    found = json.loads(run_cli("look", teller, waves(), "--view", "saliency", "--json").out)
    assert found["columns"] == [str(i) for i in range(-24, 0)] and len(found["scores"]) == 1


def test_the_error_for_a_run_of_another_task_names_its_verb(run_cli: RunCli, teller: Path, trained: Path) -> None:
    result = run_cli("forecast", trained)
    assert result.code == 3
    assert result.err.strip().endswith(
        f'{trained} was trained to translate, so it cannot forecast; use: regard translate {trained} "..."'
    )
    assert run_cli("translate", teller, "x").err.strip().endswith(f"use: regard forecast {teller}")


# Bad input


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("", 4, "bad.csv: it is empty; expected a CSV file, one time per line"),
        ("date,load\n2024-01-01,1\n2024-01-02,2\n", 4,
         'bad.csv has no column "still" (columns: date, load); this model was trained on load, still'),
        (waves(24).replace(",7\n", ",seven\n", 1), 4, 'bad.csv, line 2: "seven" in column still is not a number'),
        (waves(24).replace(",7\n", ",\n", 1), 4,
         'bad.csv, line 2: column still is empty (1 such cells); data.missing = "ffill" repeats the last values'),
        (waves(24).replace(",7\n", ",NaN\n", 2), 4,
         'bad.csv, line 2: column still is empty (2 such cells); data.missing = "ffill" repeats the last values'),
        (waves(24).replace("2024-01-01 05:00", "2024-01-01 05:20"), 4,
         "bad.csv, line 7: 2024-01-01 05:20 is not a multiple of the frequency after 2024-01-01 04:00; most rows are 1 "
         "hour apart, and forecasting needs a constant frequency: resample the series first"),
        ("\n".join(line for line in waves(26).splitlines() if " 05:" not in line), 4,
         "bad.csv, line 7: 1 row is missing between 2024-01-01 04:00 and 2024-01-01 06:00 (rows are 1 hour apart; 1 "
         'missing in all); data.missing = "ffill" repeats the last values'),
        (waves(23), 4, "there are 23 rows, and this model reads the last 24; give at least as many"),
        ("\ufeff" + waves(24).replace("load", "lo\x00ad"), 4, "there is a NUL byte"),
    ],
)  # fmt: skip
def test_a_bad_file_is_reported_and_the_old_output_stays(
    text: str, code: int, message: str, run_cli: RunCli, teller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.csv").write_text(text, encoding="utf-8")
    Path("next.csv").write_text("from another day\n")
    result = run_cli("forecast", teller, "bad.csv", "-o", "next.csv")
    assert result.code == code and result.out == ""
    assert message in result.err and result.err.startswith("error: ")
    assert Path("next.csv").read_text() == "from another day\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["none.csv"], 66, "none.csv: there is no such file"),
        (["--horizon", "0"], 2, "horizon = 0 must be at least 1 and at most 100,000"),
        (["--level", "80"], 2, "level = 80.0 must be above 0 and below 1, such as 0.8"),
        (["--plot", "a.png"], 2, "--plot a.png: expected a name that ends in .svg"),
        (["-o", "none/next.csv"], 74, "none/next.csv: cannot be written (No such file or directory)"),
    ],
)
def test_a_bad_request_is_refused(arguments: list[str], code: int, message: str, run_cli: RunCli, teller: Path) -> None:
    result = run_cli("forecast", teller, *arguments)
    assert (result.code, result.out, result.err) == (code, "", f"error: {message}\n")


def test_the_file_that_is_read_is_not_written(run_cli: RunCli, teller: Path) -> None:
    result = run_cli("forecast", teller, teller.parent / "waves.csv", "-o", teller.parent / "waves.csv")
    assert result.code != 0 and (teller.parent / "waves.csv").read_text() == waves()


@pytest.mark.parametrize(
    ("settings", "code", "message"),
    [
        (["data.train=none.csv"], 66, "none.csv: there is no such file"),
        (["data.columns=[\"wind\"]"], 2, 'has no column "wind" (columns: date, load, still)'),
        (["data.columns=[\"still\"]"], 4, "every column is constant in training (still); there is nothing to forecast"),
        (["task.horizon=300"], 4, "there are 252 rows to train on, and one window takes 324: 24 of the past and 300 "
         "of the horizon; lower task.window or task.horizon, or give more data"),
        (["task.horizon=40"], 4, "there are 60 rows to validate on, and one window takes 64: 24 of the past and 40 of "
         "the horizon; lower task.window or task.horizon, or give data.split a larger second part"),
        (["task.season=300"], 4,
         "there are 252 training rows, less than one season of 300; set task.season, or give more rows"),
        (["task.horizon=0"], 2, "task: horizon = 0 must be at least 1"),
        (["task.head=normal"], 2, "task.head: expected one of point, gaussian, laplace, got 'normal'"),
        (["task.patch=5"], 2, "task.patch = 5 does not divide the 24 rows that are read"),
        (["task.patch=8"], 2, "task.patch = 8: an mlp reads each position alone, and would see nothing of the other "
         "16 rows; leave it out"),
        (["data.time_features=[\"hour\"]", "task.patch=7"], 2, "task.patch = 7 does not divide the 30 rows that are "
         "read (window 24 + horizon 6)"),
        (["task.window=0", "task.center=none"], 2,
         "task.window = 0 reads nothing but future covariates; name columns in data.future_covariates"),
        (["train.best_metric=bleu"], 2, "train.best_metric: expected one of loss, mae, mase, got 'bleu'"),
        (["data.split=[300, 50, 50]"], 4, "has 360 rows, and data.split asks for 400; ask for fewer"),
        (["text.vocab_size=100"], 2, 'unknown setting "text"'),
    ],
)  # fmt: skip
def test_a_recipe_that_cannot_work_is_refused(
    settings: list[str], code: int, message: str, run_cli: RunCli, teller: Path, tmp_path: Path
) -> None:
    result = run_cli("train", teller.parent / "waves.toml", "--out", tmp_path / "run", *settings)
    assert result.code == code, result.err
    assert message in result.err
    assert not (tmp_path / "run/checkpoints").exists()
