"""The `[task]` table of a classification recipe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import torch

from regard.config import check_at_least, check_share, kind_of, union_members
from regard.errors import ConfigError
from regard.models import ClassifierConfig
from regard.spaces import Pixels
from regard.tasks.classify.augment import AugmentConfig
from regard.tasks.classify.image_sources import ImageSource
from regard.tasks.classify.labels import ClassWeights, UniformWeights


@dataclass(frozen=True)
class ClassifyConfig:
    """Classification: a text or a table row in, one label out."""

    kind: Literal["classify"] = "classify"
    """a text in, a label out"""
    pool: Literal["last", "mean", "max", "first", "first-relu"] = "mean"
    """how token states are pooled: the last state (of both directions, if the model is bidirectional), the mean, the
    maximum, or the first position, where a start token is put as BERT's [CLS]; first-relu: that one through a layer
    with ReLU, as in DistilBERT's classifier"""
    dropout: float = 0.3
    """dropout on the pooled vector"""
    word_dropout: float = 0.1
    """share of the words that are replaced by the unknown token in training, drawn anew in each epoch, so that the
    model learns to deal with unknown words"""
    weights: ClassWeights = UniformWeights()
    """class weights: how much the examples of each label count in the loss"""
    max_length: int = 256
    """the most tokens of a text that are read"""
    keep: Literal["beginning", "end"] = "beginning"
    """which tokens of a longer text are kept"""
    augment: AugmentConfig = AugmentConfig()
    """data augmentation of training images"""
    samples: int = 4
    """validation examples that are written with their predictions to samples.jsonl"""

    def __post_init__(self) -> None:
        check_at_least(self, 1, "max_length")
        check_at_least(self, 0, "samples")
        check_share(self, "dropout", "word_dropout")

    @property
    def reads_first(self) -> bool:
        """Whether the state of a start token is pooled."""
        return self.pool in ("first", "first-relu")


def check_pool(model: ClassifierConfig, pool: str) -> None:
    """Refuse pooling of a position whose state has seen too little of the text."""
    if pool in ("first", "first-relu") and model.receptive_field == "left":
        raise ConfigError(
            f'task.pool = "{pool}": the first state of a unidirectional model has seen only the first token; use last '
            "or mean, or model.bidirectional=true"
        )
    if pool in ("first", "first-relu", "last") and model.receptive_field == "position":
        raise ConfigError(
            f'task.pool = "{pool}": model.kind = "mlp" reads each word alone, and one word says little about a text; '
            "use mean or max"
        )


def check_positions(model: ClassifierConfig, task: ClassifyConfig, special: int) -> None:
    """Refuse texts with more positions than the model has, before any work; `special`: tokens added to each text.

    >>> from regard.models.transformer import TransformerConfig
    >>> model = TransformerConfig(positions="learned", max_positions=64)
    >>> check_positions(model, ClassifyConfig(max_length=64), special=1)
    Traceback (most recent call last):
    regard.errors.ConfigError: task.max_length = 64 takes 65 positions, and model.max_positions = 64 has learned ...
    """
    positions = task.max_length + special
    if model.position_limit is not None and model.position_limit < positions:
        raise ConfigError(
            f"task.max_length = {task.max_length} takes {positions} positions, and model.max_positions = "
            f"{model.position_limit} has learned positions for fewer; use a smaller task.max_length or a larger "
            "model.max_positions"
        )


def check_spellings(model: ClassifierConfig, text: str, is_pair: bool, has_vectors: bool) -> None:
    """Refuse texts that do not fit a model that reads words by their characters.

    >>> from regard.models.elmo import ELMoConfig
    >>> check_spellings(ELMoConfig(), "bpe", is_pair=False, has_vectors=False)
    Traceback (most recent call last):
    regard.errors.ConfigError: model.kind = "elmo" reads the characters of whole words, and text.kind = "bpe" cuts ...
    """
    if not model.reads_spellings:
        return
    kind = f'model.kind = "{model.kind}"'
    if text != "word":
        raise ConfigError(f'{kind} reads the characters of whole words, and text.kind = "{text}" cuts them; use "word"')
    if is_pair:
        raise ConfigError(f"{kind} reads one text, and data.second gives a pair; use bert, transformer or recurrent")
    if has_vectors:
        raise ConfigError(f"{kind} computes word vectors from characters; vectors.path is for recurrent and others")


def check_images(data: Any, model: ClassifierConfig, task: ClassifyConfig) -> None:
    """Refuse a vision model without images, another model for images, and augmentation of anything else."""
    is_image = isinstance(data, ImageSource)
    if model.reads_images and not is_image:
        raise ConfigError(f'model.kind = "{model.kind}" reads images, and data.kind = "{data.kind}" has none')
    if is_image and not model.reads_images:
        raise ConfigError(f'model.kind = "{model.kind}" does not read images; use {_readers(data)}')
    if is_image and bool(data.shape().frames) != model.reads_clips:
        what = "clips" if data.shape().frames else "single images"
        raise ConfigError(f'model.kind = "{model.kind}" does not read {what}; use {_readers(data)}')
    if is_image and data.shape().frames and task.augment.is_used:
        raise ConfigError("task.augment varies single images, and these are clips; leave it out")
    if is_image:
        shape, config = data.shape(), cast(Any, model)
        with torch.device("meta"):
            config.build_encoder(Pixels(shape.channels, shape.height, shape.width))  # refuses sizes that do not fit
    if task.augment.is_used and not is_image:
        raise ConfigError("task.augment varies images, and there are none; leave it out")


def _readers(data: ImageSource) -> str:
    """Kinds of models that read the images, or the clips, of a source."""
    is_clip, members = bool(data.shape().frames), union_members(ClassifierConfig)
    return ", ".join(kind_of(member) for member in members if member.reads_images and member.reads_clips == is_clip)
