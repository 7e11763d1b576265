"""Paired tests against the best model, for scores of windows, texts and tags."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from regard.compare import Comparison, ComparisonRow, ComparisonTable, compare_runs, train_family
from regard.compare.table import MIN_UNITS, align_units, check_same_data
from regard.errors import ModelError
from regard.metrics import Score
from regard.run import Run, load
from regard.tasks import Evaluation, Recipe

GENERATE = [
    "task={kind = 'generate', window = 8, samples = 0}",
    "train={steps = 30, batch_tokens = 64, validate_every = 30}",
]
FAST = ["train.schedule={kind = 'constant', lr = 0.02}"]
MODELS = [
    "family.rnn={kind = 'rnnlm', cell = 'gru', layers = 1, width = 16, dropout = 0.0}",
    "family.gpt={kind = 'gpt', layers = 1, width = 8, heads = 2, max_positions = 16}",
]
WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "slept", "until", "noon", "while", "rain", "fell", "hills"]


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Path:
    draw, path = random.Random(1), tmp_path_factory.mktemp("book") / "book.txt"
    path.write_text(" ".join(draw.choice(WORDS) for _ in range(1200)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def family(book) -> dict[str, Path]:
    """Two language models; tests that change something copy them."""
    data = f"data={{kind = 'text', train = '{book}'}}"
    train_family(Comparison.read(None, [*GENERATE, *FAST, data, *MODELS]), book.parent / "out")
    return {name: book.parent / "out" / name for name in ("rnn", "gpt")}


def train_other(path: Path, run: Path, *settings: str) -> Path:
    """A model of the same text, trained by other settings."""
    recipe = Recipe.read(path / "recipe.toml", [*settings, "train.steps=1"])
    Run(run).train(recipe)
    return run


def with_copy(family: dict[str, Path], folder: Path, name: str) -> dict[str, Path]:
    """The family, with a copy of one member."""
    return {**family, name: Path(shutil.copytree(family[name], folder / name))}


def test_language_models_are_tested_against_the_best_on_the_same_windows(family):
    table = compare_runs(family)
    (worse,) = (row for row in table.rows if row is not table.best)
    test = worse.against_best
    assert table.best.score.value < worse.score.value
    assert (test.a, test.b) == pytest.approx((table.best.score.value, worse.score.value), rel=1e-12)
    assert (
        test.name == "perplexity" and test.signature == worse.score.signature and test.n == worse.score.n >= MIN_UNITS
    )
    assert test.delta > 0 and test.low <= test.delta <= test.high and test.wins < 0.5
    assert (test.p_value < 0.05) <= (not test.low <= 0 <= test.high)
    assert worse.remark == "" and len(table.notes()) == 2
    digits = 2 if worse.score.value >= 10 else 3
    assert f"{test.delta:+.{digits}f}, p = {test.p_value:.3f}" in table.text()


def test_a_test_is_the_same_from_cached_and_from_fresh_scores(family):
    for name in family:
        (family[name] / "evaluation.json").unlink(missing_ok=True)
    fresh = compare_runs(family)
    assert all((path / "evaluation.json").exists() for path in family.values())
    assert compare_runs(family) == fresh and any(row.against_best for row in fresh.rows)


def test_a_model_is_not_better_than_its_own_copy(family):
    table = compare_runs({"one": family["rnn"], "two": family["rnn"]})
    assert [row.against_best and row.against_best.p_value for row in table.rows] == [None, 1.0]


def test_a_cached_evaluation_without_units_is_repeated(family, tmp_path):
    table, runs = compare_runs(family), with_copy(family, tmp_path, "rnn")
    stored = json.loads((runs["rnn"] / "evaluation.json").read_text(encoding="utf-8"))
    del stored["per_unit"]
    (runs["rnn"] / "evaluation.json").write_text(json.dumps(stored), encoding="utf-8")
    found = compare_runs(runs)
    assert [(row.score, row.against_best) for row in found.rows] == [
        (row.score, row.against_best) for row in table.rows
    ]
    assert "per_unit" in json.loads((runs["rnn"] / "evaluation.json").read_text(encoding="utf-8"))


def test_scores_with_other_signatures_are_refused():
    ways = {name: Evaluation("test", [Score(name, 1.0, 1.0, 1.0, "unit:word", 9)]) for name in ("f1", "accuracy")}
    with pytest.raises(ModelError, match="scored in different ways, which cannot be compared: f1 unit:word; accuracy"):
        check_same_data(ways)


def test_windows_of_other_lengths_are_summed_up_to_shared_ends(family, tmp_path):
    run = train_other(family["rnn"], tmp_path / "wide", "task.window=16", "train.batch_tokens=16")
    thin = train_other(family["rnn"], tmp_path / "thin", "task.window=8", "train.batch_tokens=8")
    table = compare_runs({"thin": thin, "wide": run})
    (worse,) = (row for row in table.rows if row is not table.best)
    sizes = {row.name: row.score.n for row in table.rows}
    assert sizes["thin"] > sizes["wide"] >= MIN_UNITS and worse.against_best.n == sizes["wide"]
    assert worse.against_best.b == pytest.approx(worse.score.value, rel=1e-12)
    assert table.notes()[-1] == (
        f"{worse.name}: its windows are not those of the best; tested on the {sizes['wide']} longer pieces that both "
        "can be cut into"
    )


def test_windows_with_few_shared_ends_have_no_test_and_a_note_says_why(family, tmp_path):
    run = train_other(family["rnn"], tmp_path / "odd", "task.window=7", "train.batch_tokens=64")
    table = compare_runs({**family, "odd": run})
    assert table.best.name != "odd"
    row = table.rows[-1]
    assert row.against_best is None and row.score is not None
    parts = row.remark.partition(", and too few end where those do, ")
    assert parts[0] == "no p-value: its windows are not those of the best"
    assert parts[2].endswith(f" of {MIN_UNITS}; train both with one task.window and train.batch_tokens")
    assert table.text().splitlines()[-1] == f"odd: {row.remark}"
    assert table.to_dict()["models"][-1]["remark"] == row.remark


def windows(*counts: int) -> Evaluation:
    return Evaluation("valid", [], unit="windows", per_unit=[(float(count), count) for count in counts])


def test_texts_of_other_lengths_are_not_tested():
    a, b, remark = align_units(windows(*[8] * 30), windows(*[8] * 29, 4))
    assert (a, b) == ((), ())
    assert remark == "no p-value: it was scored on 236 predictions and the best one on 240, which are not of one text"


def test_few_windows_are_not_tested():
    few = windows(*[8] * (MIN_UNITS - 1))
    assert align_units(few, few) == ((), (), "no p-value: 19 windows are scored, and a test needs at least 20")
    enough = windows(*[8] * MIN_UNITS)
    assert align_units(enough, enough) == (enough.per_unit, enough.per_unit, "")


def test_remarks_and_failures_are_notes_in_the_order_of_the_models():
    score = Score("perplexity", 9.0, 8.0, 10.0, "unit:token", 7)
    failed = ComparisonRow("b", "", "training diverged")
    rows = ComparisonRow("a", "", score=score), failed, ComparisonRow("c", "", score=score, remark="no p-value")
    assert ComparisonTable("valid", rows, None).notes()[2:] == ["b: training diverged", "c: no p-value"]


def reviews(folder: Path) -> list[str]:
    draw = random.Random(3)
    for name, count in (("train", 60), ("test", 40)):
        rows = [(" ".join(draw.choices(WORDS, k=4)), draw.choice(["good", "bad"])) for _ in range(count)]
        text = "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows)
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")
    return ["task.kind=classify", f"data={{kind = 'tsv', train = '{folder}/train.tsv', test = '{folder}/test.tsv'}}"]


def tagged(folder: Path, *settings: str) -> list[str]:
    draw, path = random.Random(4), folder / "a.conll"
    rows = [draw.choices(["Ada B-PER", "Oslo B-LOC", "sat O", "in O"], k=draw.randint(1, 6)) for _ in range(150)]
    path.write_text("".join("\n".join(row) + "\n\n" for row in rows), encoding="utf-8")
    return ["task.kind=label", f"data={{kind = 'conll', train = '{path}', valid_share = 0.3}}", *settings]


TASKS = {
    "accuracy of texts": reviews,
    "accuracy of tags": tagged,
    "F1 of spans": lambda folder: tagged(folder, "task.scheme=bio"),
    "errors of angles": lambda folder: ["task.kind=label", "data={kind = 'chains', count = 200}"],
}


@pytest.mark.parametrize("task", TASKS)
def test_models_are_tested_by_the_score_that_they_are_compared_by(task, tmp_path):
    shapes = ["family.small={kind = 'recurrent', width = 4}", "family.large={kind = 'recurrent', width = 16}"]
    shared = [*TASKS[task](tmp_path), "train={steps = 8, batch_tokens = 128, validate_every = 8}", *FAST, *shapes]
    train_family(Comparison.read(None, shared), tmp_path / "out")
    runs = {name: tmp_path / "out" / name for name in ("small", "large")}
    table = compare_runs(runs)
    (other,) = (row for row in table.rows if row is not table.best)
    assert other.against_best.name == other.score.name and other.against_best.n == other.score.n
    assert other.against_best.a == pytest.approx(table.best.score.value)
    assert other.against_best.b == pytest.approx(other.score.value)
    assert compare_runs(runs) == table and load(runs["small"]).recipe.kind() in ("classify", "label")
