"""regard classify, and training, scoring and describing what it uses."""

from __future__ import annotations

import io
import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.cli import invoke
from regard.cli.console import Console
from regard.cli.train_log import TrainLog
from regard.run import Run
from regard.train.events import Stepped, Validated

WORDS = {"positive": ["great", "lovely", "fine"], "negative": ["bad", "awful", "dull"]}
PLAIN = ["this", "movie", "film", "story", "is", "was", "so", "very", "the", "and", "it"]
RECIPE = """
[task]
kind = "classify"
max_length = 20
[data]
kind = "tsv"
train = "FOLDER/train.tsv"
[model]
kind = "recurrent"
cell = "gru"
width = 16
dropout = 0.0
[train]
steps = 60
validate_every = 30
batch_tokens = 256
schedule.kind = "constant"
schedule.lr = 0.02
"""
TABLE = """
[task]
kind = "classify"
[data]
kind = "table"
train = "FOLDER/flowers.csv"
label = "kind"
[model]
kind = "mlp"
width = 16
[train]
steps = 80
validate_every = 40
batch_tokens = 64
schedule.kind = "constant"
schedule.lr = 0.02
"""
RunCli = Callable[..., Any]


def reviews(count: int) -> str:
    draw, lines = random.Random(1), ["text\tlabel\n"]
    for _ in range(count):
        label = draw.choice(sorted(WORDS))
        words = draw.choices(PLAIN, k=draw.randint(2, 9))
        words.insert(draw.randint(0, len(words)), draw.choice(WORDS[label]))
        lines.append(f"{' '.join(words)}\t{label}\n")
    return "".join(lines)


def flowers(count: int) -> str:
    draw, lines = random.Random(1), ["width,height,kind\n"]
    for _ in range(count):
        kind = draw.choice(["rose", "lily"])
        lines.append(f"{draw.gauss(1 if kind == 'rose' else 3, 0.4):.2f},{draw.gauss(50, 5):.1f},{kind}\n")
    return "".join(lines)


def trained_in(folder: Path, recipe: str) -> Path:
    (folder / "train.tsv").write_text(reviews(300), encoding="utf-8")
    (folder / "flowers.csv").write_text(flowers(200), encoding="utf-8")
    (folder / "own.toml").write_text(recipe.replace("FOLDER", str(folder)), encoding="utf-8")
    assert invoke(["train", str(folder / "own.toml"), "--out", str(folder / "run"), "--quiet"]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def critic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_in(tmp_path_factory.mktemp("critic"), RECIPE)


@pytest.fixture(scope="module")
def gardener(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained_in(tmp_path_factory.mktemp("gardener"), TABLE)


def test_each_text_gets_its_label_and_how_likely_it_is(run_cli: RunCli, critic: Path) -> None:
    result = run_cli("classify", critic, "this movie is so great", "this movie is so bad")
    assert result.code == 0 and result.err == ""
    (good, probability), (bad, _) = (line.split("\t") for line in result.out.splitlines())
    assert (good, bad) == ("positive", "negative") and 0.5 < float(probability) <= 1


def test_a_line_out_for_each_line_in_and_an_empty_one_stays_empty(run_cli: RunCli, critic: Path) -> None:
    result = run_cli("classify", critic, typed="so great\n\n   \nso bad\r\nsi grand ♥".encode())
    lines = result.out.split("\n")
    assert len(lines) == 6 and lines[1] == lines[2] == lines[5] == ""
    assert lines[0].startswith("positive\t") and lines[3].startswith("negative\t") and lines[4]
    assert run_cli("classify", critic, typed=b"").out == ""


def test_order_is_kept_however_long_texts_are_and_a_file_equals_stdin(
    run_cli: RunCli, critic: Path, tmp_path: Path
) -> None:
    texts = [f"{'very ' * (i * 7 % 15)}{'great' if i % 2 else 'bad'}" for i in range(300)]
    source, target = tmp_path / "in.txt", tmp_path / "out.tsv"
    source.write_text("\n".join(texts) + "\n", encoding="utf-8")
    result = run_cli("classify", critic, "-i", source, "-o", target)
    assert (result.code, result.out) == (0, "")
    labels = [line.split("\t")[0] for line in target.read_text(encoding="utf-8").splitlines()]
    assert labels == [run_cli("classify", critic, text).out.split("\t")[0] for text in texts[:6]] + labels[6:]
    assert labels == ["positive" if i % 2 else "negative" for i in range(300)]
    assert run_cli("classify", critic, typed=source.read_bytes()).out == target.read_text(encoding="utf-8")


def test_top_adds_labels_on_the_same_line(run_cli: RunCli, critic: Path) -> None:
    one, probability, other, rest = run_cli("classify", critic, "so great", "--top", 2).out.rstrip("\n").split("\t")
    assert (one, other) == ("positive", "negative") and float(probability) + float(rest) == pytest.approx(1, abs=1e-3)
    assert len(run_cli("classify", critic, "so great", "--top", 9).out.split("\t")) == 4


def test_json_has_one_line_per_text(run_cli: RunCli, critic: Path) -> None:
    result = run_cli("classify", critic, "--json", "--top", 2, typed="so \u202egreat\n\n".encode())
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert [row["line"] for row in rows] == [1, 2] and rows[0]["text"] == "so \u202egreat"
    assert "\u202e" not in result.out
    assert {verdict["label"] for verdict in rows[0]["labels"]} == {"positive", "negative"}
    assert rows[1] == {"line": 2, "text": "", "labels": [], "left_out": 0}


def test_a_text_of_a_megabyte_is_truncated_and_that_is_reported(run_cli: RunCli, critic: Path) -> None:
    result = run_cli("classify", critic, typed=b"great " * 170_000 + b"\nso bad\n")
    assert result.code == 0 and [line.split("\t")[0] for line in result.out.splitlines()] == ["positive", "negative"]
    assert result.err == " 1 text was longer than 20 tokens; the first 20 of each were read\n"
    run = json.loads(run_cli("classify", critic, "great " * 25, "--json", "-q").out)
    assert run["left_out"] == 5


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["so", "-i", "in.txt"], 2, "give either texts or -i, not both"),
        (["-i", "none.txt"], 66, "none.txt: there is no such file"),
        (["so", "--top", "0"], 2, "invalid value for '--top': 0 is not in the range x>=1"),
        (["so", "-o", "/nowhere/out.tsv"], 74, "/nowhere/out.tsv: cannot be written (No such file or directory)"),
    ],
)  # fmt: skip
def test_a_bad_request_is_refused(arguments: list[str], code: int, message: str, run_cli: RunCli, critic: Path) -> None:
    result = run_cli("classify", critic, *arguments)
    assert (result.code, result.out) == (code, "")
    assert message in result.err


