"""A run is whole or refused: manifests, bit flips, hostile folders, flushes before renames, crashes, large numbers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import regard
from helpers import check_refused, refusal
from integrity import HOSTILE, TASKS, copy_run, fifo, flip_bits, question, run_verb, train_run, verbs, write_data
from regard.errors import DataError, ModelError
from regard.manifest import (
    RunManifest,
    parse_manifest,
    read_kept,
    read_run_manifest,
    render_manifest,
    write_recipe,
)
from regard.run import Run
from regard.run_summary import summarize_run
from replay import record_training, replay

SMALL = ("classify", "numbers", "label")
"""tasks that are tried here; benchmarks/integrity.py tries all of them"""
FEW = (
    "recipe.toml is a FIFO", "state.json is a FIFO", "weights are a FIFO", "the recipe has 100,000 brackets",
    "a key has 100,000 parts", "tokenizer.json has 100,000 brackets", "layers = 2,000,000", "width = 2,000,000",
    "ffn_width = 10 ** 30", "kind is a list", "the state has NaN", "the state has half a character",
    "the recipe links to a device", "last links out of the run", "the manifest is of a later version",
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A trained run of some tasks; tests must not change them."""
    home = tmp_path_factory.mktemp("whole")
    return {task: train_run(task, data, home / task) for task in ("translate", "generate", "table", "forecast", *SMALL)}


@pytest.fixture
def run(whole: dict[str, Path], tmp_path: Path) -> Path:
    return copy_run(whole["classify"], tmp_path / "copy")


def test_the_manifest_lists_the_recipe_and_every_artifact(whole: dict[str, Path]) -> None:
    listed = {task: sorted(read_run_manifest(run).files) for task, run in whole.items()}  # type: ignore[union-attr]
    assert listed["classify"] == ["labels.json", "recipe.toml", "tokenizer.json"]
    assert listed["numbers"] == ["recipe.toml", "scale.json"]
    assert listed["label"] == ["baseline.json", "recipe.toml", "targets.json", "vocab.json"]


@pytest.mark.parametrize("task", SMALL)
def test_no_flipped_bit_of_a_needed_file_is_unnoticed(
    whole: dict[str, Path], data: Path, tmp_path: Path, task: str
) -> None:
    found = flip_bits(copy_run(whole[task], tmp_path / "copy"), question(task, data), 40)
    assert (found.unnoticed, found.harmless) == ([], 0)
    assert found.refused + found.reported == 40


@pytest.mark.parametrize("what", FEW)
def test_a_hostile_folder_is_refused_at_once(whole: dict[str, Path], data: Path, tmp_path: Path, what: str) -> None:
    copy = copy_run(whole["translate"], tmp_path / "copy")
    HOSTILE[what](copy)
    faults = {" ".join(verb[:2]): run_verb(verb, 60).fault for verb in verbs("translate", copy, data, train=False)}
    assert not any(faults.values()), faults


def test_a_strange_folder_is_one_row_of_the_list(whole: dict[str, Path], tmp_path: Path) -> None:
    copy = copy_run(whole["translate"], tmp_path / "copy")
    shutil.copytree(copy, tmp_path / "copy" / "strange", symlinks=True)
    fifo(tmp_path / "copy" / "strange" / "recipe.toml")
    rows = {Path(row["run"]).name: row for row in json.loads(run_verb(["runs", "ls", str(copy.parent), "--json"]).out)}
    why = f"{copy.parent}/strange/recipe.toml: cannot be read (it is a FIFO, expected a file)"
    assert (rows["strange"]["unreadable"], rows["translate"]["unreadable"]) == (why, None)
    assert rows["translate"]["step"] == 4
    assert f"strange    unreadable: {why}" in run_verb(["runs", "ls", str(copy.parent)]).out
    assert summarize_run(tmp_path / "nothing").unreadable


