"""Lesson: an image as a sequence of patches, read by the encoder of a Transformer."""

from __future__ import annotations

import torch
from torch import Tensor

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.reading import Reading
from regard.models.presets import PRESETS
from regard.models.vit import ViT, ViTConfig
from regard.origins.filters import draw_disk
from regard.sequence import Images
from regard.spaces import Pixels
from regard.trace import record

PARAMETERS = 86_567_656
WIDTH, HEADS = 8, 2

INPUTS = (
    Input("image", draw_disk(8).tolist(), "a picture: brightness of each pixel", ("row", "column"), bounds=(0, 255)),
    Input("patch", 4, "rows and columns of a patch", symbol="P", bounds=(1, 64)),
    Input("order", "reversed", "order in which the patches are read in the last step", choices=("reversed", "same")),
    Input("seed", 1, "seed of the random weights", bounds=(0, 10_000)),
)


def compute(page: LessonBuilder) -> None:
    """Patches, tokens, attention of [CLS], and what the positions are for."""
    image, patch = page.tensor("image"), page.data("patch")
    if image.shape[0] % patch or image.shape[1] % patch:
        raise page.error(f"patch: {patch} does not divide an image of {image.shape[0]} x {image.shape[1]} pixels")
    torch.manual_seed(page.data("seed"))
    config = ViTConfig(layers=1, width=WIDTH, heads=HEADS, patch=patch, dropout=0.0)
    model = config.build_encoder(Pixels(1, *image.shape)).double().eval()
    with torch.no_grad():
        pixels = image[None, None]
        patches = cut_patches(pixels[0, 0], patch)
        _tokens(page, model, pixels, patches)
        _attention(page, model, pixels, len(patches))
        _order(page, model, pixels, patch)
    page.compare("ViT-B/16 with 1,000 classes: parameters", PARAMETERS, PRESETS["vit-b16"].parameters, 0)


def cut_patches(image: Tensor, patch: int) -> Tensor:
    """Patches of an image from left to right and from top to bottom, each as one row of numbers.

    >>> cut_patches(torch.arange(16).reshape(4, 4), 2)[1].tolist()
    [2, 3, 6, 7]
    """
    rows, columns = image.shape[0] // patch, image.shape[1] // patch
    return image.reshape(rows, patch, columns, patch).transpose(1, 2).reshape(rows * columns, patch * patch)


def _tokens(page: LessonBuilder, model: ViT, pixels: Tensor, patches: Tensor) -> None:
    page.step(
        "Patches",
        "The image is cut into squares. A patch of P x P pixels is a row of P x P numbers: a word of "
        "the image. An image of 224 x 224 has 196 patches of 16 x 16.",
        r"N = \frac{H}{P} \cdot \frac{W}{P}",
        "image patch",
        value("patches", patches, "token pixel", "x_p"),
        value("count", len(patches), "", "N"),
    )
    weight, bias = model.embed.weight.flatten(1), model.embed.bias
    assert bias is not None
    embedded = patches @ weight.T + bias
    page.step(
        "Tokens",
        "One matrix makes a vector of each patch, which is a convolution whose stride is its size. A learned vector, "
        "[CLS], is put in front, whose last state the classifier reads; a learned vector per position is added.",
        r"z_0 = [x_{\text{CLS}}; x_p E + b] + E_{\text{pos}}",
        "patches seed",
        value("embedded", embedded, "token width", "x_p E + b", look="signed"),
        value(
            "z0", torch.cat([model.cls_token[0], embedded]) + model.positions[0], "token width", "z_0", look="signed"
        ),
    )
    convolved = model.embed(pixels)[0].flatten(1).T
    page.compare("one matrix over patches, and the package's convolution", convolved, embedded)


def _attention(page: LessonBuilder, model: ViT, pixels: Tensor, count: int) -> None:
    with record(model) as trace:
        state = model(Images(pixels)).states.data[0, 0]
    (weights,) = [found.data[0] for found in trace.find("layers.0.attention.weights")]
    labels = ["[CLS]", *(f"patch {i + 1}" for i in range(count))]
    page.step(
        "Attention over patches",
        "From here on nothing is new: every token attends to every other, as words do in BERT. Shown is where [CLS] "
        "looks, per head, with random weights; a trained model looks at what tells the classes apart.",
        r"\softmax(\frac{Q K^\top}{\sqrt{d}})",
        "z0 seed",
        value("weights", weights[:, 0], "head token", r"\alpha_{\text{CLS}}", {"token": labels}, "weights"),
        value("state", state, "width", r"z_{\text{CLS}}"),
    )
    page.compare("the weights of each head sum to 1", torch.ones(len(weights)), weights[:, 0].sum(-1))


def _order(page: LessonBuilder, model: ViT, pixels: Tensor, patch: int) -> None:
    pieces = cut_patches(pixels[0, 0], patch)
    pieces = pieces.flip(0) if page.data("order") == "reversed" else pieces
    rows, columns = pixels.shape[2] // patch, pixels.shape[3] // patch
    moved = pieces.reshape(rows, columns, patch, patch).transpose(1, 2).reshape(1, 1, *pixels.shape[2:])
    before = model.positions.clone()
    with_positions = model(Images(moved)).states.data[0, 0]
    model.positions.zero_()
    plain, shuffled = (model(Images(image)).states.data[0, 0] for image in (pixels, moved))
    model.positions.copy_(before)
    page.step(
        "What the positions are for",
        "The patches change places. Without positions [CLS] ends in the same state: attention sees a set of patches, "
        "not a picture. With positions it does not. Nothing else tells the model that an image has rows and columns.",
        "",
        "patches order state seed",
        value("with_positions", with_positions, "width", r"\text{with positions}"),
        value("without", plain, "width", r"\text{without}"),
        value("moved_without", shuffled, "width", r"\text{without, moved}"),
    )
    page.compare("without positions, patches in another order give the same state", plain, shuffled)


FIGURE = "image > patches > embedded > z0 > weights > state"
EXERCISES = (
    Exercise(
        "With patches of 2 x 2 pixels, how many tokens, without [CLS], has the image of 8 x 8 pixels?",
        "count",
        {"patch": 2},
        hint="patches per row times patches per column",
    ),
    Exercise(
        "How many numbers has a patch of 4 x 4 pixels of this gray image?",
        lambda lesson: len(lesson.value("patches").data[0]),
        hint="one per pixel",
    ),
)
READING = Reading(
    "The Vision Transformer, equal to Hugging Face's ViT",
    ("patch embedding", "class token", "learned position embedding"),
    (
        "Dosovitskiy et al. 2021, An image is worth 16x16 words: transformers for image recognition at "
        "scale, section 3.1",
    ),
)
