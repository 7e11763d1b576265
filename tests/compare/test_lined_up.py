"""Models in one table: scored once, on the same sentences, with significance against the best."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

from regard.compare import Beside, Comparison, lined_up, side_by_side
from regard.compare.by_length import binned, by_length
from regard.compare.side_by_side import page, picture
from regard.compare.table import WARM, Row, Table, check_same_data, speed
from regard.errors import DataError, ModelError
from regard.look.attention import AttentionView
from regard.run import Run, load
from regard.tasks import Answer, Evaluation
from regard.tasks.translate.recipe import TranslationModel

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
    Comparison.read(None, SETTINGS).train(folder)
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


def test_a_model_without_a_score_has_a_short_row_with_its_size_and_the_reason_stands_below(runs):
    table = lined_up({**runs, "bad": runs["lstm"]}, {"bad": "loss became NaN at step 3"}, silent)
    lstm, _, bad = table.rows
    lines = table.text().splitlines()
    assert bad.parameters == lstm.parameters > 0
    assert lines[3].split() == ["bad", "-", "-", f"{lstm.parameters:,}", "-", "-", "-", "no", "score"]
    assert lines[-1] == "bad: loss became NaN at step 3"
    assert table.markdown().splitlines()[-1] == "- bad: loss became NaN at step 3"


def test_what_was_scored_and_how_stands_under_the_table(runs):
    table = lined_up(runs)
    asked = table.best.score
    assert table.notes() == [
        f"on test, {asked.n} sentences: phrases fr-en. Made by the rules of regard. Licence: MIT",
        f"bleu {asked.signature}",
    ]
    assert table.text().splitlines()[-2:] == table.notes()
    assert table.markdown().splitlines()[-2:] == [f"- {note}" for note in table.notes()]


def stepped(step: int, seconds: float, tokens: int) -> str:
    return json.dumps({"event": "stepped", "step": step, "seconds": seconds, "tokens": tokens}) + "\n"


def test_speed_is_that_of_the_steps_after_the_first_ten_and_time_that_of_all_steps(tmp_path):
    timed = [stepped(10, 9.0, 100), stepped(20, 0.5, 100), stepped(30, 1.5, 300)]
    (tmp_path / "metrics.jsonl").write_text("".join(timed), encoding="utf-8")
    assert speed(tmp_path, 34) == (34 * 1.0, 400 / 2.0)
    (tmp_path / "metrics.jsonl").write_text(timed[0], encoding="utf-8")
    assert speed(tmp_path, 12) == (12 * 9.0, 100 / 9.0)


@pytest.mark.parametrize(("seconds", "told"), [(0.216, "0.22"), (3.14, "3.1"), (4321.4, "4,321"), (None, "-")])
def test_short_times_are_told_with_their_decimals(runs, seconds, told):
    score = lined_up(runs).best.score
    table = Table("test", (Row("a", "", score=score, seconds=seconds),), None)
    assert table.cells()[1][4] == told


@pytest.mark.parametrize(("data", "source", "reference"), [("valid", "a", "b"), ("test", "x", "b"), ("test", "a", "x")])
def test_scores_of_other_data_sources_or_references_are_not_compared(data, source, reference):
    one = Evaluation("test", [], [Answer("a", "said", "b")])
    check_same_data({"runs/a": one, "runs/b": Evaluation("test", [], [Answer("a", "said otherwise", "b")])})
    with pytest.raises(ModelError) as caught:
        check_same_data({"runs/a": one, "runs/b": Evaluation(data, [], [Answer(source, "said", reference)])})
    assert str(caught.value) == ("runs/a and runs/b are scored on different data; compare models of one [data] section")


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


def test_a_model_translates_a_batch_before_it_is_timed(runs, monkeypatch):
    (runs["lstm"] / "evaluation.json").unlink(missing_ok=True)
    happened = []

    def noted(name):
        was = getattr(TranslationModel, name)

        def call(self, given, *rest):
            happened.append((name, len(given) if name == "translate" else given.split))
            return was(self, given, *rest)

        monkeypatch.setattr(TranslationModel, name, call)

    noted("translate")
    noted("evaluate")
    table = lined_up({"lstm": runs["lstm"]})
    assert happened == [("translate", min(WARM, table.rows[0].score.n)), ("evaluate", None)]
    assert lined_up({"lstm": runs["lstm"]}) == table and len(happened) == 2


def test_the_table_is_saved_as_json_markdown_and_a_picture(runs, tmp_path):
    table = lined_up(runs, {}, silent)
    assert [path.name for path in table.save(tmp_path)] == ["compare.json", "compare.md", "lengths.svg"]
    found = json.loads((tmp_path / "compare.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in found["models"]] == ["lstm", "transformer"]
    assert sum(row["best"] for row in found["models"]) == 1
    markdown = (tmp_path / "compare.md").read_text(encoding="utf-8").splitlines()
    assert markdown[0] == ("| model | bleu | 95 % | parameters | seconds | tokens/s | ms/sentence | against the best |")
    assert [len(line.split(" | ")) for line in markdown[:4]] == [8] * 4 and markdown[4] == ""
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
    assert lstm.view is None and "no attention" in lstm.told
    assert transformer.view is not None and transformer.view.name == "decoder.layers.0.cross.weights"
    drawn = picture(found)
    assert drawn.count("<svg") == 2 and drawn.count("</svg>") == 2


def looked(name: str, text: str, top: float) -> Beside:
    """A model that looks at the first of three words by `top`."""
    weights = np.array([[top, (1 - top) / 2, (1 - top) / 2]])
    return Beside(name, text, "I am", AttentionView("cross.weights", weights, ["I"], ["je", "suis", "là"]))


def test_colours_of_a_sharp_and_of_a_flat_model_are_of_one_scale():
    sharp, flat = looked("sharp", "je suis là", 0.9), looked("flat", "je suis là", 1 / 3)
    assert sharp.matrix.strengths.max() == pytest.approx(0.9)
    assert flat.matrix.strengths.max() == pytest.approx(1 / 3)
    told = page([sharp, flat], 120, "none")
    assert told.count("0.00 ░▒▓█ 1.00   smallest 0.05, largest 0.90") == 1
    assert picture([sharp, flat]).count(">1.0000</text>") == 2


def test_models_stand_side_by_side_in_a_terminal_where_there_is_room():
    found = [looked(name, "je suis là", 0.5) for name in ("one", "two", "three", "four")]
    for width, across in ((120, 3), (60, 2), (30, 1)):
        told = page(found, width, "none").splitlines()
        heads = [line.split() for line in told if line.split() and set(line.split()) <= {"one", "two", "three", "four"}]
        assert [len(line) for line in heads] == ([3, 1] if across == 3 else [across] * (4 // across))
        assert max(map(cell_len, told[5:-2])) <= width
    coloured = page(found, 60, "24-bit")
    assert [line.split() for line in coloured.splitlines()].count(["one", "two"]) == 1


def test_a_picture_has_every_text_once_and_at_most_three_models_in_a_row():
    names = ("one", "two", "three", "four")
    drawn = picture([looked(name, text, 0.5) for text in ("je suis là", "il est là") for name in names])
    assert re.findall(r'class="rg-text"[^>]*>([^<]*)<', drawn) == ["je suis là", "il est là"]
    places = re.findall(r'<g transform="translate\((\S+) (\S+)\)"><text class="rg-model"[^>]*>(\w+)<', drawn)
    rows = [[name for _, y, name in places if y == row] for row in dict.fromkeys(y for _, y, _ in places)]
    assert rows == [["one", "two", "three"], ["four"]] * 2
    assert len({x for x, _, _ in places}) == 3


def test_a_text_that_one_model_cannot_read_is_told_by_its_name_and_the_others_go_on(runs, tmp_path):
    shape = "layers = 1, width = 16, heads = 2, inner = 32, positions = 'learned', longest = 31"
    settings = [*SETTINGS, "filter.tokens=30", f"family.short={{kind = 'transformer', {shape}}}"]
    short = Comparison.read(None, settings).members[-1].recipe
    Run(tmp_path / "short").train(short)
    text = "je suis " * 60
    found = side_by_side({"short": tmp_path / "short", "lstm": runs["lstm"]}, [text])
    assert found[0].failure and not found[0].failure.startswith("line 1") and found[1].failure == ""
    assert f"short: no answer: {found[0].failure}" in page(found, 80, "none")
    assert found[0].to_dict()["failure"] == found[0].failure
    with pytest.raises(DataError, match=r"^short: "):
        side_by_side({"short": tmp_path / "short"}, [text])


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
