"""regard cost."""

import json
from pathlib import Path

import pytest


def test_gpt_3_on_300_billion_tokens(run_cli):
    result = run_cli("cost", "gpt-3", "--tokens", "300e9")
    assert result.code == 0 and result.err == ""
    rows = {line[:21].strip(): line[21:].split("  ")[0].strip() or line[21:] for line in result.out.splitlines()[1:]}
    assert "174,604,259,328" in result.out and "300,000,000,000" in result.out
    assert any(line.split()[:2] == ["petaflop/s-days", "3,638"] for line in result.out.splitlines())
    assert "lower bound" in result.out and "1024 x 1024 matrices" in result.out
    assert "KV cache" in rows


def test_json_has_all_figures(run_cli):
    found = json.loads(run_cli("cost", "gpt-2", "--tokens", "1e10", "--json").out)
    assert found["parameters"] == 124_439_808 and found["tokens"] == 1e10
    assert found["training_flops"] == 6 * 124_439_808 * 1e10
    assert found["petaflop_s_days"] == pytest.approx(found["training_flops"] / 8.64e19)
    assert found["inference_memory"]["kv_cache"] == 2 * 12 * 768 * 1024 * 4
    memory = found["training_memory"]
    assert memory["total"] == sum(memory[part] for part in ("weights", "gradients", "optimizer", "activations"))
    speed = found["machine"]["flops_per_second"]
    assert found["training_seconds"] == pytest.approx(found["training_flops"] / speed)
    assert found["times_are"] == "lower bounds"


def test_a_preset_without_tokens_is_counted_for_a_billion(run_cli):
    assert json.loads(run_cli("cost", "bert-mini", "--json").out)["tokens"] == 1e9


def test_a_recipe_is_counted_with_its_planned_tokens_and_writes_nothing(run_cli, tiny):
    found = json.loads(run_cli("cost", tiny, "-q", "--json").out)
    more = json.loads(run_cli("cost", tiny, "train.steps=60", "train.ema=0.9", "-q", "--json").out)
    assert 0 < found["tokens"] <= 30 * 512 and more["tokens"] == pytest.approx(2 * found["tokens"])
    assert found["training_memory"]["optimizer"] == 8 * found["parameters"]
    assert more["training_memory"]["optimizer"] == 12 * found["parameters"]
    assert not Path("runs").exists()


def test_a_run_has_the_cost_of_its_recipe(run_cli, trained):
    found = json.loads(run_cli("cost", trained, "--json", "--tokens", "5").out)
    assert found["tokens"] == 5 and found["training_flops"] == 30 * found["parameters"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["gpt-33"], 2, 'there is no preset "gpt-33"; did you mean gpt-3?'),
        (
            ["zzz"],
            2,
            'error: zzz: there is no recipe or run at this path, and there is no preset "zzz"; `regard config',
        ),
        (["missing.toml"], 66, "missing.toml: there is no such recipe or run, and no preset of this name"),
        (["gpt-2", "model.layers=3"], 2, "model.layers=3: settings change a recipe, and gpt-2 is a preset"),
        *[
            (["gpt-2", "--tokens", text], 2, f"--tokens {text}: expected a number of at least 1, such as 300e9")
            for text in ("0", "-5", "nan", "inf", "many", "")
        ],
    ],
    ids=str,
)
def test_bad_input_is_named(run_cli, tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    result = run_cli("cost", *arguments)
    assert result.code == code and result.out == ""
    assert message in result.err


def test_a_file_that_is_no_recipe_is_refused(run_cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("not a recipe\n", encoding="utf-8")
    assert run_cli("cost", "notes.txt").code == 2
    Path("empty").mkdir()
    assert run_cli("cost", "empty").code == 3
