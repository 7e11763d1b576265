"""regard fill, and training, scoring and looking into what it uses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.cli import invoke

RunCli = Callable[..., Any]
FOODS = {"cat": "fish", "dog": "meat", "horse": "hay"}
RECIPE = """
[task]
kind = "fill"
length = 20
mask_share = 0.3
[data]
kind = "text"
unit = "line"
train = "FOLDER/book.txt"
[text]
kind = "wordpiece"
vocab_size = 80
lowercase = true
[model]
kind = "bert"
layers = 1
width = 32
heads = 2
ffn_width = 64
dropout = 0.0
max_positions = 20
[train]
steps = 350
validate_every = 350
batch_tokens = 256
schedule.kind = "linear"
schedule.lr = 0.005
schedule.warmup = 20
"""


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows what animals eat."""
    folder = tmp_path_factory.mktemp("fill")
    lines = [f"The {animal} eats {food} {when}.\n" for when in ("today", "again") for animal, food in FOODS.items()]
    (folder / "book.txt").write_text("".join(lines * 60), encoding="utf-8")
    (folder / "own.toml").write_text(RECIPE.replace("FOLDER", str(folder)), encoding="utf-8")
    assert invoke(["train", str(folder / "own.toml"), "--out", str(folder / "run"), "--quiet"]) == 0
    return folder / "run"


def test_a_text_is_filled_with_ranked_words(reader: Path, run_cli: RunCli) -> None:
    found = run_cli("fill", reader, "The cat eats [MASK] today.", "-k", 2)
    filled, candidates = found.out.rstrip("\n").split("\t")
    assert (found.code, filled) == (0, "The cat eats fish today.")
    words = [pair.rsplit(" ", 1) for pair in candidates.split(", ")]
    assert words[0][0] == "fish" and len(words) == 2 and float(words[0][1]) > float(words[1][1])


def test_lines_are_answered_in_order_with_a_column_per_mask(reader: Path, run_cli: RunCli, tmp_path: Path) -> None:
    text = "The [MASK] eats hay [MASK].\n\nThe dog [MASK] meat.\n"
    (tmp_path / "in.txt").write_text(text, encoding="utf-8")
    found = run_cli("fill", reader, "-i", tmp_path / "in.txt", "-o", tmp_path / "out.txt", "--top", 1)
    rows = [line.split("\t") for line in (tmp_path / "out.txt").read_text(encoding="utf-8").split("\n")]
    assert found.code == 0 and [len(row) for row in rows] == [3, 1, 2, 1]
    assert rows[0][0].startswith("The horse eats hay ") and rows[2][0] == "The dog eats meat."
    assert run_cli("fill", reader, "--top", 1, typed=text.encode()).out.split("\n") == ["\t".join(row) for row in rows]


def test_json_has_line_text_filled_and_masks(reader: Path, run_cli: RunCli) -> None:
    found = run_cli("fill", reader, "The [MASK] eats meat. [SEP] The dog eats [MASK].", "--json", "-k", 3)
    row = json.loads(found.out)
    assert (row["line"], len(row["masks"])) == (1, 2) and len(row["masks"][0]) == 3
    assert row["masks"][0][0]["token"] == "dog" and row["filled"].startswith("The dog eats meat. [SEP] The dog eats ")
    assert 0 < row["masks"][0][0]["probability"] <= 1


def test_bad_lines_are_reported_and_the_others_answered(reader: Path, run_cli: RunCli) -> None:
    typed = f"The cat eats [MASK].\nno mask here\n{'very ' * 30}[MASK]\nThe dog eats [MASK].\n"
    found = run_cli("fill", reader, "-k", 1, typed=typed.encode())
    assert found.code == 4
    assert [bool(line) for line in found.out.split("\n")] == [True, False, False, True, False]
    assert "line 2: there is no [MASK] to fill; write [MASK] for each word" in found.err
    assert "line 3: the text has" in found.err and "reads at most 20 (task.length)" in found.err
    assert "2 lines of the input have no answer" in found.err
    as_json = run_cli("fill", reader, "--json", typed=typed.encode())
    rows = [json.loads(line) for line in as_json.out.splitlines()]
    assert [("error" in row) for row in rows] == [False, True, True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the cat eats fish", "line 1: there is no [MASK] to fill; write [MASK] for each word"),
        ("the cat eats <mask>", 'there is no [MASK] to fill, found "<mask>"'),
        ("very " * 30 + "[MASK]", "and this model reads at most 20 (task.length); shorten it around its masks"),
        ("[MASK] [SEP] b [SEP] c", "expected one text, or two with [SEP] between them, found 3 segments"),
    ],
)
def test_one_bad_text_is_an_error_and_nothing_is_written(
    reader: Path, run_cli: RunCli, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "out.txt").write_text("before\n", encoding="utf-8")
    found = run_cli("fill", reader, text, "-o", tmp_path / "out.txt")
    assert found.code == 4 and message in found.err and found.out == ""
    assert not (tmp_path / "new.txt").exists()


