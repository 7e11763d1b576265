"""Bad input when training from Python: a clear message, and nothing is lost.

Tested elsewhere:
files of different length, missing, empty, not UTF-8, NUL bytes   data/test_lines.py, data/test_pairs.py, and through
                                                                  `regard train` in cli/test_cli_train.py
unknown key, wrong type, heads that do not divide the width       cli/test_cli_train.py
an interrupted download, a wrong checksum, no network             the tests of data/download
damaged, truncated and foreign checkpoints, a full disk           train/test_checkpoint.py, for save and read
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers import PATIENCE, refusal
from regard.data import Shards
from regard.errors import ConfigError, DataError, ModelError, NetworkError
from regard.run import Recipe, Run, load
from regard.tasks.translate.prepare import Vocabularies
from regard.train import checkpoint
from regard.train.events import Began, Event, Saved, Stepped, Validated

TRANSFORMER = ["model.kind=transformer", "model.layers=1", "model.width=16", "model.heads=2", "model.ffn_width=32"]
SEQ2SEQ = ["model.kind=seq2seq", "model.layers=2", "model.width=16", "model.dropout=0.1"]
SMALL = ["text.vocab_size=120", "train.batch_tokens=256", "train.steps=4", "train.save_every=2"]
SMALL += ["train.validate_every=4", "task.bleu_sentences=2"]
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


# Text


def test_a_byte_order_mark_and_windows_line_ends_do_not_change_the_trained_model(tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf"
    for name, end, before in (("plain", "\n", b""), ("windows", "\r\n", mark)):
        folder = tmp_path / name
        folder.mkdir()
        data = files(folder, before + text(0, end), before + text(1, end))
        Run(folder / "run").train(recipe("data.valid_share=0.1", data=data))
    assert digest(tmp_path / "plain/run") == digest(tmp_path / "windows/run")


def test_a_line_of_a_megabyte_is_dropped_and_counted_and_the_rest_is_trained_on(tmp_path: Path) -> None:
    data = files(tmp_path, b"x" * 1_000_000 + b"\n" + text(0), b"y" * 1_000_000 + b"\n" + text(1))
    Run(tmp_path / "run").train(recipe("data.valid_share=0.1", data=data))
    assert '"too long": 1' in (tmp_path / "run/data/counts.json").read_text(encoding="utf-8")


def test_a_line_of_a_megabyte_is_refused_with_its_number(trained: Path) -> None:
    long = "chat " * 200_000
    message = refusal(DataError, lambda: load(trained).translate(["le chat", long]))
    assert message.startswith("line 2 has ")
    assert message.endswith(" tokens; at most 4,096 can be translated at once: put one sentence per line")


def test_too_few_pairs_for_a_validation_split_are_refused(tmp_path: Path) -> None:
    data = files(tmp_path, b"un\ndeux\n", b"one\ntwo\n")
    message = refusal(DataError, lambda: Run(tmp_path / "run").train(recipe(data=data)))
    assert message == (
        "none of the 2 pairs belongs to valid if a share of 0.02 is held out for validation; name files for "
        "data.valid, or change data.valid_share"
    )


def test_the_validation_split_shares_no_source_with_training(tmp_path: Path) -> None:
    pairs = PAIRS * 2  # each source twice, with two translations
    targets = "".join(f"{target} {i // len(PAIRS)}\n" for i, (_, target) in enumerate(pairs)).encode()
    data = files(tmp_path, text(0) * 2, targets)
    Run(tmp_path / "run").prepare(recipe("data.valid_share=0.2", data=data))
    shards = (Shards.open(tmp_path / "run/data" / split) for split in ("train", "valid"))
    train, valid = ([tuple(s.row(i)[0].tolist()) for i in range(len(s))] for s in shards)
    assert not set(train) & set(valid)
    assert len(train) + len(valid) == len(pairs)
    assert 20 < len(valid) < 80


# Settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["train.best_metric=blue"],
         "train.best_metric: expected one of loss, ppl, bleu, got 'blue'; did you mean bleu?"),
        (["train.best_metric=bleu", "task.bleu_sentences=0"],
         'train.best_metric = "bleu" needs sentences to score, and task.bleu_sentences is 0'),
        (["train.clip_norm=-1"], "train: clip_norm = -1.0 must be at least 0 (0: no gradient clipping)"),
        (["task.share_vocab=false"],
         'model.tie = "all" needs one vocabulary for both sides, and task.share_vocab = false makes '
         'two; use model.tie = "target"'),
        (['model={kind = "gpt"}'],
         'model.kind = "gpt" reads no source, so it cannot translate; use transformer or seq2seq'),
        (['model={kind = "gpt", heads = 0}'],
         "model: layers = 12, width = 768, heads = 0 and max_positions = 1024 must be at least 1"),
        (['model={kind = "gpt", dropout = 1.5}'], "model: dropout = 1.5 must be at least 0 and below 1"),
        (['model={kind = "seq2seq", dropout = -0.1}'], "model: dropout = -0.1 must be at least 0 and below 1"),
        (["model.width=true"], "model.width: expected a whole number, got True"),
        (["seed=1.5"], "seed: expected a whole number, got 1.5"),
        (["model.preset=[1]"],
         'model.preset: there is no preset "[1]"; `regard config explain model.preset` lists them'),
        (["model.preset=gpt-3-13"], 'model.preset: there is no preset "gpt-3-13"; did you mean gpt-3-13b?'),
        (["train.optimizer.betas=[2, 0.5]"],
         "train.optimizer: betas = [2.0, 0.5] must each be at least 0 and below 1"),
        (['train.optimizer={kind = "adamw", eps = -1.0}'], "train.optimizer: eps = -1.0 must be at least 0"),
        (['train.optimizer={kind = "adamw", weight_decay = -1.0}'],
         "train.optimizer: weight_decay = -1.0 must be at least 0"),
        (['train.optimizer={kind = "sgd", momentum = 1.5}'],
         "train.optimizer: momentum = 1.5 must be at least 0 and below 1"),
        (['train.schedule={kind = "noam", width = 0}'],
         "train.schedule: width = 0 must be at least 1 and factor = 1.0 above 0"),
        (['train.schedule={kind = "plateau", factor = 2.0}'],
         "train.schedule: patience = 2 must be at least 1 and factor = 2.0 above 0 and below 1"),
        (["train.schedule.lr=nan"], "train.schedule: lr = nan must be above 0 and finite"),
        (["train.schedule.lr=inf"], "train.schedule: lr = inf must be above 0 and finite"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_work_is_refused_before_any_work(settings: list[str], message: str) -> None:
    assert refusal(ConfigError, lambda: recipe(*settings)) == message


@pytest.mark.parametrize("budget", ["epochs=0", "minutes=0", "minutes=-3", "epochs=inf"])
def test_a_budget_of_zero_is_refused(budget: str) -> None:
    name, _, value = budget.partition("=")
    settings = [s for s in SMALL if not s.startswith("train.steps")]
    message = refusal(ConfigError, lambda: Recipe.read(None, [*PHRASES, *TRANSFORMER, *settings, f"train.{budget}"]))
    assert message == f"train: {name} = {float(value)} must be above 0"


def test_resuming_with_a_changed_recipe_lists_every_difference_and_changes_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    run.train(recipe())
    before, recipe_bytes = digest(run.path), (run.path / "recipe.toml").read_bytes()
    changed = recipe("model.width=32", "seed=2", "train.steps=6", "decode.beam=2")
    assert refusal(ConfigError, lambda: run.train(changed)) == (
        f"{run.path} was started with another recipe: model.width was 16, is 32; seed was 1, is 2. Use --out for a new "
        "run or --fresh to start this one again (a resumed run may change train.best_metric, train.device, "
        "train.divergence, train.epochs, train.keep_checkpoints, train.on_divergence, train.patience, train.probe, "
        "train.save_every, train.steps, train.tensorboard, train.timeout, train.validate_every and decode)"
    )
    assert (digest(run.path), (run.path / "recipe.toml").read_bytes()) == (before, recipe_bytes)
    assert run.train(recipe("train.steps=6", "decode.beam=2")).step == 6


# Checkpoints


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A run with checkpoints at steps 2 and 4; the newer one is the best."""
    Run(tmp_path / "trained").train(recipe())
    return tmp_path / "trained"


