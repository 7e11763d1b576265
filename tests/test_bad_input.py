"""Bad input as somebody meets it who trains from Python: a clear message, and nothing is lost.

Tested elsewhere, and not again here:
files of different length, missing, empty, not UTF-8, NUL bytes   data/test_lines.py, data/test_pairs.py, and through
                                                                  `regard train` in cli/test_cli_train.py
unknown key, wrong type, heads that do not divide the width       cli/test_cli_train.py
an interrupted download, a wrong checksum, no network             data/test_catalogue.py, on a registry that misbehaves
damaged, truncated and foreign checkpoints, a full disk           train/test_checkpoint.py, for save and read alone
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.data import Shards
from regard.errors import ConfigError, DataError, ModelError, NetworkError, RegardError
from regard.models import PRESETS
from regard.run import Recipe, Run, load
from regard.tasks.translate.prepare import Vocabularies
from regard.train import checkpoint
from regard.train.events import Began, Event, Saved, Stepped, Validated

TRANSFORMER = ["model.kind=transformer", "model.layers=1", "model.width=16", "model.heads=2", "model.inner=32"]
SEQ2SEQ = ["model.kind=seq2seq", "model.layers=2", "model.width=16", "model.dropout=0.1"]
SMALL = ["text.size=120", "train.tokens=256", "train.steps=4", "train.save=2", "train.every=4", "task.scored=2"]
PHRASES = ["data.kind=phrases", "data.count=200"]
PAIRS = [(f"le chat numéro {i} dort", f"cat number {i} sleeps") for i in range(120)]


def recipe(*settings: str, data: list[str] = PHRASES, model: list[str] = TRANSFORMER) -> Recipe:
    return Recipe.read(None, [*data, *model, *SMALL, *settings])


def files(folder: Path, source: bytes, target: bytes) -> list[str]:
    (folder / "a.fr").write_bytes(source)
    (folder / "a.en").write_bytes(target)
    return ["data.kind=files", f'data.train=["{folder}/a.fr", "{folder}/a.en"]']


def text(side: int, end: str = "\n") -> bytes:
    return "".join(pair[side] + end for pair in PAIRS).encode()


def digest(run: Path) -> str:
    found = checkpoint.newest(run).checkpoint
    assert found is not None
    return found.digest


def refusal(kind: type[RegardError], act: Callable[[], object]) -> str:
    with pytest.raises(kind) as caught:
        act()
    return str(caught.value)


# Text


def test_a_byte_order_mark_and_windows_line_ends_change_nothing_that_is_learnt(tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    for name, end, before in (("plain", "\n", b""), ("windows", "\r\n", mark)):
        folder = tmp_path / name
        folder.mkdir()
        data = files(folder, before + text(0, end), before + text(1, end))
        Run(folder / "run").train(recipe("task.held_out=0.1", data=data))
    assert digest(tmp_path / "plain/run") == digest(tmp_path / "windows/run")


def test_a_line_of_a_megabyte_is_dropped_and_counted_and_the_rest_is_learnt(tmp_path: Path) -> None:
    data = files(tmp_path, b"x" * 1_000_000 + b"\n" + text(0), b"y" * 1_000_000 + b"\n" + text(1))
    Run(tmp_path / "run").train(recipe("task.held_out=0.1", data=data))
    assert '"too long": 1' in (tmp_path / "run/data/counts.json").read_text(encoding="utf-8")


def test_a_line_of_a_megabyte_is_not_translated_and_its_number_is_told(trained: Path) -> None:
    long = "chat " * 200_000
    message = refusal(DataError, lambda: load(trained).translate(["le chat", long]))
    assert message.startswith("line 2 has ")
    assert message.endswith(" tokens; at most 4,096 can be translated at once: put one sentence on a line")


def test_too_few_pairs_to_keep_some_apart_are_told(tmp_path: Path) -> None:
    data = files(tmp_path, b"un\ndeux\n", b"one\ntwo\n")
    message = refusal(DataError, lambda: Run(tmp_path / "run").train(recipe(data=data)))
    assert message == (
        "none of the 2 pairs falls to valid when a share of 0.02 is kept apart for validation; name files for "
        "data.valid, or change task.held_out"
    )


def test_what_is_kept_apart_for_validation_shares_no_source_with_training(tmp_path: Path) -> None:
    pairs = PAIRS * 2  # each source twice, with two translations
    targets = "".join(f"{target} {i // len(PAIRS)}\n" for i, (_, target) in enumerate(pairs)).encode()
    data = files(tmp_path, text(0) * 2, targets)
    Run(tmp_path / "run").prepare(recipe("task.held_out=0.2", data=data))
    shards = (Shards.open(tmp_path / "run/data" / split) for split in ("train", "valid"))
    train, valid = ([tuple(s.row(i)[0].tolist()) for i in range(len(s))] for s in shards)
    assert not set(train) & set(valid)
    assert len(train) + len(valid) == len(pairs)
    assert 20 < len(valid) < 80


# Settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["train.select=blue"], "train.select: expected one of loss, ppl, bleu, got 'blue'; did you mean bleu?"),
        (["train.select=bleu", "task.scored=0"],
         'train.select = "bleu" needs sentences to score; task.scored = 0 asks for none'),
        (["train.clip=-1"], "train: clip = -1.0 must be at least 0 (0: gradients are not shortened)"),
        (["task.joint=false"], 'model.tie = "all" needs one vocabulary for both sides, and task.joint = false makes '
         'two; use model.tie = "target"'),
        (['model={kind = "gpt"}'],
         'model.kind = "gpt" reads no source, so it cannot translate; use transformer or seq2seq'),
        (['model={kind = "gpt", heads = 0}'], "model: layers, width, heads and longest must be at least 1"),
        (['model={kind = "gpt", dropout = 1.5}'], "model: dropout = 1.5 must be at least 0 and below 1"),
        (['model={kind = "seq2seq", dropout = -0.1}'], "model: dropout = -0.1 must be at least 0 and below 1"),
        (["model.width=true"], "model.width: expected a whole number, got True"),
        (["seed=1.5"], "seed: expected a whole number, got 1.5"),
        (["model.preset=[1]"], f'model.preset: there is no "[1]"; there are {", ".join(PRESETS)}'),
        (["train.optimizer.betas=[2, 0.5]"],
         "train.optimizer: betas = [2.0, 0.5] must each be at least 0 and below 1"),
        (['train.optimizer={kind = "adamw", eps = -1.0}'], "train.optimizer: eps = -1.0 must be at least 0"),
        (['train.optimizer={kind = "adamw", decay = -1.0}'], "train.optimizer: decay = -1.0 must be at least 0"),
        (['train.optimizer={kind = "sgd", momentum = 1.5}'],
         "train.optimizer: momentum = 1.5 must be at least 0 and below 1"),
        (['train.schedule={kind = "noam", width = 0}'],
         "train.schedule: width = 0 must be at least 1 and factor = 1.0 above 0"),
        (['train.schedule={kind = "plateau", factor = 2.0}'],
         "train.schedule: patience = 2 must be at least 1 and factor = 2.0 above 0 and below 1"),
        (["train.schedule.lr=nan"], "train.schedule: lr = nan must be above 0"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_work_is_refused_before_any_work(settings: list[str], message: str) -> None:
    assert refusal(ConfigError, lambda: recipe(*settings)) == message


@pytest.mark.parametrize("budget", ["epochs=0", "minutes=0", "minutes=-3", "epochs=inf"])
def test_a_budget_of_nothing_is_not_taken_for_none(budget: str) -> None:
    name, _, value = budget.partition("=")
    settings = [s for s in SMALL if not s.startswith("train.steps")]
    message = refusal(ConfigError, lambda: Recipe.read(None, [*PHRASES, *TRANSFORMER, *settings, f"train.{budget}"]))
    assert message == f"train: {name} = {float(value)} must be above 0"


def test_going_on_with_a_changed_recipe_lists_every_difference_and_changes_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    run.train(recipe())
    before, written = digest(run.path), (run.path / "recipe.toml").read_bytes()
    changed = recipe("model.width=32", "seed=2", "train.steps=6", "decode.beam=2")
    assert refusal(ConfigError, lambda: run.train(changed)) == (
        f"{run.path} was started with another recipe: model.width was 16, is 32; seed was 1, is 2. Use --out for a new "
        "run or --fresh to start this one anew (a run that goes on may change train.epochs, train.every, train.keep, "
        "train.patience, train.probe, train.save, train.select, train.steps, train.tensorboard and decode)"
    )
    assert (digest(run.path), (run.path / "recipe.toml").read_bytes()) == (before, written)
    assert run.train(recipe("train.steps=6", "decode.beam=2")).step == 6


# Checkpoints


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A run with checkpoints at steps 2 and 4; the newer one is the best."""
    Run(tmp_path / "trained").train(recipe())
    return tmp_path / "trained"


