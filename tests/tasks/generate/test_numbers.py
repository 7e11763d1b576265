"""Series of real numbers: learnt, and gone on from."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.decode import DecodeConfig
from regard.errors import ConfigError, DataError
from regard.models.gpt import GPTConfig
from regard.models.rnnlm import RNNLMConfig
from regard.run import Run, load
from regard.spaces import Classes, Gaussian, Values
from regard.tasks import Recipe
from regard.tasks.generate.numbers import NumberWriter, Scale
from regard.tasks.generate.recipe import GenerationModel
from regard.train.events import MetricsFile

SMALL = ["task.kind=generate", "task.window=16", "task.length=5", "model.kind=rnnlm", "model.layers=1",
         "model.width=16", "model.dropout=0.0", "train.tokens=128", "train.schedule.kind=constant",
         "train.schedule.lr=0.02", "train.steps=80", "train.every=40"]  # fmt: skip
TWO = Scale(("a", "b"), (10.0, -5.0), (2.0, 0.5))


def writer(model: str = "rnnlm", reach: int | None = None) -> NumberWriter:
    torch.manual_seed(0)
    shape = RNNLMConfig(layers=1, width=8) if model == "rnnlm" else GPTConfig(layers=1, width=8, heads=2, longest=8)
    return NumberWriter(shape.build(Gaussian(2), Gaussian(2)).eval(), TWO, DecodeConfig(sample=True, beam=1), reach)


def test_what_a_space_draws_is_distributed_as_it_predicts() -> None:
    draw, many = torch.Generator().manual_seed(1), 40_000
    found = Gaussian(1).draw(torch.tensor([[3.0, math.log(0.5)]]).expand(many, 2), draw)
    assert float(found.mean()) == pytest.approx(3.0, abs=0.02) and float(found.std()) == pytest.approx(0.5, abs=0.02)
    counts = Classes(3).draw(torch.tensor([[0.5, 0.2, 0.3]]).log().expand(many, 3), draw).bincount()
    torch.testing.assert_close(counts / many, torch.tensor([0.5, 0.2, 0.3]), atol=0.02, rtol=0)
    assert Values(1).draw(torch.tensor([[3.0]]), draw) == 3.0


def test_a_seed_draws_the_same_series_however_many_are_drawn() -> None:
    one, three = writer().generate("10,-5\n11,-5", 7), writer().generate("10,-5\n11,-5", 7, n=3)
    np.testing.assert_allclose(one[0].values, three[0].values, rtol=1e-4, atol=1e-4)
    assert len({found.values for found in three}) == 3
    assert "".join(writer().stream("10,-5\n11,-5", 7)) == one[0].text
    assert len(one[0].values) == 7 and len(one[0].values[0]) == 2


def test_without_doubt_the_likeliest_is_taken_and_it_may_begin_with_nothing() -> None:
    still = replace(writer(), config=DecodeConfig(beam=1))
    one, two = still.generate("", 4), still.generate("", 4, n=2)
    np.testing.assert_allclose([found.values for found in two], [one[0].values] * 2, rtol=1e-5)
    assert still.shown("") == "" and still.shown("1,2\n") == "1,2\n"


def test_a_model_with_few_places_goes_on_for_ever() -> None:
    assert len(writer("gpt", reach=8).generate("1,2", 30)[0].values) == 30


def test_bad_prompts_are_told() -> None:
    with pytest.raises(DataError) as caught:
        writer().generate("1\n2\n", 3)
    assert str(caught.value) == "the prompt has 1 numbers a line, this model has learnt 2: a, b"
    with pytest.raises(DataError) as caught:
        writer().generate("1,2\n1,x\n", 3)
    assert str(caught.value) == 'the prompt, line 2: "x" in column 2 is not a number'
    with pytest.raises(ConfigError, match="length = 0 and n = 1 must be at least 1"):
        writer().generate("1,2", 0)


def test_a_series_is_learnt_in_its_own_scale_and_scored_in_nats(tmp_path: Path) -> None:
    rows = [f"{100 + 20 * math.sin(i / 2):.4f},{i % 2}" for i in range(600)]
    (tmp_path / "waves.csv").write_text("wave,turn\n" + "\n".join(rows) + "\n")
    recipe = Recipe.read(None, [*SMALL, "data.kind=numbers", f"data.train={tmp_path}/waves.csv"])
    report = Run(tmp_path / "run").train(recipe, listeners=[MetricsFile(tmp_path / "run")])
    assert report.best["loss"] < 0 and set(report.best) == {"loss", "step"}  # white noise would have 2.84
    sample = json.loads((tmp_path / "run/samples.jsonl").read_text().splitlines()[-1])
    assert len(sample["output"].splitlines()) == 5
    model = load(tmp_path / "run")
    assert isinstance(model, GenerationModel)
    given = "\n".join(rows[540:580])
    told = np.array([[float(x) for x in line.split(",")] for line in model.generate(given, 6, 0).splitlines()])
    wanted = np.array([[float(x) for x in row.split(",")] for row in rows[580:586]])
    assert np.abs(told[:, 0] - wanted[:, 0]).max() < 10
    assert np.abs(told[:, 1] - wanted[:, 1]).max() < 0.3


def test_numbers_are_selected_by_their_loss_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        Recipe.read(None, [*SMALL, "data.kind=numbers", "data.train=a.csv", "train.select=ppl"])
    assert str(caught.value) == "train.select: numbers have a loss and nothing else, got 'ppl'"