def set_format_1(folder: Path) -> None:
    (folder / "manifest.json").write_text('{"format": 1}', encoding="utf-8")


def truncate(folder: Path) -> None:
    os.truncate(folder / "model.safetensors", 100)


EARLIER = "{} was saved by an earlier version of regard (checkpoint format 1; this one reads 2); train it again"
DAMAGE = {
    set_format_1: EARLIER,
    truncate: "{}/checkpoints/00000004/model.safetensors: expected {:,} bytes, found 100; "
    "this checkpoint is damaged, use another",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_bad_checkpoint_is_reported_and_training_resumes_from_the_older_one(
    trained: Path, damage: Callable[[Path], None]
) -> None:
    good, newer, events = digest(trained), trained / "checkpoints/00000004", list[Event]()
    message = DAMAGE[damage].format(trained, (newer / "model.safetensors").stat().st_size)
    damage(newer)
    assert refusal(ModelError, lambda: load(newer)) == message
    assert load(trained).step == 2
    Run(trained).train(recipe(), listeners=[events.append])
    (began,) = (event for event in events if isinstance(event, Began))
    assert (began.step, began.refused) == (2, (message,))
    assert digest(trained) == good
    assert load(trained).step == 4


def test_when_all_checkpoints_are_damaged_training_does_not_start_over_by_itself(trained: Path) -> None:
    for folder in (trained / "checkpoints").iterdir():
        truncate(folder)
    message = refusal(ModelError, lambda: Run(trained).train(recipe()))
    assert message.endswith(
        f"this checkpoint is damaged, use another; no checkpoint of {trained} is usable, start again with --fresh"
    )


def test_a_run_of_checkpoint_format_1_is_refused_in_one_sentence_and_may_be_started_again(trained: Path) -> None:
    for folder in (trained / "checkpoints").iterdir():
        set_format_1(folder)
    for act in (lambda: load(trained), lambda: load(trained / "best"), lambda: Run(trained).train(recipe())):
        assert refusal(ModelError, act) == EARLIER.format(trained)
    Run(trained).train(recipe(), fresh=True)
    assert load(trained).step == 4


OLD = "{} was saved by an earlier version of regard ({}); train it again"


@pytest.mark.parametrize(
    ("present", "earlier", "change"),
    [
        ("validate_every = ", "every = ", "train.every is now train.validate_every"),
        ('kind = "transformer"', 'kind = "mixed"', 'model.kind = "mixed" is now "encoder-decoder"'),
    ],
)
def test_a_run_whose_recipe_has_an_old_name_is_refused_in_one_sentence(
    present: str, earlier: str, change: str, trained: Path
) -> None:
    file = trained / "recipe.toml"
    (trained / "manifest.json").unlink()  # runs of that time had none
    file.write_text(file.read_text(encoding="utf-8").replace(present, earlier), encoding="utf-8")
    for act in (Run(trained).recipe, lambda: load(trained), lambda: Run(trained).train(recipe())):
        assert refusal(ModelError, act) == OLD.format(trained, change)
    for folder in (trained / "checkpoints").iterdir():
        set_format_1(folder)
    assert refusal(ModelError, Run(trained).recipe) == EARLIER.format(trained)
    Run(trained).train(recipe(), fresh=True)


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
def test_a_disk_that_fills_up_during_training_leaves_the_old_checkpoint_and_the_run_resumes(tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = [sys.executable, "-c", FULL, str(run), *PHRASES, *TRANSFORMER, *SMALL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
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
    Run(run).train(recipe())  # there is space again
    Run(tmp_path / "other").train(recipe())
    assert digest(run) == digest(tmp_path / "other")


# Downloaded data


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index in a folder, without files."""
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
def test_a_wrong_archive_is_refused_before_training(size: int, index: Path, tmp_path: Path) -> None:
    with (index / "nmt-0.0.6.tar.gz").open("wb") as file:
        file.truncate(size)
    run = Run(tmp_path / "run")
    message = refusal(NetworkError, lambda: run.train(recipe(data=["data.kind=tatoeba"])))
    start = f"tatoeba-fr-en: nmt-0.0.6.tar.gz was not downloaded: {index.as_uri()}/nmt-0.0.6.tar.gz sent "
    assert message.startswith(start)
    assert message.endswith(
        f"Nothing is lost: call again to resume, or put the file into {tmp_path}/cache/archives; "
        "the built-in data 'phrases' needs no network."
    )
    fault = "1,000 bytes, expected 15,744,217" if size == 1000 else "a wrong file: expected SHA-256 65db964c0afd5b0d"
    assert message.removeprefix(start).startswith(fault)
    assert not list((tmp_path / "cache/archives").glob("*.tar.gz"))
    assert run.train(recipe()).reason == "done"  # in the same folder, with built-in data


# Resuming


def stop_at(step: int) -> Callable[[Event], None]:
    def stop(event: Event) -> None:
        if isinstance(event, Stepped) and event.step == step:
            raise KeyboardInterrupt  # as if killed: nothing is saved

    return stop


@pytest.mark.parametrize(
    ("settings", "model"),
    [(["text.dropout=0.1", "train.ema=0.9", "train.accumulate=2"], TRANSFORMER), ([], SEQ2SEQ)],
    ids=["BPE-dropout, EMA, accumulation", "seq2seq"],
)
def test_a_run_that_was_stopped_ends_like_one_that_was_not(
    settings: list[str], model: list[str], tmp_path: Path
) -> None:
    full = recipe(*settings, "train.steps=12", "train.validate_every=12", model=model)  # more than an epoch
    Run(tmp_path / "whole").train(full)
    for step in (3, 5, 11):
        with pytest.raises(KeyboardInterrupt):
            Run(tmp_path / "stopped").train(full, listeners=[stop_at(step)])
    began: list[int] = []
    Run(tmp_path / "stopped").train(full, listeners=[lambda e: began.append(e.step) if isinstance(e, Began) else None])
    assert began == [10]
    assert digest(tmp_path / "stopped") == digest(tmp_path / "whole")


def test_a_budget_of_minutes_becomes_steps_that_the_run_keeps(tmp_path: Path) -> None:
    settings = [*PHRASES, *TRANSFORMER, "text.vocab_size=120", "train.batch_tokens=256", "train.save_every=5"]
    settings += ["train.validate_every=1000000", "task.bleu_sentences=2", "train.minutes=0.01"]
    timed = Recipe.read(None, settings)
    planned: list[int] = []

    def note(event: Event) -> None:
        if isinstance(event, Began):
            planned.append(event.steps)
        if isinstance(event, Saved) and len(planned) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Run(tmp_path / "run").train(timed, listeners=[note])
    report = Run(tmp_path / "run").train(timed, listeners=[note])
    assert planned == [report.step, report.step]


def test_a_model_with_two_vocabularies_trains_loads_and_translates(tmp_path: Path) -> None:
    Run(tmp_path / "run").train(recipe("task.share_vocab=false", "model.tie=target"))
    model = load(tmp_path / "run")
    french, english = model.vocabularies.source, model.vocabularies.target
    assert french != english
    assert model.module.encoder.embed.weight is not model.module.decoder.embed.weight  # type: ignore[union-attr]
    assert model.module.readout.weight is model.module.decoder.embed.weight  # type: ignore[union-attr]
    assert [type(output) for output in model.translate(["je suis étudiant", "", "le chat"])] == [str] * 3


def test_a_crash_between_two_vocabularies_is_repaired(tmp_path: Path) -> None:
    """Tokenizers are moved to the run's folder one by one, after the shards are written."""
    both_sides, run = recipe("task.share_vocab=false", "model.tie=target"), Run(tmp_path / "run")
    run.prepare(both_sides)
    both = Vocabularies.load(run.path)
    (run.path / "tokenizer.target.json").rename(run.path / "data/tokenizer.target.json")
    run.train(both_sides)
    assert Vocabularies.load(run.path) == both


def test_an_lstm_encoder_decoder_trains_and_translates(tmp_path: Path) -> None:
    report = Run(tmp_path / "run").train(recipe("train.steps=20", "train.validate_every=10", model=SEQ2SEQ))
    assert report.best["step"] == 20.0
    model = load(tmp_path / "run")
    assert repr(model).startswith("Model(seq2seq, ")
    assert isinstance(model.translate("je suis étudiant"), str)
    assert [len(found) for found in model.translate(["je suis étudiant"], n_best=3)] == [3]


def test_a_run_may_be_called_best_or_lie_in_a_folder_called_checkpoints(tmp_path: Path) -> None:
    for place in (tmp_path / "checkpoints/mine", tmp_path / "best"):
        Run(place).train(recipe())
        assert [load(path).step for path in (place, place / "last", place / "checkpoints/00000002")] == [4, 4, 2]


@pytest.mark.parametrize(("count", "expected"), [(3, [0, 40, 80]), (0, []), (200, list(range(120)))])
def test_sentences_to_score_come_from_all_over_the_validation_data(
    count: int, expected: list[int], tmp_path: Path
) -> None:
    data = files(tmp_path, text(0), text(1))
    events: list[Event] = []
    valid = f'data.valid=["{tmp_path}/a.fr", "{tmp_path}/a.en"]'
    settings = [valid, f"task.bleu_sentences={count}", "task.samples=200"]
    Run(tmp_path / "run").train(recipe(*settings, "train.steps=1", data=data), listeners=[events.append])
    (validated,) = (event for event in events if isinstance(event, Validated))
    assert [sample["source"] for sample in validated.samples] == [PAIRS[i][0] for i in expected]
