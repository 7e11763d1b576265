"""ResNet and ViT between transformers and regard: logits, labels, preprocessing, round trip, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers import AutoModelForImageClassification

import regard
from foreign_vision import IMAGE_MODELS, LABELS, PREPROCESSING
from helpers import refusal
from regard.cli import invoke
from regard.errors import InputError, ModelError, RegardError
from regard.exchange.export import export_run
from regard.exchange.huggingface import import_folder


@pytest.fixture(scope="module", params=IMAGE_MODELS)
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    folder = tmp_path_factory.mktemp(request.param)
    theirs, saved = IMAGE_MODELS[request.param](folder / "saved")
    assert import_folder(saved, folder / "run") == []
    return theirs, folder


def write_image(path: Path) -> np.ndarray:
    pixels = np.random.default_rng(1).integers(0, 256, (32, 32, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


@torch.no_grad()
def test_an_imported_classifier_answers_as_in_transformers(imported: tuple[Any, Path], tmp_path: Path) -> None:
    theirs, folder = imported
    model: Any = regard.load(folder / "run")
    assert model.labels.names == tuple(LABELS.values())
    pixels = write_image(tmp_path / "image.png").astype(np.float32).transpose(2, 0, 1) / 255
    mean, std = (np.array(PREPROCESSING[name], np.float32)[:, None, None] for name in ("image_mean", "image_std"))
    expected = theirs(torch.from_numpy((pixels - mean) / std)[None]).logits
    source = model.input_encoder.collate([model.input_encoder.encode([str(tmp_path / "image.png")])[0].row])
    torch.testing.assert_close(model.module.readout(model.module(source)), expected, atol=1e-4, rtol=0)
    assert model.classify(str(tmp_path / "image.png")) == LABELS[int(expected.argmax())]
    assert "imported from saved" in (folder / "run" / "MODEL_CARD.md").read_text()


@torch.no_grad()
def test_it_comes_back_to_the_bit(imported: tuple[Any, Path], tmp_path: Path) -> None:
    theirs, folder = imported
    export_run(folder / "run", tmp_path / "exported")
    before, after = (
        load_file(folder / "saved" / "model.safetensors"),
        load_file(tmp_path / "exported/model.safetensors"),
    )
    assert before.keys() == after.keys()
    assert all(
        torch.equal(tensor, after[name]) and tensor.dtype == after[name].dtype for name, tensor in before.items()
    )
    again = AutoModelForImageClassification.from_pretrained(tmp_path / "exported").eval()
    assert again.config.id2label == LABELS
    x = torch.randn(2, 3, 32, 32)
    assert torch.equal(again(x).logits, theirs(x).logits)
    import_folder(tmp_path / "exported", tmp_path / "run")
    first, second = (regard.load(run).module.state_dict() for run in (folder / "run", tmp_path / "run"))
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


def change_json(name: str, **settings: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        content = json.loads((folder / name).read_text()) | settings
        (folder / name).write_text(json.dumps({key: value for key, value in content.items() if value is not None}))

    return change


def leave_out(name: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        tensors = load_file(folder / "model.safetensors")
        del tensors[name]
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})

    return change


CONFIG, SIZE = "config.json", "preprocessor_config.json"
FAULTS: dict[str, tuple[Callable[[Path], object], type[RegardError], str]] = {
    "no preprocessing": (lambda folder: (folder / SIZE).unlink(), InputError, f"there is no {SIZE}; expected the size"),
    "another size": (
        change_json(SIZE, size={"height": 16, "width": 16}),
        ModelError,
        "images of 16 x 16 pixels, and config.json has image_size = 32",
    ),
    "no labels": (change_json(CONFIG, id2label=None), ModelError, "expected the names of labels under id2label"),
    "another width": (
        change_json(CONFIG, intermediate_size=48),
        ModelError,
        "intermediate_size = 48, and the model here computes as with 64 only",
    ),
    "no mean": (change_json(SIZE, image_mean=[0.5]), ModelError, "image_mean = [0.5], expected a number for each of 3"),
    "a missing tensor": (leave_out("classifier.bias"), ModelError, "1 missing ('classifier.bias')"),
    "another architecture": (
        change_json(CONFIG, model_type="swin"),
        ModelError,
        "model_type = 'swin' is not among the models that can be imported: ",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_folder_that_does_not_fit_is_refused(fault: str, tmp_path: Path) -> None:
    saved = IMAGE_MODELS["vit"](tmp_path / "saved")[1]
    break_it, error, expected = FAULTS[fault]
    break_it(saved)
    message = refusal(error, lambda: import_folder(saved, tmp_path / "run"))
    assert expected in message, message
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


def test_stages_that_do_not_double_are_refused_and_other_preprocessing_is_noted(tmp_path: Path) -> None:
    saved = IMAGE_MODELS["resnet-basic"](tmp_path / "saved")[1]
    shutil.copytree(saved, tmp_path / "other")
    change_json(CONFIG, hidden_sizes=[4, 12])(tmp_path / "other")
    message = refusal(ModelError, lambda: import_folder(tmp_path / "other", tmp_path / "run"))
    assert "hidden_sizes = [4, 12], and the model here has [4, 8]" in message
    change_json(SIZE, size={"shortest_edge": 48}, crop_pct=0.875, resample=3)(saved)
    notes = import_folder(saved, tmp_path / "run")
    assert [note.split(":")[0] for note in notes] == ["resample = 3", "crop_pct = 0.875"]
    assert regard.load(tmp_path / "run").recipe.data.shape().height == 48


def test_models_of_images_that_transformers_does_not_have_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = ["task.kind=classify", "data={kind='digits',count=60}", "train.steps=1", "train.batch_tokens=16"]
    cases = {
        "model={kind='cnn',channels=[4]}": 'model.kind = "cnn" of the task classify cannot be written',
        "model={kind='resnet',depths=[1],width=4,stem='small'}": 'model.stem = "small" and model.shortcut',
        "model={kind='vit',layers=1,width=8,heads=2,patch=14}": 'task.pool = "mean", and ViTForImageClassification',
    }
    for number, (setting, expected) in enumerate(cases.items()):
        run = tmp_path / f"run-{number}"
        regard.Run(run).train(regard.Recipe.read(None, [*common, setting]))
        assert invoke(["export", str(run), "--to", "huggingface", "-o", str(tmp_path / "out")]) == 3
        assert expected in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
