"""The contract of a task: training, evaluation and the command line treat a new task like any other."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

import regard
from parrot import ParrotModel, ParrotRecipe
from regard.cli import invoke
from regard.errors import ConfigError
from regard.models import preset_tables
from regard.recipe_tables import expand_paths, with_preset
from regard.run import Run
from regard.tasks import TASKS, Recipe

PARROT = """
[task]
kind = "parrot"
[model]
kind = "seq2seq"
layers = 1
width = 16
[train]
steps = 6
validate_every = 3
best_metric = "accuracy"
"""
TRANSLATOR = ["data.kind=phrases", "model.preset=transformer-tiny"]


@pytest.fixture(autouse=True)
def with_parrot(tmp_path, monkeypatch):
    """A folder and a list of tasks that has the parrot."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(TASKS, "parrot", "parrot:ParrotRecipe")
    Path("polly.toml").write_text(PARROT, encoding="utf-8")


@pytest.fixture
def run_cli(capsys):
    """Run a command line; returns the exit code, stdout and stderr."""

    def run(*arguments):
        capsys.readouterr()
        code = invoke([str(argument) for argument in arguments])
        found = capsys.readouterr()
        return code, found.out, found.err

    return run


def refusal(settings, path=None):
    with pytest.raises(ConfigError) as caught:
        Recipe.read(path, settings)
    return str(caught.value)


def test_task_kind_chooses_the_class_of_a_recipe():
    assert type(Recipe.read(Path("polly.toml"))) is ParrotRecipe
    assert Recipe.read(None, TRANSLATOR).kind() == "translate"


def test_a_section_that_a_task_does_not_have_is_an_unknown_setting():
    assert refusal(["text.vocab_size=100"], Path("polly.toml")).startswith(
        'unknown setting "text", given on the command line; '
    )
    inline = refusal([*TRANSLATOR, "model={kind = 'transformer', ffn_with = 3}"])
    assert inline.startswith(
        'unknown setting "model.ffn_with", given on the command line; did you mean model.ffn_width'
    )
    assert refusal([*TRANSLATOR, "jobs.size=1"]).startswith('unknown setting "jobs", given on the command line; ')


def test_a_setting_without_its_section_is_answered_with_the_section():
    found = refusal([*TRANSLATOR, "steps=10"])
    assert found == 'unknown setting "steps", given on the command line; did you mean train.steps?'


def test_an_unknown_task_is_refused_with_the_list_of_tasks():
    names = ", ".join(task.kind() for task in Recipe.classes())
    assert refusal([*TRANSLATOR, "task.kind=translat"]) == (
        f"task.kind: expected one of {names}, got 'translat'; did you mean translate?"
    )


def test_a_missing_kind_is_refused_with_the_choices():
    settings = ["task.kind=classify", "data.kind=tsv", "data.train=a.tsv", "model.width=64"]
    kinds = "recurrent, convolution, transformer, bert, elmo, elmo-recurrent, mlp, cnn, alexnet, resnet, vit, cnn-lstm"
    assert refusal(settings) == f"model.kind must be given: one of {kinds}"


def test_best_metric_is_one_of_the_metrics_of_the_task():
    assert refusal(["train.best_metric=bleu"], Path("polly.toml")) == (
        "train.best_metric: expected one of loss, ppl, accuracy, got 'bleu'"
    )


@pytest.mark.parametrize(("tokens", "longest", "good"), [(63, 64, True), (64, 64, False)])
def test_too_few_learned_positions_are_refused_in_the_recipe(tokens, longest, good):
    settings = [*TRANSLATOR, "model.positions=learned", f"model.max_positions={longest}", f"filter.max_tokens={tokens}"]
    if good:
        Recipe.read(None, settings)
    else:
        assert refusal(settings) == (
            "filter.max_tokens = 64 lets through texts of 65 positions, <EOS> included, but model.max_positions = 64 "
            "has learned positions for fewer; use filter.max_tokens = 63 or a larger model.max_positions"
        )