def test_the_error_for_a_run_of_another_task_names_its_verb(run_cli: RunCli, critic: Path, trained: Path) -> None:
    assert (
        run_cli("classify", trained, "so")
        .err.strip()
        .endswith(f'{trained} was trained to translate, so it cannot classify; use: regard translate {trained} "..."')
    )
    result = run_cli("translate", critic, "so")
    assert result.code == 3
    assert result.err.strip().endswith(
        f'{critic} was trained to classify, so it cannot translate; use: regard classify {critic} "..."'
    )


BAD_DATA = [
    ("text\tlabel\n" + "so great\tpositive\n" * 40, 4, 'all 40 examples have the label "positive"; a classifier needs '
     "two labels or more to tell apart"),
    ("text\tstars\nso great\t5\n", 4, 'has no column "label" (header: text, stars); name another in the recipe, or '
     "count them from 1 if there is no header"),
    ("", 4, "has no example; expected a text and its label on each line"),
    ("text\tlabel\n", 4, "has no example; expected a text and its label on each line"),
    (None, 66, "there is no such file"),
    ("text\tlabel\nso great\tpositive\nso bad\n", 4, "line 3: expected 2 columns as in the header, found 1"),
    ("text,label\nso great,positive\n", 4, 'has no column "text" (header: text,label); name another in the recipe, or '
     'count them from 1 if there is no header; is data.kind = "csv" the right one?'),
    ("text\tlabel\n" + "\tpositive\n \tnegative\n" * 20, 4, "every text is empty; is data.text the right column?"),
    ("text\tlabel\nso great\tpositive\nso bad\tnegative\n", 4, "none of its 2 examples falls to valid when a share of "
     "0.1 is held out for validation; name a file for data.valid, change data.valid_share, or give more examples"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "message"), BAD_DATA)
def test_unusable_data_is_reported_before_training(
    text: str | None, code: int, message: str, run_cli: RunCli, critic: Path, tmp_path: Path
) -> None:
    path = tmp_path / "bad.tsv"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    result = run_cli("train", critic.parent / "own.toml", "--out", tmp_path / "run", f"data.train={path}")
    assert result.code == code
    assert result.err.strip().splitlines()[-1].startswith(f"error: {path}") and result.err.strip().endswith(message)
    assert not (tmp_path / "run/checkpoints").exists()


