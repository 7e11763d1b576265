"""Small trained classifiers of images, for tests of views and of the page."""

from pathlib import Path

import numpy as np
from PIL import Image

import regard

BASE = ("task.kind=classify", "train.batch_tokens=16", "train.steps=3", "train.schedule={kind='constant',lr=0.003}")
DIGITS = (*BASE, "data={kind='digits',count=60}")
MODELS = {
    "cnn": (*DIGITS, "model={kind='cnn',channels=[4,8],dropout=0.0}"),
    "vit": (*DIGITS, "model={kind='vit',layers=3,width=16,heads=4,patch=7}", "task.pool=first"),
    "vit-mean": (*DIGITS, "model={kind='vit',layers=2,width=8,heads=2,patch=14}", "task.pool=mean"),
    "resnet": (*BASE, "model={kind='resnet',depths=[1,2],width=4,stem='small',shortcut='pad'}"),
}
"""settings of each model; resnet reads color images of a folder, the others rendered digits"""


def write_photos(folder: Path, count: int = 24) -> Path:
    """Noisy pictures of two classes, red and green, in color."""
    draw = np.random.default_rng(3)
    for number, name in enumerate(("red", "green")):
        (folder / name).mkdir(parents=True)
        for i in range(count):
            pixels = draw.integers(0, 60, (14, 18, 3)) + np.array([[[180 * (number == c) for c in range(3)]]])
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / name / f"{i}.png")
    return folder


def train_image_model(name: str, root: Path) -> regard.Model:
    """One of MODELS, trained for three steps in root/runs/NAME."""
    settings = list(MODELS[name])
    if name == "resnet":
        settings.append(f"data={{kind='images',train='{write_photos(root / 'photos')}',size=16}}")
    regard.Run(root / "runs" / name).train(regard.Recipe.read(None, settings))
    return regard.load(root / "runs" / name)
