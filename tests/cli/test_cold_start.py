"""Wrong arguments and typos in recipes are reported without torch, in the words of the config classes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import PATIENCE, refusal
from regard import plugins
from regard.cli import invoke
from regard.config import kind_of, union_members
from regard.config import settings as every_setting
from regard.errors import ConfigError
from regard.models import PRESETS, ModelConfig
from regard.settings_table import _content, _make_class, check_recipe
from regard.tasks import TASKS, Recipe

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys
from regard.cli import invoke
SLOW = {"torch", "numpy", "rich", "sacrebleu", "tokenizers", "requests"}
print(json.dumps([(invoke(arguments), sorted(SLOW & set(sys.modules))) for arguments in json.loads(sys.argv[1])]))
"""
RECIPE = '[data]\nkind = "phrases"\n[model]\nkind = "transformer"\n'
WRONG = [
    (["translate"], 2, "missing argument 'RUN'"),
    (["translate", "nowhere", "x"], 3, "nowhere is not a run: there is no such directory"),
    (["translate", ".", "x"], 3, ". is not a run: it has no recipe.toml"),
    (["classify", "nowhere", "x"], 3, "nowhere is not a run"),
    (["generate", "nowhere", "x"], 3, "nowhere is not a run"),
    (["forecast", "nowhere"], 3, "nowhere is not a run"),
    (["look", "nowhere", "x"], 3, "nowhere is not a run"),
    (["eval", "nowhere"], 3, "nowhere is not a run"),
    (["train", "nofile.toml"], 66, "cannot open the recipe nofile.toml"),
    (
        ["train", "mine.toml", "train.step=3"],
        2,
        'unknown setting "train.step", given on the command line; did you mean',
    ),
    (["train", "typo.toml"], 2, 'unknown setting "model.widht", in typo.toml; did you mean model.width'),
    (["train", "run", "train.step=3"], 2, 'unknown setting "train.step", given on the command line'),
    (["train", "mine.toml", "train.tokens=3"], 2, "train.tokens is now train.batch_tokens"),
    (["train", "mine.toml", "model.kind=transfrmer"], 2, "did you mean transformer?"),
    (["train", "mine.toml", "model.preset=big"], 2, 'model.preset: there is no preset "big"'),
    (["train", "mine.toml", "task.kind=translat"], 2, "did you mean translate?"),
    (["train", "mine.toml", "train.steps=many"], 2, "train.steps: expected a whole number, got 'many'"),
    (["train", "mine.toml", "train.optimizer.kind=adm"], 2, "did you mean adam?"),
    (["data", "stats", "mine.toml", "data.cuont=3"], 2, 'unknown setting "data.cuont"'),
    (["config", "show", "mine.toml", "seeed=3"], 2, 'unknown setting "seeed"'),
    (["config", "explain", "train.stps"], 2, 'there is no setting "train.stps"; did you mean train.steps'),
    (["new", "other", "--task", "transalte"], 2, "task.kind: expected one of translate, generate, "),
    (["trian"], 2, "did you mean 'train'?"),
]
BROKEN = [
    "train.step=3", "steps=3", "model.kind=x", "model.preset=x", "task.kind=x", "task=3", "train.steps=x", "seed=1.5",
    "model.layers=[1]", "data.kind=files", "data={kind = 'tsv'}", "train.schedule={kind = 'cosin'}", "filter.tokens=3",
    "train.rates=3", "train.schedule.warmup=x", "task.sample_inputs=[1]", "model.encoder.kind=x", "text.size=4",
    "model={kind = 'encoder-decoder', decoder = {kind = 'gpt'}}", "data={kind = 'files', train = ['a']}", "text=1",
    "a.b=1",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(RECIPE, encoding="utf-8")
    Path("typo.toml").write_text(RECIPE + "widht = 3\n", encoding="utf-8")
    Path("run").mkdir()
    Path("run/recipe.toml").write_text(RECIPE, encoding="utf-8")
    return tmp_path


def test_wrong_arguments_and_typos_are_reported_without_torch(folder):
    command = [sys.executable, "-c", PROGRAM, json.dumps([arguments for arguments, _, _ in WRONG])]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", env=os.environ, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    found, errors = json.loads(done.stdout.splitlines()[-1]), done.stderr.splitlines()
    assert len(errors) == len(WRONG), errors
    for (arguments, code, message), (ended, imported), error in zip(WRONG, found, errors, strict=True):
        assert (ended, imported, message in error) == (code, [], True), f"{arguments}: {ended}, {imported}: {error}"


@pytest.mark.parametrize("setting", BROKEN)
def test_the_error_is_the_one_of_the_config_classes(setting, folder):
    path = Path("mine.toml")
    early = refusal(ConfigError, lambda: check_recipe(path, [setting]))
    assert early == refusal(ConfigError, lambda: Recipe.read(path, [setting]))


def test_no_recipe_and_no_preset_is_refused_by_the_table(monkeypatch):
    monkeypatch.setenv("REGARD_DATA", "data")
    recipes = [path for path in sorted((ROOT / "recipes").rglob("*.toml")) if path.parent.name != "compare"]
    assert len(recipes) > 10
    for path in [*recipes, ROOT / "src" / "regard" / "demo.toml"]:
        check_recipe(path, [])
    generating = [kind_of(member) for member in union_members(ModelConfig)]
    for name, preset in PRESETS.items():
        recipe = "src/regard/demo.toml" if preset.config.kind in generating else "recipes/classify/digits.toml"
        check_recipe(ROOT / recipe, [f"model={{preset = '{name}'}}"])


@pytest.mark.parametrize("task", TASKS)
def test_classes_made_of_the_table_have_the_settings_of_the_task(task):
    made = _make_class(_content()["recipes"][task])
    (recipe,) = (recipe for recipe in Recipe.classes() if recipe.kind() == task)
    assert [(s.key, s.type, s.doc, s.choices, s.of) for s in every_setting(made)] == [
        (s.key, s.type, s.doc, s.choices, s.of) for s in every_setting(recipe)
    ]


@pytest.mark.parametrize("key", ["train.clip_norm", "model.width", "decode", "data", "train.schedule"])
def test_a_setting_is_explained_without_torch_as_with_it(key, folder, capsys):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps([["config", "explain", key]])],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE,
    )
    assert done.stdout.splitlines()[-1] == "[[0, []]]"
    assert invoke(["config", "explain", key]) == 0
    assert capsys.readouterr().out.splitlines() == done.stdout.splitlines()[:-1]


