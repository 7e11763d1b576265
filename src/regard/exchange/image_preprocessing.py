"""Preprocessing of images as other libraries describe it: preprocessor_config.json, read and written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from regard.data.images import CHANNEL_NAMES, ImageShape
from regard.data.scaling import StandardScaler
from regard.errors import InputError, ModelError
from regard.exchange.settings import ForeignSettings, read_settings
from regard.tasks.classify.image_sources import ImageSource
from regard.tasks.classify.images import ImageInput

PREPROCESSOR = "preprocessor_config.json"
RANGE = 255
"""largest value of a pixel"""
BILINEAR = 2
"""Pillow's number of bilinear resampling"""
OWN_RESIZE = "regard_resize"
"""setting of our own in that file: how an image that is not square is fitted"""


@dataclass(frozen=True)
class Preprocessing:
    """How images become the pixels that a model reads."""

    shape: ImageShape
    scaler: StandardScaler
    notes: tuple[str, ...] = ()
    """what is done differently here"""


def read_preprocessing(folder: Path, channels: int, size: int | None) -> Preprocessing:
    """The preprocessing of a Hugging Face folder; `size` is the one that the model needs, if it needs one."""
    path = folder / PREPROCESSOR
    if not path.is_file():
        raise InputError(
            f"{folder}: there is no {PREPROCESSOR}; expected the size, mean and standard deviation of the images that "
            "the model reads, as an image processor of transformers saves them"
        )
    found = read_settings(path)
    side, resize = image_side(found, size)
    if size is not None and side != size:
        raise ModelError(f"{path}: images of {side} x {side} pixels, and config.json has image_size = {size}")
    if not 0 < side <= ImageSource.max_size:
        raise ModelError(f"{path}: images of {side} x {side} pixels; expected from 1 to {ImageSource.max_size}")
    rescale = found.number("rescale_factor", 1 / RANGE) if found.get("do_rescale", True) else 1.0
    mean, std = ([0.0] * channels, [1.0] * channels)
    if found.get("do_normalize", True):
        mean, std = (channel_numbers(found, name, channels) for name in ("image_mean", "image_std"))
    if min(std) <= 0 or rescale <= 0:
        raise ModelError(f"{path}: image_std and rescale_factor must be above 0, found {std} and {rescale}")
    names = CHANNEL_NAMES[channels]
    scaler = StandardScaler(names, tuple(m / rescale for m in mean), tuple(s / rescale for s in std))
    shape = ImageShape(side, side, 1 if channels == 1 else 3, resize)
    return Preprocessing(shape, scaler, tuple(differences(found)))


def image_side(found: ForeignSettings, size: int | None) -> tuple[int, Literal["crop", "pad", "stretch"]]:
    """Rows and columns of the images, and how images that are not square are fitted."""
    own = found.get(OWN_RESIZE)
    crop = found.get("crop_size") if found.get("do_center_crop", True) else None
    value = crop if crop is not None else found.get("size", size)
    fits: Literal["crop", "stretch"] = "crop" if crop is not None else "stretch"
    if isinstance(value, dict):
        if "shortest_edge" in value:
            value, fits = value["shortest_edge"], "crop"
        elif value.get("height") == value.get("width"):
            value = value.get("height")
    if type(value) is not int:
        raise ModelError(f"{found.path}: size = {value!r}, expected one number, or the same height and width")
    return value, own if own in ("crop", "pad", "stretch") else fits


def differences(found: ForeignSettings) -> list[str]:
    """Steps of their preprocessing that are not the same here."""
    notes = []
    if found.get("resample", BILINEAR) != BILINEAR:
        notes.append(
            f"resample = {found.get('resample')!r}: images are scaled bilinearly here, so pixels differ a little"
        )
    if found.get("crop_pct") is not None:
        notes.append(f"crop_pct = {found.get('crop_pct')!r}: here the whole middle square of an image is read")
    return notes


def channel_numbers(found: ForeignSettings, name: str, channels: int) -> list[float]:
    """One number for each channel."""
    values = found.get(name)
    is_list = isinstance(values, list) and len(values) == channels
    if not is_list or not all(isinstance(one, int | float) and not isinstance(one, bool) for one in values):
        raise ModelError(f"{found.path}: {name} = {values!r}, expected a number for each of {channels} channels")
    return [float(one) for one in values]


def describe_preprocessing(encoder: ImageInput) -> dict[str, Any]:
    """Size, mean and standard deviation of the images that a model reads, of pixels from 0 to 1."""
    shape: ImageShape = encoder.shape
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_convert_rgb": shape.channels == 3,
        "do_resize": True,
        "resample": BILINEAR,
        "size": {"height": shape.height, "width": shape.width},
        "do_rescale": True,
        "rescale_factor": 1 / RANGE,
        "do_normalize": True,
        "image_mean": [value / RANGE for value in encoder.scaler.mean],
        "image_std": [value / RANGE for value in encoder.scaler.scale],
        OWN_RESIZE: shape.resize,
    }