def of_another_version(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"format": 2}', encoding="utf-8")


def cut(folder: Path) -> None:
    os.truncate(folder / "model.safetensors", 100)


DAMAGE = {
    of_another_version: "{} was written by checkpoint format 2; this regard reads format 1; use the version of regard "
    "that wrote it",
    cut: "{}/model.safetensors: expected {:,} bytes, found 100; this checkpoint is damaged, use another",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_bad_checkpoint_is_told_and_training_goes_on_from_the_older_one(
    trained: Path, damage: Callable[[Path], None]
) -> None:
    good, newer, events = digest(trained), trained / "checkpoints/00000004", list[Event]()
    message = DAMAGE[damage].format(newer, (newer / "model.safetensors").stat().st_size)
    damage(newer)
    assert refusal(ModelError, lambda: load(newer)) == message
    assert load(trained).step == 2
    Run(trained).train(recipe(), listeners=[events.append])
    (began,) = (event for event in events if isinstance(event, Began))
    assert (began.step, began.refused) == (2, (message,))
    assert digest(trained) == good
    assert load(trained).step == 4


def test_when_no_checkpoint_is_good_training_does_not_begin_anew_by_itself(trained: Path) -> None:
    for folder in (trained / "checkpoints").iterdir():
        of_another_version(folder)
    newest = trained / "checkpoints/00000004"
    assert refusal(ModelError, lambda: Run(trained).train(recipe())) == (
        f"{newest} was written by checkpoint format 2; this regard reads format 1; use the version of regard that "
        f"wrote it; no checkpoint of {trained} is whole, start anew with --fresh"
    )


FULL = """
import resource, signal, sys
from pathlib import Path
from regard.errors import OutputError
from regard.run import Recipe, Run
from regard.train.events import Saved

def fill(event):
    if isinstance(event, Saved):  # from now on the disk takes no file of more than 3,000 bytes
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, resource.RLIM_INFINITY))

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    Run(Path(sys.argv[1])).train(Recipe.read(None, sys.argv[2:]), listeners=[fill])
except OutputError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_disk_that_fills_up_while_training_leaves_the_old_checkpoint_and_the_run_goes_on(tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = [sys.executable, "-c", FULL, str(run), *PHRASES, *TRANSFORMER, *SMALL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{run}/checkpoints/00000004: needs ")
    assert done.stdout.endswith(
        " are free (File too large), but no file may be larger than 3,000 bytes; raise `ulimit -f`\n"
    )
    found = checkpoint.newest(run)
    assert found.checkpoint is not None
    assert (found.checkpoint.step, found.refused) == (2, ())
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["00000002"]
    assert isinstance(load(run).translate("le chat"), str)
    Run(run).train(recipe())  # there is room again
    Run(tmp_path / "other").train(recipe())
    assert digest(run) == digest(tmp_path / "other")


# Data from a registry


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registry that is a folder; it has no file yet."""
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "index").as_uri())
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    (tmp_path / "index/nmt").mkdir(parents=True)
    (tmp_path / "index/nmt/index.html").write_text('<a href="nmt-0.0.6.tar.gz">nmt-0.0.6.tar.gz</a>')
    return tmp_path / "index/nmt"