def test_unknown_characters_are_reported_and_empty_texts_stay_empty(reader: Path, run_cli: RunCli) -> None:
    found = run_cli("fill", reader, "ぬ [MASK] 😀", "-k", 1)
    assert found.code == 0 and found.out.startswith("ぬ ")
    assert "2 tokens of the input are not in the model's vocabulary, and read as unknown" in found.err
    assert json.loads(run_cli("fill", reader, "ぬ [MASK]", "--json").out)["unknown"] == 1
    assert run_cli("fill", reader, "", "").out == "\n\n"
    alone = run_cli("fill", reader, " ")
    assert (alone.code, alone.out) == (4, "") and alone.err.startswith("error: the text is empty; give a text")
    assert run_cli("fill", reader, "[MASK]").code == 0


def test_a_model_without_masks_is_refused_with_what_it_can(tiny: Path, reader: Path, run_cli: RunCli) -> None:
    assert run_cli("train", "tiny.toml", "--quiet", "train.steps=1").code == 0
    found = run_cli("fill", "runs/tiny", "a [MASK]")
    assert found.code == 3
    assert "runs/tiny was trained to translate, so it cannot fill; use: regard translate runs/tiny" in found.err
    other = run_cli("translate", reader, "a")
    assert (
        other.code == 3
        and f'was trained to fill, so it cannot translate; use: regard fill {reader} "... [MASK] ..."' in other.err
    )


def test_evaluation_stands_beside_the_most_frequent_token(reader: Path, run_cli: RunCli) -> None:
    found = run_cli("eval", reader, "--json")
    scores = {score["name"]: score for score in json.loads(found.out)["scores"]}
    assert list(scores) == ["accuracy", "baseline", "perplexity", "loss"]
    assert scores["accuracy"]["value"] > scores["baseline"]["value"]
    assert run_cli("eval", reader, "--min", "accuracy=101").code == 6
    assert "this task does not use beam search" in run_cli("eval", reader, "--beam", 2).err


def test_attention_candidates_and_lens_are_shown(reader: Path, run_cli: RunCli, tmp_path: Path) -> None:
    text = "The cat eats [MASK] today."
    assert "fish" in run_cli("look", reader, text, "--view", "candidates").out
    lens = run_cli("look", reader, text, "--view", "lens")
    assert lens.code == 0 and "layer 0" in lens.out
    for view in ("attention", "lens", "candidates", "states"):
        assert run_cli("look", reader, text, "--view", view, "-o", tmp_path / f"{view}.svg").code == 0
        assert "<svg" in (tmp_path / f"{view}.svg").read_text(encoding="utf-8")
    assert run_cli("look", reader, text, "-o", tmp_path / "pass.html").code == 0
    refused = run_cli("look", reader, "no mask")
    assert refused.code == 4 and "there is no [MASK] to fill" in refused.err


def test_a_new_recipe_trains(run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_cli("new", "mine", "--task", "fill").code == 0
    Path("data").mkdir(exist_ok=True)
    Path("data/book.txt").write_text("The cat eats fish. The dog eats meat.\n" * 80, encoding="utf-8")
    shape = ["model.layers=1", "model.width=16", "model.heads=2", "model.ffn_width=16", "text.vocab_size=60"]
    found = run_cli("train", "mine.toml", *shape, "train.epochs=1")
    assert found.code == 0, found.err
    assert 'regard fill runs/mine "... [MASK] ..."' in found.out
    stats = run_cli("data", "stats", "mine.toml", *shape, "train.epochs=1")
    assert stats.code == 0 and "sequences of" in stats.out
