"""regard look on images: every view in the terminal, as files and as JSON; options that do not fit."""

import json

import numpy as np
import pytest
from PIL import Image

from image_models import train_image_model
from regard.look import Recording

VIEWS = {
    "cnn": ("filters", "maps", "batchnorm", "saliency"),
    "vit": ("filters", "patches", "positions", "rollout", "attention", "saliency", "states", "lens"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("look-images")
    return {name: train_image_model(name, root) and root / "runs" / name for name in VIEWS}


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    path = tmp_path_factory.mktemp("photos") / "été 日.png"
    pixels = np.random.default_rng(1).integers(0, 256, (40, 30, 3), np.uint8)
    Image.fromarray(pixels).save(path)
    return path


@pytest.mark.parametrize(("name", "view"), [(name, view) for name, views in VIEWS.items() for view in views])
def test_each_view_is_shown_and_written(runs, photo, run_cli, tmp_path, name, view):
    shown = run_cli("look", runs[name], photo, "--view", view)
    assert shown.code == 0 and len(shown.out.splitlines()) > 3
    assert view == "saliency" or f"{photo} -> " in shown.err
    data = json.loads(run_cli("look", runs[name], photo, "--view", view, "--json").out)
    for ending, start in ((".svg", b"<svg"), (".png", b"\x89PNG"), (".json", b"{")):
        path = tmp_path / f"a{ending}"
        assert run_cli("look", runs[name], photo, "--view", view, "-o", path).out == f"{path}\n"
        assert path.read_bytes().startswith(start)
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == data


def test_without_a_view_maps_of_a_cnn_and_attention_of_a_vit_are_shown(runs, photo, run_cli):
    assert run_cli("look", runs["cnn"], photo).out.startswith("encoder.stages.0.feature_map (layer 0 of 0 to 1)")
    assert run_cli("look", runs["cnn"], photo, "--layer", "1").out.startswith("encoder.stages.1.feature_map")
    assert run_cli("look", runs["vit"], photo).out.startswith("attention of layer 2, from [CLS]")
    assert run_cli("look", runs["vit"], photo, "--name", "encoder.layers.0.*").out.startswith("encoder.layers.0.")


def test_the_whole_pass_is_written_as_a_page_and_as_tensors(runs, photo, run_cli, tmp_path):
    run_cli("look", runs["vit"], photo, "--view", "rollout", "-o", tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text("utf-8")
    assert 'data-open="tab=image"' in page and '"kind": "pixels"' in page
    run_cli("look", runs["vit"], photo, "-o", tmp_path / "a.safetensors")
    assert Recording.load(tmp_path / "a.safetensors").rollout().maps.shape == (1, 4, 4)


def test_channels_are_chosen_by_number(runs, photo, run_cli):
    data = json.loads(run_cli("look", runs["cnn"], photo, "--view", "maps", "--unit", "1-2", "--json").out)
    assert data["channels"] == [1, 2] and np.shape(data["maps"]) == (2, 28, 28)
    data = json.loads(run_cli("look", runs["cnn"], photo, "--view", "batchnorm", "--layer", "3", "--json").out)
    assert data["name"] == "encoder.stages.1.convs.1" and len(data["running_variance"]) == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--view", "filters", "--layer", "1"), "--layer does not apply to --view filters"),
        (("--view", "positions", "--name", "x"), "--name does not apply to --view positions"),
        (
            ("--view", "patches", "--unit", "1"),
            "--unit belongs to --view states, maps, batchnorm, attribution",
        ),
        (("--view", "maps", "--head", "1"), "--head belongs to --view attention"),
        (("--view", "maps", "--generate", "3"), "--generate does not apply to --view maps"),
        (("--view", "rollout"), "no patches were recorded; a Vision Transformer (vit) has patches"),
        (("--view", "gradients"), "gradients through time need a model that predicts one token after another"),
    ],
)
def test_options_that_do_not_fit_are_refused(runs, photo, run_cli, arguments, message):
    result = run_cli("look", runs["cnn"], photo, *arguments)
    assert result.code != 0 and message in result.err and not result.out


def test_a_bad_image_is_refused_and_an_animated_one_read_with_a_warning(runs, run_cli, tmp_path):
    (tmp_path / "a.png").write_text("no image")
    for view in ("maps", "saliency"):
        result = run_cli("look", runs["cnn"], tmp_path / "a.png", "--view", view)
        assert result.code != 0 and "a.png: this is no image" in result.err and not result.out
    frames = [Image.new("L", (9, 9), value) for value in (0, 200)]
    frames[0].save(tmp_path / "b.gif", save_all=True, append_images=frames[1:])
    result = run_cli("look", runs["cnn"], tmp_path / "b.gif")
    assert result.code == 0 and "b.gif: the image has several frames; the first was read" in result.err
