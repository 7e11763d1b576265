"""Regression: numbers of clips and images, their scores and units, and data that cannot work."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

import regard
from regard.data.moving_shapes import make_clip
from regard.data.scaling import StandardScaler
from regard.errors import ConfigError, DataError, InputError, LineError
from regard.metrics.regression import NumberPredictions
from regard.run import Recipe, Run
from regard.tasks.base import EvalRequest
from regard.tasks.regress.recipe import format_numbers
from regard.tasks.regress.sources import NextPositions, read_measured

TINY = [
    "task={kind='regress'}", "model={kind='cnn-lstm',channels=[4,6],width=8}", "train.batch_tokens=16",
    "data={kind='moving-shapes',count=80}", "train.steps=3",
]  # fmt: skip


def no_progress(*_, **__):
    pass


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("regress") / "run"
    Run(folder).train(Recipe.read(None, TINY))
    return regard.load(folder)


@pytest.fixture(scope="module")
def squares(tmp_path_factory):
    """Images of a bright column on black, with a table of its place and its negative in another unit."""
    folder = tmp_path_factory.mktemp("squares")
    rows = ["file,x,note,minus"]
    for i in range(16):
        pixels = np.zeros((8, 16, 3), np.uint8)
        pixels[:, i] = 255
        Image.fromarray(pixels).save(folder / f"{i}.png")
        rows.append(f"{i}.png,{i + 0.5},mine,{-100 * i}")
    (folder / "table.csv").write_text("\n".join(rows) + "\n")
    return folder


def test_numbers_come_in_order_with_their_names_and_in_the_units_of_the_data(model):
    found = model.regress(["clips#test/3", "", "clips#test/4"])
    assert found[1] == {} and list(found[0]) == ["x", "y"]
    assert found[0] == pytest.approx(model.regress("clips#test/3"))
    assert all(0 < number < 24 for one in (found[0], found[2]) for number in one.values())  # near the mean, untrained
    assert model.predict_text("clips#test/3") == format_numbers(["x", "y"], np.array(list(found[0].values())))


def test_scores_are_those_of_the_predictions_against_the_next_positions(model):
    evaluated = model.evaluate(EvalRequest(split="test"), no_progress)
    clips = [make_clip(i, "test") for i in range(20)]
    true = np.array([clip.position(6) for clip in clips])
    predicted = np.array([list(one.values()) for one in model.regress([f"clips#test/{i}" for i in range(20)])])
    scores = {score.name: score.value for score in evaluated.scores}
    assert evaluated.unit == "clips" and evaluated.scores[0].n == 20
    assert scores["mae"] == pytest.approx(np.abs(predicted - true).mean(), rel=1e-6)
    assert scores["rmse"] == pytest.approx(np.sqrt(((predicted - true) ** 2).mean()), rel=1e-6)
    explained = 1 - ((predicted - true) ** 2).sum(0) / ((true - true.mean(0)) ** 2).sum(0)
    assert scores["r2"] == pytest.approx(explained.mean(), rel=1e-6)
    assert np.mean([part for part, _ in evaluated.per_unit]) == pytest.approx(scores["mae"])


def test_the_trace_has_the_numbers_in_both_scales_and_saliency_is_their_gradient(model):
    with model.record() as trace:
        model.predict_text("clips#test/3")
    standard, units = (trace.find(name)[0].data[0].double().numpy() for name in ("numbers", "prediction"))
    np.testing.assert_allclose(model.targets.inverse_transform(standard), units)
    view = model.saliency("clips#test/3")
    assert view.outputs[0] == f"x {units[0]:.4g}" and view.scores.shape == (2, 6, 3, 24, 24)
    pixels = model.image_input().read("clips#test/3")
    inputs = model.image_input().collate([pixels.reshape(-1)]).pixels.requires_grad_()
    out = model.module.readout(model.module(type(model.image_input().collate([pixels.reshape(-1)]))(inputs)))[0]
    (out[1] * model.targets.scale[1]).backward()
    np.testing.assert_allclose(view.scores[1], (inputs.grad * inputs)[0].detach().numpy(), rtol=1e-4, atol=1e-6)
    assert "frame 6" in view.svg() and view.to_dict()["kind"] == "pixels"


def test_a_table_of_images_is_learned_scored_and_resumed_bit_for_bit(squares, tmp_path):
    given = ["task={kind='regress',pool='max'}", "model={kind='cnn',channels=[4]}"]
    given += [f"data={{kind='table',train='{squares}/table.csv',size=8,valid_share=0.2}}"]
    given += ["train.batch_tokens=8", "train.schedule={kind='constant',lr=0.01}"]
    Run(tmp_path / "whole").train(Recipe.read(None, [*given, "train.steps=6"]))
    Run(tmp_path / "parts").train(Recipe.read(None, [*given, "train.steps=3"]))
    Run(tmp_path / "parts").train(Recipe.read(None, [*given, "train.steps=6"]))
    whole, parts = (regard.load(tmp_path / name / "last") for name in ("whole", "parts"))
    assert all(map(torch.equal, whole.module.parameters(), parts.module.parameters()))
    assert StandardScaler.load(tmp_path / "whole" / "targets.json").names == ("x", "minus")
    evaluated = whole.evaluate(EvalRequest(files=[squares / "table.csv"]), no_progress)
    assert evaluated.scores[0].n == 16 and len(evaluated.summary_lines) == 2
    statistics = whole.recipe.statistics(tmp_path / "whole")
    assert statistics["unit"] == "images" and whole.recipe.format_statistics(statistics)


def test_scores_of_a_constant_column_have_no_determination():
    found = NumberPredictions(("x",), np.array([[1.0], [2.0]]), np.array([[3.0], [3.0]])).scores()
    assert [score.value for score in found][:2] == pytest.approx([1.5, np.sqrt(2.5)])
    assert np.isnan(found[2].value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,x\n", "has no rows; expected a header"),
        ("name,x\na.png,1\n", 'has no column "file" (header: name, x)'),
        ("file,x\na.png,1\nb.png,2\n", "table.csv, line 3: there is no file"),
        ("file,x\na.png,1\na.png,many\n", 'table.csv, line 3: "many" in column x is not a number'),
        ("file,x\na.png,many\n", "table.csv, line 2: expected a column of numbers beside file"),
        ("file,x\na.png,1,2\n", "table.csv, line 2: expected 2 columns as in the header, found 3"),
        ("file,x\na.png,1\n,2\n", "table.csv, line 3: there is no file"),
    ],
)
def test_tables_that_cannot_be_read_are_named_with_their_line(text, message, tmp_path):
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises((DataError, InputError)) as error:
        read_measured(tmp_path / "table.csv", "file", ())
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["model={kind='cnn'}"], 'model.kind = "cnn" does not read clips; use cnn-lstm'),
        (["model={kind='recurrent'}"], 'model.kind = "recurrent" does not read clips'),
        (["data={kind='table',train='a.csv'}"], 'model.kind = "cnn-lstm" does not read single images; use cnn'),
        (["data.frames=1"], "frames = 1"),
        (["data.count=10"], "count = 10 must be at least 80"),
        (["train.label_smoothing=0.1"], "numbers have no labels to smooth"),
        (["train.best_metric=accuracy"], "expected one of loss, mae, rmse"),
    ],
)
def test_recipes_that_cannot_work_are_refused_before_any_work(given, message):
    with pytest.raises(ConfigError) as error:
        Recipe.read(None, [*TINY, *given])
    assert message in str(error.value)


def test_a_damaged_clip_is_named_by_its_line(model, tmp_path):
    (tmp_path / "text.gif").write_text("only a text")
    with pytest.raises(LineError) as error:
        model.regress(["clips#test/1", tmp_path / "text.gif"])
    assert error.value.line == 2
    with pytest.raises(ConfigError, match='there is no split "dev"'):
        NextPositions().examples("dev")
