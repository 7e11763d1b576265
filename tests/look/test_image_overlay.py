"""Numbers over an image: the pixels come back from what the model read, and every cell has its number."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import torch
from PIL import Image

from regard.look.image_overlay import ImageOverlay, cell_grid, find_image, image_pixels
from regard.models.alexnet import AlexNetConfig
from regard.models.base import Classifier
from regard.models.cnn import CNNConfig
from regard.models.resnet import ResNetConfig
from regard.models.vit import ViTConfig
from regard.sequence import Images, mean
from regard.spaces import Classes, Pixels
from regard.trace import record, trace_context

ENCODERS = {
    "cnn": CNNConfig(channels=(4, 6)),
    "resnet": ResNetConfig(width=4, depths=(1, 1)),
    "vit": ViTConfig(layers=1, width=8, heads=2, patch=16),
    "alexnet": AlexNetConfig(),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_the_pixels_that_every_encoder_reads_are_recorded_and_come_back_from_their_normalization(name):
    pixels = torch.randint(0, 256, (1, 3, 64, 64)).float()
    facts = {"pixel_mean": [120.0, 100.0, 90.0], "pixel_scale": [60.0, 50.0, 40.0]}
    mean_C11, scale_C11 = (torch.tensor(facts[key])[:, None, None] for key in ("pixel_mean", "pixel_scale"))
    encoder = ENCODERS[name].build_encoder(Pixels(3, 64, 64))
    model = Classifier(encoder, mean, Classes(2), encoder.width).eval()
    with record(model) as trace, trace_context(**facts), torch.no_grad():
        model(Images((pixels - mean_C11) / scale_C11))
    found = find_image(trace.records)
    assert found.name == "encoder.image"
    assert found.axes == ("batch", "channel", "row", "column")
    assert np.array_equal(image_pixels(found), pixels[0].permute(1, 2, 0).numpy())


def test_a_replaced_image_reaches_the_layers_above_it():
    encoder = ENCODERS["cnn"].build_encoder(Pixels(3, 8, 8)).eval()
    image = Images(torch.randn(1, 3, 8, 8))
    with record(encoder, replace={"image": torch.zeros_like}), torch.no_grad():
        replaced = encoder(image).states.data
    with torch.no_grad():
        assert torch.allclose(replaced, encoder(Images(torch.zeros(1, 3, 8, 8))).states.data)


@pytest.mark.parametrize(
    ("positions", "size", "grid"),
    [(64, (32, 32), (0, 8, 8)), (65, (32, 32), (1, 8, 8)), (1, (32, 32), (0, 1, 1)), (32, (32, 64), (0, 4, 8)),
     (33, (32, 64), (1, 4, 8)), (7, (32, 32), None), (0, (32, 32), None)],
)  # fmt: skip
def test_positions_lie_over_an_image_as_a_grid_with_the_ratio_of_its_sides(positions, size, grid):
    assert cell_grid(positions, *size) == grid


@pytest.fixture
def overlay():
    pixels = np.zeros((4, 4, 3), np.uint8)
    pixels[:, 2:] = (250, 0, 0)
    weights = np.array([[[0.1, 0.9], [0.0, 0.0]], [[0.25, 0.25], [0.25, 0.25]]])
    return ImageOverlay("cross", pixels, weights, ["red", "<b>"], ["outside 0.00", "outside 0.00"])


def test_the_drawing_has_the_image_and_one_cell_per_weight_with_its_number(overlay):
    drawing = overlay.svg()
    assert drawing.count("<image ") == 2
    assert drawing.count("<rect ") == 1 + 8
    assert "red: 0.9000" in drawing
    assert "<b>" not in drawing
    uri = drawing.partition('href="data:image/png;base64,')[2].partition('"')[0]
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(base64.b64decode(uri)))), overlay.pixels)


def test_the_brightest_cell_is_the_one_with_the_largest_weight(overlay):
    opacities = [part.partition('"')[0] for part in overlay.svg().split('fill-opacity="')[1:5]]
    assert float(opacities[1]) == 0
    assert float(opacities[0]) > 0.6
    assert float(opacities[2]) == 0.75


@pytest.mark.parametrize("color", ["none", "256", "24-bit"])
def test_a_terminal_shows_the_copies_side_by_side_or_below_each_other(overlay, color):
    lines = overlay.text(width=40, color=color).splitlines()
    assert lines[1].split() == ["red", "<b>"]
    assert ("\x1b[" in lines[3]) == (color != "none")
    assert len(overlay.text(width=18, color=color).splitlines()) > len(lines)


def test_signed_numbers_have_a_color_for_each_sign():
    view = ImageOverlay("saliency", np.zeros((2, 2, 3), np.uint8), np.array([[[-1.0, 0.5]]]), ["7"], signed=True)
    assert "#0B62B8" in view.svg()
    assert "#B35900" in view.svg()
    assert view.to_dict()["maps"] == [[[-1.0, 0.5]]]
