"""Preprocessing of images as other libraries describe it: preprocessor_config.json."""

from __future__ import annotations

from typing import Any

from regard.data.images import ImageShape
from regard.tasks.classify.images import ImageInput

PREPROCESSOR = "preprocessor_config.json"
RANGE = 255
"""largest value of a pixel"""
BILINEAR = 2
"""Pillow's number of bilinear resampling"""


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
        "regard_resize": shape.resize,
    }
