"""Lesson: an image is a table of numbers, and a filter slides over it with nine products at each place."""

from __future__ import annotations

import numpy as np
import torch

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise, item
from regard.lessons.engine.reading import Reading
from regard.origins.filters import FILTERS, draw_disk, filter_color, filter_image, gradient_magnitude, window_products

INPUTS = (
    Input("word", "slaughter", "a word, for its bytes"),
    Input("image", draw_disk(9).tolist(), "a picture: brightness of each pixel", ("row", "column"), bounds=(0, 255)),
    Input("filter", "sobel-x", "the filter", choices=tuple(FILTERS)),
    Input("at", [2, 1], "row and column of the window's corner, counted from 1", ("place",), bounds=(1, 4096)),
    Input("color", [1.0, 0.5, 0.0], "brightness of the picture in red, green and blue", ("channel",), bounds=(-9, 9)),
)


def compute(page: LessonBuilder) -> None:
    """The picture as numbers, one window, the whole map, both Sobel filters, and three colors."""
    image, kernel = np.array(page.data("image")), FILTERS[page.data("filter")]
    if min(image.shape) < 3:
        raise page.error(f"image: expected at least 3 x 3 pixels, got {image.shape[0]} x {image.shape[1]}")
    page.step(
        "Words and images are numbers",
        "A word is a list of bytes, one or more per letter (UTF-8). A gray picture is a table of numbers, one per "
        "pixel.",
        "",
        "word image",
        value("bytes", list(page.data("word").encode()), "byte", r"\text{bytes}"),
        value("hex", page.data("word").encode().hex(" ").upper(), "", r"\text{hexadecimal}"),
        value("pixels", image.tolist(), "row column", r"\text{pixels}", look="signed"),
    )
    _window(page, image, kernel)
    output = filter_image(image, kernel)
    page.step(
        "The whole map",
        "The same at every place. Where the window fits, the sum goes to its middle; the border stays 0. Large numbers "
        "mark edges in the direction of the filter; the sign says on which side of the edge it is brighter.",
        "",
        "image filter",
        value("map", output.tolist(), "row column", r"\text{map}", look="signed"),
        value("edges", gradient_magnitude(image).tolist(), "row column", r"\sqrt{G_x^2 + G_y^2}", look="signed"),
    )
    page.compare("the sliding window and torch's conv2d", convolve(image[None], kernel[None]), inner(output), 0)
    _colors(page, image, kernel)


def _window(page: LessonBuilder, image: np.ndarray, kernel: np.ndarray) -> None:
    i, j = (min(at, size - 2) - 1 for at, size in zip(page.data("at"), image.shape))
    products = window_products(image, kernel, i, j)
    page.step(
        f"One window, at row {i + 1} and column {j + 1}",
        "Nine pixels, nine weights, nine products; their sum is the answer of the filter at this place.",
        r"\sum_{a,b} K_{ab} \, x_{i+a,\, j+b}",
        "image filter at",
        value("window", image[i : i + 3, j : j + 3].tolist(), "row column", "x"),
        value("kernel", kernel.tolist(), "row column", "K"),
        value("products", products.tolist(), "row column", r"K \cdot x"),
        value("sum", int(products.sum()), "", r"\text{sum}"),
    )
    page.expect("the products at the left edge of the disk", -27, "sum")


def _colors(page: LessonBuilder, image: np.ndarray, kernel: np.ndarray) -> None:
    colors = np.array(page.data("color"))
    if len(colors) != 3:
        raise page.error(f"color: expected 3 numbers (red, green, blue), got {len(colors)}")
    picture = colors[:, None, None] * image
    bank = np.stack([np.stack([kernel] * 3), np.stack([kernel, np.zeros_like(kernel), -kernel])]).astype(float)
    maps = filter_color(picture, bank)
    page.step(
        "Three colors",
        "A color picture has three tables. A filter then has three tables of weights; all 27 products are summed. Two "
        "filters: one adds the edges of all colors, one subtracts those of blue from those of red. The first layer of "
        "AlexNet is 64 such filters, of 11 x 11 pixels, whose weights are learned.",
        "",
        "image color filter",
        value("together", maps[0].tolist(), "row column", r"\text{red + green + blue}", look="signed"),
        value("contrast", maps[1].tolist(), "row column", r"\text{red - blue}", look="signed"),
    )
    page.compare("both color filters and torch's conv2d", convolve(picture, bank[0]), inner(maps[0]), 1e-9)


def convolve(image: np.ndarray, kernel: np.ndarray) -> list[list[float]]:
    """conv2d of torch without padding, for one filter over all channels."""
    one, two = (torch.tensor(table, dtype=torch.float64)[None] for table in (image, kernel))
    found: list[list[float]] = torch.nn.functional.conv2d(one, two)[0, 0].tolist()
    return found


def inner(output: np.ndarray) -> list[list[float]]:
    """A map without its border."""
    return np.asarray(output[1:-1, 1:-1], dtype=np.float64).tolist()


FIGURE = "image > window > products > sum > map; kernel > products"
EXERCISES = (
    Exercise(
        "With filter = sobel-x at row 2 and column 1 of the lesson's image, what is the sum of the nine products?",
        "sum",
        {"filter": "sobel-x"},
        hint="multiply the window by G_x number by number",
    ),
    Exercise(
        "What is the byte of the letter t, as a decimal number?",
        item("bytes", 0),
        {"word": "t"},
        hint="its hexadecimal number is 74",
    ),
)
READING = Reading(
    "Sobel and diagonal filters, and filters over three color channels",
    ("convolution (cross-correlation)", "kernel", "feature map", "edge detection"),
    (
        "Sobel and Feldman 1968, A 3 x 3 isotropic gradient operator",
        "LeCun et al. 1989, Backpropagation applied to handwritten zip code recognition",
    ),
)