def test_eval_scores_splits_and_files_and_fails_below_a_minimum(run_cli: RunCli, critic: Path, tmp_path: Path) -> None:
    result = run_cli("eval", critic, "--json")
    found = json.loads(result.out)
    assert (found["data"], found["fallback"]) == ("valid", True)
    assert result.err == (
        "warning: the data of this run has no test split; these are the scores of the valid split, which chose the "
        "best checkpoint and may flatter it (--split valid leaves this warning out)\n"
    )
    asked = run_cli("eval", critic, "--split", "valid", "--json")
    assert (asked.err, json.loads(asked.out)["fallback"]) == ("", False)
    assert [score["name"] for score in found["scores"]] == ["accuracy", "macro_f1", "micro_f1", "ece", "loss"]
    assert found["detail"]["confusion"]["labels"] == ["negative", "positive"]
    own = tmp_path / "own.tsv"
    own.write_text("text\tlabel\nso great\tpositive\nso bad\tnegative\nso fine\tnegative\n", encoding="utf-8")
    result = run_cli("eval", critic, "--data", own).out.splitlines()
    assert result[0].endswith(f" on {own}, 3 texts") and result[1].startswith("accuracy     66.67  (95 %: ")
    assert result[-3].split() == ["target", "predicted", "negative", "positive"]
    assert run_cli("eval", critic, "--data", own, "--min", "accuracy=60").code == 0
    failed = run_cli("eval", critic, "--data", own, "--min", "accuracy=90")
    assert failed.code == 6 and "accuracy is 66.6667 (95 %: " in failed.err
    own.write_text("text\tlabel\nso great\tneutral\n", encoding="utf-8")
    unseen = run_cli("eval", critic, "--data", own)
    assert (unseen.code, unseen.out) == (4, "")
    assert unseen.err.endswith(
        f'error: {own}, line 2: the label "neutral" was never seen in training (labels: negative, positive)\n'
    )


