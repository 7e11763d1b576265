"""Lesson: AlexNet layer by layer, with sizes and parameters, and the contest that it won."""

from __future__ import annotations

import torch

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.reading import Reading
from regard.models.alexnet import SMALLEST, AlexNetConfig
from regard.models.base import Classifier, parameters
from regard.models.pooling import make_pooling
from regard.spaces import Classes, Pixels

CONVOLUTIONS = ((3, 64, 11, 4, 2, True), (64, 192, 5, 1, 2, True), (192, 384, 3, 1, 1, False),
                (384, 256, 3, 1, 1, False), (256, 256, 3, 1, 1, True))  # fmt: skip
"""channels, filters, side of a filter, stride, padding, and whether max pooling follows"""
GRID, WIDTH, PARAMETERS = 6, 4096, 61_100_840
WINNERS = {"2010": 28.2, "2011": 25.8, "2012": 15.3, "2013": 11.7, "2014": 6.7, "2015": 3.57}
"""top-5 error of the winners of ILSVRC, in percent; AlexNet in 2012, ResNet in 2015"""

INPUTS = (
    Input("size", 224, "rows and columns of an image", bounds=(SMALLEST, 1024)),
    Input("classes", 1000, "classes to tell apart; ILSVRC has 1,000", symbol="K", bounds=(2, 100_000)),
)


def side(size: int, kernel: int, stride: int, padding: int) -> int:
    """Rows of a map after a convolution or pooling.

    >>> side(224, 11, 4, 2), side(55, 3, 2, 0)
    (55, 27)
    """
    return (size + 2 * padding - kernel) // stride + 1


def compute(page: LessonBuilder) -> None:
    """Convolutions, dense layers, the sum, and the winners of ILSVRC."""
    _convolutions(page)
    _dense_layers(page)
    page.step(
        "The contest",
        "ILSVRC: 1.2 million photographs of 1,000 classes; an answer counts if the right class is among its five best. "
        "In 2012 AlexNet had 15.3 % errors, the second 26.2 %; every winner after it was a convolutional network. "
        "ResNet had 3.57 % in 2015. People trained on the classes reach about 5 % (Russakovsky et al. 2015).",
        "",
        "classes",
        value("winners", list(WINNERS.values()), "year", r"\text{top-5 error in percent}", {"year": list(WINNERS)}),
    )  # fmt: skip
    page.expect("parameters for 1,000 classes", PARAMETERS, "total", 0)


def _convolutions(page: LessonBuilder) -> None:
    rows, size = [], page.data("size")
    for channels, filters, kernel, stride, padding, pooled in CONVOLUTIONS:
        size = side(size, kernel, stride, padding)
        weights = channels * filters * kernel * kernel + filters
        rows.append([channels, filters, kernel, size, side(size, 3, 2, 0) if pooled else size, weights])
        size = rows[-1][4]
    names = [f"convolution {i + 1}" for i in range(len(rows))]
    columns = ["channels", "filters", "side of a filter", "rows of the map", "after pooling", "parameters"]
    page.step(
        "Five convolutions",
        "A filter of k x k pixels moves in steps of s over an image of n rows with p rows of zeros around it. Each "
        "filter has k x k weights per channel and one bias. After the first, the second and the last convolution the "
        "largest of 3 x 3 numbers is kept, in steps of 2; fractions are rounded down. The activation function is ReLU, "
        "whose gradient does not saturate.",
        r"\frac{n + 2 p - k}{s} + 1",
        "size",
        value("maps", rows, "layer column", r"\text{maps}", {"layer": names, "column": columns}),
        value("convolutions", sum(row[-1] for row in rows), "", r"\text{parameters of the convolutions}"),
    )


def _dense_layers(page: LessonBuilder) -> None:
    classes, convolutions = page.data("classes"), page.data("convolutions")
    inputs = CONVOLUTIONS[-1][1] * GRID * GRID
    dense = [(inputs + 1) * WIDTH, (WIDTH + 1) * WIDTH, (WIDTH + 1) * classes]
    total = convolutions + sum(dense)
    page.step(
        "Three dense layers",
        "The last map is averaged to 6 x 6 places, and its 256 x 6 x 6 = 9,216 numbers are the input of two hidden "
        "layers of 4,096 units with dropout, then of one output per class. The dense layers have most of the "
        "parameters, the convolutions most of the work.",
        r"N = \sum (\text{inputs} + 1) \times \text{outputs}",
        "classes convolutions",
        value("dense", dense, "layer", r"\text{dense}", {"layer": ["hidden 1", "hidden 2", "output"]}),
        value("total", total, "", "N"),
        value("share", sum(dense) / total, "", r"\text{share of the dense layers}"),
    )
    with torch.device("meta"):  # shapes without numbers
        encoder = AlexNetConfig().build_encoder(Pixels(3, page.data("size"), page.data("size")))
        built = Classifier(encoder, make_pooling("first", encoder), Classes(classes), encoder.width)
    page.compare("the sum, and an AlexNet built by the package: parameters", parameters(built), total, 0)


FIGURE = "size > maps > convolutions > total; classes > dense > total"
EXERCISES = (
    Exercise(
        "With 10 classes instead of 1,000, how many parameters does AlexNet have?",
        "total",
        {"classes": 10},
        hint="the last layer has 4,096 weights and a bias per class",
        tolerance=0.5,
    ),
    Exercise(
        "How many parameters do the five convolutions have together?",
        "convolutions",
        hint="kernel height x width x channels in x channels out, plus a bias per channel",
        tolerance=0.5,
    ),
)
READING = Reading(
    "AlexNet, ResNet-18/34/50 and ResNet-20: parameters and outputs as in torchvision's layout and Hugging Face",
    ("convolutional layer", "max pooling", "fully connected layer", "top-5 error"),
    ("Krizhevsky, Sutskever and Hinton 2012, ImageNet classification with deep convolutional neural networks",),
)
