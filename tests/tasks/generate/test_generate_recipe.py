"""The job of generating: what its recipe goes by where nothing is said, and what it is scored on."""

import math
import random
from dataclasses import replace
from pathlib import Path

import pytest

from regard.data.texts import Shakespeare, Texts
from regard.errors import ConfigError
from regard.objective import silent
from regard.run import Run, load
from regard.tasks import Asked, Recipe

LEAST = ["task.kind=generate", "model.kind=rnnlm"]


def test_a_recipe_without_data_learns_from_shakespeare():
    assert Recipe.read(None, LEAST).data == Shakespeare()


def test_data_of_ones_own_has_nothing_of_shakespeares_in_it():
    given = [*LEAST, "data.kind=text", "data.train=book.txt", "data.held_out=0.2"]
    assert Recipe.read(None, given).data == Texts(train="book.txt", held_out=0.2)


@pytest.mark.parametrize("setting", ["data.train=book.txt", "data.held_out=0.2"])
def test_data_without_a_kind_is_told_the_kinds(setting):
    with pytest.raises(ConfigError, match=r"^data\.kind must be given: one of text, shakespeare, numbers$"):
        Recipe.read(None, [*LEAST, setting])


@pytest.fixture
def written(tmp_path) -> Path:
    """A small model that reads each window by itself, in four streams, and the text that it is scored on."""
    draw = random.Random(1)
    (tmp_path / "book.txt").write_text("".join(draw.choices("abcde ", k=900)), encoding="utf-8")
    (tmp_path / "test.txt").write_text("".join(draw.choices("abcde ", k=4 * 5 * 8)), encoding="utf-8")
    data = f"data={{kind = 'text', train = '{tmp_path}/book.txt'}}"
    shape = "model={kind = 'gpt', layers = 1, width = 8, heads = 2, longest = 8}"
    settings = ["task={kind = 'generate', window = 8, samples = 0}", "train={steps = 1, tokens = 32}"]
    Run(tmp_path / "run").train(Recipe.read(None, [data, shape, *settings]))
    return tmp_path


def test_the_parts_of_an_evaluation_are_its_windows_in_the_order_of_the_text(written):
    model = load(written / "run")
    found = model.evaluate(Asked([written / "test.txt"]), silent)
    assert model.recipe.rows == 4 and [count for _, count in found.parts] == [8] * 20
    nats, counts = zip(*found.parts, strict=True)
    assert math.exp(math.fsum(nats) / sum(counts)) == pytest.approx(found.scores[0].value, rel=1e-12)
    model.recipe = replace(model.recipe, train=replace(model.recipe.train, tokens=8))  # one stream: from first to last
    assert found.parts == [
        (pytest.approx(nats, rel=1e-5), count)
        for nats, count in model.evaluate(Asked([written / "test.txt"]), silent).parts
    ]


def test_streams_that_end_before_others_leave_no_part_out(written):
    (written / "test.txt").write_text("abcde " * 21 + "abcde", encoding="utf-8")  # 131 after the first: 32 and 3 x 33
    found = load(written / "run").evaluate(Asked([written / "test.txt"]), silent)
    assert [count for _, count in found.parts] == [*[8] * 4, *([8] * 4 + [1]) * 3]
