"""The generate task with series of real numbers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.data.scaling import StandardScaler
from regard.decode import DecodeConfig
from regard.errors import ConfigError, DataError
from regard.models.gpt import GPTConfig
from regard.models.rnnlm import RNNLMConfig
from regard.run import Run, load
from regard.spaces import Classes, Gaussian, Values
from regard.tasks import Recipe
from regard.tasks.generate.modality import bits_per_unit
from regard.tasks.generate.numbers import GeneratedSeries, NumberGenerator
from regard.tasks.generate.recipe import GenerationModel
from regard.train.events import MetricsFile

SMALL = ["task.kind=generate", "task.window=16", "task.length=5", "model.kind=rnnlm", "model.layers=1",
         "model.width=16", "model.dropout=0.0", "train.batch_tokens=128", "train.schedule.kind=constant",
         "train.schedule.lr=0.02", "train.steps=80", "train.validate_every=40"]  # fmt: skip
TWO = StandardScaler(("a", "b"), (10.0, -5.0), (2.0, 0.5))


def generator(model: str = "rnnlm", context: int | None = None) -> NumberGenerator:
    torch.manual_seed(0)
    shape = (
        RNNLMConfig(layers=1, width=8) if model == "rnnlm" else GPTConfig(layers=1, width=8, heads=2, max_positions=8)
    )
    return NumberGenerator(
        shape.build(Gaussian(2), Gaussian(2)).eval(), TWO, DecodeConfig(sample=True, beam=1), context
    )


def test_what_a_space_draws_is_distributed_as_it_predicts() -> None:
    draw, many = torch.Generator().manual_seed(1), 40_000
    found = Gaussian(1).sample(torch.tensor([[3.0, math.log(0.5)]]).expand(many, 2), draw)
    assert float(found.mean()) == pytest.approx(3.0, abs=0.02) and float(found.std()) == pytest.approx(0.5, abs=0.02)
    counts = Classes(3).sample(torch.tensor([[0.5, 0.2, 0.3]]).log().expand(many, 3), draw).bincount()
    torch.testing.assert_close(counts / many, torch.tensor([0.5, 0.2, 0.3]), atol=0.02, rtol=0)
    assert Values(1).sample(torch.tensor([[3.0]]), draw) == 3.0


def test_a_seed_draws_the_same_series_however_many_are_drawn() -> None:
    one, three = generator().generate("10,-5\n11,-5", 7), generator().generate("10,-5\n11,-5", 7, n=3)
    np.testing.assert_allclose(one[0].values, three[0].values, rtol=1e-4, atol=1e-4)
    assert len({found.values for found in three}) == 3
    assert "".join(generator().stream("10,-5\n11,-5", 7)) == one[0].text
    assert len(one[0].values) == 7 and len(one[0].values[0]) == 2


def test_greedy_decoding_takes_the_mode_and_accepts_an_empty_prompt() -> None:
    greedy = replace(generator(), config=DecodeConfig(beam=1))
    one, two = greedy.generate("", 4), greedy.generate("", 4, n=2)
    np.testing.assert_allclose([found.values for found in two], [one[0].values] * 2, rtol=1e-5)
    assert greedy.display_prompt("") == "" and greedy.display_prompt("1,2\n") == "1,2\n"


def test_a_model_with_few_positions_generates_without_limit() -> None:
    assert len(generator("gpt", context=8).generate("1,2", 30)[0].values) == 30


def test_bad_prompts_are_refused() -> None:
    with pytest.raises(DataError) as caught:
        generator().generate("1\n2\n", 3)
    assert str(caught.value) == "the prompt has 1 numbers per line, this model was trained on 2: a, b"
    with pytest.raises(DataError) as caught:
        generator().generate("1,2\n1,x\n", 3)
    assert str(caught.value) == 'the prompt, line 2: "x" in column 2 is not a number'
    with pytest.raises(ConfigError, match="length = 0 and n = 1 must be at least 1"):
        generator().generate("1,2", 0)


def test_a_series_is_standardized_and_scored_in_nats(tmp_path: Path) -> None:
    rows = [f"{100 + 20 * math.sin(i / 2):.4f},{i % 2}" for i in range(600)]
    (tmp_path / "waves.csv").write_text("wave,turn\n" + "\n".join(rows) + "\n")
    recipe = Recipe.read(None, [*SMALL, "data.kind=numbers", f"data.train={tmp_path}/waves.csv"])
    report = Run(tmp_path / "run").train(recipe, listeners=[MetricsFile(tmp_path / "run")])
    assert report.best["loss"] < 0 and set(report.best) == {"loss", "step"}  # white noise would have 2.84
    sample = json.loads((tmp_path / "run/samples.jsonl").read_text().splitlines()[-1])
    assert len(sample["output"].splitlines()) == 5
    model = load(tmp_path / "run")
    assert isinstance(model, GenerationModel)
    prompt = "\n".join(rows[540:580])
    generated = np.array([[float(x) for x in line.split(",")] for line in model.generate(prompt, 6, 0).splitlines()])
    expected = np.array([[float(x) for x in row.split(",")] for row in rows[580:586]])
    assert np.abs(generated[:, 0] - expected[:, 0]).max() < 10
    assert np.abs(generated[:, 1] - expected[:, 1]).max() < 0.3


def test_numbers_are_selected_by_their_loss_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        Recipe.read(None, [*SMALL, "data.kind=numbers", "data.train=a.csv", "train.best_metric=ppl"])
    assert str(caught.value) == "train.best_metric: models of numbers measure only loss, got 'ppl'"


def test_a_series_is_written_one_position_per_line():
    assert GeneratedSeries(((1.0, 0.123456789), (3.0, 4.0))).text == "1,0.123457\n3,4\n"


def test_bits_are_per_character_whatever_the_tokens():
    assert bits_per_unit(math.log(2), {"tokens": 1, "characters": 4}, "characters") == 0.25