def test_what_a_plugin_may_know_is_left_to_the_classes(folder, monkeypatch):
    monkeypatch.setattr("regard.settings_table.has_plugins", lambda: True)
    check_recipe(Path("mine.toml"), ["model.kind=bigram"])
    assert not plugins.has_plugins()


def test_a_recipe_that_starts_from_a_model_is_left_to_the_classes(folder):
    Path("tuned.toml").write_text('[data]\nkind = "phrases"\n[model]\ninit = "runs/a"\n', encoding="utf-8")
    check_recipe(Path("tuned.toml"), ["train.steps=3"])


def test_a_recipe_may_come_through_a_pipe(folder):
    """A pipe can be read once: the check before torch is imported leaves it to the classes."""
    recipe = "[data]\nkind = 'phrases'\n[model]\npreset = 'transformer-tiny'\n"
    command = f"{sys.executable} -m regard config show <(printf '%s' \"$0\") train.steps=3"
    done = subprocess.run(
        ["bash", "-c", command, recipe], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "steps = 3" in done.stdout


INTERRUPTED = """
import builtins, sys
from regard.__main__ import main
load = builtins.__import__
def interrupt(name, *rest):
    if name == "regard.cli.label":
        raise KeyboardInterrupt
    return load(name, *rest)
builtins.__import__ = interrupt
sys.argv = ["regard", "--version"]
main()
"""


def test_an_interrupt_while_modules_are_imported_is_reported_in_one_line():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")