@pytest.mark.parametrize("size", [1000, 15_744_217], ids=["cut off", "wrong checksum"])
def test_an_archive_that_is_not_what_it_should_be_is_refused_before_training(
    size: int, index: Path, tmp_path: Path
) -> None:
    with (index / "nmt-0.0.6.tar.gz").open("wb") as file:
        file.truncate(size)
    run = Run(tmp_path / "run")
    message = refusal(NetworkError, lambda: run.train(recipe(data=["data.kind=tatoeba"])))
    start = f"tatoeba-fr-en: nmt-0.0.6.tar.gz was not fetched: {index.as_uri()}/nmt-0.0.6.tar.gz sent "
    assert message.startswith(start)
    assert message.endswith(
        f"Nothing is lost: call again to go on, or put the file into {tmp_path}/cache/archives; "
        "the built-in data 'phrases' needs no network."
    )
    told = "1,000 bytes, expected 15,744,217" if size == 1000 else "a wrong file: expected SHA-256 65db964c0afd5b0d"
    assert message.removeprefix(start).startswith(told)
    assert not list((tmp_path / "cache/archives").glob("*.tar.gz"))
    assert run.train(recipe()).reason == "done"  # the same place, with data that are there


# What a run must survive


def stop_at(step: int) -> Callable[[Event], None]:
    def stop(event: Event) -> None:
        if isinstance(event, Stepped) and event.step == step:
            raise KeyboardInterrupt  # at once, as if killed: nothing is saved

    return stop


