"""Images on the command line: bad files and folders give a clear message, and nothing is lost."""

import json
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

import regard
from helpers import check_refused
from image_models import train_image_model, write_photos
from regard.errors import DataError

RECIPE = """
data = {{kind = "images", train = "{folder}", size = 16}}
model = {{kind = "vit", layers = 1, width = 8, heads = 2, patch = 4}}
task = {{kind = "classify"}}
train = {{steps = 2, batch_tokens = 8}}
"""
NOISE = np.random.default_rng(1).integers(0, 256, (64, 64, 3), np.uint8)


def bomb(path, side=50_000):
    """A PNG of a few bytes whose header promises 2,500 million pixels."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b""))


def truncated(path):
    Image.fromarray(NOISE).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def animation(path):
    frames = [Image.new("L", (9, 9), value) for value in (0, 100, 200)]
    frames[0].save(path, save_all=True, append_images=frames[1:])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("cli-images")
    return {name: train_image_model(name, root) and root / "runs" / name for name in ("cnn", "vit")}


BAD = {
    "text.png": (lambda path: path.write_text("hello"), "this is no image; expected PNG, JPEG, WebP"),
    "empty.png": (lambda path: path.touch(), "this is no image"),
    "half.jpg": (truncated, "the image cannot be read (image file is truncated"),
    "bomb.png": (bomb, "2,500,000,000 pixels; at most 100,000,000 pixels and 256 MiB are read; scale it down"),
    "folder.png": (lambda path: path.mkdir(), "it is a folder; expected an image file"),
    "missing.png": (lambda path: None, "there is no such image"),
}
GOOD = {
    "cmyk.jpg": lambda path: Image.fromarray(NOISE).convert("CMYK").save(path),
    "sixteen.png": lambda path: Image.fromarray(NOISE[..., 0].astype(np.uint16) * 257).save(path),
    "palette.png": lambda path: Image.fromarray(NOISE).convert("P").save(path, transparency=0),
    "tiny.png": lambda path: Image.new("RGB", (2, 1), (9, 90, 200)).save(path),
    "strip.png": lambda path: Image.new("L", (3000, 1), 90).save(path),
    "moving.gif": animation,
}


@pytest.mark.parametrize("name", ["cnn", "vit"])
def test_each_bad_file_is_reported_and_the_others_are_answered(runs, run_cli, tmp_path, name):
    """A Vision Transformer with patches of 7 x 7 reads an image of 2 x 1 too: it is enlarged first."""
    for file, (make, _) in BAD.items():
        make(tmp_path / file)
    for file, make in GOOD.items():
        make(tmp_path / file)
    files = [file for pair in zip(BAD, GOOD, strict=True) for file in pair]
    result = run_cli("classify", runs[name], *(tmp_path / file for file in files))
    lines = result.out.splitlines()
    assert result.code == 4 and len(lines) == len(files)
    assert [file for file, line in zip(files, lines) if not line] == list(BAD)
    for file, (_, message) in BAD.items():
        assert f"{file}: {message}" in result.err
    assert "moving.gif: the image has several frames; the first was read" in result.err
    assert "error: 6 lines of the input have no answer" in result.err


def test_python_classifies_paths_and_says_what_else_was_given(runs, tmp_path):
    model, path = regard.load(runs["cnn"]), tmp_path / "a.png"
    Image.fromarray(NOISE).save(path)
    label = model.classify(str(path))
    assert model.classify(path) == label and model.classify([path, path]) == [label, label]
    check_refused(DataError, "classify: expected the path of an image, got 3", lambda: model.classify([path, 3]))


def test_strict_is_named_by_its_flag_where_a_task_has_no_such_setting(run_cli, tmp_path):
    result = trained(run_cli, tmp_path, tmp_path, "--strict")
    assert result.code == 2 and 'unknown setting "task.strict", given on the command line (by --strict); ' in result.err


def trained(run_cli, folder, tmp_path, *settings):
    (tmp_path / "a.toml").write_text(RECIPE.format(folder=folder.as_posix()), encoding="utf-8")
    return run_cli("train", tmp_path / "a.toml", "--out", tmp_path / "run", *settings)


@pytest.mark.parametrize("file", [file for file in BAD if file not in ("folder.png", "missing.png")])
def test_a_bad_file_in_a_folder_stops_preparation_and_the_same_command_works_without_it(run_cli, tmp_path, file):
    folder, (make, message) = write_photos(tmp_path / "photos", 12), BAD[file]
    make(folder / "red" / file)
    result = trained(run_cli, folder, tmp_path)
    assert result.code != 0 and f"red/{file}: {message}" in result.err
    (folder / "red" / file).unlink()
    assert trained(run_cli, folder, tmp_path).code == 0


def test_animated_images_and_labels_without_validation_are_warned_of(run_cli, tmp_path):
    folder = write_photos(tmp_path / "photos", 12)
    animation(folder / "red" / "moving.gif")
    (folder / "rare").mkdir()
    Image.new("RGB", (9, 9)).save(folder / "rare" / "one.png")
    result = trained(run_cli, folder, tmp_path)
    assert result.code == 0
    assert "warning  1 image with several frames: the first was read" in result.err
    assert "warning  no image to validate on has the label rare (1 to train on); add images" in result.err


@pytest.mark.parametrize(
    ("counts", "settings", "message"),
    [
        (("red",), (), 'all 12 examples have the label "red"; a classifier needs two labels or more'),
        (("red", "green"), ("model.patch=32",), "patch = 32 does not divide images of 16 x 16 pixels"),
        (("red", "green"), ("data.size=2",), "patch = 4 does not divide images of 2 x 2 pixels"),
    ],
)
def test_folders_and_sizes_that_cannot_work_are_refused(run_cli, tmp_path, counts, settings, message):
    folder = write_photos(tmp_path / "photos", 12)
    for name in {"red", "green"} - set(counts):
        for file in (folder / name).iterdir():
            file.unlink()
        (folder / name).rmdir()
    result = trained(run_cli, folder, tmp_path, *settings)
    assert result.code != 0 and message in result.err


def test_eval_of_images_has_top_five_accuracy_and_the_confusion_matrix(runs, run_cli):
    result = run_cli("eval", runs["cnn"], "--json")
    found = json.loads(result.out)
    names = {score["name"] for score in found["scores"]}
    assert {"accuracy", "top5"} <= names
    counts = np.array(found["detail"]["confusion"]["counts"])
    accuracy, top5 = (next(s["value"] for s in found["scores"] if s["name"] == name) for name in ("accuracy", "top5"))
    assert counts.shape == (10, 10) and accuracy == pytest.approx(100 * counts.trace() / counts.sum())
    assert top5 >= accuracy
    text = run_cli("eval", runs["cnn"]).out
    assert "top5" in text and "target  predicted 0" in text
