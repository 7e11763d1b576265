"""Recipes of image classifiers run on small folders of the layout that they name."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.run import Run
from regard.tasks import Recipe

RECIPES = Path(__file__).parents[3] / "recipes" / "classify"
FEW = ("train.steps=2", "train.batch_tokens=4", "train.schedule.warmup=1", "task.augment.color=0.1")


def write_folder(root: Path, splits: tuple[str, str], ending: str, size: tuple[int, int]) -> None:
    """Three classes of noise around a color each, in the splits that a recipe names."""
    draw = np.random.default_rng(1)
    for split in splits:
        for number, name in enumerate(("ape", "bee", "cat")):
            folder = root / split / name
            folder.mkdir(parents=True)
            for i in range(4):
                color = np.eye(3)[number] * 120
                pixels = (draw.integers(0, 100, (*size, 3)) + color).astype(np.uint8)
                Image.fromarray(pixels).save(folder / f"{i}.{ending}")


@pytest.mark.parametrize(
    ("recipe", "folder", "splits", "ending", "size", "model"),
    [
        pytest.param(
            *("imagenet-alexnet", "imagenet", ("train", "val"), "JPEG", (90, 120)),
            "alexnet 5 convolutions, 3 dense layers",
            marks=pytest.mark.slow,  # 57 million parameters
        ),
        ("cifar10-resnet20", "cifar10", ("train", "dev"), "jpg", (32, 32), "resnet-20 (basic)"),
    ],
)
def test_a_recipe_trains_on_a_folder_of_its_layout(tmp_path, monkeypatch, recipe, folder, splits, ending, size, model):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    write_folder(tmp_path / folder, splits, ending, size)
    small = ("data.size=63",) if recipe == "imagenet-alexnet" else ()
    found = Recipe.read(RECIPES / f"{recipe}.toml", [*FEW, "data.valid_share=0.25", *small])
    assert found.model.summary == model
    run = Run(tmp_path / "run")
    report = run.train(found)
    assert report.step == 2
    assert "3 labels" in found.summary(run.path)
