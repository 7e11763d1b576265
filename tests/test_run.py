"""Runs from Python: paths as text, recipes as paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from regard.run import Run, load
from regard.tasks import TranslateRecipe

TINY = """
data = {kind = "phrases", count = 300}
model = {kind = "transformer", layers = 1, width = 16, heads = 2, ffn_width = 32}
text = {vocab_size = 200}
task = {bleu_sentences = 0}
train = {steps = 2, batch_tokens = 256, freeze = ["encoder.layers.*"], rates = {"decoder.*" = 0.5}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recipe and a run that was trained by the path of it."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "tiny.toml").write_text(TINY, encoding="utf-8")
    assert Run(str(folder / "run")).train(str(folder / "tiny.toml")).step == 2
    return folder


def test_the_recipe_of_a_run_has_every_setting_of_its_file(folder: Path) -> None:
    recipe = Run(str(folder / "run")).recipe()
    assert recipe == TranslateRecipe.read(folder / "tiny.toml")
    assert (recipe.train.freeze, recipe.train.rates) == (("encoder.layers.*",), {"decoder.*": 0.5})


def test_a_run_is_trained_by_a_path_to_a_recipe_or_to_another_run(folder: Path) -> None:
    report = Run(folder / "again").train(folder / "run")
    assert report.step == 2
    weights = [load(folder / name).module.state_dict() for name in ("run", "again")]
    assert all(weights[0][name].equal(weights[1][name]) for name in weights[0])
