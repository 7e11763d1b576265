"""regard train: its output, resuming, interruption, and invalid input."""

import json
import os
import re
import signal
from pathlib import Path
from typing import get_args

import pytest

from helpers import PATIENCE, says, wait_until
from regard.models import ModelConfig
from regard.run import Run
from regard.train import checkpoint


def test_training_shows_data_model_speed_and_a_row_for_each_validation(tiny, run_cli):
    result = run_cli("train", tiny)
    assert result.code == 0
    lines = result.err.splitlines()
    assert lines[0] == " data     294 train, 3 valid pairs       tokens  bpe 200 shared"
    assert lines[1] == " model    transformer 1+1 layers, 2 heads, width 16, 8,768 parameters"
    assert re.fullmatch(r" device   cpu, 1 thread, about [\d,]+ tokens/s, ETA \d+ s, peak \d\.\d GiB", lines[2])
    assert lines[3] == " losses   of validation, without label smoothing; the training loss has label smoothing 0.1"
    assert lines[4].split() == ["step", "loss", "ppl", "BLEU", "lr", "grad", "tok/s"]
    assert [line.split()[0] for line in lines[5:]] == ["10", "20", "30"]
    assert all(" -> " in line for line in lines[5:])
    assert re.match(r" best loss \d\.\d+, BLEU [\d.]+ at step 30 -> runs/tiny      next: regard translate", result.out)
    assert Path("runs/tiny/log.txt").read_text(encoding="utf-8") == result.err
    card = Path("runs/tiny/MODEL_CARD.md").read_text(encoding="utf-8")
    assert "- data: phrases fr-en. Made by the rules of regard. License: MIT\n" in card
    events = [json.loads(line)["event"] for line in Path("runs/tiny/metrics.jsonl").read_text().splitlines()]
    assert events.count("validated") == 3


def test_sentences_that_a_recipe_names_are_shown_under_each_validation(tiny, run_cli):
    result = run_cli("train", tiny, "task.sample_inputs=['je suis étudiant', 'il mange']")
    lines = [line for line in result.err.splitlines() if line.startswith("    ")]
    assert [line.split(" -> ")[0].strip() for line in lines] == ["je suis étudiant", "il mange"] * 3


def test_the_same_command_resumes_and_may_ask_for_more_steps(tiny, run_cli):
    assert run_cli("train", tiny, "-q").err == ""
    result = run_cli("train", tiny, "train.steps=40", "train.timeout=3", "--json")
    assert json.loads(result.out)["step"] == 40
    assert " resumed  at step 30 of 40\n" in result.err
    assert json.loads(run_cli("train", "runs/tiny", "--json").out)["step"] == 40
    result = run_cli("train", tiny, "train.steps=10")
    assert " finished at step 40 already; 10 steps ask for no more training\n" in result.err
    assert "resumed" not in result.err and result.code == 0


def test_the_next_commands_quote_a_path_with_spaces(tiny, run_cli):
    result = run_cli("train", tiny, "train.steps=1", "--out", "my runs/a")
    assert result.out.rstrip().endswith("regard eval 'my runs/a'") and "translate 'my runs/a' " in result.out
    assert "regard eval 'my runs/a'\n" in Path("my runs/a/MODEL_CARD.md").read_text()
    assert "train 'my own.toml' --dry-run" in run_cli("new", "my own", "--task", "translate").err


def test_resuming_with_another_recipe_is_refused_and_lists_the_differences(trained, tiny, run_cli):
    result = run_cli("train", tiny, "model.width=32", "--out", trained)
    assert result.code == 2
    assert result.err.startswith(
        f"error: {trained} was started with another recipe: model.width was 16, is 32. Use --out"
    )


def test_fresh_starts_over_and_never_deletes_what_is_not_a_run(tiny, run_cli):
    assert run_cli("train", tiny, "-q").code == 0
    assert run_cli("train", tiny, "--fresh", "model.width=8", "train.steps=10", "-q").code == 0
    assert Run(Path("runs/tiny")).recipe().model.width == 8
    Path("letters").mkdir()
    Path("letters/a.txt").write_text("Dear")
    result = run_cli("train", tiny, "--fresh", "--out", "letters")
    assert (result.code, result.err) == (3, "error: letters is not a run: it has no recipe.toml\n")
    assert [path.name for path in Path("letters").iterdir()] == ["a.txt"]
    assert run_cli("train", tiny, "--fresh", "train.steps=2", "-q", "--out", "new").code == 0


