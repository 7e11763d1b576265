"""The `[task]` table of a regression recipe, and the check of its model against its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import torch

from regard.config import check_at_least, check_share, kind_of, union_members
from regard.data.images import ImageShape
from regard.errors import ConfigError
from regard.models import ClassifierConfig
from regard.spaces import Pixels


@dataclass(frozen=True)
class RegressConfig:
    """Regression: an image or a clip in, numbers out."""

    kind: Literal["regress"] = "regress"
    """an image or a clip in, numbers out"""
    pool: Literal["last", "mean", "max", "first"] = "mean"
    """how states are pooled: the last one (that of the last frame), the mean, the maximum, or the first"""
    dropout: float = 0.0
    """dropout on the pooled vector"""
    samples: int = 4
    """validation examples that are written with their predictions to samples.jsonl"""

    def __post_init__(self) -> None:
        check_at_least(self, 0, "samples")
        check_share(self, "dropout")


def check_reader(model: ClassifierConfig, shape: ImageShape) -> None:
    """Refuse a model that does not read the images, or the clips, of the data.

    >>> from regard.models.cnn import CNNConfig
    >>> check_reader(CNNConfig(), ImageShape(24, 24, frames=6))
    Traceback (most recent call last):
    regard.errors.ConfigError: model.kind = "cnn" does not read clips; use cnn-lstm
    """
    is_clip = bool(shape.frames)
    if not model.reads_images or model.reads_clips != is_clip:
        members = [m for m in union_members(ClassifierConfig) if m.reads_images and m.reads_clips == is_clip]
        known = ", ".join(map(kind_of, members))
        raise ConfigError(
            f'model.kind = "{model.kind}" does not read {"clips" if is_clip else "single images"}; use {known}'
        )
    with torch.device("meta"):  # refuses sizes that do not fit
        cast(Any, model).build_encoder(Pixels(shape.channels, shape.height, shape.width))