@pytest.mark.parametrize(
    ("settings", "model"),
    [(["text.dropout=0.1", "train.ema=0.9", "train.accumulate=2"], TRANSFORMER), ([], SEQ2SEQ)],
    ids=["BPE-dropout, EMA, accumulation", "seq2seq"],
)
def test_a_run_that_was_stopped_ends_as_one_that_never_was(
    settings: list[str], model: list[str], tmp_path: Path
) -> None:
    wanted = recipe(*settings, "train.steps=12", "train.every=12", model=model)  # more than an epoch
    Run(tmp_path / "whole").train(wanted)
    for step in (3, 5, 11):
        with pytest.raises(KeyboardInterrupt):
            Run(tmp_path / "stopped").train(wanted, listeners=[stop_at(step)])
    began: list[int] = []
    Run(tmp_path / "stopped").train(
        wanted, listeners=[lambda e: began.append(e.step) if isinstance(e, Began) else None]
    )
    assert began == [10]
    assert digest(tmp_path / "stopped") == digest(tmp_path / "whole")


def test_a_budget_of_minutes_is_counted_in_steps_that_the_run_keeps(tmp_path: Path) -> None:
    settings = [*PHRASES, *TRANSFORMER, "text.size=120", "train.tokens=256", "train.save=5", "train.every=1000000"]
    wanted = Recipe.read(None, [*settings, "task.scored=2", "train.minutes=0.01"])
    planned: list[int] = []

    def note(event: Event) -> None:
        if isinstance(event, Began):
            planned.append(event.steps)
        if isinstance(event, Saved) and len(planned) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Run(tmp_path / "run").train(wanted, listeners=[note])
    report = Run(tmp_path / "run").train(wanted, listeners=[note])
    assert planned == [report.step, report.step]


def test_a_model_with_two_vocabularies_trains_loads_and_translates(tmp_path: Path) -> None:
    Run(tmp_path / "run").train(recipe("task.joint=false", "model.tie=target"))
    model = load(tmp_path / "run")
    french, english = model.vocabularies.source, model.vocabularies.target
    assert french != english
    assert model.module.encoder.embed.weight is not model.module.decoder.embed.weight  # type: ignore[union-attr]
    assert model.module.readout.weight is model.module.decoder.embed.weight  # type: ignore[union-attr]
    assert [type(said) for said in model.translate(["je suis étudiant", "", "le chat"])] == [str] * 3


def test_a_death_between_two_vocabularies_is_mended(tmp_path: Path) -> None:
    """Tokenizers are moved to their place one by one, after the shards are written."""
    wanted, run = recipe("task.joint=false", "model.tie=target"), Run(tmp_path / "run")
    run.prepare(wanted)
    both = Vocabularies.load(run.path)
    (run.path / "tokenizer.target.json").rename(run.path / "data/tokenizer.target.json")
    run.train(wanted)
    assert Vocabularies.load(run.path) == both


def test_an_lstm_encoder_decoder_trains_and_translates(tmp_path: Path) -> None:
    report = Run(tmp_path / "run").train(recipe("train.steps=20", "train.every=10", model=SEQ2SEQ))
    assert report.best["step"] == 20.0
    model = load(tmp_path / "run")
    assert repr(model).startswith("Model(seq2seq, ")
    assert isinstance(model.translate("je suis étudiant"), str)
    assert [len(found) for found in model.translate(["je suis étudiant"], nbest=3)] == [3]


def test_a_run_may_have_a_name_that_other_folders_have(tmp_path: Path) -> None:
    for place in (tmp_path / "checkpoints/mine", tmp_path / "best"):
        Run(place).train(recipe())
        assert [load(path).step for path in (place, place / "last", place / "checkpoints/00000002")] == [4, 4, 2]


@pytest.mark.parametrize(("scored", "wanted"), [(3, [0, 40, 80]), (0, []), (200, list(range(120)))])
def test_sentences_to_score_come_from_all_over_the_validation_data(
    scored: int, wanted: list[int], tmp_path: Path
) -> None:
    data = files(tmp_path, text(0), text(1))
    events: list[Event] = []
    settings = [f'data.valid=["{tmp_path}/a.fr", "{tmp_path}/a.en"]', f"task.scored={scored}", "task.samples=200"]
    Run(tmp_path / "run").train(recipe(*settings, "train.steps=1", data=data), listeners=[events.append])
    (validated,) = (event for event in events if isinstance(event, Validated))
    assert [sample["source"] for sample in validated.samples] == [PAIRS[i][0] for i in wanted]
