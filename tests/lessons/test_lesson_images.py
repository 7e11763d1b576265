"""Numbers of the lessons on AlexNet, ResNet and the Vision Transformer, against torch and published figures."""

import pytest
import torch
from torch import nn

from regard.errors import ConfigError


def test_alexnet_has_the_published_maps_and_parameters(compute_lesson):
    lesson = compute_lesson("alexnet")
    rows = lesson.value("maps").data
    assert [row[3] for row in rows] == [55, 27, 13, 13, 13] and [row[4] for row in rows] == [27, 13, 13, 13, 6]
    assert lesson.value("total").data == 61_100_840
    ten = compute_lesson("alexnet", classes=10)
    assert ten.value("total").data == 61_100_840 - 4097 * 990
    assert dict(zip(*(lesson.value("winners").labels["year"], lesson.value("winners").data)))["2012"] == 15.3


def test_batch_normalization_is_torchs_in_training_and_in_use(compute_lesson):
    lesson = compute_lesson("resnet", x=[1, 2, 4], gain=2, shift=-1)
    norm, x = nn.BatchNorm1d(1).double(), torch.tensor([[1.0], [2.0], [4.0]]).double()
    with torch.no_grad():
        norm.weight.fill_(2)
        norm.bias.fill_(-1)
        trained, used = norm(x)[:, 0].tolist(), norm.eval()(x)[:, 0].tolist()
    assert lesson.value("y").data == pytest.approx(trained) and lesson.value("alone").data == pytest.approx(used)


def test_a_block_of_zeros_passes_its_input_on_and_keeps_the_gradient(compute_lesson):
    zeros = [[0, 0], [0, 0]]
    lesson = compute_lesson("resnet", W1=zeros, W2=zeros)
    assert lesson.value("out").data == lesson.value("h").data == [1, 2]
    assert lesson.value("plain").data == [0, 0]
    assert lesson.value("residual_norms").data == pytest.approx([2**0.5] * 10)
    assert lesson.value("plain_norms").data == [0] * 10


def test_the_gradient_of_plain_blocks_vanishes_and_that_of_residual_ones_does_not(compute_lesson):
    lesson = compute_lesson("resnet")
    plain, residual = (lesson.value(f"{name}_norms").data for name in ("plain", "residual"))
    assert plain[-1] < 1e-4 < 1 < min(residual)


def test_patches_are_cut_row_by_row_and_positions_alone_know_their_order(compute_lesson):
    image = [[10 * row + column for column in range(4)] for row in range(4)]
    lesson = compute_lesson("vit", image=image, patch=2)
    assert lesson.value("patches").data == [[0, 1, 10, 11], [2, 3, 12, 13], [20, 21, 30, 31], [22, 23, 32, 33]]
    assert lesson.value("without").data == pytest.approx(lesson.value("moved_without").data)
    assert lesson.value("with_positions").data != pytest.approx(lesson.value("state").data)


def test_a_patch_that_does_not_divide_the_image_and_a_batch_of_one_are_refused(compute_lesson):
    with pytest.raises(ConfigError, match="patch: 3 does not divide an image of 8 x 8 pixels"):
        compute_lesson("vit", patch=3)
    with pytest.raises(ConfigError, match="x: expected at least 2 numbers, the variance of one is 0"):
        compute_lesson("resnet", x=[1])