def test_a_dry_run_prints_an_estimate_and_writes_nothing(tiny, run_cli):
    result = run_cli("train", tiny, "--dry-run")
    assert result.code == 0
    assert "8,768 parameters" in result.out
    assert re.search(
        r" steps    30 of about \d\.\d\d s, [\d,]+ tokens/s\n memory   \d\.\d GiB at most\n time  ", result.out
    )
    assert json.loads(run_cli("train", tiny, "--dry-run", "--json").out)["parameters"] == 8768
    assert [path.name for path in Path().iterdir()] == ["tiny.toml"]


def test_a_dry_run_measures_the_memory_of_the_device_it_ran_on(tiny, run_cli, monkeypatch):
    monkeypatch.setattr("regard.cli.dry_run.peak_memory", lambda device="?": {"cpu": 2.5}[device])  # no GPU is needed
    result = run_cli("train", tiny, "--dry-run", "--device", "cpu")
    assert " memory   2.5 GiB at most" in result.out, result.err


@pytest.mark.parametrize(("given", "passed"), [(["-v"], ["-v"]), (["-q"], ["-q"]), ([], [])])
def test_the_processes_print_as_much_as_the_command_that_starts_them(tiny, run_cli, monkeypatch, given, passed):
    commands: list[list[str]] = []
    monkeypatch.setattr("regard.train.parallel.launch", lambda count, command: commands.append(command) or 0)
    assert run_cli("train", tiny, "--nproc", 2, *given).code == 0
    assert commands[0][commands[0].index("--out") + 2 :] == passed


def test_a_budget_on_the_command_line_replaces_the_recipes(tiny, run_cli):
    values = json.loads(run_cli("config", "show", tiny, "train.epochs=2", "--json").out)
    assert "steps" not in values["train"] and values["train"]["epochs"] == 2.0
    result = run_cli("train", tiny, "train.epochs=2", "train.steps=7")
    message = "train: give one of steps, epochs and minutes, not several (steps = 7, epochs = 2.0)"
    assert (result.code, result.err) == (2, f"error: {message}\n")


def test_a_dry_run_leaves_a_run_as_it_is(trained, run_cli):
    before = {path: path.stat().st_mtime_ns for path in trained.rglob("*")}
    assert run_cli("train", trained, "--dry-run").code == 0
    assert {path: path.stat().st_mtime_ns for path in trained.rglob("*")} == before


def test_an_average_can_be_used_and_not_trained(trained, tiny, run_cli):
    run_cli("average", trained, "--last", 2, "--out", "mean")
    result = run_cli("train", "mean")
    assert result.code == 3
    assert result.err == "error: mean has weights but no optimizer state to resume from; use --out for a new run\n"


KINDS = ", ".join(model.kind for model in get_args(get_args(ModelConfig)[0]))
UNKNOWN = (
    "did you mean model.layers (number of stacked layers, in the encoder and, without decoder_layers, in the decoder, "
    "now 1)?"
)


