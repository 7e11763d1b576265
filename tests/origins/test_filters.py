"""Filters that slide over a picture equal torch's conv2d, bit for bit on integers."""

import numpy as np
import pytest
import torch

from regard.origins.filters import FILTERS, draw_disk, filter_color, filter_image, gradient_magnitude, window_products


def conv2d(image, bank):
    """torch's convolution without padding; float64 holds these integers exactly."""
    return torch.nn.functional.conv2d(
        torch.tensor(image, dtype=torch.float64)[None], torch.tensor(bank, dtype=torch.float64)
    )[0].numpy()


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_equals_conv2d_bit_for_bit_and_leaves_the_border_at_zero(name):
    draw = np.random.default_rng(1)
    for height, width in ((3, 3), (3, 9), (17, 12)):
        image = draw.integers(0, 256, (height, width))
        found = filter_image(image, FILTERS[name])
        assert (found[1:-1, 1:-1] == conv2d(image[None], FILTERS[name][None, None])[0]).all()
        found[1:-1, 1:-1] = 0
        assert not found.any()


def test_a_bank_over_three_color_channels_equals_conv2d_bit_for_bit():
    draw = np.random.default_rng(2)
    image, bank = draw.integers(0, 256, (3, 10, 8)), draw.integers(-9, 10, (4, 3, 3, 3))
    assert (filter_color(image, bank)[:, 1:-1, 1:-1] == conv2d(image, bank)).all()


def test_the_sum_of_a_window_is_one_number_of_the_map():
    image = draw_disk(9)
    products = window_products(image, FILTERS["sobel-x"], 2, 4)
    assert products.shape == (3, 3)
    assert products.sum() == filter_image(image, FILTERS["sobel-x"])[3, 5]


def test_edges_are_strong_at_the_border_of_a_disk_and_zero_inside_and_outside():
    edges = gradient_magnitude(draw_disk(21))
    assert edges[10, 10] == edges[1, 1] == 0
    assert edges[10, 3] > 0 < edges[3, 10]
    assert edges == pytest.approx(edges.T)