def test_a_new_task_is_trained_scored_listed_and_averaged_like_any_other(run_cli):
    code, out, err = run_cli("train", "polly.toml")
    assert code == 0, err
    assert out.startswith(" best accuracy 50.0, loss ")
    assert 'next: regard squawk runs/polly "..."' in out
    heads = [line.split() for line in err.splitlines() if line.startswith(" step")]
    assert heads == [["step", "loss", "ppl", "accuracy", "lr", "grad", "tok/s"]]
    assert "   4 5 -> " in err
    assert isinstance(regard.load("runs/polly"), ParrotModel)
    card = Path("runs/polly/MODEL_CARD.md").read_text(encoding="utf-8")
    assert "to parrot" in card and "the jungle" in card and 'regard squawk runs/polly "..."' in card
    assert sorted(path.name for path in Path("runs/polly").glob("seeds*")) == ["seeds.txt"]
    lines = run_cli("runs", "ls")[1].splitlines()
    assert lines[0].split() == ["run", "model", "step", "loss", "accuracy", "changed"]
    assert "  accuracy 50.0" in run_cli("runs", "show", "runs/polly")[1]
    assert json.loads(run_cli("eval", "runs/polly", "--json")[1])["data"] == "jungle"
    assert run_cli("average", "runs/polly", "--last", 2)[0] == 0
    assert regard.load("runs/polly-average").recipe == Recipe.read(Path("polly.toml"))


def test_the_command_of_another_task_names_the_right_command(run_cli):
    run_cli("train", "polly.toml", "-q")
    assert run_cli("translate", "runs/polly", "4 5") == (
        3,
        "",
        'error: runs/polly was trained to parrot, so it cannot translate; use: regard squawk runs/polly "..."\n',
    )


def test_data_is_prepared_again_only_if_its_settings_change(run_cli):
    assert run_cli("data", "prepare", "polly.toml")[2].splitlines()[-1] == "seeds  8"
    run, recipe = Run(Path("runs/polly")), Recipe.read(Path("polly.toml"))
    assert run.is_prepared(recipe)
    assert not run.is_prepared(Recipe.read(Path("polly.toml"), ["task.size=9"]))
    Path("runs/polly/seeds.txt").rename("runs/polly/data/seeds.txt")  # as if interrupted while it was moved
    assert not run.is_prepared(recipe)
    run.prepare(recipe)
    assert run.is_prepared(recipe) and Path("runs/polly/seeds.txt").exists()


def test_new_writes_a_recipe_of_any_task(run_cli):
    code, out, err = run_cli("new", "mine", "--task", "parrot")
    assert (code, out) == (0, "mine.toml\n")
    assert err.startswith("talk to it\n")
    assert type(Recipe.read(Path("mine.toml"))) is ParrotRecipe
    assert tomllib.loads(Path("mine.toml").read_text(encoding="utf-8"))["task"] == {"kind": "parrot"}
    assert run_cli("new", "other", "--task", "parrot", "--source-lang", "de")[0] == 2


@pytest.mark.parametrize("task", Recipe.classes(), ids=lambda task: task.kind())
def test_new_writes_a_recipe_in_which_every_line_is_explained(task, run_cli):
    assert run_cli("new", "mine", "--task", task.kind())[0] == 0
    assert type(Recipe.read(Path("mine.toml"))) is task
    for line in Path("mine.toml").read_text(encoding="utf-8").splitlines()[1:]:
        assert not line or line.startswith("[") or line.removeprefix("# ").partition("  # ")[2], line


def test_explain_names_the_tasks_of_a_setting_that_not_all_have(run_cli):
    assert run_cli("config", "explain", "task.size")[1].startswith(
        "task.size (to parrot): how many numbers there are\n"
    )
    assert "(to " not in run_cli("config", "explain", "seed")[1]


def test_the_schema_has_one_option_per_task(run_cli):
    options = json.loads(run_cli("config", "schema")[1])["anyOf"]
    assert [option["properties"]["task"]["properties"]["kind"]["enum"] for option in options] == [
        [task.kind()] for task in Recipe.classes()
    ]


def test_files_to_score_need_the_option(run_cli):
    run_cli("train", "polly.toml", "-q")
    code, _, err = run_cli("eval", "runs/polly", "a.txt")
    assert (code, err) == (
        2,
        "error: unexpected a.txt; files to score are given as --data FILE FILE (see regard eval --help)\n",
    )


def test_paths_and_presets_are_expanded(monkeypatch):
    monkeypatch.setenv("CORPUS", "/corpora")
    assert expand_paths({"train": ["$CORPUS/a", "$NO_SUCH_VARIABLE/a"]}) == {
        "train": ["/corpora/a", "$NO_SUCH_VARIABLE/a"]
    }
    assert with_preset({"preset": "transformer-tiny", "layers": 2}, preset_tables())["layers"] == 2