def test_a_file_is_scored_as_its_name_ends(run_cli: RunCli, critic: Path, tmp_path: Path) -> None:
    files = {
        "a.csv": 'label,text\npositive,so great\nnegative,"so, so bad"\n',
        "a.jsonl": '{"text": "so great", "label": "positive"}\n{"text": "so bad", "label": "negative"}\n',
        "a.tsv": "text\tlabel\nso great\tpositive\nso bad\tnegative\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        result = run_cli("eval", critic, "--data", tmp_path / name)
        assert result.code == 0 and result.out.splitlines()[1].startswith("accuracy    100.00  (95 %: "), name


def test_a_validation_label_that_is_not_in_training_is_reported(run_cli: RunCli, critic: Path, tmp_path: Path) -> None:
    other = tmp_path / "valid.tsv"
    other.write_text("text\tlabel\nso great\tpositive\nso so\tneutral\n", encoding="utf-8")
    result = run_cli("train", critic.parent / "own.toml", "--out", tmp_path / "run", f"data.valid={other}", "-q")
    assert (result.code, result.err) == (
        4, f'error: {other}, line 3: the label "neutral" was never seen in training (labels: negative, positive)\n',
    )  # fmt: skip
    assert not (tmp_path / "run/checkpoints").exists()


BAD_TABLES = [
    ("width,height\n1,2\n", 4, 'has no column "kind" (header: width, height)'),
    ("width,kind\n1,a\nNaN,b\n", 4, 'line 3: "NaN" in column width is not a number'),
    ("width,kind\n1,a\n,b\n", 4, 'line 3: "" in column width is not a number'),
    ("name,kind\nrose,a\nlily,b\n", 4, "line 2: none of its 2 columns but the label's holds a number"),
    ("width,kind\n" + "1,a\n2,a\n" * 20, 4, 'all 40 examples have the label "a"'),
    ("width,kind\n1,a\n2,b\n", 4, "none of its 2 examples falls to valid when a share of 0.1 is held out"),
]


@pytest.mark.parametrize(("text", "code", "message"), BAD_TABLES)
def test_an_unusable_table_is_reported_before_training(
    text: str, code: int, message: str, run_cli: RunCli, gardener: Path, tmp_path: Path
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text, encoding="utf-8")
    result = run_cli("train", gardener.parent / "own.toml", "--out", tmp_path / "run", f"data.train={path}", "-q")
    assert result.code == code and result.err.startswith(f"error: {path}") and message in result.err
    assert not (tmp_path / "run/checkpoints").exists()


def test_a_constant_column_does_no_harm(run_cli: RunCli, gardener: Path, tmp_path: Path) -> None:
    path = tmp_path / "still.csv"
    path.write_text("still," + flowers(100).replace("\n", "\n7,").removesuffix("7,"), encoding="utf-8")
    settings = (f"data.train={path}", "train.steps=80")
    assert run_cli("train", gardener.parent / "own.toml", "--out", tmp_path / "run", *settings, "-q").code == 0
    result = run_cli("classify", tmp_path / "run", "7,1.0,50", "7,3.1,48")
    assert [line.split("\t")[0] for line in result.out.splitlines()] == ["rose", "lily"]


def test_look_shows_the_saliency_of_a_label(run_cli: RunCli, critic: Path, trained: Path, tmp_path: Path) -> None:
    result = run_cli("look", critic, "this movie is so great", "--view", "saliency", "--json")
    found = json.loads(result.out)
    assert found["columns"][max(range(5), key=lambda i: found["scores"][0][i])] == "great"
    assert "gradient x input" in run_cli("look", critic, "so great", "--view", "saliency").out
    plotted = run_cli("look", critic, "so great", "--view", "saliency", "-o", tmp_path / "s.svg")
    assert plotted.out == f"{tmp_path / 's.svg'}\n" and (tmp_path / "s.svg").read_text(encoding="utf-8").startswith(
        "<svg"
    )
    assert run_cli("look", critic, "this movie is so great", "-o", tmp_path / "s.html").code == 0
    page = (tmp_path / "s.html").read_text(encoding="utf-8")
    assert json.loads(page.split('id="trace-header">')[1].split("</script>")[0])["saliency"] == found
    for arguments, message in (
        (("--layer", 0), "--layer does not apply to --view saliency; leave it out"),
        (("--head", 0), "--head belongs to --view attention, and the view is saliency"),
        (("-o", "a.safetensors"), "-o a.safetensors: expected a name that ends in .svg, .png, .json, .html"),
    ):
        refused = run_cli("look", critic, "so great", "--view", "saliency", *arguments)
        assert refused.code == 2 and message in refused.err
    refused = run_cli("look", critic, "so great", "--view", "gradients")
    assert refused.code == 2 and "trained to classify; use --view saliency or --view states" in refused.err
    refused = run_cli("look", trained, "je suis", "--view", "saliency")
    assert refused.code == 2
    assert "a model that was trained to translate has no single output to attribute to its input; use" in refused.err


def test_the_lens_of_a_classifier_ends_with_its_own_probabilities(
    run_cli: RunCli, critic: Path, tmp_path: Path
) -> None:
    shown = run_cli("look", critic, "this movie is so great", "--view", "lens")
    assert shown.out.startswith("logit lens: most probable labels after each layer\nlayer ")
    found = json.loads(run_cli("look", critic, "this movie is so great", "--view", "lens", "--json").out)
    label, probability = run_cli("classify", critic, "this movie is so great").out.rstrip("\n").split("\t")
    assert found["actual"] == [label] == [found["candidates"][-1][0][0]] and found["whole"]
    assert found["probabilities"][-1][0][0] == pytest.approx(float(probability), abs=1e-4)
    assert run_cli("look", critic, "so great", "--view", "lens", "-o", tmp_path / "l.svg").code == 0


def test_look_shows_states_by_word(run_cli: RunCli, critic: Path) -> None:
    result = run_cli("look", critic, "so great", "--view", "states")
    assert result.err.startswith("so great -> positive ") and "great" in result.out


def test_a_table_is_classified_row_by_row_or_below_a_header(run_cli: RunCli, gardener: Path) -> None:
    result = run_cli("classify", gardener, "1.0,50", "3.1,48")
    assert [line.split("\t")[0] for line in result.out.splitlines()] == ["rose", "lily"]
    typed = b"height,kind,width\n50,?,1.0\n\n48,?,3.1\n"
    lines = run_cli("classify", gardener, typed=typed).out.split("\n")
    assert lines[0] == "label\tprobability" and lines[2] == "" and len(lines) == 5
    assert [line.split("\t")[0] for line in lines[1:4:2]] == ["rose", "lily"]
    rows = [json.loads(line) for line in run_cli("classify", gardener, "--json", typed=typed).out.splitlines()]
    assert [row["line"] for row in rows] == [2, 3, 4]
    stats = run_cli("data", "stats", gardener.parent / "own.toml").out
    assert stats.startswith("column      width: mean ") and "labels      2; of " in stats


def test_rows_around_a_bad_row_are_answered(run_cli: RunCli, gardener: Path) -> None:
    result = run_cli("classify", gardener, typed=b"1.0,50\n3.1,48\n3.1,tall\n1.0,50\n")
    assert result.code == 4
    assert [line.split("\t")[0] for line in result.out.splitlines()] == ["rose", "lily", "", "rose"]
    assert result.err.splitlines() == [
        ' warning: line 3: "tall" in column height is not a number',
        "error: 1 line of the input has no answer; the output has an empty line (with --json, an error) in each such "
        "place",
    ]
    rows = [json.loads(line) for line in run_cli("classify", gardener, "1.0,50", "1,x", "--json").out.splitlines()]
    assert rows[1] == {"line": 2, "error": 'line 2: "x" in column height is not a number'}
    alone = run_cli("classify", gardener, "3.1,tall")
    assert (alone.code, alone.out) == (4, "") and alone.err.startswith('error: line 1: "tall" in column height')


def test_stats_dry_run_new_and_card_describe_the_run(
    run_cli: RunCli, critic: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    card = (critic / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "to classify" in card and "license: not known (your own file)" in card
    assert f'regard classify {critic} "..."' in card
    stats = run_cli("data", "stats", critic.parent / "own.toml").out
    assert "labels      2; of " in stats and "vocabulary  word " in stats and "per text, 99 % have at most" in stats
    dry = run_cli("train", critic.parent / "own.toml", "--dry-run").out
    assert "gru 1 layer, width 16, both directions" in dry and "2 labels" in dry
    monkeypatch.chdir(tmp_path)
    result = run_cli("new", "mine", "--task", "classify")
    assert result.code == 0 and '"text" and "label"' in result.err
    (tmp_path / "data").mkdir()
    (tmp_path / "data/train.tsv").write_text(reviews(60), encoding="utf-8")
    assert run_cli("train", "mine.toml", "train.epochs=1", "model.width=8", "-q").code == 0
    assert run_cli("new", "other", "--task", "classify", "--source-lang", "de").code == 2


def test_the_output_is_visible_beside_a_long_input(critic: Path, tmp_path: Path) -> None:
    screen = io.StringIO()
    with TrainLog(Console(file=screen), tmp_path, Run(critic).recipe()) as log:
        log(Validated(7, {"loss": 0.5}, best=True, samples=[{"text": "so " * 900, "output": "positive"}]))
    line = screen.getvalue().splitlines()[-1]
    assert line.endswith("… -> positive") and len(line) < 120


def test_a_long_output_does_not_break_the_table_of_validations(critic: Path, tmp_path: Path) -> None:
    screen = io.StringIO()
    own = {"sample_input": "to be " * 40, "output": "or not " * 40}
    with TrainLog(Console(file=screen), tmp_path, Run(critic).recipe()) as log:
        log(Validated(7, {"loss": 0.5}, best=True, samples=[{"prompt": "the", "output": "sea " * 60}, own]))
    assert all(len(line) < 150 for line in screen.getvalue().splitlines())
    assert screen.getvalue().count(" -> ") == 2


def test_the_speed_of_a_classifier_counts_examples(run_cli: RunCli, critic: Path, tmp_path: Path) -> None:
    result = run_cli("train", critic.parent / "own.toml", "--out", tmp_path / "run", "train.steps=31")
    assert re.search(r"about [\d,]+ examples/s, ETA ", result.err)
    heads = [line.split() for line in result.err.splitlines() if line.startswith(" step")]
    assert [head[-3:] for head in heads] == [["lr", "grad", "examples/s"]]
    estimate = json.loads(run_cli("train", critic.parent / "own.toml", "--dry-run", "--json").out)
    assert estimate["unit"] == "examples" and estimate["predictions_per_second"] > 0


def test_a_perplexity_that_overflows_is_printed_in_few_digits(critic: Path, tmp_path: Path) -> None:
    screen = io.StringIO()
    with TrainLog(Console(file=screen), tmp_path, Run(critic).recipe()) as log:
        log(Stepped(7, 447_620.0, 1e3, 3.6e9, 64, 0.1))
        log(Validated(7, {"loss": 447_620.0, "ppl": math.exp(700)}, best=True))
    line = screen.getvalue().splitlines()[-1]
    assert line.split()[:5] == ["7", "447620.000", "1.0e+304", "1.0e+03", "3.60e+09"]


def test_a_resumed_run_equals_one_that_was_never_stopped(run_cli: RunCli, critic: Path, tmp_path: Path) -> None:
    from regard.train import checkpoint

    for steps in (7, 60):
        assert (
            run_cli("train", critic.parent / "own.toml", "--out", tmp_path / "run", f"train.steps={steps}", "-q").code
            == 0
        )
    one, other = (checkpoint.newest(path).checkpoint for path in (critic, tmp_path / "run"))
    assert one is not None and other is not None
    for group in ("model", "optimizer"):
        for name, tensor in one.tensors(group).items():
            assert tensor.equal(other.tensors(group)[name]), f"{group} {name}"
