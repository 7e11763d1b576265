"""regard generate, and training, scoring and describing what it uses."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.cli import invoke

BOOK = "".join(f"The wind blew {word}, and the sea said nothing.\n" for word in ("north", "south", "east", "west") * 60)
RECIPE = """
[task]
kind = "generate"
window = 16
length = 30
[data]
kind = "text"
train = "book.txt"
[model]
kind = "rnnlm"
layers = 1
width = 32
dropout = 0.0
[train]
steps = 60
every = 30
tokens = 256
schedule.kind = "constant"
schedule.lr = 0.02
"""
NAMES = "".join(f"{a}{b}\n" for a in ("An", "Bo", "Cla", "Do", "E") for b in ("na", "ra", "ri", "lo", "va", "mi") * 3)


def trained_in(folder: Path, *settings: str) -> Path:
    (folder / "book.txt").write_text(BOOK, encoding="utf-8")
    (folder / "names.txt").write_text(NAMES, encoding="utf-8")
    (folder / "writer.toml").write_text(RECIPE.replace("book.txt", str(folder / "book.txt")), encoding="utf-8")
    assert invoke(["train", str(folder / "writer.toml"), "--out", str(folder / "run"), "--quiet", *settings]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_in(tmp_path_factory.mktemp("writer"))


@pytest.fixture(scope="module")
def namer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("namer")
    return trained_in(folder, f"data.train={folder}/names.txt", "data.unit=line", "train.tokens=64")


Say = Callable[..., Any]


def test_a_text_goes_on_from_its_prompt_and_the_same_seed_writes_it_again(say: Say, writer: Path) -> None:
    said = say("generate", writer, "The wind", "--length", 40)
    assert said.code == 0 and said.err == ""
    assert said.out.startswith("The wind") and len(said.out) == len("The wind") + 40 + 1
    assert say("generate", writer, "The wind", "--length", 40).out == said.out
    assert say("generate", writer, "The wind", "--length", 40, "--seed", 7).out != said.out
    assert len(say("generate", writer, "The wind").out) == len("The wind") + 30 + 1


def test_it_has_learnt_what_it_read(say: Say, writer: Path) -> None:
    assert "the sea said nothing." in say("generate", writer, "The wind", "--length", 60, "--temperature", 0).out


def test_the_prompt_may_come_from_a_file_or_from_stdin(say: Say, writer: Path, tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text("The\nwind\n")
    asked = say("generate", writer, "The\nwind").out
    assert say("generate", writer, "-i", tmp_path / "prompt.txt").out == asked
    assert say("generate", writer, typed=b"The\r\nwind\n").out == asked


def test_samples_are_apart_and_json_tells_what_is_known_of_each(say: Say, writer: Path, namer: Path) -> None:
    assert say("generate", writer, "The", "-n", 3).out.count("-----\n") == 2
    names = say("generate", namer, "", "-n", 5).out.splitlines()
    assert len(names) == 5 and all(name for name in names)
    found = json.loads(say("generate", namer, "B", "-n", 2, "--json").out)
    assert found["prompt"] == "B" and len(found["samples"]) == 2
    assert set(found["samples"][0]) == {"text", "tokens", "score", "complete"}


def test_it_writes_while_it_thinks(start: Say, writer: Path) -> None:
    process = start("generate", writer, "The", "--length", 100_000)
    first = process.stdout.read(20)
    assert first.startswith("The") and process.poll() is None
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    process.stdout.read()
    assert process.wait(20) == 130 and time.monotonic() - began < 20
    assert "interrupted; what was written is whole characters" in process.stderr.read()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["The ♥"], 4, 'the prompt holds what this model has never read: "♥" (U+2665); leave it out, or train on text '
         "that has it"),
        ([""], 4, "the prompt is empty, and this model has learnt one running text that never begins anew; give it "
         'something to go on from, such as "The"'),
        (["The", "-i", "prompt.txt"], 2, "give either a prompt or -i, not both"),
        (["-i", "none.txt"], 66, "none.txt: there is no such file"),
        (["The", "--top-p", "0"], 2, "top_p = 0.0 must be above 0 and at most 1"),
        (["The", "--temperature", "-1"], 2, "temperature = -1.0 must be at least 0, which takes the likeliest"),
    ],
)  # fmt: skip
def test_a_bad_request_is_told(arguments: list[str], code: int, message: str, say: Say, writer: Path) -> None:
    said = say("generate", writer, *arguments)
    assert (said.code, said.out) == (code, "")
    assert message in said.err


def test_a_run_of_another_job_is_told_its_verb(say: Say, writer: Path, trained: Path) -> None:
    said = say("generate", trained, "The")
    assert said.code == 3
    assert said.err.strip().endswith(
        f'{trained} was trained to translate, so it cannot generate; use: regard translate {trained} "..."'
    )
    said = say("translate", writer, "The")
    assert said.code == 3
    assert said.err.strip().endswith(
        f'{writer} was trained to generate, so it cannot translate; use: regard generate {writer} "..."'
    )


@pytest.mark.parametrize(
    ("settings", "code", "message"),
    [
        (["data.train=none.txt"], 66, "none.txt: there is no such file"),
        (["train.tokens=16384"], 4, "there are 10,044 places to learn from, and one batch takes 16,400: 1024 streams "
         "with windows of 16; lower train.tokens or task.window, or give more data"),
        (["train.tokens=8"], 2, "train.tokens = 8 is less than task.window = 16: not one stream fits into a batch"),
        (["model={kind = \"transformer\"}"], 2,
         'model.kind = "transformer" reads a source, and what is generated has none; use rnnlm or gpt'),
        (["model={kind = \"gpt\", longest = 8, width = 16, heads = 2}"], 2,
         "task.window = 16 is more than the 8 places of model.longest; make them equal"),
        (["model.condition=every"], 2, 'model.condition = "every" waits for a vector to go on from, and what is '
         'generated goes on from its prompt alone; use "none"'),
        (["text.kind=bpe", "text.dropout=0.1"], 2,
         "text.dropout = 0.1: a running text is cut into tokens once and for all; set it to 0"),
        (["train.select=bleu"], 2, "train.select: expected one of loss, ppl, bits, got 'bleu'"),
        (["filter.longest=3"], 2, 'unknown setting "filter"'),
    ],
)  # fmt: skip
def test_a_recipe_that_cannot_work_is_told(
    settings: list[str], code: int, message: str, say: Say, writer: Path, tmp_path: Path
) -> None:
    said = say("train", writer.parent / "writer.toml", "--out", tmp_path / "run", *settings)
    assert said.code == code
    assert message in said.err


def test_eval_tells_perplexity_and_bits_a_character(say: Say, writer: Path, tmp_path: Path) -> None:
    found = json.loads(say("eval", writer, "--json").out)
    scores = {score["name"]: score for score in found["scores"]}
    assert found["data"] == "valid"
    validated = [json.loads(line) for line in (writer / "metrics.jsonl").read_text().splitlines()]
    best = min((row for row in validated if row["event"] == "validated"), key=lambda row: row["loss"])
    assert scores["perplexity"]["value"] == pytest.approx(best["ppl"], rel=1e-4)
    assert scores["bits"]["value"] == pytest.approx(best["bits"], rel=1e-4)
    assert scores["bits"]["low"] <= scores["bits"]["value"] <= scores["bits"]["high"]
    (tmp_path / "other.txt").write_text("The sea blew west.\n" * 9)
    assert json.loads(say("eval", writer, "--data", tmp_path / "other.txt", "--json").out)["scores"][1]["value"] > 0
    assert say("eval", writer, "--min", "bits=0.001").code == 6


def test_the_interval_of_a_score_rests_on_every_window_of_every_stream(say: Say, writer: Path) -> None:
    scored = len(BOOK) - int(len(BOOK) * 0.9) - 1
    said = say("eval", writer).out
    windows = int(said.splitlines()[0].rpartition(", ")[2].removesuffix(" windows"))
    assert scored / 16 <= windows <= scored / 16 + 16  # at most one more for each of the 16 streams


def test_what_a_model_cannot_read_is_told_with_its_score(say: Say, writer: Path, tmp_path: Path) -> None:
    (tmp_path / "hearts.txt").write_text("The ♥ blew west.\n" * 9, encoding="utf-8")
    said = say("eval", writer, "--data", tmp_path / "hearts.txt")
    assert said.code == 0
    assert said.out.splitlines()[-1] == "9 of 153 characters are unknown to this model; each is scored as <UNK>"
    assert json.loads(say("eval", writer, "--data", tmp_path / "hearts.txt", "--json").out)["detail"] == {"unknown": 9}
    assert "unknown" not in say("eval", writer).out


def test_a_text_of_which_nothing_can_be_read_has_no_score(say: Say, writer: Path, tmp_path: Path) -> None:
    (tmp_path / "greek.txt").write_text("αβγ δε\n" * 9, encoding="utf-8")
    said = say("eval", writer, "--data", tmp_path / "greek.txt")
    assert (said.code, said.out) == (4, "")
    assert "45 of 63 characters are unknown to this model, and not one letter or digit is known" in said.err


def test_what_chooses_among_tokens_is_refused_where_numbers_are_written(say: Say, tmp_path: Path) -> None:
    (tmp_path / "wave.txt").write_text("".join(f"{i % 7}\n" for i in range(900)))
    wave = f'data={{kind = "numbers", train = "{tmp_path}/wave.txt"}}'
    run = trained_in(tmp_path, wave, "train.steps=2", "train.every=2")
    assert say("generate", run, "3", "--length", 2, "--temperature", 0).code == 0
    for flag, told in (("--top-k", "top_k = 1"), ("--top-p", "top_p = 0.5")):
        said = say("generate", run, "3", flag, told.rpartition(" ")[2])
        assert (said.code, said.out) == (2, "")
        assert f"{told} chooses among tokens, and this model writes numbers; leave it out" in said.err
    said = say("train", tmp_path / "writer.toml", "--out", tmp_path / "other", wave, "decode.repetition=1.2")
    assert said.code == 2 and "repetition = 1.2 chooses among tokens" in said.err


def test_samples_of_what_it_writes_are_kept(writer: Path, namer: Path) -> None:
    rows = [json.loads(line) for line in (writer / "samples.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [30, 60]
    assert len(rows[0]["prompt"]) == 16 and len(rows[0]["output"]) == 30
    assert json.loads((namer / "samples.jsonl").read_text().splitlines()[0])["prompt"] == ""


def test_stats_and_card_and_new_speak_of_text(say: Say, writer: Path, tmp_path: Path, monkeypatch: Any) -> None:
    stats = say("data", "stats", writer.parent / "writer.toml").out
    assert "characters a token" in stats and "windows of 16 places" in stats
    monkeypatch.chdir(tmp_path)
    assert say("new", "mine", "--task", "generate").code == 0
    (tmp_path / "data").mkdir()
    (tmp_path / "data/book.txt").write_text(BOOK)
    assert say("config", "show", "mine.toml").code == 0
    assert 'kind = "char"' in (tmp_path / "mine.toml").read_text()


def test_a_stopped_run_goes_on_as_if_it_had_not_been_stopped(say: Say, writer: Path, tmp_path: Path) -> None:
    from regard.train import checkpoint

    recipe = writer.parent / "writer.toml"
    for steps in (7, 30, 60):
        assert say("train", recipe, "--out", tmp_path / "run", f"train.steps={steps}", "-q").code == 0
    one, other = (checkpoint.newest(path).checkpoint for path in (writer, tmp_path / "run"))
    assert one is not None and other is not None
    for group in ("model", "carry", "optimizer"):
        for name, tensor in one.tensors(group).items():
            assert tensor.equal(other.tensors(group)[name]), f"{group} {name}"


def test_every_kind_of_tokenizer_writes(say: Say, tmp_path: Path) -> None:
    run = trained_in(tmp_path, "text.kind=byte-bpe", "text.size=300", "train.steps=3")
    assert say("generate", run, "Où ♥").out.startswith("Où ♥")
    assert (run / "tokenizer.json").exists()


def test_a_model_that_cannot_carry_anything_on_learns_and_writes_past_its_window(say: Say, tmp_path: Path) -> None:
    from regard.train import checkpoint

    gpt = 'model={kind = "gpt", layers = 1, width = 16, heads = 2, longest = 16, dropout = 0.0}'
    run = trained_in(tmp_path, gpt, "train.steps=4", "train.every=4")
    assert len(say("generate", run, "The wind blew north, and", "--length", 50).out) == 24 + 50 + 1
    found = checkpoint.newest(run).checkpoint
    assert found is not None and set(found.groups) == {"model", "optimizer"}


def test_a_prompt_in_the_recipe_is_tried_before_training(say: Say, writer: Path, tmp_path: Path) -> None:
    said = say("train", writer.parent / "writer.toml", "--out", tmp_path / "run", "task.prompt=♥")
    assert said.code == 4
    assert 'the prompt holds what this model has never read: "♥" (U+2665); leave it out' in said.err
    assert not (tmp_path / "run/checkpoints").exists()
