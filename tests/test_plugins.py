"""Models, tasks and commands of other packages: found by entry points, imported when used; a broken one is named."""

import json
import sys

import pytest

from regard import plugins
from regard.cli import cli, invoke
from regard.config import ConfigError, settings
from regard.tasks import TASKS, Recipe, task_names

MODEL = """
from dataclasses import dataclass
from typing import Literal

from regard.models.base import EncoderDecoderConfigBase


@dataclass(frozen=True)
class Empty(EncoderDecoderConfigBase):
    kind: Literal["{name}"] = "{name}"
    depth: int = 7
    \"\"\"how deep it is\"\"\"

    def build_encoder(self, source):
        raise NotImplementedError

    def build_decoder(self, target, encoder):
        raise NotImplementedError
"""
BASE = ["data.kind=phrases"]


@pytest.fixture
def add_plugin(tmp_path, monkeypatch):
    """Install a package of one module with entry points; a module without text does not exist."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(cli, "commands", dict(cli.commands))
    plugins.warn.cache_clear()

    def add(module, text, points):
        if text:
            (tmp_path / f"{module}.py").write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, module, raising=False)
        info = tmp_path / f"{module}-0.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 0.1\n", encoding="utf-8")
        lines = [f"[{group}]\n{name} = {module}:{attribute}\n" for group, name, attribute in points]
        (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
        plugins._scan.cache_clear()

    yield add
    plugins._scan.cache_clear()


def test_a_recipe_names_the_model_of_another_package(add_plugin):
    add_plugin("deep_model", MODEL.format(name="deep"), [("regard.models", "deep", "Empty")])
    recipe = Recipe.read(None, [*BASE, "model.kind=deep", "model.depth=3"])
    assert (recipe.model.kind, recipe.model.depth, recipe.model.summary) == ("deep", 3, "deep")
    paired = ["model={kind = 'encoder-decoder', encoder = {kind = 'deep', dept = 2}}"]
    with pytest.raises(ConfigError, match=r'"model.encoder.dept".*model.encoder.depth \(how deep it is, now 7'):
        Recipe.read(None, [*BASE, *paired])
    translate = next(recipe for recipe in Recipe.classes() if recipe.kind() == "translate")
    assert [s.default for s in settings(translate) if s.of == "deep" and s.key == "model.depth"] == [7]


def test_the_command_line_explains_and_suggests_the_model_of_another_package(add_plugin, capsys):
    add_plugin("deep_model", MODEL.format(name="deep"), [("regard.models", "deep", "Empty")])
    assert invoke(["config", "explain", "model.depth"]) == 0
    assert "how deep it is" in capsys.readouterr().out
    assert invoke(["config", "schema", "--task", "classify"]) == 0
    kinds = [o["properties"]["kind"] for o in json.loads(capsys.readouterr().out)["properties"]["model"]["anyOf"]]
    assert kinds[-1]["enum"] == ["deep"]
    with pytest.raises(ConfigError, match="got 'dep'; did you mean deep"):
        Recipe.read(None, [*BASE, "model.kind=dep"])


def test_nothing_is_imported_for_a_recipe_that_needs_no_plugin(add_plugin):
    add_plugin("deep_model", "raise SystemError('imported')", [("regard.models", "deep", "Empty")])
    assert Recipe.read(None, [*BASE, "model.kind=transformer"]).model.kind == "transformer"
    assert "deep_model" not in sys.modules


@pytest.mark.parametrize(
    ("module", "text", "fault"),
    [
        ("absent_model", "", "cannot be imported: ModuleNotFoundError: No module named 'absent_model'"),
        ("wrong_model", "1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
        ("other_model", MODEL.format(name="other"), "cannot be used: its config has the kind 'other'; expected kind: "),
        ("list_model", "Empty = []", "cannot be used: expected a dataclass, a model's config, found []"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_named_and_the_rest_works(add_plugin, capsys, module, text, fault):
    add_plugin(module, text, [("regard.models", "deep", "Empty")])
    with pytest.raises(ConfigError) as caught:
        Recipe.read(None, [*BASE, "model.kind=deep"])
    assert str(caught.value).startswith(f'regard.models "deep" ({module}:Empty of {module} 0.1) {fault}')
    with pytest.warns(plugins.PluginWarning, match=f"{module}:Empty of {module} 0.1"):
        assert invoke(["config", "explain", "model.width"]) == 0
    assert "model.width" in capsys.readouterr().out
    assert Recipe.read(None, [*BASE, "model.kind=seq2seq"]).model.kind == "seq2seq"


def test_doctor_names_every_plugin_and_what_is_wrong_with_it(add_plugin, capsys):
    add_plugin("deep_model", MODEL.format(name="deep"), [("regard.models", "deep", "Empty")])
    add_plugin("absent", "", [("regard.tasks", "sing", "Song"), ("regard.commands", "train", "train")])
    assert invoke(["doctor"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "plugins" in line)
    assert line.startswith("not  plugins")
    for part in (
        'regard.tasks "sing" (absent:Song of absent 0.1) cannot be imported',
        'regard.commands "train" (absent:train of absent 0.1) is not used: regard has a train of its own',
    ):
        assert part in line
    assert "deep" not in line


def test_the_name_of_a_model_or_task_of_regard_is_refused(add_plugin):
    points = [("regard.models", "transformer", "Empty"), ("regard.tasks", "translate", "Empty")]
    add_plugin("copy_cat", MODEL.format(name="transformer"), points)
    with pytest.warns(plugins.PluginWarning) as caught:
        recipe = Recipe.read(None, [*BASE, "model.kind=transformer"])
    assert type(recipe.model).__module__ == "regard.models.transformer" and "copy_cat" not in sys.modules
    assert sorted(str(warning.message) for warning in caught) == [
        f'regard.{group} "{name}" (copy_cat:Empty of copy_cat 0.1) is not used: regard has a {name} of its own; '
        "rename the entry point"
        for group, name in (("models", "transformer"), ("tasks", "translate"))
    ]


def test_a_task_that_is_no_recipe_is_refused_by_name(add_plugin):
    add_plugin("song", "Song = int", [("regard.tasks", "sing", "Song")])
    assert task_names() == [*TASKS, "sing"]
    with pytest.raises(ConfigError, match=r'"sing" \(song:Song of song 0.1\) cannot be used: expected a subclass of'):
        Recipe.read(None, ["task.kind=sing"])
    with pytest.warns(plugins.PluginWarning, match="song:Song"):
        assert [recipe.kind() for recipe in Recipe.classes()] == list(TASKS)


def test_a_command_of_another_package_runs_and_a_broken_one_is_named(add_plugin, capsys):
    text = "import click\n@click.command()\ndef fly():\n    'Fly away.'\n    click.echo('up')\n"
    add_plugin("wings", text, [("regard.commands", "fly", "fly")])
    assert invoke(["fly"]) == 0 and capsys.readouterr().out == "up\n"
    add_plugin("stones", "", [("regard.commands", "sink", "sink")])
    with pytest.warns(plugins.PluginWarning, match="stones:sink"):
        assert invoke(["--help"]) == 0
    listed = capsys.readouterr().out
    assert "Fly away." in listed and "sink" not in listed
    assert invoke(["sink"]) == 2
    assert capsys.readouterr().err == (
        'error: regard.commands "sink" (stones:sink of stones 0.1) cannot be imported: ModuleNotFoundError: '
        "No module named 'stones'\n"
    )


def test_every_task_has_the_name_under_which_it_is_listed():
    assert [recipe.kind() for recipe in Recipe.classes()] == list(TASKS)
