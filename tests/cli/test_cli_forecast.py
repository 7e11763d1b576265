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
every = 30
tokens = 64
schedule.kind = "constant"
schedule.lr = 0.01
"""
Say = Callable[..., Any]


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


def test_times_go_on_and_every_column_has_an_interval(say: Say, teller: Path) -> None:
    said = say("forecast", teller, teller.parent / "waves.csv")
    assert said.code == 0
    rows = table(said.out)
    assert list(rows[0]) == ["date", "load", "load_lower", "load_upper", "still", "still_lower", "still_upper"]
    assert [row["date"] for row in rows] == [f"2024-01-16 {hour:02}:00" for hour in range(6)]
    for i, row in enumerate(rows):
        assert float(row["load_lower"]) <= float(row["load"]) <= float(row["load_upper"])
        assert abs(float(row["load"]) - load(360 + i)) < 2.5
        assert (row["still"], row["still_lower"], row["still_upper"]) == ("7", "7", "7")


def test_without_a_file_it_goes_on_from_the_data_of_its_recipe(say: Say, teller: Path) -> None:
    assert say("forecast", teller).out == say("forecast", teller, teller.parent / "waves.csv").out


def test_a_file_may_come_from_stdin(say: Say, teller: Path) -> None:
    typed = b"\xef\xbb\xbf" + waves().replace("\n", "\r\n").encode()
    assert say("forecast", teller, "-", typed=typed).out == say("forecast", teller).out


def test_a_picture_is_drawn_on_stderr_unless_it_is_told_to_be_quiet(say: Say, teller: Path) -> None:
    said = say("forecast", teller)
    assert "load, 80 % interval" in said.err and "• past   * expected   ░ interval" in said.err
    assert say("forecast", teller, "-q").err == ""


def test_forecast_and_picture_go_into_files(say: Say, teller: Path, tmp_path: Path) -> None:
    out, plot = tmp_path / "next.csv", tmp_path / "next.svg"
    said = say("forecast", teller, "--horizon", 20, "--level", 0.5, "-o", out, "--plot", plot)
    assert said.out == f"{out}\n{plot}\n"
    rows = table(out.read_text())
    assert len(rows) == 20 and rows[-1]["date"] == "2024-01-16 19:00"
    drawn = plot.read_text()
    assert drawn.startswith("<svg xmlns") and "load, 50 % interval" in drawn and "still, 50 % interval" in drawn
    wide = table(say("forecast", teller, "--level", 0.95).out)
    for narrow, row in zip(rows, wide):
        assert float(row["load_upper"]) >= float(narrow["load_upper"])
        assert row["load"] == narrow["load"]


def test_json_tells_the_same_as_csv(say: Say, teller: Path) -> None:
    found, rows = json.loads(say("forecast", teller, "--json").out), table(say("forecast", teller).out)
    assert (found["level"], found["times"]) == (0.8, [row["date"] for row in rows])
    assert [column["name"] for column in found["columns"]] == ["load", "still"]
    for key, name in (("expected", "load"), ("lower", "load_lower"), ("upper", "load_upper")):
        assert found["columns"][0][key] == pytest.approx([float(row[name]) for row in rows])


# Scores


def test_eval_stands_beside_what_anybody_could_say(say: Say, teller: Path) -> None:
    said = say("eval", teller, "--split", "test")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].endswith(" on test, 67 windows")
    assert [line.split()[0] for line in lines[1:5]] == ["MASE", "MAE", "RMSE", "coverage"]
    assert lines[5].split() == ["MASE", "model", "naive", "seasonal", "linear", "80", "%", "holds"]
    assert [line.split()[0] for line in lines[5:9]] == ["MASE", "load", "still", "mean"]
    found = json.loads(say("eval", teller, "--json").out)
    assert found["data"] == "test" and found["scores"][0]["name"] == "mase"
    detail = found["detail"]
    assert detail["columns"] == ["load", "still"] and detail["MASE"]["model"][1] is None
    assert set(detail["MASE"]) == {"model", "naive", "seasonal", "linear"}
    assert detail["MASE"]["linear"][0] < detail["MASE"]["naive"][0]


def test_a_score_that_is_asked_for_and_missed_ends_with_6(say: Say, teller: Path) -> None:
    assert say("eval", teller, "--min", "mae=100").code == 0
    missed = say("eval", teller, "--min", "mae=0.0001")
    assert missed.code == 6 and "above the 0.0001 that was asked for" in missed.err
    assert say("eval", teller, "--min", "coverage=101").code == 6
    assert say("eval", teller, "--min", "bleu=1").err == (
        'error: --min bleu=1: there is no score "bleu" here; there are mase, mae, rmse, coverage\n'
    )


def test_another_file_is_scored(say: Say, teller: Path, tmp_path: Path) -> None:
    (tmp_path / "later.csv").write_text(waves(100, 384))
    found = json.loads(say("eval", teller, "--data", tmp_path / "later.csv", "--json").out)
    assert found["data"] == str(tmp_path / "later.csv") and found["scores"][0]["n"] == 71


# Around it


def test_stats_and_dry_run_and_card_speak_of_a_series(say: Say, teller: Path) -> None:
    stats = say("data", "stats", teller.parent / "waves.toml").out.splitlines()
    assert stats[0] == "columns  load, still"
    assert stats[1] == "never change  still"
    assert stats[2] == "step     1 hour, a season is 24"
    assert stats[3:5] == ["train    252 rows", "valid    36 rows"]
    assert stats[5] == "epoch    223 windows in 4 batches of 64"
    dry = say("train", teller.parent / "waves.toml", "--dry-run")
    assert dry.code == 0 and "252 train, 36 valid rows, 1 hour apart" in dry.out
    card = (teller / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "to forecast" in card and f"regard forecast {teller}" in card


def test_new_writes_a_recipe_that_trains(say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert say("new", "mine", "--task", "forecast").code == 0
    (tmp_path / "data").mkdir()
    (tmp_path / "data/series.csv").write_text(waves())
    small = ["task.window=12", "task.horizon=3", "model.width=8", "train.steps=3"]
    assert say("train", "mine.toml", "-q", *small).code == 0
    assert len(table(say("forecast", "runs/mine").out)) == 3
    told = say("new", "other", "--task", "forecast", "--source-lang", "de")
    assert (told.code, told.err) == (
        2,
        "error: a series has no language; --source-lang and --target-lang are for translate\n",
    )


def test_a_stopped_run_goes_on_as_if_it_had_not_been_stopped(say: Say, teller: Path, tmp_path: Path) -> None:
    from regard.train import checkpoint

    for steps in (7, 30, 60):
        done = say("train", teller.parent / "waves.toml", "--out", tmp_path / "run", f"train.steps={steps}", "-q")
        assert done.code == 0
    one, other = (checkpoint.newest(path).checkpoint for path in (teller, tmp_path / "run"))
    assert one is not None and other is not None
    for group in ("model", "optimizer"):
        for name, tensor in one.tensors(group).items():
            assert tensor.equal(other.tensors(group)[name]), f"{group} {name}"


def test_what_a_forecast_hung_on_is_shown(say: Say, teller: Path, tmp_path: Path) -> None:
    said = say("look", teller, teller.parent / "waves.csv", "--view", "saliency")
    assert said.code == 0 and "load, the mean of 6 rows: gradient x input" in said.out
    assert say("look", teller, waves(), "--view", "saliency", "-o", tmp_path / "s.svg").code == 0
    assert (tmp_path / "s.svg").read_text().startswith("<svg")
    found = json.loads(say("look", teller, waves(), "--view", "saliency", "--json").out)
    assert found["columns"] == [str(i) for i in range(-24, 0)] and len(found["scores"]) == 1


def test_a_run_of_another_job_is_told_its_verb(say: Say, teller: Path, trained: Path) -> None:
    said = say("forecast", trained)
    assert said.code == 3
    assert said.err.strip().endswith(
        f'{trained} was trained to translate, so it cannot forecast; use: regard translate {trained} "..."'
    )
    assert say("translate", teller, "x").err.strip().endswith(f"use: regard forecast {teller}")


# Bad input


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("", 4, "bad.csv: it is empty; expected a CSV file, one time a line"),
        ("date,load\n2024-01-01,1\n2024-01-02,2\n", 2,
         'data.columns: bad.csv has no column "still" (columns: date, load)'),
        (waves(24).replace(",7\n", ",seven\n", 1), 4, 'bad.csv, line 2: "seven" in column still is not a number'),
        (waves(24).replace(",7\n", ",\n", 1), 4,
         'bad.csv, line 2: column still is empty (1 such cells); data.gaps = "carry" goes on with the last values'),
        (waves(24).replace(",7\n", ",NaN\n", 2), 4,
         'bad.csv, line 2: column still is empty (2 such cells); data.gaps = "carry" goes on with the last values'),
        (waves(24).replace("2024-01-01 05:00", "2024-01-01 05:20"), 4,
         "bad.csv, line 7: 2024-01-01 05:20 is not a whole number of steps after 2024-01-01 04:00; most rows are 1 "
         "hour apart, and a forecast needs all of them so: bring the series to one step first"),
        ("\n".join(line for line in waves(26).splitlines() if " 05:" not in line), 4,
         "bad.csv, line 7: 1 row is missing between 2024-01-01 04:00 and 2024-01-01 06:00 (rows are 1 hour apart; 1 "
         'missing in all); data.gaps = "carry" goes on with the last values'),
        (waves(23), 4, "there are 23 rows, and this model reads the last 24; give it as many"),
        ("\ufeff" + waves(24).replace("load", "lo\x00ad"), 4, "there is a NUL byte"),
    ],
)  # fmt: skip
def test_a_bad_file_is_told_and_what_was_written_stays(
    text: str, code: int, message: str, say: Say, teller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.csv").write_text(text, encoding="utf-8")
    Path("next.csv").write_text("from another day\n")
    said = say("forecast", teller, "bad.csv", "-o", "next.csv")
    assert said.code == code and said.out == ""
    assert message in said.err and said.err.startswith("error: ")
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
def test_a_bad_request_is_told(arguments: list[str], code: int, message: str, say: Say, teller: Path) -> None:
    said = say("forecast", teller, *arguments)
    assert (said.code, said.out, said.err) == (code, "", f"error: {message}\n")


def test_the_file_that_is_read_is_not_written(say: Say, teller: Path) -> None:
    said = say("forecast", teller, teller.parent / "waves.csv", "-o", teller.parent / "waves.csv")
    assert said.code != 0 and (teller.parent / "waves.csv").read_text() == waves()


@pytest.mark.parametrize(
    ("settings", "code", "message"),
    [
        (["data.train=none.csv"], 66, "none.csv: there is no such file"),
        (["data.columns=[\"wind\"]"], 2, 'has no column "wind" (columns: date, load, still)'),
        (["data.columns=[\"still\"]"], 4, "no column ever changes in training (still); there is nothing to foretell"),
        (["task.horizon=300"], 4, "there are 252 rows to learn from, and one window takes 324: 24 of the past and 300 "
         "of the horizon; lower task.window or task.horizon, or give more data"),
        (["task.horizon=40"], 4, "there are 60 rows to validate on, and one window takes 64: 24 of the past and 40 of "
         "the horizon; lower task.window or task.horizon, or give data.split a larger second part"),
        (["task.season=300"], 4,
         "there are 252 rows to learn from, not one season of 300; set task.season, or give more"),
        (["task.horizon=0"], 2, "task: horizon = 0 must be at least 1"),
        (["task.head=normal"], 2, "task.head: expected one of point, gaussian, laplace, got 'normal'"),
        (["task.patch=5"], 2, "task.patch = 5 does not divide the 24 rows that are read"),
        (["task.patch=8"], 2, "task.patch = 8: an mlp sees one place alone, and would know nothing of the other 16 "
         "rows; leave it out"),
        (["data.calendar=[\"hour\"]", "task.patch=7"], 2, "task.patch = 7 does not divide the 30 rows that are read "
         "(window 24 + horizon 6, of which something is known)"),
        (["task.window=0", "task.around=nothing"], 2,
         "task.window = 0 reads nothing but what is known; name columns in data.known"),
        (["train.select=bleu"], 2, "train.select: expected one of loss, mae, mase, got 'bleu'"),
        (["data.split=[300, 50, 50]"], 4, "has 360 rows, and data.split asks for 400; ask for fewer"),
        (["text.size=100"], 2, 'unknown setting "text"'),
    ],
)  # fmt: skip
def test_a_recipe_that_cannot_work_is_told(
    settings: list[str], code: int, message: str, say: Say, teller: Path, tmp_path: Path
) -> None:
    said = say("train", teller.parent / "waves.toml", "--out", tmp_path / "run", *settings)
    assert said.code == code, said.err
    assert message in said.err
    assert not (tmp_path / "run/checkpoints").exists()
