"""regard compare: a family from a recipe, runs in a table, a sentence through all of them."""

import json
import signal
from pathlib import Path

import pytest

from helpers import PATIENCE, wait_until

FAMILY = """
[data]
kind = "phrases"
count = 300
[text]
vocab_size = 150
[train]
steps = 6
validate_every = 3
batch_tokens = 256
[task]
bleu_sentences = 2
[family.lstm]
kind = "seq2seq"
layers = 1
width = 8
[family.transformer]
kind = "transformer"
layers = 1
width = 16
heads = 2
ffn_width = 32
"""


@pytest.fixture
def family(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("family.toml").write_text(FAMILY, encoding="utf-8")
    return Path("family.toml")


def test_the_data_of_a_family_is_prepared_once_and_described_before_it_is_trained(family, run_cli, monkeypatch):
    result = run_cli("data", "prepare", family)
    assert (result.code, result.out) == (0, "runs/family/prepared\n"), result.err
    assert [path.name for path in Path("runs/family").iterdir()] == ["prepared"]
    prepared = Path("runs/family/prepared/data/identity.json").stat().st_mtime_ns
    found = json.loads(run_cli("data", "stats", family, "--json").out)
    assert found["train"]["read"] > 200
    assert run_cli("compare", family, "train.steps=1", "-q").code == 0
    assert Path("runs/family/prepared/data/identity.json").stat().st_mtime_ns == prepared


def test_a_family_is_trained_and_compared_and_the_same_command_only_compares_again(family, run_cli):
    result = run_cli("compare", family)
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[0] == "  ".join(lines[0].split("  ")) and lines[0].split()[:2] == ["model", "bleu"]
    assert lines[0].endswith("parameters  seconds  tokens/s  ms/sentence  against the best")
    assert {line.split()[0] for line in lines[1:3]} == {"lstm", "transformer"}
    assert "BLEU by the length of the source" in result.out
    assert sorted(path.name for path in Path("runs/family").iterdir()) == [
        "compare.json", "compare.md", "compare.toml", "lengths.svg", "lstm", "prepared", "transformer"]  # fmt: skip
    before = Path("runs/family/lstm/metrics.jsonl").read_bytes()
    again = run_cli("compare", family)
    assert (again.code, again.out) == (0, result.out)
    assert Path("runs/family/lstm/metrics.jsonl").read_bytes() == before
    assert run_cli("compare", "runs/family").out == result.out
    rows = json.loads(run_cli("compare", "runs/family/lstm", "runs/family/transformer", "--json").out)["models"]
    assert [row["name"] for row in rows] == ["lstm", "transformer"]
    answers = run_cli("compare", "runs/family/lstm", "runs/family/transformer", "--", "je suis étudiant")
    assert answers.code == 0
    assert "lstm: " in answers.out and "no attention" in answers.out and "decoder.layers.0.cross.weights" in answers.out
    assert run_cli("compare", "runs/family", "--", "je suis étudiant").out == answers.out
    assert run_cli("compare", family, "--", "je suis étudiant").out == answers.out
    plotted = run_cli("compare", "runs/family/lstm", "runs/family/transformer", "-o", "a.svg", "--", "je suis")
    assert plotted.out == "a.svg\n" and Path("a.svg").read_text(encoding="utf-8").startswith("<svg")
    found = run_cli("compare", "runs/family/lstm", "runs/family/transformer", "--json", "--", "je suis")
    assert [row["attention"] is None for row in json.loads(found.out)] == [True, False]
    saved = run_cli("compare", "runs/family/lstm", "runs/family/transformer", "--out", "here/there")
    assert saved.code == 0 and saved.out == result.out
    for name in ("compare.json", "compare.md", "lengths.svg"):
        assert Path("here/there", name).read_text(encoding="utf-8") == Path("runs/family", name).read_text("utf-8")
    refused = run_cli("compare", family, "seed=7")
    assert refused.code == 2 and "or remove runs/family to train again" in refused.err and "--fresh" not in refused.err
    twice = run_cli("compare", "runs/family/lstm", "runs/../runs/family/lstm")
    assert (twice.code, twice.err) == (
        2, "error: runs/../runs/family/lstm is given twice; a model is compared with others\n")  # fmt: skip


WILD = '[family.lstm.train.schedule]\nkind = "constant"\nlr = 1e38\n'


def test_a_model_that_diverges_is_reported_at_once_and_under_the_table(family, run_cli):
    family.write_text(FAMILY + WILD, encoding="utf-8")
    result = run_cli("compare", family)
    assert result.code == 0
    lines = {line.split()[0]: line for line in result.out.splitlines()[1:3]}
    assert lines["lstm"].endswith("no score") and lines["transformer"].endswith("the best")
    assert "\nlstm: training diverged at step " in result.out
    assert 0 < result.err.index(" lstm has no score: training diverged at step ") < result.err.index("\n transformer\n")
    assert run_cli("compare", family).out == result.out
    omitted = run_cli("compare", family, "--", "je suis")
    assert (omitted.code, omitted.err) == (2, " runs/family/lstm is left out: it has no checkpoint\n"
                                     "error: a comparison needs at least two models; 1 was given\n")  # fmt: skip


def test_a_family_of_which_all_diverge_has_its_table_and_the_code_of_divergence(family, run_cli):
    family.write_text(FAMILY + WILD + WILD.replace("lstm", "transformer"), encoding="utf-8")
    result = run_cli("compare", family, "-q")
    assert (result.code, result.err) == (5, "error: no model has a score: all 2 diverged\n")
    assert [line.split()[0] for line in result.out.splitlines()[1:3]] == ["lstm", "transformer"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["."], 2, "a comparison needs at least two models; 1 was given"),
        (["runs/none", "runs/other"], 3,
         "runs/none is not a run: there is no such directory; a text goes after --"),
        ([".", "je suis"], 3, "je suis is not a run: there is no such directory; a text goes after --"),
        (["family.toml", "--", "je suis"], 3,
         "runs/family has no trained model; train them first: regard compare family.toml"),
        (["runs/a", "runs/b", "seed=7"], 2,
         "seed=7: a setting applies to the recipe of a family, and none is given; a text goes after --"),
        (["runs/a", "runs/b", "--out", "here", "--", "x"], 2,
         "--out here: the answers to a text are saved with -o FILE"),
        (["none.toml"], 66, "cannot open the recipe none.toml: No such file or directory"),
        (["runs/a", "runs/b", "--", " "], 4, "the text is empty; there is nothing to compare"),
        (["runs/a", "runs/b", "-o", "a.png", "--", "x"], 2,
         "-o a.png: the answers to a text after -- can be written to a file that ends in .svg or .json; a table is "
         "saved with --out FOLDER"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(family, run_cli, arguments, code, message):
    result = run_cli("compare", *arguments)
    assert (result.code, result.err) == (code, f"error: {message}\n")


def test_models_of_different_tasks_are_not_compared(family, run_cli):
    run_cli("compare", family, "-q")
    Path("book.txt").write_text("the cat sat on the mat and slept. " * 60, encoding="utf-8")
    settings = [
        "task.kind=generate",
        "data={kind = 'text', train = 'book.txt'}",
        "task.window=8",
        "train.batch_tokens=32",
    ]
    model = ["model={kind = 'rnnlm', layers = 1, width = 8}", "train.steps=2"]
    Path("lm.toml").write_text("", encoding="utf-8")
    assert run_cli("train", "lm.toml", *settings, *model, "-q").code == 0
    result = run_cli("compare", "runs/family/lstm", "runs/lm")
    assert (result.code, result.err) == (
        3,
        "error: runs/family/lstm was trained to translate and runs/lm to generate; only models of one task can be "
        "compared\n",
    )


@pytest.mark.slow
def test_ctrl_c_saves_and_the_same_command_resumes(family, start, run_cli):
    long = "steps = 600\nvalidate_every = 600\nsave_every = 20"  # the signal comes long before the end
    family.write_text(FAMILY.replace("steps = 6\nvalidate_every = 3", long), encoding="utf-8")
    process = start("compare", family)
    wait_until(Path("runs/family/transformer/last").exists, "the second model is saved", process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert "the checkpoint is written, run the same command again to resume" in err
    result = run_cli("compare", family)
    assert result.code == 0
    assert "resumed  at step" in result.err


def test_the_processes_of_a_family_print_as_much_as_the_command_that_starts_them(family, run_cli, monkeypatch):
    commands: list[list[str]] = []
    monkeypatch.setattr("regard.train.parallel.launch", lambda count, command: commands.append(command) or 2)
    assert run_cli("compare", family, "--nproc", 2, "-v").code == 2
    assert commands[0][3:] == ["train", "runs/family/lstm", "-v"]


@pytest.mark.slow
def test_models_may_be_trained_by_several_processes_and_stdout_has_only_the_table(family, start):
    process = start("compare", family, "--nproc", 2, "--json", stderr=None)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert [row["name"] for row in json.loads(out)["models"]] == ["lstm", "transformer"]
    metrics = Path("runs/family/lstm/last/state.json").read_text(encoding="utf-8")
    assert json.loads(metrics)["state"]["processes"] == 2
