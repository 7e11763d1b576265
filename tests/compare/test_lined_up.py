"""Models in one table: scored once, on the same sentences, with significance against the best."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regard.compare import Comparison, lined_up, side_by_side
from regard.compare.beside import picture
from regard.compare.lengths import binned, by_length
from regard.errors import ModelError
from regard.jobs import Answer
from regard.run import Run, load

SETTINGS = [
    "data={kind = 'phrases', count = 400}",
    "text.size=150",
    "train.steps=6",
    "train.every=3",
    "train.tokens=256",
    "task.scored=2",
    "decode.beam=1",
    "family.lstm={kind = 'seq2seq', layers = 1, width = 8}",
    "family.transformer={kind = 'transformer', layers = 1, width = 16, heads = 2, inner = 32}",
]


def silent(what: str, done: int, total: int) -> None:
    return


@pytest.fixture(scope="module")
def family(tmp_path_factory) -> Path:
    """Two trained models; tests do not change them."""
    folder = tmp_path_factory.mktemp("family")
    Comparison.read(None, SETTINGS).train(folder, lambda recipe, path: Run(path).train(recipe), silent)
    return folder


@pytest.fixture
def runs(family) -> dict[str, Path]:
    return {name: family / name for name in ("lstm", "transformer")}


def test_every_model_has_a_row_and_the_best_is_compared_with(runs):
    table = lined_up(runs, {}, silent)
    assert [row.name for row in table.rows] == ["lstm", "transformer"]
    best = table.best
    assert best is not None and best.against_best is None
    for row in table.rows:
        assert row.score is not None and row.score.low <= row.score.value <= row.score.high
        assert row.parameters > 0 and row.milliseconds > 0
        if row is not best:
            assert row.against_best is not None
            assert row.against_best.a == pytest.approx(best.score.value)
            assert row.against_best.b == pytest.approx(row.score.value)


def test_a_model_without_a_score_says_why_in_its_row(runs):
    table = lined_up({**runs, "bad": runs["lstm"]}, {"bad": "loss became NaN at step 3"}, silent)
    assert table.text().splitlines()[-1].split() == (
        ["bad", *["-"] * 6, "no", "score:", "loss", "became", "NaN", "at", "step", "3"]
    )


def test_a_single_survivor_still_has_its_table(runs):
    table = lined_up(runs, {"lstm": "loss became NaN at step 3"}, silent)
    assert table.best is not None and table.best.name == "transformer"


def test_what_was_scored_is_not_decoded_again_until_the_model_changes(runs, monkeypatch):
    first = lined_up(runs, {}, silent)
    told = []
    assert lined_up(runs, {}, lambda *progress: told.append(progress)) == first
    assert told == []
    kept = json.loads((runs["lstm"] / "evaluation.json").read_text(encoding="utf-8"))
    kept["identity"]["step"] = 1
    (runs["lstm"] / "evaluation.json").write_text(json.dumps(kept), encoding="utf-8")
    lined_up(runs, {}, lambda *progress: told.append(progress))
    assert told


def test_the_table_is_saved_as_json_markdown_and_a_picture(runs, tmp_path):
    table = lined_up(runs, {}, silent)
    assert [path.name for path in table.save(tmp_path)] == ["compare.json", "compare.md", "lengths.svg"]
    found = json.loads((tmp_path / "compare.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in found["models"]] == ["lstm", "transformer"]
    assert sum(row["best"] for row in found["models"]) == 1
    page = (tmp_path / "compare.md").read_text(encoding="utf-8").splitlines()
    assert page[0] == ("| model | bleu | 95 % | parameters | seconds | tokens/s | ms/sentence | against the best |")
    assert len(page) == 4
    picture = (tmp_path / "lengths.svg").read_text(encoding="utf-8")
    assert picture.startswith("<svg") and "lstm" in picture and "transformer" in picture


def test_models_with_different_vocabularies_are_not_compared(runs, tmp_path):
    other = Comparison.read(None, [*SETTINGS, "text.size=100"]).members[0].recipe
    Run(tmp_path / "other").train(other)
    for compare in (lambda r: lined_up(r, {}, silent), lambda r: side_by_side(r, ["je suis"])):
        with pytest.raises(ModelError) as caught:
            compare({"lstm": runs["lstm"], "other": tmp_path / "other"})
        assert str(caught.value) == (
            f"{runs['lstm']} and {tmp_path}/other have different vocabularies; train both on the same [data] and "
            "[text] to compare them, as `regard compare RECIPE` does"
        )


def test_a_sentence_goes_through_every_model_with_its_alignment(runs):
    found = side_by_side(runs, ["je suis étudiant"])
    assert [(one.name, one.output) for one in found] == [
        (name, load(path).translate("je suis étudiant")) for name, path in runs.items()
    ]
    lstm, transformer = found
    assert lstm.view is None and "no attention" in lstm.shown()
    assert transformer.view is not None and transformer.view.name == "decoder.layers.0.cross.weights"
    drawn = picture(found)
    assert drawn.count("<svg") == 2 and drawn.count("</svg>") == 2


def test_bins_hold_like_lengths_and_are_never_nearly_empty():
    lengths = [3] * 30 + [8] * 30 + [13] * 5 + [40] * 25
    bins = binned(lengths)
    assert sorted(row for rows in bins for row in rows) == list(range(90))
    assert [sorted({lengths[row] for row in rows}) for rows in bins] == [[3], [8, 13], [40]]
    assert binned([5, 5], fewest=20) == [[0, 1]]


def test_a_model_that_fails_on_long_sentences_has_a_curve_that_falls():
    short = [Answer("a b c", "the cat sat on the mat", "the cat sat on the mat")] * 30
    long = [Answer("a " * 20, "the cat", "the cat sat on the mat and slept well")] * 30
    chart = by_length({"lstm": [*short, *long]})
    assert chart is not None
    (curve,) = chart.curves
    assert curve.x == (3.0, 20.0) and curve.y[0] == pytest.approx(100.0) and curve.y[1] < 50
    assert by_length({"lm": []}) is None


def test_language_models_are_compared_by_their_perplexity(tmp_path):
    book = tmp_path / "book.txt"
    book.write_text("the cat sat on the mat and slept. " * 80, encoding="utf-8")
    family = Comparison.read(
        None,
        [
            "task={kind = 'generate', window = 8, samples = 0}",
            f"data={{kind = 'text', train = '{book}'}}",
            "train={steps = 3, tokens = 64}",
            "family.rnn={kind = 'rnnlm', cell = 'gru', layers = 1, width = 8, dropout = 0.0}",
            "family.gpt={kind = 'gpt', layers = 1, width = 8, heads = 2, longest = 8}",
        ],
    )
    family.train(tmp_path / "out", lambda recipe, path: Run(path).train(recipe), silent)
    table = lined_up({name: tmp_path / "out" / name for name in ("rnn", "gpt")}, {}, silent)
    assert table.best is not None
    assert table.best.score.value == min(row.score.value for row in table.rows)
    assert [row.score.name for row in table.rows] == ["perplexity"] * 2
    assert table.curves is None
    assert {path.name for path in table.save(tmp_path)} == {"compare.json", "compare.md"}
