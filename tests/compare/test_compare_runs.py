"""Comparison tables: models are scored once, on the same sentences, and tested against the best."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

from regard.compare import (
    Comparison,
    ComparisonRow,
    ComparisonTable,
    ModelAnswer,
    compare_runs,
    side_by_side,
    train_family,
)
from regard.compare.by_length import bin_by_length, bleu_by_length
from regard.compare.side_by_side import render_svg, render_text
from regard.compare.table import WARMUP, check_same_data, training_speed
from regard.errors import DataError, ModelError
from regard.look.attention import AttentionView
from regard.run import Run, load
from regard.tasks import Evaluation, ScoredExample
from regard.tasks.translate.recipe import TranslationModel

SETTINGS = [
    "data={kind = 'phrases', count = 400}",
    "text.vocab_size=150",
    "train.steps=6",
    "train.validate_every=3",
    "train.batch_tokens=256",
    "task.bleu_sentences=2",
    "decode.beam=1",
    "family.lstm={kind = 'seq2seq', layers = 1, width = 8}",
    "family.transformer={kind = 'transformer', layers = 1, width = 16, heads = 2, ffn_width = 32}",
]


def no_progress(what: str, done: int, total: int) -> None:
    return


@pytest.fixture(scope="module")
def family(tmp_path_factory) -> Path:
    """Two trained models; tests do not change them."""
    folder = tmp_path_factory.mktemp("family")
    train_family(Comparison.read(None, SETTINGS), folder)
    return folder


@pytest.fixture
def runs(family) -> dict[str, Path]:
    return {name: family / name for name in ("lstm", "transformer")}


def test_every_model_has_a_row_and_is_tested_against_the_best(runs):
    table = compare_runs(runs, {}, no_progress)
    assert [row.name for row in table.rows] == ["lstm", "transformer"]
    best = table.best
    assert best is not None and best.against_best is None
    for row in table.rows:
        assert row.score is not None and row.score.low <= row.score.value <= row.score.high
        assert row.parameters > 0 and row.ms_per_sentence > 0
        if row is not best:
            assert row.against_best is not None
            assert row.against_best.a == pytest.approx(best.score.value)
            assert row.against_best.b == pytest.approx(row.score.value)


def test_a_model_without_a_score_has_a_short_row_and_the_reason_is_a_note(runs):
    table = compare_runs({**runs, "bad": runs["lstm"]}, {"bad": "training diverged at step 3"}, no_progress)
    lstm, _, bad = table.rows
    lines = table.text().splitlines()
    assert bad.parameters == lstm.parameters > 0
    assert lines[3].split() == ["bad", "-", "-", f"{lstm.parameters:,}", "-", "-", "-", "no", "score"]
    assert lines[-1] == "bad: training diverged at step 3"
    assert table.markdown().splitlines()[-1] == "- bad: training diverged at step 3"


def test_the_notes_name_the_data_and_the_metric(runs):
    table = compare_runs(runs)
    score = table.best.score
    assert table.notes() == [
        f"on test, {score.n} sentences: phrases fr-en. Made by the rules of regard. License: MIT",
        f"bleu {score.signature}",
    ]
    assert table.text().splitlines()[-2:] == table.notes()
    assert table.markdown().splitlines()[-2:] == [f"- {note}" for note in table.notes()]


def stepped(step: int, seconds: float, tokens: int) -> str:
    return json.dumps({"event": "stepped", "step": step, "seconds": seconds, "tokens": tokens}) + "\n"


def test_speed_is_that_of_the_steps_after_the_first_ten_and_time_that_of_all_steps(tmp_path):
    timed = [stepped(10, 9.0, 100), stepped(20, 0.5, 100), stepped(30, 1.5, 300)]
    (tmp_path / "metrics.jsonl").write_text("".join(timed), encoding="utf-8")
    assert training_speed(tmp_path, 34) == (34 * 1.0, 400 / 2.0)
    (tmp_path / "metrics.jsonl").write_text(timed[0], encoding="utf-8")
    assert training_speed(tmp_path, 12) == (12 * 9.0, 100 / 9.0)


@pytest.mark.parametrize(("seconds", "text"), [(0.216, "0.22"), (3.14, "3.1"), (4321.4, "4,321"), (None, "-")])
def test_short_times_have_decimals(runs, seconds, text):
    score = compare_runs(runs).best.score
    table = ComparisonTable("test", (ComparisonRow("a", "", score=score, seconds=seconds),), None)
    assert table.cells()[1][4] == text


@pytest.mark.parametrize(("data", "source", "reference"), [("valid", "a", "b"), ("test", "x", "b"), ("test", "a", "x")])
def test_scores_of_other_data_sources_or_references_are_not_compared(data, source, reference):
    one = Evaluation("test", [], [ScoredExample("a", "said", "b")])
    check_same_data({"runs/a": one, "runs/b": Evaluation("test", [], [ScoredExample("a", "said otherwise", "b")])})
    with pytest.raises(ModelError) as caught:
        check_same_data({"runs/a": one, "runs/b": Evaluation(data, [], [ScoredExample(source, "said", reference)])})
    assert str(caught.value) == ("runs/a and runs/b are scored on different data; compare models of one [data] section")


def test_a_single_scored_model_has_a_table(runs):
    table = compare_runs(runs, {"lstm": "training diverged at step 3"}, no_progress)
    assert table.best is not None and table.best.name == "transformer"


def test_an_evaluation_is_cached_until_the_model_changes(runs, monkeypatch):
    first = compare_runs(runs, {}, no_progress)
    calls = []
    assert compare_runs(runs, {}, lambda *progress: calls.append(progress)) == first
    assert calls == []
    stored = json.loads((runs["lstm"] / "evaluation.json").read_text(encoding="utf-8"))
    stored["identity"]["step"] = 1
    (runs["lstm"] / "evaluation.json").write_text(json.dumps(stored), encoding="utf-8")
    compare_runs(runs, {}, lambda *progress: calls.append(progress))
    assert calls


def test_a_model_translates_a_batch_before_it_is_timed(runs, monkeypatch):
    (runs["lstm"] / "evaluation.json").unlink(missing_ok=True)
    calls = []

    def spy(name):
        original = getattr(TranslationModel, name)

        def call(self, value, *rest):
            calls.append((name, len(value) if name == "translate" else value.split))
            return original(self, value, *rest)

        monkeypatch.setattr(TranslationModel, name, call)

    spy("translate")
    spy("evaluate")
    table = compare_runs({"lstm": runs["lstm"]})
    assert calls == [("translate", min(WARMUP, table.rows[0].score.n)), ("evaluate", None)]
    assert compare_runs({"lstm": runs["lstm"]}) == table and len(calls) == 2


def test_the_table_is_saved_as_json_markdown_and_a_picture(runs, tmp_path):
    table = compare_runs(runs, {}, no_progress)
    assert [path.name for path in table.save(tmp_path)] == ["compare.json", "compare.md", "lengths.svg"]
    found = json.loads((tmp_path / "compare.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in found["models"]] == ["lstm", "transformer"]
    assert sum(row["best"] for row in found["models"]) == 1
    markdown = (tmp_path / "compare.md").read_text(encoding="utf-8").splitlines()
    assert markdown[0] == ("| model | bleu | 95 % | parameters | seconds | tokens/s | ms/sentence | against the best |")
    assert [len(line.split(" | ")) for line in markdown[:4]] == [8] * 4 and markdown[4] == ""
    svg = (tmp_path / "lengths.svg").read_text(encoding="utf-8")
    assert svg.startswith("<svg") and "lstm" in svg and "transformer" in svg


def test_models_with_different_vocabularies_are_not_compared(runs, tmp_path):
    other = Comparison.read(None, [*SETTINGS, "text.vocab_size=100"]).members[0].recipe
    Run(tmp_path / "other").train(other)
    for compare in (lambda r: compare_runs(r, {}, no_progress), lambda r: side_by_side(r, ["je suis"])):
        with pytest.raises(ModelError) as caught:
            compare({"lstm": runs["lstm"], "other": tmp_path / "other"})
        assert str(caught.value) == (
            f"{runs['lstm']} and {tmp_path}/other have different vocabularies; train both on the same [data] and "
            "[text] to compare them, as `regard compare RECIPE` does"
        )


def test_every_model_answers_with_its_attention(runs):
    found = side_by_side(runs, ["je suis étudiant"])
    assert [(one.name, one.output) for one in found] == [
        (name, load(path).translate("je suis étudiant")) for name, path in runs.items()
    ]
    lstm, transformer = found
    assert lstm.view is None and "no attention" in lstm.summary
    assert transformer.view is not None and transformer.view.name == "decoder.layers.0.cross.weights"
    svg = render_svg(found)
    assert svg.count("<svg") == 2 and svg.count("</svg>") == 2


def answer(name: str, text: str, top: float) -> ModelAnswer:
    """An answer whose attention to the first of three words is `top`."""
    weights = np.array([[top, (1 - top) / 2, (1 - top) / 2]])
    return ModelAnswer(name, text, "I am", AttentionView("cross.weights", weights, ["I"], ["je", "suis", "là"]))


def test_a_sharp_and_a_flat_attention_share_one_color_scale():
    sharp, flat = answer("sharp", "je suis là", 0.9), answer("flat", "je suis là", 1 / 3)
    assert sharp.matrix.intensities.max() == pytest.approx(0.9)
    assert flat.matrix.intensities.max() == pytest.approx(1 / 3)
    text = render_text([sharp, flat], 120, "none")
    assert text.count("0.00 ░▒▓█ 1.00   smallest 0.05, largest 0.90") == 1
    assert render_svg([sharp, flat]).count(">1.0000</text>") == 2


def test_heat_maps_are_side_by_side_where_there_is_room():
    found = [answer(name, "je suis là", 0.5) for name in ("one", "two", "three", "four")]
    for width, across in ((120, 3), (60, 2), (30, 1)):
        lines = render_text(found, width, "none").splitlines()
        heads = [
            line.split() for line in lines if line.split() and set(line.split()) <= {"one", "two", "three", "four"}
        ]
        assert [len(row) for row in heads] == ([3, 1] if across == 3 else [across] * (4 // across))
        assert max(map(cell_len, lines[5:-2])) <= width
    colored = render_text(found, 60, "24-bit")
    assert [line.split() for line in colored.splitlines()].count(["one", "two"]) == 1


def test_the_svg_has_every_text_once_and_at_most_three_models_per_row():
    names = ("one", "two", "three", "four")
    svg = render_svg([answer(name, text, 0.5) for text in ("je suis là", "il est là") for name in names])
    assert re.findall(r'class="rg-text"[^>]*>([^<]*)<', svg) == ["je suis là", "il est là"]
    places = re.findall(r'<g transform="translate\((\S+) (\S+)\)"><text class="rg-model"[^>]*>(\w+)<', svg)
    rows = [[name for _, y, name in places if y == row] for row in dict.fromkeys(y for _, y, _ in places)]
    assert rows == [["one", "two", "three"], ["four"]] * 2
    assert len({x for x, _, _ in places}) == 3


def test_a_text_that_one_model_cannot_read_is_reported_under_its_name_and_others_answer(runs, tmp_path):
    shape = "layers = 1, width = 16, heads = 2, ffn_width = 32, positions = 'learned', max_positions = 31"
    settings = [*SETTINGS, "filter.max_tokens=30", f"family.short={{kind = 'transformer', {shape}}}"]
    short = Comparison.read(None, settings).members[-1].recipe
    Run(tmp_path / "short").train(short)
    text = "je suis " * 60
    found = side_by_side({"short": tmp_path / "short", "lstm": runs["lstm"]}, [text])
    assert found[0].failure and not found[0].failure.startswith("line 1") and found[1].failure == ""
    assert f"short: no answer: {found[0].failure}" in render_text(found, 80, "none")
    assert found[0].to_dict()["failure"] == found[0].failure
    with pytest.raises(DataError, match=r"^short: "):
        side_by_side({"short": tmp_path / "short"}, [text])


def test_bins_hold_similar_lengths_and_are_never_nearly_empty():
    lengths = [3] * 30 + [8] * 30 + [13] * 5 + [40] * 25
    bins = bin_by_length(lengths)
    assert sorted(row for rows in bins for row in rows) == list(range(90))
    assert [sorted({lengths[row] for row in rows}) for rows in bins] == [[3], [8, 13], [40]]
    assert bin_by_length([5, 5], min_rows=20) == [[0, 1]]


def test_a_model_that_fails_on_long_sentences_has_a_curve_that_falls():
    short = [ScoredExample("a b c", "the cat sat on the mat", "the cat sat on the mat")] * 30
    long = [ScoredExample("a " * 20, "the cat", "the cat sat on the mat and slept well")] * 30
    chart = bleu_by_length({"lstm": [*short, *long]})
    assert chart is not None
    (curve,) = chart.curves
    assert curve.x == (3.0, 20.0) and curve.y[0] == pytest.approx(100.0) and curve.y[1] < 50
    assert bleu_by_length({"lm": []}) is None


def test_language_models_are_compared_by_their_perplexity(tmp_path):
    book = tmp_path / "book.txt"
    book.write_text("the cat sat on the mat and slept. " * 80, encoding="utf-8")
    family = Comparison.read(
        None,
        [
            "task={kind = 'generate', window = 8, samples = 0}",
            f"data={{kind = 'text', train = '{book}'}}",
            "train={steps = 3, batch_tokens = 64}",
            "family.rnn={kind = 'rnnlm', cell = 'gru', layers = 1, width = 8, dropout = 0.0}",
            "family.gpt={kind = 'gpt', layers = 1, width = 8, heads = 2, max_positions = 8}",
        ],
    )
    train_family(family, tmp_path / "out", lambda recipe, path: Run(path).train(recipe), no_progress)
    table = compare_runs({name: tmp_path / "out" / name for name in ("rnn", "gpt")}, {}, no_progress)
    assert table.best is not None
    assert table.best.score.value == min(row.score.value for row in table.rows)
    assert [row.score.name for row in table.rows] == ["perplexity"] * 2
    assert table.curves is None
    assert {path.name for path in table.save(tmp_path)} == {"compare.json", "compare.md"}