def test_the_error_for_an_unknown_setting_says_where_it_was_given(tiny, run_cli):
    result = run_cli("train", tiny, "model.layer=3")
    assert result.code == 2
    assert result.err == f'error: unknown setting "model.layer", given on the command line; {UNKNOWN}\n'
    tiny.write_text(tiny.read_text().replace("width = 16", "width = 16\nlayer = 2"))
    assert run_cli("train", tiny).err == f'error: unknown setting "model.layer", in tiny.toml; {UNKNOWN}\n'


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("train.steps=many", "train.steps: expected a whole number, got 'many'"),
        ("model.heads=3", "model: heads = 3 does not divide width = 16; every head needs an equal share of it"),
        ("=5", '"=5" is not a setting; write key=value, for example train.steps=100'),
        ("steps", '"steps" is not a setting; write key=value, for example train.steps=100'),
        ("model.kind=transformr", f"model.kind: expected one of {KINDS}, got 'transformr'; did you mean transformer?"),
        ("train.timeout=0", "train: timeout = 0.0 must be above 0"),
        ("decode.beam=0", "decode: beam = 0 must be between 1 (greedy) and 1000"),
        ("data.count=5", "data: count: expected 100 to 500,000 phrases, got 5"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_refused_before_any_work(tiny, run_cli, setting, message):
    result = run_cli("train", tiny, setting)
    assert (result.code, result.err) == (2, f"error: {message}\n")
    assert not Path("runs").exists()


def test_a_name_that_the_file_system_refuses_is_no_bug(tiny, run_cli):
    name = "n" * 300
    message = f"error: {name[:40]}... is a longer name than the file system allows; choose a shorter one\n"
    for arguments in (("translate", name, "je"), ("train", tiny, "--out", name)):
        result = run_cli(*arguments)
        assert (result.code, result.err) == (2, message)


def test_a_missing_recipe_and_invalid_toml_are_reported(tiny, run_cli):
    result = run_cli("train", "none.toml")
    assert (result.code, result.err) == (66, "error: cannot open the recipe none.toml: No such file or directory\n")
    tiny.write_text("steps 3")
    result = run_cli("train", tiny)
    assert result.code == 2
    assert result.err.startswith("error: tiny.toml is not TOML: ")
    tiny.write_text("# nothing yet\n")
    message = "error: tiny.toml has no setting; expected a recipe, as `regard new NAME` writes one\n"
    assert (run_cli("train", tiny).code, run_cli("train", tiny).err) == (2, message)
    Path("empty").mkdir()
    assert run_cli("train", "empty").err == "error: empty is not a run: it has no recipe.toml\n"


@pytest.mark.parametrize(
    ("french", "english", "code", "message"),
    [
        (b"un\ndeux\n", b"one\n", 4, "a.fr has 2 lines but a.en has 1; sentence pairs need the same number"),
        (b"", b"", 4, "a.fr and a.en are empty; expected one sentence per line"),
        (None, b"one\n", 66, "a.fr: there is no such file"),
        (b"un\n\xe9t\xe9\n", b"one\nsummer\n", 4, "a.fr, line 2: byte 1 (0xe9) is not UTF-8; convert the file, "
         "for example with: iconv -f LATIN1 -t UTF-8"),
        (b"un\n\0\n", b"one\ntwo\n", 4, "a.fr, line 2: there is a NUL byte; it looks like a binary or UTF-16 file, "
         "expected UTF-8 text"),
    ],
)  # fmt: skip
def test_unusable_data_is_named_with_file_and_line(tiny, run_cli, french, english, code, message):
    for name, content in (("a.fr", french), ("a.en", english)):
        if content is not None:
            Path(name).write_bytes(content)
    tiny.write_text(
        tiny.read_text().replace('kind = "phrases"\ncount = 300', 'kind = "files"\ntrain = ["a.fr", "a.en"]')
    )
    result = run_cli("train", tiny)
    assert (result.code, result.err.splitlines()[-1]) == (code, f"error: {message}")
    assert not Path("runs").exists()  # nothing was begun
    assert (run_cli("data", "prepare", tiny).code, Path("runs").exists()) == (code, False)


def test_corrected_data_can_be_trained_in_the_same_run(tiny, run_cli):
    tiny.write_text(tiny.read_text().replace('kind = "phrases"\ncount = 300', 'kind = "tsv"\ntrain = "none.tsv"'))
    assert run_cli("train", tiny).code == 66
    lines = [f"le chat numéro {i}\tcat number {i}\n" for i in range(200)]
    Path("pairs.tsv").write_text("".join(lines), encoding="utf-8")
    assert run_cli("train", tiny, "data.train=pairs.tsv", "train.steps=2", "-q").code == 0


def test_an_output_that_cannot_be_written_ends_with_74(tiny, run_cli):
    Path("file").write_text("")
    result = run_cli("train", tiny, "--out", "file/run")
    assert result.code == 74
    assert result.err == "error: file/run: cannot be written (Not a directory)\n"


ADVICE = r"There is no good checkpoint; start again with --fresh and a lower train.schedule.lr or train.clip_norm\n$"


def test_a_loss_that_is_not_a_number_ends_with_5(tiny, run_cli):
    result = run_cli("train", tiny, "train.schedule.lr=1e38", "train.schedule.warmup=1", "train.clip_norm=0")
    assert result.code == 5
    reason = r"the loss or the gradient is NaN or infinite \(first in .+\)\. "
    assert re.search(rf"error: training diverged at step \d+: {reason}{ADVICE}", result.err)


def test_a_rate_of_1e37_that_the_first_validation_shows_ends_with_5(tiny, run_cli):
    rate = "train.schedule={kind = 'constant', lr = 1e37, warmup = 0}"
    result = run_cli("train", tiny, rate, "train.validate_every=1")
    assert result.code == 5
    reason = r"at the validation the weights or the loss are NaN or infinite\. "
    assert re.search(rf"error: training diverged at step 1: {reason}{ADVICE}", result.err)
    assert Path("runs/tiny/diverged.json").is_file()


def test_a_learning_rate_of_1000_ends_with_5_and_names_no_next_command(tiny, run_cli):
    rate = ("train.schedule.kind=constant", "train.schedule.lr=1000", "train.schedule.warmup=0")
    model = "model={kind = 'seq2seq', layers = 1, width = 16}"
    result = run_cli("train", tiny, *rate, model, "train.steps=60", "train.validate_every=5")
    assert (result.code, result.out) == (5, "")
    assert re.search(
        rf"error: training diverged at step \d\d: the loss is \S+, the limit [\d.]+\. {ADVICE}", result.err
    )
    assert "next:" not in result.err
    ended = json.loads(Path("runs/tiny/metrics.jsonl").read_text().splitlines()[-1])
    assert (ended["event"], ended["reason"]) == ("ended", "diverged")
    resumed = run_cli("train", "runs/tiny", "train.schedule.lr=1e-3")
    message = "error: runs/tiny diverged and has no good checkpoint to resume from; start again with --fresh\n"
    assert (resumed.code, resumed.err) == (3, message)
    used = run_cli("translate", "runs/tiny", "un texte")
    message = (
        "error: runs/tiny diverged and has no good checkpoint to use; train it again with --fresh and a lower learning "
        "rate, or name one of runs/tiny/checkpoints to look at the weights as they are\n"
    )
    assert (used.code, used.out, used.err) == (3, "", message)
    assert run_cli("train", "runs/tiny", "train.schedule.lr=1e-3", "train.steps=2", "--fresh", "-q").code == 0


def test_an_unreachable_package_index_ends_with_69(tiny, run_cli, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(Path("cache").absolute()))
    monkeypatch.setenv("PIP_INDEX_URL", Path("index").absolute().as_uri())
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    result = run_cli("train", tiny, 'data={kind = "tatoeba"}')
    assert result.code == 69
    assert result.err.startswith("error: tatoeba-fr-en: nmt-0.0.6.tar.gz was not downloaded: file://")
    assert result.err.endswith("the built-in data 'phrases' needs no network.\n")


def wait_for_training(process):
    wait_until(says(Path("runs/tiny/log.txt"), "device"), "training begins", process)


@pytest.mark.parametrize(
    ("number", "code", "name"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated"), (signal.SIGHUP, 143, "terminated")],
)
@pytest.mark.slow
def test_a_signal_writes_a_checkpoint_and_ends_with_the_documented_code(tiny, start, number, code, name):
    process = start("train", tiny, "train.steps=1000000", "train.validate_every=500000")
    wait_for_training(process)
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    step = checkpoint.read(Path("runs/tiny/last")).step
    last = err.splitlines()[-1]
    assert last == f"error: {name} at step {step}; the checkpoint is written, run the same command again to resume"


@pytest.mark.slow
def test_training_whose_terminal_is_closed_writes_a_checkpoint(tiny, start):
    terminal, stderr = os.openpty()
    process = start(
        "train", tiny, "train.steps=1000000", "train.validate_every=3", "task.bleu_sentences=0", stderr=stderr
    )
    os.close(stderr)
    wait_for_training(process)
    os.close(terminal)  # from here on writing to it fails
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    rows = [json.loads(line) for line in Path("runs/tiny/metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert (rows[-1]["event"], rows[-1]["reason"]) == ("ended", "terminated")
    assert checkpoint.read(Path("runs/tiny/last")).step == rows[-1]["step"]


@pytest.mark.slow
def test_a_hangup_that_nohup_ignores_does_not_stop_training(tiny, start):
    ignore = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    process = start("train", tiny, "train.steps=1000000", "train.validate_every=500000", **ignore)
    wait_for_training(process)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 130  # by the second signal


@pytest.mark.slow
def test_two_processes_train_together_and_stop_together(tiny, start):
    process = start("train", tiny, "--nproc", 2, "--json")
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert json.loads(out)["step"] == 30
    assert err.count(" data  ") == 1
    process = start("train", tiny, "--nproc", 2, "model.width=32")
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert [line[:60] for line in err.splitlines()] == ["error: runs/tiny was started with another recipe: model.widt"]
