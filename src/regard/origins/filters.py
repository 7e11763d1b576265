"""Image filters: Sobel and Feldman 1968; as layers of a network, Fukushima 1980 and LeCun et al. 1989.

New against single pixels: a small table of weights slides over the picture. An image is a table of numbers; a filter
answers, for each window of the image, the sum of the products of its weights with the window: large where the window
looks like the filter. Sobel's filters answer to horizontal and vertical edges. The first layer of a convolutional
network, such as AlexNet (Krizhevsky et al. 2012), is a bank of such filters with one table per color channel, whose
products are all summed; its weights are learned. What networks call convolution is this sum, without the flip of the
mathematical convolution.
"""

from __future__ import annotations

import numpy as np

FILTERS = {
    "sobel-y": np.array([[1, 2, 1], [0, 0, 0], [-1, -2, -1]]),
    "sobel-x": np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]]),
    "diagonal-down": np.array([[2, 1, 0], [1, 0, -1], [0, -1, -2]]),
    "diagonal-up": np.array([[0, 1, 2], [-1, 0, 1], [-2, -1, 0]]),
}
"""answers to horizontal and vertical edges, and to edges along the two diagonals"""


def window_products(image: np.ndarray, kernel: np.ndarray, i: int, j: int) -> np.ndarray:
    """The products of a filter with the window whose upper left corner is (i, j): nine, for a 3 x 3 filter.

    >>> window_products(np.arange(9).reshape(3, 3), FILTERS["sobel-x"], 0, 0).tolist()
    [[0, 0, -2], [6, 0, -10], [6, 0, -8]]
    """
    height, width = kernel.shape[-2:]
    return np.asarray(image[..., i : i + height, j : j + width] * kernel)


def filter_image(image: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Slide a filter over an image: output (i + 1, j + 1) is the sum for the window at (i, j); the border stays 0.

    >>> filter_image(np.array([[0, 0, 9, 9]] * 3), FILTERS["sobel-x"]).tolist()
    [[0, 0, 0, 0], [0, -36, -36, 0], [0, 0, 0, 0]]
    """
    output = np.zeros_like(image, shape=image.shape[-2:])
    for i in range(output.shape[0] - kernel.shape[-2] + 1):
        for j in range(output.shape[1] - kernel.shape[-1] + 1):
            output[i + 1, j + 1] = window_products(image, kernel, i, j).sum()
    return output


def filter_color(image: np.ndarray, bank: np.ndarray) -> np.ndarray:
    """A bank of filters (count, channels, 3, 3) over an image (channels, height, width): one map per filter."""
    return np.stack([filter_image(image, kernel) for kernel in bank])


def gradient_magnitude(image: np.ndarray) -> np.ndarray:
    """Strength of the edge at each pixel: the length of the vector of both Sobel filters."""
    x, y = (filter_image(image, FILTERS[name]) for name in ("sobel-x", "sobel-y"))
    return np.hypot(x, y)


def draw_disk(size: int, value: int = 9) -> np.ndarray:
    """A picture to filter: a bright disk on a dark ground.

    >>> draw_disk(5).tolist()[0:3]
    [[0, 0, 0, 0, 0], [0, 9, 9, 9, 0], [0, 9, 9, 9, 0]]
    """
    at = np.arange(size) - (size - 1) / 2
    inside = at[:, None] ** 2 + at[None, :] ** 2 <= (size / 3) ** 2
    return np.where(inside, value, 0)
