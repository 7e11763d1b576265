"""regard label, and training, scoring and describing what it uses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.cli import invoke
from regard.manifest import write_recipe

RunCli = Callable[..., Any]
ROWS = [
    [("Ada", "B-PER"), ("lives", "O"), ("in", "O"), ("New", "B-LOC"), ("York", "I-LOC"), (".", "O")],
    [("Kurt", "B-PER"), ("lives", "O"), ("in", "O"), ("Rome", "B-LOC"), (".", "O")],
    [("nobody", "O"), ("lives", "O"), ("here", "O"), (".", "O")],
]
DATA = "".join("".join(f"{word} {tag}\n" for word, tag in row) + "\n" for row in ROWS)
RECIPE = """
[task]
kind = "label"
scheme = "bio"
[data]
kind = "conll"
train = "{folder}/train.conll"
valid = "{folder}/train.conll"
[model]
kind = "recurrent"
cell = "gru"
width = 24
dropout = 0.0
[train]
steps = 40
validate_every = 20
batch_tokens = 64
schedule.kind = "constant"
schedule.lr = 0.03
"""
PHRASE = "Ada/B-PER lives/O in/O New/B-LOC York/I-LOC ./O"


def trained_in(folder: Path, *settings: str) -> Path:
    (folder / "train.conll").write_text(DATA, encoding="utf-8")
    (folder / "tags.toml").write_text(RECIPE.format(folder=folder), encoding="utf-8")
    assert invoke(["train", str(folder / "tags.toml"), "--out", str(folder / "run"), "--quiet", *settings]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_in(tmp_path_factory.mktemp("tagger"))


# Use


def test_lines_in_and_lines_out_in_order_empty_ones_too(run_cli: RunCli, tagger: Path) -> None:
    result = run_cli("label", tagger, typed=b"Ada lives in New York.\n\nnobody lives here .\r\n")
    assert (result.code, result.err) == (0, "")
    assert result.out == f"{PHRASE}\n\nnobody/O lives/O here/O ./O\n"


def test_texts_may_be_arguments(run_cli: RunCli, tagger: Path) -> None:
    assert run_cli("label", tagger, "Ada lives in New York .", "").out == f"{PHRASE}\n\n"


def test_a_file_becomes_a_file_with_as_many_lines(run_cli: RunCli, tagger: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("Ada lives in New York.\n\n" * 700, encoding="utf-8")
    result = run_cli("label", tagger, "-i", tmp_path / "in.txt", "-o", tmp_path / "out.txt")
    assert (result.code, result.out) == (0, "")
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == f"{PHRASE}\n\n" * 700


def test_json_has_the_offsets_of_each_token_and_span(run_cli: RunCli, tagger: Path) -> None:
    result = run_cli("label", tagger, "--json", typed=b"nobody\n\nAda  lives in New York\n")
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert [row["line"] for row in rows] == [1, 2, 3]
    assert rows[1] == {"line": 2, "text": "", "tokens": [], "output": "", "spans": []}
    assert rows[2]["tokens"][1] | {"probability": 0} == {
        "text": "lives", "start": 5, "end": 10, "tag": "O", "probability": 0,
    }  # fmt: skip
    place = rows[2]["spans"][1]
    least = min(token["probability"] for token in rows[2]["tokens"] if token["text"] in ("New", "York"))
    assert place == {"kind": "LOC", "text": "New York", "start": 14, "end": 22, "probability": least}


def test_offsets_count_characters_and_not_bytes(run_cli: RunCli, tagger: Path) -> None:
    text = "été 😀 Ada lives"
    row = json.loads(run_cli("label", tagger, text, "--json").out)
    assert [text[token["start"] : token["end"]] for token in row["tokens"]] == ["été", "😀", "Ada", "lives"]


def test_control_characters_are_not_printed(run_cli: RunCli, tagger: Path) -> None:
    assert "\x1b" not in run_cli("label", tagger, "Ada \x1b[2J lives").out
    assert "\x9b" not in run_cli("label", tagger, "Ada \x9b2J lives", "--json").out


def test_conll_columns_are_written_with_the_tag_as_last_column(run_cli: RunCli, tagger: Path) -> None:
    typed = b"Ada NNP\nlives VBZ\nin IN\nRome NNP\n\n\nnobody\tNN\n"
    assert run_cli("label", tagger, "--conll", typed=typed).out == (
        "Ada NNP B-PER\nlives VBZ O\nin IN O\nRome NNP B-LOC\n\n\nnobody\tNN\tO\n"
    )


def test_a_sentence_is_labeled_as_a_whole_even_across_chunks(run_cli: RunCli, tagger: Path) -> None:
    typed = "".join(f"{word}\n" for row in ROWS * 300 for word in [*(w for w, _ in row), ""]).encode()
    result = run_cli("label", tagger, "--conll", typed=typed)
    assert result.out == DATA * 300


def test_a_text_of_a_megabyte_is_labeled(run_cli: RunCli, tagger: Path) -> None:
    long = "Ada lives in Rome . " * 1000 + "x" * 980_000
    result = run_cli("label", tagger, typed=f"nobody\n{long}\nnobody\n".encode())
    assert result.code == 0
    first, second, third = result.out.splitlines()
    assert first == third == "nobody/O"
    assert second.startswith("Ada/B-PER ") and len(second) > 1_000_000


# Errors


def test_lines_before_a_bad_line_are_answered(run_cli: RunCli, tagger: Path) -> None:
    result = run_cli("label", tagger, typed=b"nobody\n" * 512 + b"\xff\n")
    assert (result.code, result.out) == (4, "nobody/O\n" * 512)
    assert "stdin, line 513: byte 1 (0xff) is not UTF-8" in result.err


def test_a_missing_column_is_reported_after_the_sentences_before_it_are_written(run_cli: RunCli, tagger: Path) -> None:
    recipe = (tagger / "recipe.toml").read_text(encoding="utf-8")
    write_recipe(tagger, recipe.replace("word = 1", "word = 2"))
    try:
        result = run_cli("label", tagger, "--conll", typed=b"1 Ada\n2 lives\n\n1\n")
    finally:
        write_recipe(tagger, recipe)
    assert (result.code, result.out) == (4, "1 Ada B-PER\n2 lives O\n\n")
    assert result.err == "error: line 4: expected 2 columns or more, found 1\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["Ada", "-i", "a.txt"], 2, "give either texts or -i, not both"),
        (["Ada", "--conll", "--json"], 2, "give either --conll or --json, not both"),
        (["-i", "none.txt"], 66, "none.txt: there is no such file"),
        (["Ada", "-o", "/nowhere/out.txt"], 74, "/nowhere/out.txt: cannot be written (No such file or directory)"),
    ],
)
def test_a_bad_request_is_refused(arguments: list[str], code: int, message: str, run_cli: RunCli, tagger: Path) -> None:
    result = run_cli("label", tagger, *arguments)
    assert (result.code, result.out, result.err) == (code, "", f"error: {message}\n")


def test_the_error_for_a_run_of_another_task_names_its_verb(run_cli: RunCli, tagger: Path, trained: Path) -> None:
    result = run_cli("label", trained, "Ada")
    assert result.code == 3
    assert result.err.endswith(f'was trained to translate, so it cannot label; use: regard translate {trained} "..."\n')
    result = run_cli("translate", tagger, "Ada")
    assert result.err.endswith(f'was trained to label, so it cannot translate; use: regard label {tagger} "..."\n')


@pytest.mark.parametrize(
    ("data", "settings", "code", "message"),
    [
        ("Ada B-PER\nlives\n", [], 4, "{file}, line 2: expected 2 columns or more, found 1"),
        ("", [], 4,
         "{file} is empty; expected one word per line with its tag, and a blank line after each sentence"),
        (None, [], 66, "{file}: there is no such file"),
        ("Ada I-PER\nlives O\n", ["task.strict=true"], 4, '{file}, line 1: "I-PER" is not allowed there in BIO, '
         '"B-PER" would be valid; fix the data, or let it be repaired with task.strict = false'),
        ("Ada I-PER\nlives O\n", ["--strict"], 4, '{file}, line 1: "I-PER" is not allowed there in BIO, "B-PER" '
         "would be valid; fix the data, or let it be repaired with task.strict = false"),
        ("Ada B-PER\nlives VERB\n", [], 4, '{file}, line 2: "VERB" is not a tag of task.scheme = "bio", which has B-X '
         'and I-X and O; if tags are not spans, use task.scheme = "none"'),
        ("Ada lives\tB-PER\n", ["data={kind='tsv', train='{file}'}"], 4,
         "{file}, line 1: there are 2 words and 1 tags; each word needs one"),
        ("Ada O\nlives O\n", [], 4,
         'every token of train has the tag "O"; there is nothing to learn; is data.tag the right column?'),
        ("Ada one\n", ["task.scheme=none", "data.label_type=numbers"], 4, '{file}, line 1: "one" is not a number'),
    ],
)  # fmt: skip
def test_unusable_data_is_reported_before_training(
    data: str | None, settings: list[str], code: int, message: str, run_cli: RunCli, tmp_path: Path
) -> None:
    file = tmp_path / "train.conll"
    if data is not None:
        file.write_text(data, encoding="utf-8")
    (tmp_path / "tags.toml").write_text(RECIPE.format(folder=tmp_path), encoding="utf-8")
    arguments = [setting.replace("{file}", str(file)) for setting in settings]
    result = run_cli("train", tmp_path / "tags.toml", "--out", tmp_path / "run", "-q", *arguments)
    assert (result.code, result.err) == (code, f"error: {message.replace('{file}', str(file))}\n")


# Commands that all tasks have


def test_spans_that_were_repaired_are_counted_in_the_statistics(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.conll").write_text(DATA.replace("B-PER", "I-PER"), encoding="utf-8")
    (tmp_path / "tags.toml").write_text(RECIPE.format(folder=tmp_path), encoding="utf-8")
    result = run_cli("data", "stats", "tags.toml")
    lines = result.out.splitlines()
    assert lines[0] == "vocabulary  10 words"
    assert lines[1].startswith("tags        4: O 66.7 %, ")
    assert lines[2] == "train       3 of 3 sentences; 2 repaired tags"
    assert lines[3].startswith("            15 words, 5.0 per sentence, 99 % have at most 5, the longest 6; padding ")
    first = run_cli("train", "tags.toml", "--dry-run").out.splitlines()[0]
    assert first == " data     3 train, 3 valid sentences; 4 repaired tags       10 words, 4 tags"


def test_eval_counts_what_it_repaired_and_what_training_never_had(
    run_cli: RunCli, tagger: Path, tmp_path: Path
) -> None:
    file = tmp_path / "other.conll"
    file.write_text("Ada I-PER\nsaw O\nMars B-PLANET\n", encoding="utf-8")
    result = run_cli("eval", tagger, "--data", file)
    assert result.code == 0 and result.out.splitlines()[-2:] == [
        "note       1 tags were repaired", "note       1 tokens have tags that are not in training: B-PLANET",
    ]  # fmt: skip


def test_tags_that_look_like_spans_are_reported(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.conll").write_text(DATA, encoding="utf-8")
    (tmp_path / "tags.toml").write_text(RECIPE.format(folder=tmp_path), encoding="utf-8")
    result = run_cli("data", "stats", "tags.toml", "task.scheme=none")
    assert '            they look like spans; task.scheme = "bio" would score and repair them as such' in result.out


def test_new_writes_a_recipe_that_trains(run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_cli("new", "mine", "--task", "label").code == 0
    (tmp_path / "data").mkdir()
    rows = "".join(DATA.replace("lives", f"lives{number}") for number in range(20))
    (tmp_path / "data" / "train.conll").write_text(rows, encoding="utf-8")
    result = run_cli("train", "mine.toml", "--dry-run", "model.width=80", "train.batch_tokens=64")
    assert result.code == 0, result.err
    assert "steps" in result.out and "lstm 1 layer, width 80, both directions" in result.out


def test_eval_prints_f1_by_kind_and_fails_below_a_minimum(run_cli: RunCli, tagger: Path) -> None:
    result = run_cli("eval", tagger, "--split", "valid", "--min", "f1=90")
    assert result.code == 0, result.err
    heads = [line.split()[0] for line in result.out.splitlines()[1:]]
    assert heads == ["F1", "precision", "recall", "accuracy", "baseline", "LOC", "PER"]
    assert run_cli("eval", tagger, "--split", "valid", "--min", "f1=100.5").code == 6
    found = json.loads(run_cli("eval", tagger, "--split", "valid", "--json").out)
    assert found["detail"]["kinds"]["LOC"]["spans"] == 2


def test_look_shows_states_and_saliency(run_cli: RunCli, tagger: Path, tmp_path: Path) -> None:
    for view in ("states", "saliency", "lens"):
        result = run_cli("look", tagger, "Ada lives in Rome", "--view", view)
        assert result.code == 0 and "Rome" in result.out
        assert run_cli("look", tagger, "Ada lives", "--view", view, "-o", tmp_path / f"{view}.svg").code == 0
        assert (tmp_path / f"{view}.svg").read_text(encoding="utf-8").startswith("<svg")
    assert run_cli("look", tagger, "Ada lives", "--view", "gradients").code == 2
