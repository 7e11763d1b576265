"""The `[task]` table of a captioning recipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from regard.config import check_at_least, check_share, kind_of, union_members
from regard.data.images import ImageShape
from regard.errors import ConfigError
from regard.models.encoder_decoder import EncoderConfig, EncoderDecoderConfig
from regard.spaces import Pixels, Words
from regard.tasks.classify.augment import AugmentConfig


@dataclass(frozen=True)
class CaptionConfig:
    """Captioning: an image in, a text out."""

    kind: Literal["caption"] = "caption"
    """write captions of images"""
    max_tokens: int = 40
    """the most tokens of a caption that is trained on; longer ones are dropped"""
    word_dropout: float = 0.0
    """share of the words that the decoder reads as the unknown token in training, so that it learns to look at
    the image instead (Bowman et al. 2016)"""
    bleu_images: int = 200
    """validation images that are captioned greedily and scored with BLEU and exact match at each validation; 0: none"""
    samples: int = 4
    """how many of these are written to samples.jsonl"""
    augment: AugmentConfig = AugmentConfig()
    """data augmentation of training images; a mirrored image makes "left of" wrong"""

    def __post_init__(self) -> None:
        check_at_least(self, 1, "max_tokens")
        check_at_least(self, 0, "bleu_images", "samples")
        check_share(self, "word_dropout")


def check_model(model: EncoderDecoderConfig, shape: ImageShape) -> None:
    """Refuse a model that does not read images, or not of this size.

    >>> check_model(EncoderDecoderConfig(), ImageShape(32, 32))
    Traceback (most recent call last):
    regard.errors.ConfigError: model.encoder.kind = "convolution" does not read images; use cnn, alexnet, resnet, vit
    """
    if not model.reads_images:
        vision = [kind_of(member) for member in union_members(EncoderConfig) if member.reads_images]
        raise ConfigError(f'model.encoder.kind = "{model.encoder.kind}" does not read images; use {", ".join(vision)}')
    with torch.device("meta"):  # refuses sizes that do not fit
        model.build(Pixels(shape.channels, shape.height, shape.width), Words(8))  # type: ignore[arg-type]


def check_positions(model: EncoderDecoderConfig, task: CaptionConfig) -> None:
    """Refuse captions with more tokens than the decoder has learned positions for."""
    limit = model.position_limit
    if limit is not None and limit < task.max_tokens + 1:
        raise ConfigError(
            f"task.max_tokens = {task.max_tokens} takes {task.max_tokens + 1} positions, <EOS> included, and "
            f"model.decoder.max_positions = {limit} has learned positions for fewer; change one of them"
        )
