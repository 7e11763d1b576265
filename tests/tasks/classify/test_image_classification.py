"""Classification of images: sources, preparation, augmentation, training, use, and folders that cannot work."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

import regard
from regard.errors import ConfigError, DataError, InputError
from regard.run import Recipe, Run
from regard.tasks.base import EvalRequest
from regard.tasks.classify.augment import AugmentConfig, augment_images
from regard.tasks.classify.image_sources import ImageFolder, RenderedDigits, read_folder
from regard.tasks.classify.images import FEW, ImageInput, LabeledImagePreparation, read_images

TINY = ["task.kind=classify", "model={kind='cnn',channels=[4,8],dropout=0.0}", "train.batch_tokens=16"]
DIGITS = [*TINY, "data={kind='digits',count=60}", "train.steps=3"]


def write_images(folder, counts, size=(9, 7)):
    """Pictures in one color per class, with noise."""
    draw = np.random.default_rng(1)
    for number, (name, count) in enumerate(counts.items()):
        (folder / name).mkdir(parents=True)
        for i in range(count):
            pixels = draw.integers(0, 60, (*size, 3)) + np.array([[[180 * (number == c) for c in range(3)]]])
            Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / name / f"{i}.png")
    return folder


def trained(folder, settings, **options):
    recipe = Recipe.read(None, settings)
    Run(folder).train(recipe, **options)
    return regard.load(folder)


@pytest.fixture(scope="module")
def colors(tmp_path_factory):
    """A model that tells red from green, and its folder of images."""
    home = tmp_path_factory.mktemp("colors")
    images = write_images(home / "images", {"red": 30, "green": 30})
    settings = [*TINY, f"data={{kind='images',train='{images}',size=8}}", "train.steps=40"]
    settings += ["train.schedule={kind='constant',lr=0.01}", "task.augment={flip=true,shift=1,crop=0.2,color=0.2}"]
    return trained(home / "run", settings), images


def test_a_classifier_learns_a_folder_of_images_of_any_size(colors, tmp_path):
    model, _ = colors
    Image.new("RGB", (300, 20), (200, 20, 20)).save(tmp_path / "wide.jpg")
    Image.new("RGB", (3, 5), (20, 210, 20)).save(tmp_path / "été 日.webp")
    files = [str(tmp_path / "wide.jpg"), "", str(tmp_path / "été 日.webp")]
    assert model.classify(files) == ["red", "", "green"]
    assert model.evaluate(EvalRequest(split="valid"), lambda *_, **__: None).scores[0].value == 100


def test_a_folder_of_your_own_can_be_scored(colors, tmp_path):
    model, _ = colors
    folder = write_images(tmp_path / "more", {"green": 3, "red": 2})
    found = model.evaluate(EvalRequest(files=[folder]), lambda *_, **__: None)
    assert found.unit == "images" and found.scores[0].n == 5
    assert found.examples[0].source.endswith("0.png")


def test_pixels_are_normalized_by_the_training_images_alone(tmp_path):
    data = RenderedDigits(count=60)
    preparation = LabeledImagePreparation(data)
    preparation.run(tmp_path, lambda *_, **__: None)
    encoder = preparation.load_encoder(tmp_path)
    train = np.stack([image.pixels for image in read_images([e.text for e in data.examples("train")], data.shape())])
    assert encoder.scaler.mean[0] == pytest.approx(train.mean()) and encoder.scaler.scale[0] == pytest.approx(
        train.std()
    )
    pixels = encoder.collate([image.reshape(-1) for image in train]).pixels
    assert pixels.mean().item() == pytest.approx(0, abs=1e-5) and pixels.std().item() == pytest.approx(1, abs=1e-3)


def test_worker_processes_read_the_same_in_the_same_order(tmp_path):
    shape = RenderedDigits().shape()
    references = [f"digits#train/{i}" for i in range(FEW + 5)]
    references[3] = str(tmp_path / "missing.png")
    many = list(read_images(references, shape))
    few = list(read_images(references[:10], shape))
    assert isinstance(many[3], InputError) and "missing.png" in str(many[3])
    assert all((a.pixels == b.pixels).all() for a, b in zip(many, few) if not isinstance(a, InputError))
    assert len(many) == FEW + 5


def test_augmentation_depends_on_the_seed_of_each_image_alone():
    pixels = torch.rand(4, 3, 8, 8) * 255
    config, seeds = AugmentConfig(flip=True, shift=2, crop=0.3, color=0.4), np.array([5, 6, 5, 7], np.uint64)
    together = augment_images(pixels, seeds, config)
    alone = augment_images(pixels[1:2], seeds[1:2], config)
    torch.testing.assert_close(together[1:2], alone)
    assert not torch.equal(together, pixels) and together.min() >= 0 and together.max() <= 255
    same = augment_images(pixels[:1].expand(4, -1, -1, -1), seeds, config)
    assert torch.equal(same[0], same[2]) and not torch.equal(same[0], same[1])


def test_each_augmentation_does_what_it_says():
    pixels, seeds = torch.rand(80, 1, 5, 5), np.arange(80, dtype=np.uint64)
    flipped = augment_images(pixels, seeds, AugmentConfig(flip=True))
    is_flipped = (flipped == pixels.flip(3)).all((1, 2, 3))
    assert 20 < int(is_flipped.sum()) < 60 and bool((is_flipped | (flipped == pixels).all((1, 2, 3))).all())
    shifted = augment_images(pixels, seeds, AugmentConfig(shift=1))
    places = {
        (dy, dx)
        for image, moved in zip(pixels, shifted, strict=True)
        for dy in (-1, 0, 1)
        for dx in (-1, 0, 1)
        if torch.equal(moved[:, 1:-1, 1:-1], torch.roll(image, (dy, dx), (1, 2))[:, 1:-1, 1:-1])
    }
    assert len(places) == 9  # every direction occurs
    constant = torch.full((2, 3, 4, 4), 100.0)
    assert torch.allclose(augment_images(constant, seeds[:2], AugmentConfig(crop=0.5)), constant)
    recolored = augment_images(constant, seeds[:2], AugmentConfig(color=0.5))
    assert recolored.min() >= 50 and recolored.max() <= 150


@pytest.mark.parametrize("model", ["cnn", "resnet", "vit"])
def test_stopped_and_resumed_training_gives_the_same_bits(tmp_path, model):
    kinds = {
        "cnn": "{kind='cnn',channels=[4,8]}",
        "resnet": "{kind='resnet',depths=[1,1],width=4,stem='small',shortcut='pad'}",
        "vit": "{kind='vit',layers=1,width=8,heads=2,patch=7,dropout=0.1}",
    }
    settings = [*DIGITS, f"model={kinds[model]}", "task.augment={flip=true,shift=2}", "train.save_every=2"]
    whole, parts = Run(tmp_path / "whole"), Run(tmp_path / "parts")
    whole.train(Recipe.read(None, [*settings, "train.steps=4"]))
    parts.train(Recipe.read(None, [*settings, "train.steps=2", "train.schedule={kind='constant'}"]))
    other = Run(tmp_path / "other")
    other.train(Recipe.read(None, [*settings, "train.steps=4", "train.schedule={kind='constant'}"]))
    parts.train(Recipe.read(None, [*settings, "train.steps=4", "train.schedule={kind='constant'}"]))
    first, second = (regard.load(run.path / "last").module.state_dict() for run in (parts, other))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert model == "vit" or int(first[next(name for name in first if "num_batches" in name)]) == 4


def test_a_class_of_one_image_stays_in_training(tmp_path):
    folder = write_images(tmp_path / "images", {"rare": 1, "common": 20})
    train = LabeledImagePreparation(ImageFolder(train=str(folder))).examples("train")
    assert [e.label for e in train].count("rare") == 1


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda home: home / "nowhere", InputError, "there is no such folder"),
        (lambda home: home, DataError, "there is no sub-folder in it"),
        (lambda home: write_images(home / "a", {"cat": 4}), DataError, 'all 4 examples have the label "cat"'),
        (
            lambda home: write_images(home / "a", {"cat": 4, "dog": 0}),
            DataError,
            "dog: there is no image in this class",
        ),
    ],
)
def test_a_folder_that_cannot_be_learned_is_refused(tmp_path, make, error, message):
    folder = make(tmp_path)
    with pytest.raises(error, match=message):
        LabeledImagePreparation(ImageFolder(train=str(folder))).run(tmp_path / "out", lambda *_, **__: None)
    assert not (tmp_path / "out" / "train").exists()


def test_a_damaged_image_stops_preparation_and_names_the_file(tmp_path):
    folder = write_images(tmp_path / "images", {"cat": 5, "dog": 5})
    (folder / "dog" / "0.png").write_text("no image")
    with pytest.raises(DataError, match=r"dog/0\.png: this is no image"):
        LabeledImagePreparation(ImageFolder(train=str(folder))).run(tmp_path / "out", lambda *_, **__: None)
    assert len(read_folder(folder)) == 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["model={kind='recurrent'}"], 'model.kind = "recurrent" does not read images; use cnn, alexnet, resnet, vit'),
        (["data={kind='tsv',train='x.tsv'}"], 'model.kind = "cnn" reads images, and data.kind = "tsv" has none'),
        (["model={kind='vit',patch=5}"], "patch = 5 does not divide images of 28 x 28"),
        (["model={kind='alexnet'}"], "alexnet needs images of at least 63 x 63 pixels"),
        (["task.augment.crop=1.0"], "crop = 1.0 must be at least 0 and below 1"),
        (["data.size=5000"], "size = 5000 must be at most 1024"),
    ],
)
def test_settings_that_do_not_fit_are_refused_before_any_work(settings, message):
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        Recipe.read(None, [*DIGITS, *settings])


def test_augmentation_is_for_images(tmp_path):
    with pytest.raises(ConfigError, match=r"task\.augment varies images"):
        Recipe.read(
            None, ["task={kind='classify',augment={flip=true}}", "data={kind='tsv',train='x'}", "model.kind=mlp"]
        )


def test_statistics_name_the_channels(tmp_path):
    recipe = Recipe.read(None, DIGITS)
    run = Run(tmp_path / "run")
    run.train(recipe)
    lines = recipe.format_statistics(json.loads(json.dumps(recipe.statistics(run.path))))
    assert lines[0].startswith("column      gray: mean") and "60 images in" in lines[1]
    assert isinstance(regard.load(run.path).input_encoder, ImageInput)
