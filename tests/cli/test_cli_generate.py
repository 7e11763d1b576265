"""regard generate, and training, scoring and describing what it uses."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers import PATIENCE
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
validate_every = 30
batch_tokens = 256
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
    return trained_in(folder, f"data.train={folder}/names.txt", "data.unit=line", "train.batch_tokens=64")


RunCli = Callable[..., Any]


def test_a_gpt_whose_first_validation_shows_nan_ends_with_5(
    run_cli: RunCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("book.txt").write_text(BOOK, encoding="utf-8")
    Path("gpt.toml").write_text(RECIPE, encoding="utf-8")
    model = "model={kind = 'gpt', layers = 1, width = 8, heads = 1}"
    result = run_cli("train", "gpt.toml", model, "train.schedule.lr=1e37", "train.validate_every=1")
    assert result.code == 5
    reason = "at the validation the weights or the loss are NaN or infinite. There is no good checkpoint; "
    assert f"error: training diverged at step 1: {reason}" in result.err


def test_a_text_continues_its_prompt_and_the_same_seed_gives_the_same_text(run_cli: RunCli, writer: Path) -> None:
    result = run_cli("generate", writer, "The wind", "--length", 40)
    assert result.code == 0 and result.err == ""
    assert result.out.startswith("The wind") and len(result.out) == len("The wind") + 40 + 1
    assert run_cli("generate", writer, "The wind", "--length", 40).out == result.out
    assert run_cli("generate", writer, "The wind", "--length", 40, "--seed", 7).out != result.out
    assert len(run_cli("generate", writer, "The wind").out) == len("The wind") + 30 + 1


def test_a_model_reproduces_its_training_text(run_cli: RunCli, writer: Path) -> None:
    assert "the sea said nothing." in run_cli("generate", writer, "The wind", "--length", 60, "--temperature", 0).out


def test_the_prompt_may_come_from_a_file_or_from_stdin(run_cli: RunCli, writer: Path, tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text("The\nwind\n")
    expected = run_cli("generate", writer, "The\nwind").out
    assert run_cli("generate", writer, "-i", tmp_path / "prompt.txt").out == expected
    assert run_cli("generate", writer, typed=b"The\r\nwind\n").out == expected


def test_samples_are_separated_and_json_has_their_details(run_cli: RunCli, writer: Path, namer: Path) -> None:
    assert run_cli("generate", writer, "The", "-n", 3).out.count("-----\n") == 2
    names = run_cli("generate", namer, "", "-n", 5).out.splitlines()
    assert len(names) == 5 and all(name for name in names)
    found = json.loads(run_cli("generate", namer, "B", "-n", 2, "--json").out)
    assert found["prompt"] == "B" and len(found["samples"]) == 2
    assert set(found["samples"][0]) == {"text", "tokens", "score", "complete"}


def test_text_is_printed_while_it_is_generated(start: RunCli, writer: Path) -> None:
    process = start("generate", writer, "The", "--length", 100_000)
    first = process.stdout.read(20)
    assert first.startswith("The") and process.poll() is None
    process.send_signal(signal.SIGINT)
    assert len(first + process.stdout.read()) < 100_000
    assert process.wait(PATIENCE) == 130
    assert "interrupted; only whole characters were written" in process.stderr.read()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["The ♥"], 4, 'the prompt has tokens that this model does not know: "♥" (U+2665); leave it out, or train '
         "on text that has it"),
        ([""], 4, "the prompt is empty, and this model was trained on one running text without beginnings; give it "
         'a prompt, such as "The"'),
        (["The", "-i", "prompt.txt"], 2, "give either a prompt or -i, not both"),
        (["-i", "none.txt"], 66, "none.txt: there is no such file"),
        (["The", "--top-p", "0"], 2, "top_p = 0.0 must be above 0 and at most 1"),
        (["The", "--temperature", "-1"], 2, "temperature = -1.0 must be at least 0, which is greedy decoding"),
    ],
)  # fmt: skip
def test_a_bad_request_is_refused(arguments: list[str], code: int, message: str, run_cli: RunCli, writer: Path) -> None:
    result = run_cli("generate", writer, *arguments)
    assert (result.code, result.out) == (code, "")
    assert message in result.err


def test_the_error_for_a_run_of_another_task_names_its_verb(run_cli: RunCli, writer: Path, trained: Path) -> None:
    result = run_cli("generate", trained, "The")
    assert result.code == 3
    assert result.err.strip().endswith(
        f'{trained} was trained to translate, so it cannot generate; use: regard translate {trained} "..."'
    )
    result = run_cli("translate", writer, "The")
    assert result.code == 3
    assert result.err.strip().endswith(
        f'{writer} was trained to generate, so it cannot translate; use: regard generate {writer} "..."'
    )


@pytest.mark.parametrize(
    ("settings", "code", "message"),
    [
        (["data.train=none.txt"], 66, "none.txt: there is no such file"),
        (["train.batch_tokens=16384"], 4, "the training data has 10,044 positions, and one batch takes 16,400: "
         "1024 streams with windows of 16; lower train.batch_tokens or task.window, or give more data"),
        (["train.batch_tokens=8"], 2,
         "train.batch_tokens = 8 is less than task.window = 16: not one stream fits into a batch"),
        (["model={kind = \"transformer\"}"], 2,
         'model.kind = "transformer" reads a source, and generate has none; use rnnlm, gpt or llama'),
        (["model={kind = \"gpt\", max_positions = 8, width = 16, heads = 2}"], 2,
         "task.window = 16 is more than model.max_positions = 8; make them equal"),
        (["model.condition=every"], 2, 'model.condition = "every" expects a condition with every text, and data.kind = '
         '"text" has none; use data.kind = "conditioned", or model.condition = "none"'),
        (["text.kind=bpe", "text.dropout=0.1"], 2,
         "text.dropout = 0.1: running text is tokenized once; set it to 0"),
        (["train.best_metric=bleu"], 2, "train.best_metric: expected one of loss, ppl, bits, got 'bleu'"),
        (["filter.longest=3"], 2, 'unknown setting "filter"'),
    ],
)  # fmt: skip
def test_a_recipe_that_cannot_work_is_refused(
    settings: list[str], code: int, message: str, run_cli: RunCli, writer: Path, tmp_path: Path
) -> None:
    result = run_cli("train", writer.parent / "writer.toml", "--out", tmp_path / "run", *settings)
    assert result.code == code
    assert message in result.err


def test_eval_prints_perplexity_and_bits_per_character(run_cli: RunCli, writer: Path, tmp_path: Path) -> None:
    found = json.loads(run_cli("eval", writer, "--json").out)
    scores = {score["name"]: score for score in found["scores"]}
    assert found["data"] == "valid"
    validated = [json.loads(line) for line in (writer / "metrics.jsonl").read_text().splitlines()]
    best = min((row for row in validated if row["event"] == "validated"), key=lambda row: row["loss"])
    assert scores["perplexity"]["value"] == pytest.approx(best["ppl"], rel=1e-4)
    assert scores["bits"]["value"] == pytest.approx(best["bits"], rel=1e-4)
    assert scores["bits"]["low"] <= scores["bits"]["value"] <= scores["bits"]["high"]
    (tmp_path / "other.txt").write_text("The sea blew west.\n" * 9)
    assert json.loads(run_cli("eval", writer, "--data", tmp_path / "other.txt", "--json").out)["scores"][1]["value"] > 0
    assert run_cli("eval", writer, "--min", "bits=0.001").code == 6
    assert scores["bits_per_byte"]["value"] == pytest.approx(scores["bits"]["value"])  # the book is ASCII
    assert run_cli("eval", writer, "--min", "bits_per_byte=0.001").code == 6
    refused = run_cli("eval", writer, "--stride", "4")
    assert refused.code == 2 and "--stride: a sliding window is for models that read each window alone" in refused.err


def test_the_interval_of_a_score_rests_on_every_window_of_every_stream(run_cli: RunCli, writer: Path) -> None:
    scored = len(BOOK) - int(len(BOOK) * 0.9) - 1
    result = run_cli("eval", writer).out
    windows = int(result.splitlines()[0].rpartition(", ")[2].removesuffix(" windows"))
    assert scored / 16 <= windows <= scored / 16 + 16  # at most one more for each of the 16 streams


def test_unknown_characters_are_reported_with_the_score(run_cli: RunCli, writer: Path, tmp_path: Path) -> None:
    (tmp_path / "hearts.txt").write_text("The ♥ blew west.\n" * 9, encoding="utf-8")
    result = run_cli("eval", writer, "--data", tmp_path / "hearts.txt")
    assert result.code == 0
    assert result.out.splitlines()[-1] == "9 of 153 characters are unknown to this model; each is scored as <UNK>"
    assert json.loads(run_cli("eval", writer, "--data", tmp_path / "hearts.txt", "--json").out)["detail"] == {
        "unknown": 9
    }
    assert "unknown" not in run_cli("eval", writer).out


def test_a_text_of_unknown_characters_only_has_no_score(run_cli: RunCli, writer: Path, tmp_path: Path) -> None:
    (tmp_path / "greek.txt").write_text("αβγ δε\n" * 9, encoding="utf-8")
    result = run_cli("eval", writer, "--data", tmp_path / "greek.txt")
    assert (result.code, result.out) == (4, "")
    assert "45 of 63 characters are unknown to this model, and not one letter or digit is known" in result.err


def test_token_sampling_options_are_refused_for_a_model_of_numbers(run_cli: RunCli, tmp_path: Path) -> None:
    (tmp_path / "wave.txt").write_text("".join(f"{i % 7}\n" for i in range(900)))
    wave = f'data={{kind = "numbers", train = "{tmp_path}/wave.txt"}}'
    run = trained_in(tmp_path, wave, "train.steps=2", "train.validate_every=2")
    assert run_cli("generate", run, "3", "--length", 2, "--temperature", 0).code == 0
    for flag, setting in (("--top-k", "top_k = 1"), ("--top-p", "top_p = 0.5")):
        result = run_cli("generate", run, "3", flag, setting.rpartition(" ")[2])
        assert (result.code, result.out) == (2, "")
        assert f"{setting} chooses among tokens, and this model generates numbers; leave it out" in result.err
    result = run_cli(
        "train", tmp_path / "writer.toml", "--out", tmp_path / "other", wave, "decode.repetition_penalty=1.2"
    )
    assert result.code == 2 and "repetition_penalty = 1.2 chooses among tokens" in result.err


def test_generated_samples_are_saved(writer: Path, namer: Path) -> None:
    rows = [json.loads(line) for line in (writer / "samples.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [30, 60]
    assert len(rows[0]["prompt"]) == 16 and len(rows[0]["output"]) == 30
    assert json.loads((namer / "samples.jsonl").read_text().splitlines()[0])["prompt"] == ""


def test_stats_card_and_new_describe_text(run_cli: RunCli, writer: Path, tmp_path: Path, monkeypatch: Any) -> None:
    stats = run_cli("data", "stats", writer.parent / "writer.toml").out
    assert "characters per token" in stats and "windows of 16 positions" in stats
    monkeypatch.chdir(tmp_path)
    assert run_cli("new", "mine", "--task", "generate").code == 0
    (tmp_path / "data").mkdir()
    (tmp_path / "data/book.txt").write_text(BOOK)
    assert run_cli("config", "show", "mine.toml").code == 0
    assert 'kind = "char"' in (tmp_path / "mine.toml").read_text()


def test_a_resumed_run_equals_one_that_was_never_stopped(run_cli: RunCli, writer: Path, tmp_path: Path) -> None:
    from regard.train import checkpoint

    recipe = writer.parent / "writer.toml"
    for steps in (7, 30, 60):
        assert run_cli("train", recipe, "--out", tmp_path / "run", f"train.steps={steps}", "-q").code == 0
    one, other = (checkpoint.newest(path).checkpoint for path in (writer, tmp_path / "run"))
    assert one is not None and other is not None
    for group in ("model", "hidden_state", "optimizer"):
        for name, tensor in one.tensors(group).items():
            assert tensor.equal(other.tensors(group)[name]), f"{group} {name}"


def test_every_kind_of_tokenizer_writes(run_cli: RunCli, tmp_path: Path) -> None:
    run = trained_in(tmp_path, "text.kind=byte-bpe", "text.vocab_size=300", "train.steps=3")
    assert run_cli("generate", run, "Où ♥").out.startswith("Où ♥")
    assert (run / "tokenizer.json").exists()


@pytest.mark.parametrize(
    "model",
    [
        'model={kind = "gpt", layers = 1, width = 16, heads = 2, max_positions = 16, dropout = 0.0}',
        'model={kind = "llama", layers = 1, width = 16, ffn_width = 24, heads = 4, kv_heads = 2, max_positions = 16}',
    ],
    ids=["gpt", "llama"],
)
def test_a_model_without_hidden_state_generates_beyond_its_window(run_cli: RunCli, tmp_path: Path, model: str) -> None:
    from regard.train import checkpoint

    run = trained_in(tmp_path, model, "train.steps=4", "train.validate_every=4")
    assert len(run_cli("generate", run, "The wind blew n", "--length", 50).out) == 15 + 50 + 1
    result = run_cli("generate", run, "The wind blew north, and", "--length", 50)
    assert (result.code, result.out) == (4, "")
    assert "the prompt has 24 tokens, and this model reads at most 16 at once; shorten it, or" in result.err
    result = run_cli("generate", run, "The wind blew north, and", "--length", 50, "--sliding-window")
    assert len(result.out) == 24 + 50 + 1
    found = checkpoint.newest(run).checkpoint
    assert found is not None and set(found.groups) == {"model", "optimizer"}


def test_a_prompt_in_the_recipe_is_checked_before_training(run_cli: RunCli, writer: Path, tmp_path: Path) -> None:
    result = run_cli("train", writer.parent / "writer.toml", "--out", tmp_path / "run", "task.prompt=♥")
    assert result.code == 4
    assert 'the prompt has tokens that this model does not know: "♥" (U+2665); leave it out' in result.err
    assert not (tmp_path / "run/checkpoints").exists()


def test_lines_of_a_file_are_prompts_and_their_order_is_kept(
    run_cli: RunCli, namer: Path, writer: Path, tmp_path: Path
) -> None:
    (tmp_path / "starts.txt").write_text("Bo\nAn\n\nCla\n")
    result = run_cli("generate", namer, "-i", tmp_path / "starts.txt", "--lines", "--seed", 4)
    assert result.code == 0
    lines = result.out.splitlines()
    assert [line[:2] for line in lines[:2]] == ["Bo", "An"] and lines[3].startswith("Cla") and len(lines) == 4
    rows = [
        json.loads(line)
        for line in run_cli("generate", namer, "--lines", "--json", "-n", 2, typed=b"Bo\nAn\n").out.splitlines()
    ]
    assert [(row["line"], row["prompt"], len(row["samples"])) for row in rows] == [(1, "Bo", 2), (2, "An", 2)]
    result = run_cli("generate", writer, "--lines", "--length", 4, typed=b"The\nwind\n")
    assert result.out.count("-----\n") == 1 and result.out.startswith("The")


def test_a_line_that_cannot_be_continued_is_reported_and_the_others_are(run_cli: RunCli, writer: Path) -> None:
    result = run_cli("generate", writer, "--lines", "--json", "--length", 3, typed="The\n♥\nwind\n".encode())
    assert result.code == 4 and "line 2: the prompt has tokens that this model does not know" in result.err
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert [row["line"] for row in rows] == [1, 2, 3] and "error" in rows[1] and len(rows[2]["samples"][0]["text"]) == 3


def test_stop_strings_end_the_text_and_decode_settings_are_given_by_key(run_cli: RunCli, writer: Path) -> None:
    whole = run_cli("generate", writer, "The wind", "--length", 60, "--temperature", 0).out
    result = run_cli("generate", writer, "The wind", "--length", 60, "--temperature", 0, "--stop", "sea", "--stop", "!")
    assert result.out == whole[: whole.index("sea")] + "\n"
    beam = run_cli("generate", writer, "The wind", "decode.beam=3", "--length", 20, "-n", 2, "--json")
    scores = [sample["score"] for sample in json.loads(beam.out)["samples"]]
    assert scores == sorted(scores, reverse=True) and scores[0] != scores[1]
    assert run_cli("generate", writer, "The", "--min-p", 0.9, "--repetition-penalty", 1.3, "--length", 5).code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["The", "decode.beams=3"], 2, 'unknown setting "decode.beams"; did you mean decode.beam'),
        (["The", "decode.beam=many"], 2, "decode.beam: expected a whole number, got 'many'"),
        (["The", "--min-p", "2"], 2, "min_p = 2.0 must be between 0 and 1"),
        (["The", "--repetition-penalty", "0.5"], 2, "repetition_penalty = 0.5 must be at least 1 (no penalty)"),
        (["The", "--stop", ""], 2, "an empty stop string would end every text before its first character"),
        (["The", "wind"], 2, 'expected one prompt, got 2; put it in quotes: "The wind"'),
        (["The", "--lines"], 2, "--lines reads prompts from -i or stdin; leave the prompt out"),
        (["The", "-n", "5", "decode.beam=3"], 2, "n_best = 5 is more than beam = 3; a beam finds no more than that"),
    ],
)  # fmt: skip
def test_a_bad_setting_is_refused(arguments: list[str], code: int, message: str, run_cli: RunCli, writer: Path) -> None:
    result = run_cli("generate", writer, *arguments)
    assert (result.code, result.out) == (code, "")
    assert message in result.err


def test_prompts_in_a_list_give_a_list_in_python(writer: Path) -> None:
    import regard
    from regard.errors import ConfigError

    model: Any = regard.load(writer)
    found = model.generate(["The", "wind"], length=9, temperature=0)
    assert found == [model.generate("The", 9, 0), model.generate("wind", 9, 0)]
    assert model.generate("The wind", 60, 0, stop="sea").endswith("the ")
    with pytest.raises(ConfigError, match='there is no setting "max_new_tokens" of generate; it is called length here'):
        model.generate("The", max_new_tokens=3)