def test_a_name_that_is_not_utf8_can_be_listed(whole: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(whole["classify"], Path(str(tmp_path / "runs"), "bad\udcff"), symlinks=True)
    for form in ([], ["--json"]):
        verdict = run_verb(["runs", "ls", str(tmp_path / "runs"), *form])
        assert verdict.code == 0 and "bad\ufffd" in verdict.out


def test_a_manifest_of_a_later_version_says_so(run: Path) -> None:
    (run / "manifest.json").write_bytes(render_manifest({"format": 2, "files": {}}))
    message = f"{run} was saved by a later version of regard (run format 2; this one reads 1); upgrade regard"
    check_refused(ModelError, message, lambda: regard.load(run))


def test_a_run_without_a_manifest_is_used_once_it_was_resumed(run: Path, data: Path) -> None:
    (run / "manifest.json").unlink()
    message = refusal(ModelError, lambda: regard.load(run))
    assert message.startswith(f"{run}: manifest.json is missing, so its files cannot be checked;")
    assert message.endswith(f"regard train {run}")
    train_run("classify", data, run)
    assert regard.load(run).step == 4


def test_a_recipe_edited_by_hand_is_refused_and_the_same_recipe_repairs_it(run: Path, data: Path) -> None:
    file = run / "recipe.toml"
    file.write_text(file.read_text(encoding="utf-8").replace("seed = 1", "seed = 2"), encoding="utf-8")
    assert refusal(ModelError, lambda: regard.load(run)).startswith(f"{file}: its bytes have changed (SHA-256 ")
    train_run("classify", data, run)
    assert regard.load(run).recipe.seed == 1


def test_a_damaged_artifact_is_refused_and_prepared_again_by_training(run: Path, data: Path) -> None:
    file, before = run / "labels.json", (run / "labels.json").read_bytes()
    file.write_bytes(before.replace(b"yes", b"yus"))
    assert refusal(ModelError, lambda: regard.load(run)).startswith(f"{file}: its bytes have changed")
    train_run("classify", data, run)
    assert file.read_bytes() == before


def test_a_missing_artifact_is_damage_of_the_run(run: Path) -> None:
    for name in ("labels.json", "tokenizer.json"):
        (run / name).rename(run / "away")
        message = f"{run / name}: it is missing; this run is damaged, restore the file from a copy"
        assert refusal(ModelError, lambda: regard.load(run)) == message
        (run / "away").rename(run / name)


def test_a_listed_file_is_accepted_old_and_new_while_it_is_replaced(run: Path) -> None:
    old = read_run_manifest(run)
    assert old is not None
    text = (run / "recipe.toml").read_bytes()
    write_recipe(run, text.decode() + "\n")
    new = read_run_manifest(run)
    assert new is not None and new.files["recipe.toml"] != old.files["recipe.toml"]
    both = RunManifest(old.files, new.files)
    (run / "manifest.json").write_bytes(both.render())
    for data in (text, text + b"\n"):
        (run / "recipe.toml").write_bytes(data)
        assert read_kept(run / "recipe.toml") == data
    assert parse_manifest(both.render())["format"] == 1


def test_a_manifest_of_another_program_is_no_concern(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"name": "a web page"}', encoding="utf-8")
    (tmp_path / "labels.json").write_text("{}", encoding="utf-8")
    assert read_kept(tmp_path / "labels.json") == b"{}"


@pytest.mark.parametrize("name", ["identity.json", "counts.json"])
@pytest.mark.parametrize("content", ["", "{}", "[" * 100_000])
def test_emptied_files_of_prepared_data_are_prepared_again(run: Path, data: Path, name: str, content: str) -> None:
    before = (run / "data" / name).read_bytes()
    (run / "data" / name).write_text(content, encoding="utf-8")
    recipe = Run(run).recipe()
    assert not Run(run).is_prepared(recipe)
    Run(run).prepare(recipe)
    assert (run / "data" / name).read_bytes() == before and Run(run).is_prepared(recipe)


@pytest.mark.parametrize("task", ["generate", "numbers"])
def test_a_generator_resumes_without_its_text(data: Path, tmp_path: Path, task: str) -> None:
    own = shutil.copytree(data, tmp_path / "own")
    train_run(task, own, tmp_path / "run")
    shutil.rmtree(own)
    train_run(task, own, tmp_path / "run", ["train.steps=5"])
    assert regard.load(tmp_path / "run" / "last").step == 5


def test_numbers_that_overflow_are_refused(whole: dict[str, Path], data: Path, tmp_path: Path) -> None:
    table, series = regard.load(whole["table"]), (data / "load.csv").read_text(encoding="utf-8")
    for cell in ("1e39", "1e308"):
        message = refusal(DataError, lambda cell=cell: table.predict_text(f"{cell},1,2"))
        assert message == f'line 1: "{cell}" in column a is too large; models read float32 numbers'
    message = refusal(DataError, lambda: table.predict_text("3,3e38,2"))
    assert message.startswith("3e+38 in column b is too large: the mean in training was ")
    table.inference_module.readout.bias.data.fill_(float("inf"))
    message = "line 1: the model's output is not a number; the input is too large for it"
    check_refused(DataError, message, lambda: table.predict_text("3,3,2"))
    assert "2024-01-09," in series
    (tmp_path / "load.csv").write_text(
        series.replace("2024-01-09,", "2024-01-09,1e308\n#").split("#")[0], encoding="utf-8"
    )
    verdict = run_verb(["forecast", str(whole["forecast"]), str(tmp_path / "load.csv")], 60)
    assert verdict.code == DataError.exit_code and "is too large; models read float32 numbers" in verdict.err


def test_an_averaged_model_and_linked_data_have_manifests(run: Path, data: Path, tmp_path: Path) -> None:
    assert run_verb(["average", str(run), "--out", str(tmp_path / "average")], 60).code == 0
    assert regard.load(tmp_path / "average").predict_text("it is great")
    recipe, other = Run(run).recipe(), Run(tmp_path / "other")
    other.begin(recipe)
    Run(run).share_prepared(other, recipe)
    assert other.is_prepared(recipe)
    assert (other.path / "labels.json").samefile(run / "labels.json")
    assert read_run_manifest(other.path) == read_run_manifest(run)
    (other.path / "data/identity.json").unlink()
    Run(run).share_prepared(other, recipe)  # the artifacts are links to the same files already
    assert other.is_prepared(recipe)


def test_everything_that_is_kept_is_flushed_before_it_is_renamed_and_survives_a_crash(
    data: Path, tmp_path: Path
) -> None:
    recorder, answers = record_training("table", data, tmp_path / "disk")
    renamed = [moment.call for moment in recorder.moments if moment.call.startswith(("rename", "replace"))]
    assert recorder.unflushed_renames == [] and len(renamed) > 15
    count, faults = replay(recorder, "run", question("table", data), answers, every=5)
    assert faults == [] and count > 60


def test_a_rename_without_a_flush_would_be_noticed(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.files.move_file", lambda source, target: source.replace(target))
    monkeypatch.setattr("regard.manifest.move_file", lambda source, target: source.replace(target))
    monkeypatch.setattr("regard.data.scaling.write_text_atomically", lambda path, text: path.write_text(text) and None)
    recorder, _ = record_training("table", data, tmp_path / "disk")
    assert "run/data/scale.json -> scale.json" in recorder.unflushed_renames


def test_every_task_is_tried_by_the_benchmark() -> None:
    from regard.tasks import Recipe

    settings = [dict(item.split("=", 1) for item in settings) for settings, _ in TASKS.values()]
    tried = {table.get("task.kind", "translate") for table in settings}
    assert tried == {cls.kind() for cls in Recipe.classes()}
