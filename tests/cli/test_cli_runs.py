"""regard eval, average, look, runs, data: commands on trained runs."""

import json
import resource
import shutil
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.train import checkpoint
from regard.train.checkpoint_store import checkpoints


def test_eval_prints_each_score_with_its_signature_and_interval(trained, run_cli):
    result = run_cli("eval", trained)
    assert result.code == 0
    head, *rows = result.out.splitlines()
    assert head == f"{trained} at step 30 on test, 3 sentences"
    assert "warning" not in result.err
    assert [row.split()[0] for row in rows] == ["BLEU", "chrF", "TER", "perplexity"]
    assert all("(95 %: " in row for row in rows)
    assert "tok:13a|smooth:exp|version:" in rows[0]
    assert "loss " in rows[3]


def test_eval_as_json_agrees_with_what_the_trainer_measured(trained, run_cli):
    found = json.loads(run_cli("eval", trained, "--split", "valid", "--beam", 1, "--json").out)
    scores = {score["name"]: score["value"] for score in found["scores"]}
    lines = (trained / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    validated = [row for row in map(json.loads, lines) if row["event"] == "validated"][-1]
    assert scores["perplexity"] == pytest.approx(validated["ppl"], rel=1e-4)
    assert scores["bleu"] == pytest.approx(validated["bleu"], abs=1e-3)


def test_eval_ends_with_6_if_a_score_is_missed(trained, run_cli):
    result = run_cli("eval", trained, "--min", "bleu=99", "--min", "chrf=0")
    assert result.code == 6
    assert result.err.startswith("error: bleu is ")
    assert result.err.endswith(", below the required 99\n")
    assert "BLEU" in result.out


def test_eval_refuses_a_score_it_does_not_know_before_any_work(trained, run_cli):
    result = run_cli("eval", trained, "--min", "blue=3")
    assert result.code == 2
    expected = 'error: --min blue=3: there is no score "blue" here; there are bleu, chrf, ter, perplexity\n'
    assert result.err == expected


def test_eval_takes_two_files(trained, run_cli, tmp_path):
    french, english = tmp_path / "a.fr", tmp_path / "a.en"
    french.write_text("je suis\nle chat\n")
    english.write_text("I am\nthe cat\n")
    assert json.loads(run_cli("eval", trained, "--data", french, english, "--json").out)["scores"][0]["n"] == 2
    english.write_text("I am\n")
    result = run_cli("eval", trained, "--data", french, english)
    assert result.code == 4
    assert result.err == f"error: {french} has 2 lines but {english} has 1; sentence pairs need the same number\n"


def test_the_average_of_checkpoints_is_a_model(trained, run_cli, tmp_path):
    out = tmp_path / "mean"
    result = run_cli("average", trained, "--last", 3, "--out", out)
    assert (result.code, result.out, result.err) == (0, f"{out}\n", "the mean of steps 10, 20, 30\n")
    mean = regard.load(out).module.state_dict()
    parts = [regard.load(path).module.state_dict() for path in sorted((trained / "checkpoints").iterdir())]
    for name, weight in mean.items():
        assert weight == pytest.approx(sum(part[name].double() for part in parts) / 3, abs=1e-6)
    result = run_cli("average", trained, "--last", 3, "--out", out)
    assert (result.code, result.err) == (74, f"error: {out} exists already; name another with --out\n")
    result = run_cli("average", trained, "--last", 9)
    expected = (
        f"error: {trained} has 3 checkpoints, 9 were asked for; train with train.keep_checkpoints=9, or use --last 3\n"
    )
    assert (result.code, result.err) == (3, expected)


def test_without_last_all_kept_checkpoints_are_averaged(trained, run_cli, tmp_path):
    result = run_cli("average", trained, "--out", tmp_path / "mean")
    assert (result.code, result.err) == (0, "the mean of steps 10, 20, 30\n")


@pytest.fixture
def rolled_back(trained, tmp_path):
    """A run with its initial weights, a step that was saved twice, and a step after `last`."""
    run = tmp_path / "run"
    shutil.copytree(trained, run, symlinks=True)
    weights = checkpoint.read(run / "checkpoints/00000010").tensors("model")
    for step in (20, 0):
        checkpoint.save(run, step, {"model": weights}, {"step": step, "steps": 30}, keep=9)
    shutil.copytree(trained / "checkpoints", run / "checkpoints", dirs_exist_ok=True)  # saving removed some
    (run / "last").unlink()
    (run / "last").symlink_to("checkpoints/00000020-2")
    names = ["00000000", "00000010", "00000020", "00000020-2", "00000030"]
    assert [path.name for path in checkpoints(run)] == names
    return run


def test_the_average_ends_at_the_last_checkpoint_and_leaves_out_initial_weights(rolled_back, run_cli, tmp_path):
    result = run_cli("average", rolled_back, "--out", tmp_path / "mean")
    assert (result.code, result.err) == (0, "the mean of steps 10, 20\n")
    mean = regard.load(tmp_path / "mean").module.state_dict()
    for name, weight in regard.load(rolled_back / "checkpoints/00000020-2").module.state_dict().items():
        assert weight == pytest.approx(mean[name], abs=1e-6)  # steps 10 and 20-2 are equal
    last = rolled_back / "last"
    last.unlink()
    shutil.copytree(rolled_back / "checkpoints/00000010", last)  # as tools without links copy it
    assert run_cli("average", rolled_back, "--out", tmp_path / "one").err == "the mean of steps 10\n"
    shutil.rmtree(last)
    last.symlink_to("checkpoints/00000000")
    assert run_cli("average", rolled_back, "--out", tmp_path / "initial").err == "the mean of steps 0\n"


def test_a_checkpoint_of_the_initial_weights_is_shown_as_one(rolled_back, run_cli):
    (rolled_back / "last").unlink()
    (rolled_back / "last").symlink_to("checkpoints/00000000")
    assert ": transformer, 0 of 30 steps\n" in run_cli("runs", "show", rolled_back).out


def test_an_average_that_fails_leaves_nothing_behind(trained, run_cli, tmp_path):
    run, out = tmp_path / "run", tmp_path / "run-average"
    shutil.copytree(trained, run, symlinks=True)
    real = (run / "tokenizer.json").read_bytes()
    (run / "tokenizer.json").unlink()
    result = run_cli("average", run)
    message = f"error: {run / 'tokenizer.json'}: it is missing; this run is damaged, restore the file from a copy\n"
    assert (result.code, result.err, out.exists()) == (3, message, False)
    (run / "tokenizer.json").write_bytes(real)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((run / "last/model.safetensors").stat().st_size - 1, limits[1]))
    try:
        result = run_cli("average", run)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (result.code, "raise `ulimit -f`" in result.err, out.exists()) == (74, True, False)
    assert run_cli("average", run).code == 0


