"""regard new, config, doctor: recipes are written, explained and checked."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from regard.config import dump
from regard.run import Recipe


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_new_recipe_explains_every_line_and_can_be_read(run_cli):
    result = run_cli("new", "mine", "--source-lang", "de", "--target-lang", "nl")
    assert (result.code, result.out) == (0, "mine.toml\n")
    assert "data/train.de" in result.err
    text = Path("mine.toml").read_text(encoding="utf-8")
    recipe = Recipe.read(Path("mine.toml"))
    assert recipe.data.train == ("data/train.de", "data/train.nl")
    assert recipe.model.layers == 3
    for line in text.splitlines()[1:]:
        if line and not line.startswith("["):
            assert line.removeprefix("# ").partition("  # ")[2], line


def test_what_a_new_recipe_leaves_commented_is_the_default(run_cli):
    run_cli("new", "mine")
    lines = Path("mine.toml").read_text(encoding="utf-8").splitlines()
    setting_lines = [line for line in lines if not line.startswith(("# valid", "# test")) and "=  " not in line[:40]]
    result = "\n".join(line.removeprefix("# ") if " = " in line[:40] else line for line in setting_lines)
    Path("all.toml").write_text(result, encoding="utf-8")
    assert Recipe.read(Path("all.toml")) == Recipe.read(Path("mine.toml"))


def test_a_recipe_is_never_overwritten(run_cli):
    Path("mine.toml").write_text("precious")
    result = run_cli("new", "mine")
    assert (result.code, result.err) == (
        74,
        "error: mine.toml exists already; nothing was changed, choose another name\n",
    )
    assert Path("mine.toml").read_text() == "precious"


def test_training_a_new_recipe_without_data_names_the_missing_file(run_cli):
    run_cli("new", "mine")
    result = run_cli("train", "mine.toml")
    assert (result.code, result.err) == (66, "error: data/train.source: there is no such file\n")


def test_config_show_prints_a_recipe_that_gives_the_same_back(tiny, run_cli):
    result = run_cli("config", "show", tiny, "model.preset=transformer-tiny", "train.steps=7")
    recipe = Recipe.read(tiny, ["model.preset=transformer-tiny", "train.steps=7"])
    assert result.out == dump(recipe)
    assert tomllib.loads(result.out) == json.loads(
        run_cli("config", "show", tiny, "model.preset=transformer-tiny", "train.steps=7", "--json").out
    )


def test_config_explain_prints_type_default_and_choices(run_cli):
    assert run_cli("config", "explain", "train.clip_norm").out == (
        "train.clip_norm: gradient clipping: largest L2 norm of the gradient; 0: no clipping\n  a number; default 1.0\n"
    )
    assert "one of wu, power" in run_cli("config", "explain", "decode.length_penalty").out
    layers = run_cli("config", "explain", "model.layers").out
    assert (
        "model.layers (transformer, to translate or generate or classify or forecast or label or fill or regress): "
        in layers
    )
    assert "model.layers (gpt, to translate or generate): " in layers
    section = json.loads(run_cli("config", "explain", "decode", "--json").out)
    assert {"key": "decode.beam", "default": 4}.items() <= section[0].items()


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (
            "train.clp",
            'there is no setting "train.clp"; did you mean train.clip_norm or train.compile or train.steps?',
        ),
        ("beam", 'there is no setting "beam"; did you mean decode.beam?'),
        ("train.every", 'there is no setting "train.every"; it is now train.validate_every'),
        ("zzz", 'there is no setting "zzz"; there are data, model, task, filter, text, train, decode, seed, vectors'),
    ],
)
def test_config_explain_suggests_similar_settings(run_cli, key, message):
    result = run_cli("config", "explain", key)
    assert (result.code, result.err) == (2, f"error: {message}\n")


def test_every_setting_is_documented():
    from regard.config import settings

    assert [(job.kind(), s.key) for job in Recipe.classes() for s in settings(job) if not s.doc] == []


def test_the_schema_describes_every_setting(run_cli):
    found = json.loads(run_cli("config", "schema", "--task", "translate").out)
    assert found["required"] == ["data", "model"]
    kinds = [option["properties"]["kind"]["enum"][0] for option in found["properties"]["data"]["anyOf"]]
    assert kinds == ["files", "tsv", "jsonl", "tatoeba", "phrases", "mix", "imported"]
    assert found["properties"]["train"]["properties"]["clip_norm"] == {
        "type": "number",
        "default": 1.0,
        "description": "gradient clipping: largest L2 norm of the gradient; 0: no clipping",
    }


def test_a_table_without_a_kind_is_of_the_default_kind(tiny):
    assert Recipe.read(tiny, ["train.optimizer.eps=1e-6"]).train.optimizer.kind == "adam"


def test_the_doctor_runs_all_checks_and_finds_nothing_broken(run_cli, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(Path("cache").absolute()))
    monkeypatch.setenv("PIP_INDEX_URL", Path("index").absolute().as_uri())
    result = run_cli("doctor", "--json")
    found = {row["name"]: row for row in json.loads(result.out)}
    assert result.code == 0
    assert list(found) == [
        "python", "torch", "devices", "threads", "memory", "disk", "cache", "index", "compiler", "plugins",
    ]  # fmt: skip
    assert found["torch"]["ok"] and found["cache"]["ok"]
    assert not found["index"]["ok"]
    lines = run_cli("doctor").out.splitlines()
    assert lines[0].startswith("ok   python      3.")
    index = next(line for line in lines if "  index" in line)
    assert index.startswith("not  index") and index.endswith("(data.kind=phrases) need no network")


def test_a_cache_that_cannot_be_written_is_reported_with_a_remedy(run_cli, monkeypatch):
    Path("file").write_text("")
    monkeypatch.setenv("REGARD_CACHE", str(Path("file/cache").absolute()))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    result = run_cli("doctor")
    assert result.code == 0
    assert "not  cache" in result.out and "Not a directory; set REGARD_CACHE to a folder of your own" in result.out
    assert "no index (pip is set to no-index)" in result.out


def test_presets_are_explained_with_their_paper_and_their_size(run_cli):
    result = run_cli("config", "explain", "model.preset")
    assert result.code == 0
    assert "rnnsearch-50      Bahdanau et al. 2015" in result.out and "80,418,000 parameters" in result.out
    rows = json.loads(run_cli("config", "explain", "model.preset", "--json").out)
    assert {"name": "gpt-2", "parameters": 124439808}.items() <= next(r for r in rows if r["name"] == "gpt-2").items()


def test_a_preset_of_another_kind_is_refused_by_name(run_cli):
    Path("a.toml").write_text("[data]\nkind = 'phrases'\n[model]\nkind = 'seq2seq'\n")
    result = run_cli("config", "show", "a.toml", "model.preset=rnnsearch-50")
    message = 'model.preset = "rnnsearch-50" is a rnnsearch, and model.kind says seq2seq; leave one of them out'
    assert (result.code, result.err) == (2, f"error: {message}\n")


def test_the_recipe_of_a_forecast_does_not_speak_of_words(run_cli):
    assert run_cli("new", "mine", "--task", "forecast").code == 0
    comments = [line.partition("#")[2] for line in Path("mine.toml").read_text(encoding="utf-8").splitlines()]
    foreign = re.compile(r"\b(words?|vocabular\w*|sentences?|texts?|translat\w*|languages?)\b", re.IGNORECASE)
    assert [line for line in comments if foreign.search(line)] == []
