"""regard new, config, doctor: recipes are written, explained and checked."""

import json
import tomllib
from pathlib import Path

import pytest

from regard.config import dump
from regard.run import Recipe


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_new_recipe_explains_every_line_and_can_be_read(say):
    told = say("new", "mine", "--source-lang", "de", "--target-lang", "nl")
    assert (told.code, told.out) == (0, "mine.toml\n")
    assert "data/train.de" in told.err
    text = Path("mine.toml").read_text(encoding="utf-8")
    recipe = Recipe.read(Path("mine.toml"))
    assert recipe.data.train == ("data/train.de", "data/train.nl")
    assert recipe.model.layers == 3
    for line in text.splitlines()[1:]:
        if line and not line.startswith("["):
            assert line.removeprefix("# ").partition("  # ")[2], line


def test_what_a_new_recipe_leaves_commented_is_the_default(say):
    say("new", "mine")
    lines = Path("mine.toml").read_text(encoding="utf-8").splitlines()
    given = [line for line in lines if not line.startswith(("# valid", "# test")) and "=  " not in line[:40]]
    said = "\n".join(line.removeprefix("# ") if " = " in line[:40] else line for line in given)
    Path("all.toml").write_text(said, encoding="utf-8")
    assert Recipe.read(Path("all.toml")) == Recipe.read(Path("mine.toml"))


def test_a_recipe_is_never_overwritten(say):
    Path("mine.toml").write_text("precious")
    told = say("new", "mine")
    assert (told.code, told.err) == (74, "error: mine.toml exists already; nothing was changed, choose another name\n")
    assert Path("mine.toml").read_text() == "precious"


def test_training_a_new_recipe_without_data_says_which_file_is_missing(say):
    say("new", "mine")
    told = say("train", "mine.toml")
    assert (told.code, told.err) == (66, "error: data/train.source: there is no such file\n")


def test_config_show_prints_a_recipe_that_gives_the_same_back(tiny, say):
    told = say("config", "show", tiny, "model.preset=transformer-tiny", "train.steps=7")
    recipe = Recipe.read(tiny, ["model.preset=transformer-tiny", "train.steps=7"])
    assert told.out == dump(recipe)
    assert tomllib.loads(told.out) == json.loads(
        say("config", "show", tiny, "model.preset=transformer-tiny", "train.steps=7", "--json").out
    )


def test_config_explain_tells_type_default_and_choices(say):
    assert say("config", "explain", "train.clip").out == (
        "train.clip: longest gradient; a longer one is shortened to it; 0 for none\n  a number; default 1.0\n"
    )
    assert "one of wu, power" in say("config", "explain", "decode.penalty").out
    layers = say("config", "explain", "model.layers").out
    assert "model.layers (transformer, to translate or generate or classify or forecast or label): " in layers
    assert "model.layers (gpt, to translate or generate): " in layers
    section = json.loads(say("config", "explain", "decode", "--json").out)
    assert {"key": "decode.beam", "default": 4}.items() <= section[0].items()


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("train.clp", 'there is no setting "train.clp"; did you mean train.clip or train.keep or train.compile?'),
        ("beam", 'there is no setting "beam"; did you mean decode.beam?'),
        ("zzz", 'there is no setting "zzz"; there are data, model, task, filter, text, train, decode, seed, vectors'),
    ],
)
def test_config_explain_guesses_what_was_meant(say, key, message):
    told = say("config", "explain", key)
    assert (told.code, told.err) == (2, f"error: {message}\n")


def test_every_setting_is_documented():
    from regard.config import settings

    assert [(job.kind(), s.key) for job in Recipe.jobs for s in settings(job) if not s.doc] == []


def test_the_schema_describes_every_setting(say):
    found = json.loads(say("config", "schema", "--task", "translate").out)
    assert found["required"] == ["data", "model"]
    kinds = [option["properties"]["kind"]["enum"][0] for option in found["properties"]["data"]["anyOf"]]
    assert kinds == ["files", "tsv", "jsonl", "tatoeba", "phrases"]
    assert found["properties"]["train"]["properties"]["clip"] == {
        "type": "number",
        "default": 1.0,
        "description": "longest gradient; a longer one is shortened to it; 0 for none",
    }


def test_a_table_without_a_kind_is_of_the_default_kind(tiny):
    assert Recipe.read(tiny, ["train.optimizer.eps=1e-6"]).train.optimizer.kind == "adam"


def test_the_doctor_looks_at_everything_and_finds_nothing_broken(say, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(Path("cache").absolute()))
    monkeypatch.setenv("PIP_INDEX_URL", Path("index").absolute().as_uri())
    told = say("doctor", "--json")
    found = {row["name"]: row for row in json.loads(told.out)}
    assert told.code == 0
    assert list(found) == ["python", "torch", "threads", "memory", "disk", "cache", "registry", "compiler"]
    assert found["torch"]["ok"] and found["cache"]["ok"]
    assert not found["registry"]["ok"]
    lines = say("doctor").out.splitlines()
    assert lines[0].startswith("ok   python      3.")
    registry = next(line for line in lines if "registry" in line)
    assert registry.startswith("not  registry") and registry.endswith("(data.kind=phrases) need no network")


def test_a_cache_that_cannot_be_written_is_told_with_what_to_do(say, monkeypatch):
    Path("file").write_text("")
    monkeypatch.setenv("REGARD_CACHE", str(Path("file/cache").absolute()))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    told = say("doctor")
    assert told.code == 0
    assert "not  cache" in told.out and "Not a directory; set REGARD_CACHE to a folder of your own" in told.out
    assert "no index (pip is set to no-index)" in told.out


def test_presets_are_explained_with_their_paper_and_their_size(say):
    told = say("config", "explain", "model.preset")
    assert told.code == 0
    assert "rnnsearch-50      Bahdanau et al. 2015" in told.out and "80,418,000 parameters" in told.out
    rows = json.loads(say("config", "explain", "model.preset", "--json").out)
    assert {"name": "gpt-2", "parameters": 124439808}.items() <= next(r for r in rows if r["name"] == "gpt-2").items()


def test_a_preset_of_another_kind_is_refused_by_name(say):
    Path("a.toml").write_text("[data]\nkind = 'phrases'\n[model]\nkind = 'seq2seq'\n")
    told = say("config", "show", "a.toml", "model.preset=rnnsearch-50")
    said = 'model.preset = "rnnsearch-50" is a rnnsearch, and model.kind says seq2seq; leave one of them out'
    assert (told.code, told.err) == (2, f"error: {said}\n")
