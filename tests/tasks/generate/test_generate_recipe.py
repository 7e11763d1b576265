"""The generate task: defaults of its recipe, and its evaluation."""

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

from regard.data.texts import Shakespeare, TextFiles
from regard.errors import ConfigError
from regard.progress import no_progress
from regard.run import Run, load
from regard.tasks import EvalRequest, Recipe

LEAST = ["task.kind=generate", "model.kind=rnnlm"]


def test_a_recipe_without_data_learns_from_shakespeare():
    assert Recipe.read(None, LEAST).data == Shakespeare()


def test_data_of_ones_own_has_nothing_of_shakespeares_in_it():
    settings = [*LEAST, "data.kind=text", "data.train=book.txt", "data.valid_share=0.2"]
    assert Recipe.read(None, settings).data == TextFiles(train="book.txt", valid_share=0.2)


@pytest.mark.parametrize("setting", ["data.train=book.txt", "data.valid_share=0.2"])
def test_data_without_a_kind_is_refused_with_the_kinds(setting):
    with pytest.raises(ConfigError, match=r"^data\.kind must be given: one of text, shakespeare, numbers$"):
        Recipe.read(None, [*LEAST, setting])


@pytest.fixture
def prepared_run(tmp_path) -> Path:
    """A small model that reads each window by itself, in four streams, and the text that it is scored on."""
    draw = random.Random(1)
    (tmp_path / "book.txt").write_text("".join(draw.choices("abcde ", k=900)), encoding="utf-8")
    (tmp_path / "test.txt").write_text("".join(draw.choices("abcde ", k=4 * 5 * 8)), encoding="utf-8")
    data = f"data={{kind = 'text', train = '{tmp_path}/book.txt'}}"
    shape = "model={kind = 'gpt', layers = 1, width = 8, heads = 2, max_positions = 8}"
    settings = ["task={kind = 'generate', window = 8, samples = 0}", "train={steps = 1, batch_tokens = 32}"]
    Run(tmp_path / "run").train(Recipe.read(None, [data, shape, *settings]))
    return tmp_path


def test_the_parts_of_an_evaluation_are_its_windows_in_the_order_of_the_text(prepared_run):
    model = load(prepared_run / "run")
    found = model.evaluate(EvalRequest([prepared_run / "test.txt"]), no_progress)
    assert model.recipe.rows == 4 and [count for _, count in found.per_unit] == [8] * 20
    nats, counts = zip(*found.per_unit, strict=True)
    assert math.exp(math.fsum(nats) / sum(counts)) == pytest.approx(found.scores[0].value, rel=1e-12)
    model.recipe = replace(model.recipe, train=replace(model.recipe.train, batch_tokens=8))  # one stream
    assert found.per_unit == [
        (pytest.approx(nats, rel=1e-5), count)
        for nats, count in model.evaluate(EvalRequest([prepared_run / "test.txt"]), no_progress).per_unit
    ]


def test_streams_that_end_before_others_leave_no_part_out(prepared_run):
    (prepared_run / "test.txt").write_text(
        "abcde " * 21 + "abcde", encoding="utf-8"
    )  # 131 after the first: 32 and 3 x 33
    found = load(prepared_run / "run").evaluate(EvalRequest([prepared_run / "test.txt"]), no_progress)
    assert [count for _, count in found.per_unit] == [*[8] * 4, *([8] * 4 + [1]) * 3]
