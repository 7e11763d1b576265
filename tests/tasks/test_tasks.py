"""A job is one file: everything else treats it like any other."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

import regard
from parrot import ParrotModel, ParrotRecipe
from regard.cli import invoke
from regard.errors import ConfigError
from regard.run import Run
from regard.tasks import Recipe

PARROT = """
[task]
kind = "parrot"
[model]
kind = "seq2seq"
layers = 1
width = 16
[train]
steps = 6
every = 3
select = "accuracy"
"""
TRANSLATOR = ["data.kind=phrases", "model.preset=transformer-tiny"]


@pytest.fixture(autouse=True)
def aviary(tmp_path, monkeypatch):
    """A place where parrots are a job among the others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Recipe, "jobs", (*Recipe.jobs, ParrotRecipe))
    Path("polly.toml").write_text(PARROT, encoding="utf-8")


@pytest.fixture
def told(capsys):
    """Run a command line: its code, what it said on stdout, what on stderr."""

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


def test_a_recipe_is_of_the_job_that_its_task_names():
    assert type(Recipe.read(Path("polly.toml"))) is ParrotRecipe
    assert Recipe.read(None, TRANSLATOR).kind() == "translate"


def test_a_section_that_a_job_does_not_use_is_unknown():
    assert refusal(["text.size=100"], Path("polly.toml")).startswith(
        'unknown setting "text", given on the command line; '
    )
    assert refusal([*TRANSLATOR, "jobs.size=1"]).startswith('unknown setting "jobs", given on the command line; ')


def test_a_job_that_does_not_exist_is_told_with_those_that_do():
    names = ", ".join(job.kind() for job in Recipe.jobs)
    assert refusal([*TRANSLATOR, "task.kind=translat"]) == (
        f"task.kind: expected one of {names}, got 'translat'; did you mean translate?"
    )


def test_a_choice_that_is_left_out_is_asked_for_with_all_there_is():
    settings = ["task.kind=classify", "data.kind=tsv", "data.train=a.tsv", "model.width=64"]
    assert refusal(settings) == "model.kind must be given: one of recurrent, convolution, transformer, mlp"


def test_a_checkpoint_is_selected_only_by_what_the_job_measures():
    assert refusal(["train.select=bleu"], Path("polly.toml")) == (
        "train.select: expected one of loss, ppl, accuracy, got 'bleu'"
    )


@pytest.mark.parametrize(("tokens", "longest", "good"), [(63, 64, True), (64, 64, False)])
def test_learned_positions_that_are_too_few_are_refused_in_the_recipe(tokens, longest, good):
    settings = [*TRANSLATOR, "model.positions=learned", f"model.longest={longest}", f"filter.tokens={tokens}"]
    if good:
        Recipe.read(None, settings)
    else:
        assert refusal(settings) == (
            "filter.tokens = 64 lets texts of 65 places through, the end included, and model.longest = 64 has learned "
            "positions for fewer; use filter.tokens = 63 or a larger model.longest"
        )


def test_a_job_of_ones_own_is_trained_scored_listed_and_averaged_like_any_other(told):
    code, out, err = told("train", "polly.toml")
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
    listed = told("runs", "ls")[1].splitlines()
    assert listed[0].split() == ["run", "model", "step", "loss", "accuracy", "changed"]
    assert "  accuracy 50.0" in told("runs", "show", "runs/polly")[1]
    assert json.loads(told("eval", "runs/polly", "--json")[1])["data"] == "jungle"
    assert told("average", "runs/polly", "--last", 2)[0] == 0
    assert regard.load("runs/polly-average").recipe == Recipe.read(Path("polly.toml"))


def test_a_verb_says_what_a_run_of_another_job_is_and_which_verb_to_use(told):
    told("train", "polly.toml", "-q")
    assert told("translate", "runs/polly", "4 5") == (
        3,
        "",
        'error: runs/polly was trained to parrot, so it cannot translate; use: regard squawk runs/polly "..."\n',
    )


def test_what_a_job_prepares_is_prepared_anew_when_its_settings_change_and_only_then(told):
    assert told("data", "prepare", "polly.toml")[2].splitlines()[-1] == "seeds  8"
    run, recipe = Run(Path("runs/polly")), Recipe.read(Path("polly.toml"))
    assert run.prepared(recipe)
    assert not run.prepared(Recipe.read(Path("polly.toml"), ["task.size=9"]))
    Path("runs/polly/seeds.txt").rename("runs/polly/data/seeds.txt")  # as if stopped on its way
    assert not run.prepared(recipe)
    run.prepare(recipe)
    assert run.prepared(recipe) and Path("runs/polly/seeds.txt").exists()


def test_new_writes_a_recipe_of_any_job(told):
    code, out, err = told("new", "mine", "--task", "parrot")
    assert (code, out) == (0, "mine.toml\n")
    assert err.startswith("talk to it\n")
    assert type(Recipe.read(Path("mine.toml"))) is ParrotRecipe
    assert tomllib.loads(Path("mine.toml").read_text(encoding="utf-8"))["task"] == {"kind": "parrot"}
    assert told("new", "other", "--task", "parrot", "--source-lang", "de")[0] == 2


@pytest.mark.parametrize("job", Recipe.jobs, ids=lambda job: job.kind())
def test_what_new_writes_is_a_recipe_of_its_job_in_which_every_line_is_explained(job, told):
    assert told("new", "mine", "--task", job.kind())[0] == 0
    assert type(Recipe.read(Path("mine.toml"))) is job
    for line in Path("mine.toml").read_text(encoding="utf-8").splitlines()[1:]:
        assert not line or line.startswith("[") or line.removeprefix("# ").partition("  # ")[2], line


def test_explain_tells_whose_a_setting_is_where_not_all_jobs_have_it(told):
    assert told("config", "explain", "task.size")[1].startswith("task.size (to parrot): how many numbers there are\n")
    assert "(to " not in told("config", "explain", "seed")[1]


def test_the_schema_has_one_option_a_job(told):
    options = json.loads(told("config", "schema")[1])["anyOf"]
    assert [option["properties"]["task"]["properties"]["kind"]["enum"] for option in options] == [
        [job.kind()] for job in Recipe.jobs
    ]


def test_files_to_score_need_the_option(told):
    told("train", "polly.toml", "-q")
    code, _, err = told("eval", "runs/polly", "a.txt")
    assert (code, err) == (
        2,
        "error: unexpected a.txt; files to score are given as --data FILE FILE (see regard eval --help)\n",
    )