def test_look_prints_a_text_without_control_characters(trained, run_cli):
    result = run_cli("look", trained, "je \x1b[31msuis \u202eici " + "encore " * 60)
    assert not {"\x1b", "\u202e"} & set(result.err) and len(result.err) < 1000


def test_look_draws_a_heat_map(trained, run_cli):
    result = run_cli("look", trained, "je suis étudiant")
    assert result.code == 0
    assert result.out.splitlines()[0] == "decoder.layers.0.cross.weights, mean of 2 heads"
    assert "<EOS>" in result.out
    assert result.err.startswith("je suis étudiant -> ")
    one = run_cli("look", trained, "je suis", "--name", "encoder.*", "--layer", 0, "--head", 1)
    assert one.out.splitlines()[0] == "encoder.layers.0.attention.weights, head 1 of 2"


def test_look_writes_pictures_and_data(trained, run_cli, tmp_path):
    for suffix in ("svg", "json", "safetensors"):
        path = tmp_path / f"a.{suffix}"
        assert run_cli("look", trained, "je suis", "-o", path).out == f"{path}\n"
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").startswith("<svg")
    weights = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["weights"]
    assert json.loads(run_cli("look", trained, "je suis", "--json").out)["weights"] == weights
    saved = regard.Recording.load(tmp_path / "a.safetensors").attention()
    assert saved.weights == pytest.approx(np.array(weights), abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--head", "7"], 2, "head: decoder.layers.0.cross.weights has the heads 0 to 1, got 7"),
        (["--layer", "3"], 2, "layer: the layers of that attention are 0, got 3"),
        (["-o", "a.bmp"], 2, "-o a.bmp: expected a name that ends in .svg, .png, .json, .html, .safetensors"),
        (["-o", "/proc/none/a.svg"], 74, "/proc/none/a.svg: cannot be written (No such file or directory)"),
    ],
)
def test_look_reports_what_cannot_be_shown(trained, run_cli, arguments, code, message):
    result = run_cli("look", trained, "je suis", *arguments)
    assert (result.code, result.err.splitlines()[-1]) == (code, f"error: {message}")


def test_an_empty_text_is_nothing_to_look_at(trained, run_cli):
    result = run_cli("look", trained, " ")
    assert (result.code, result.err) == (4, "error: the text is empty; there is nothing to look at\n")


def test_runs_are_listed_shown_and_compared(trained, tiny, run_cli):
    run_cli(
        "train",
        tiny,
        "model.width=8",
        "train.steps=2",
        "task.bleu_sentences=0",
        "-q",
        "--out",
        trained.parent / "other",
    )
    rows = {Path(row["run"]).name: row for row in json.loads(run_cli("runs", "ls", trained.parent, "--json").out)}
    assert (rows["run"]["step"], rows["other"]["step"]) == (30, 2)
    lines = run_cli("runs", "ls", trained.parent).out.splitlines()
    assert lines[0].split() == ["run", "model", "step", "loss", "BLEU", "changed"]
    assert {line.split()[0] for line in lines[1:]} == {row["run"] for row in rows.values()}
    output = run_cli("runs", "show", trained).out
    assert output.startswith(f"{trained}: transformer, 30 of 30 steps\n  step      10  loss ")
    assert len(json.loads(run_cli("runs", "show", trained, "--json").out)["validations"]) == 3
    result = run_cli("runs", "diff", trained, trained.parent / "other").out
    assert "model.width was 16, is 8\n" in result
    assert run_cli("runs", "rm", trained.parent / "other", "--yes").code == 0


def test_only_runs_are_removed_and_only_when_sure(tiny, run_cli):
    Path("letters").mkdir()
    result = run_cli("runs", "rm", "letters", "--yes")
    assert (result.code, result.err) == (3, "error: letters is not a run: it has no recipe.toml\n")
    result = run_cli("runs", "rm", "nothing", "--yes")
    assert (result.code, result.err) == (3, "error: nothing is not a run: there is no such directory\n")
    tiny.rename("letters/recipe.toml")
    result = run_cli("runs", "rm", "letters")
    assert (result.code, result.err) == (
        2,
        "error: stdin is not a terminal, so the removal cannot be confirmed; use --yes\n",
    )
    assert run_cli("runs", "rm", "letters", "--yes").err == "removed letters\n"
    assert not Path("letters").exists()


def test_a_folder_without_runs_is_reported(tiny, run_cli):
    assert run_cli("runs", "ls").code == 66
    assert run_cli("runs", "ls", ".").err == "there is no run in .\n"


def test_data_stats_counts_what_is_kept_and_dropped(tiny, run_cli):
    lines = [f"le chat {i}\tthe cat {i}\n" for i in range(300)]
    Path("a.tsv").write_text("".join([*lines, *lines[:2], "\tnothing\n", "le même\tle même\n"]), encoding="utf-8")
    tiny.write_text(tiny.read_text().replace('kind = "phrases"\ncount = 300', 'kind = "tsv"\ntrain = "a.tsv"'))
    found = json.loads(run_cli("data", "stats", tiny, "--json").out)
    assert found["train"]["dropped"] == {"empty": 1, "identical sides": 1, "duplicates": 2}
    assert found["train"]["read"] + found["valid"]["read"] == 304
    assert found["train"]["kept"] == found["train"]["read"] - 4
    assert 0 <= found["train"]["padding"]["target"] < 0.05
    result = run_cli("data", "stats", tiny)
    assert f"{found['train']['kept']} of {found['train']['read']} pairs; dropped: 1 empty, " in result.out
    assert not Path("runs").exists()


def test_data_that_is_prepared_is_not_prepared_again(tiny, run_cli):
    assert run_cli("data", "prepare", tiny).out == "runs/tiny\n"
    before = Path("runs/tiny/data/train/manifest.json").stat().st_mtime_ns
    assert run_cli("train", tiny, "train.steps=2", "-q").code == 0
    assert Path("runs/tiny/data/train/manifest.json").stat().st_mtime_ns == before
