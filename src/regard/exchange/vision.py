"""ResNet and ViT (Hugging Face's ResNetForImageClassification, ViTForImageClassification) as classifiers, and back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.data.scaling import SCALE_FILE
from regard.errors import ModelError
from regard.exchange.exported_model import ExportedModel, render_json
from regard.exchange.family import ImportedModel, ModelFamily, Origin, build_on_meta, check_layers
from regard.exchange.image_preprocessing import PREPROCESSOR, describe_preprocessing, read_preprocessing
from regard.exchange.settings import ForeignSettings
from regard.exchange.weight_table import TensorSource, WeightRow, expand, linear, same
from regard.models.resnet import ResNetConfig
from regard.models.vit import ViTConfig
from regard.tasks.classify.config import ClassifyConfig
from regard.tasks.classify.image_sources import ImportedImages
from regard.tasks.classify.images import ImageInput
from regard.tasks.classify.labels import LABELS, Labels
from regard.tasks.classify.recipe import ClassificationModel, ClassifyRecipe

TRACKED = "num_batches_tracked"
"""a whole number that batch normalization counts"""
CHANNELS = {1: "gray", 3: "color"}


class ImageFamily(ModelFamily):
    """Classifiers of images."""

    pool: ClassVar[str]
    """the pooling before the head"""
    architecture: ClassVar[str]

    @abstractmethod
    def write_config(self, model: Any, source: ImageInput) -> dict[str, Any]:
        """The config.json of a model."""

    @abstractmethod
    def image_size(self, found: ForeignSettings) -> int | None:
        """The size of images that a config.json gives; None: any."""

    @abstractmethod
    def check_export(self, model: Any, path: Path) -> None:
        """Refuse a model that differs from theirs, by the setting."""

    def import_model(
        self, found: ForeignSettings, source: TensorSource, folder: Path, origin: Origin
    ) -> tuple[ImportedModel, Iterable[WeightRow]]:
        model, labels = self.read_config(found), read_labels(found)
        channels = found.whole("num_channels", 3)
        if channels not in CHANNELS:
            raise ModelError(f"{found.path}: num_channels = {channels}, and images here have 1 or 3")
        preprocessing = read_preprocessing(folder, channels, self.image_size(found))
        recipe = ClassifyRecipe(
            data=ImportedImages(
                source=origin.name, license=origin.license, size=preprocessing.shape.height,
                color=CHANNELS[channels], resize=preprocessing.shape.resize,  # type: ignore[arg-type]
            ),
            model=model,
            task=ClassifyConfig(pool=self.pool, dropout=0.0),  # type: ignore[arg-type]
        )  # fmt: skip
        encoder = ImageInput(preprocessing.scaler, preprocessing.shape)
        rows = list(self.rows(model))
        check_layers(found.path, len(rows) // 8, source)
        module = build_on_meta(recipe.build, encoder, labels)
        artifacts = {LABELS: render_json(asdict(labels)), SCALE_FILE: render_json(asdict(preprocessing.scaler))}
        counts = {row.ours: row.theirs[0] for row in rows if row.ours.endswith(TRACKED)}
        given = {ours: read_count(source, theirs) for ours, theirs in counts.items()}
        kept = [row for row in rows if row.ours not in counts]
        return ImportedModel(recipe, module, artifacts, preprocessing.notes, given), kept

    def is_unused(self, name: str) -> bool:
        return name.endswith(TRACKED)


class ResNetFamily(ImageFamily):
    """ResNet with basic or bottleneck blocks."""

    model_types = ("resnet",)
    prefix = "resnet."
    pool = "mean"
    architecture = "ResNetForImageClassification"

    def read_config(self, found: ForeignSettings) -> ResNetConfig:
        found.require("hidden_act", "relu")
        found.require("downsample_in_first_stage", False)
        found.require("downsample_in_bottleneck", False)
        found.require("layer_type", "bottleneck", "basic")
        block, width = found.get("layer_type", "bottleneck"), found.whole("embedding_size", 64)
        depths, sizes = found.get("depths", [3, 4, 6, 3]), found.get("hidden_sizes", [256, 512, 1024, 2048])
        if not isinstance(depths, list) or not all(type(depth) is int and 0 < depth < 1000 for depth in depths):
            raise ModelError(f"{found.path}: depths = {depths!r}, expected the number of blocks of each stage")
        expected = stage_sizes(width, block, len(depths))
        if sizes != expected:
            raise ModelError(
                f"{found.path}: hidden_sizes = {sizes!r}, and the model here has {expected}: stages begin with "
                f"embedding_size = {width} and double"
            )
        return ResNetConfig(depths=tuple(depths), width=width, block=block)

    def image_size(self, found: ForeignSettings) -> None:
        """None: a mean over the feature map reads any size."""

    def check_export(self, model: ResNetConfig, path: Path) -> None:
        if model.stem != "large" or model.shortcut != "projection":
            raise ModelError(
                f'{path}: model.stem = "{model.stem}" and model.shortcut = "{model.shortcut}"; {self.architecture} has '
                '"large" and "projection" only'
            )

    def write_config(self, model: ResNetConfig, source: ImageInput) -> dict[str, Any]:
        return {
            "model_type": "resnet", "hidden_act": "relu", "layer_type": model.block, "depths": list(model.depths),
            "embedding_size": model.width, "hidden_sizes": stage_sizes(model.width, model.block, len(model.depths)),
            "downsample_in_first_stage": False, "downsample_in_bottleneck": False,
        }  # fmt: skip

    def rows(self, model: ResNetConfig) -> Iterator[WeightRow]:
        yield from conv_norm("encoder.stem", "resnet.embedder.embedder")
        convolutions = 2 if model.block == "basic" else 3
        for stage, depth in enumerate(model.depths):
            for block in range(depth):
                ours, theirs = f"encoder.stages.{stage}.{block}", f"resnet.encoder.stages.{stage}.layers.{block}"
                for number in range(convolutions):
                    yield from conv_norm(f"{ours}.convs.{number}", f"{theirs}.layer.{number}")
                if not block and (stage or model.block == "bottleneck"):
                    yield from conv_norm(f"{ours}.shortcut.conv", f"{theirs}.shortcut")
        yield from linear("readout", "classifier.1")


class ViTFamily(ImageFamily):
    """The Vision Transformer."""

    model_types = ("vit",)
    prefix = "vit."
    pool = "first"
    architecture = "ViTForImageClassification"

    def read_config(self, found: ForeignSettings) -> ViTConfig:
        width = found.whole("hidden_size", 768)
        found.require("hidden_act", "gelu")
        found.require("qkv_bias", True)
        found.require("layer_norm_eps", 1e-12)
        found.require("intermediate_size", 4 * width)
        return ViTConfig(
            layers=found.whole("num_hidden_layers", 12), width=width, heads=found.whole("num_attention_heads", 12),
            patch=square(found, "patch_size", 16), dropout=found.number("hidden_dropout_prob", 0.0),
        )  # fmt: skip

    def image_size(self, found: ForeignSettings) -> int:
        return square(found, "image_size", 224)

    def check_export(self, model: ViTConfig, path: Path) -> None:
        """Nothing: all settings are theirs."""

    def write_config(self, model: ViTConfig, source: ImageInput) -> dict[str, Any]:
        return {
            "model_type": "vit", "hidden_act": "gelu", "qkv_bias": True, "layer_norm_eps": 1e-12,
            "num_hidden_layers": model.layers, "hidden_size": model.width, "intermediate_size": 4 * model.width,
            "num_attention_heads": model.heads, "patch_size": model.patch, "image_size": source.shape.height,
            "hidden_dropout_prob": model.dropout, "attention_probs_dropout_prob": 0.0,
        }  # fmt: skip

    def rows(self, model: ViTConfig) -> Iterator[WeightRow]:
        yield from same("encoder.cls_token", "vit.embeddings.cls_token")
        yield from same("encoder.positions", "vit.embeddings.position_embeddings")
        yield from linear("encoder.embed", "vit.embeddings.patch_embeddings.projection")
        yield from expand(model.layers, self._layer)
        yield from linear("encoder.norm", "vit.layernorm")
        yield from linear("readout", "classifier")

    def _layer(self, number: int) -> Iterator[WeightRow]:
        ours, theirs = f"encoder.layers.{number}", f"vit.encoder.layer.{number}"
        projections = (f"{theirs}.attention.attention.{name}" for name in ("query", "key", "value"))
        yield from linear(f"{ours}.attention.qkv", *projections)
        yield from linear(f"{ours}.attention.out", f"{theirs}.attention.output.dense")
        yield from linear(f"{ours}.norm1", f"{theirs}.layernorm_before")
        yield from linear(f"{ours}.norm2", f"{theirs}.layernorm_after")
        yield from linear(f"{ours}.ffn.up", f"{theirs}.intermediate.dense")
        yield from linear(f"{ours}.ffn.down", f"{theirs}.output.dense")

    def is_unused(self, name: str) -> bool:
        """The pooler, which a classifier does not read, and the mask token of another pre-training."""
        return name.startswith("vit.pooler.") or name == "vit.embeddings.mask_token"


def describe_image_classifier(model: ClassificationModel, path: Path) -> ExportedModel:
    """A classifier of images for transformers; one that it does not have is refused by name."""
    shape, encoder = model.recipe.model, model.image_input()
    if not isinstance(shape, ResNetConfig | ViTConfig):
        raise ModelError(
            f'{path}: model.kind = "{shape.kind}" of the task classify cannot be written as a Hugging Face folder; of '
            "images there are resnet and vit"
        )
    family: ImageFamily = ResNetFamily() if isinstance(shape, ResNetConfig) else ViTFamily()
    family.check_export(shape, path)
    if model.recipe.task.pool != family.pool:
        raise ModelError(
            f'{path}: task.pool = "{model.recipe.task.pool}", and {family.architecture} reads "{family.pool}" only; '
            f"train it with task.pool = {family.pool}"
        )
    labels = label_config(model.labels.names)
    known = {"architectures": [family.architecture], "num_channels": encoder.shape.channels, **labels}
    files = {PREPROCESSOR: render_json(describe_preprocessing(encoder))}
    return ExportedModel(family.write_config(shape, encoder) | known, family.rows(shape), files)


def label_config(names: Iterable[str]) -> dict[str, Any]:
    """Labels in a config.json."""
    numbered = list(enumerate(names))
    return {"id2label": {str(i): name for i, name in numbered}, "label2id": {name: i for i, name in numbered}}


def read_labels(found: ForeignSettings) -> Labels:
    """The labels of a config.json, in the order of their ids."""
    table = found.get("id2label")
    if not isinstance(table, dict) or not all(isinstance(name, str) for name in table.values()):
        raise ModelError(f"{found.path}: expected the names of labels under id2label; it is not a classifier")
    names = {str(key): name for key, name in table.items()}
    if set(names) != {str(i) for i in range(len(names))} or len(names) < 2:
        raise ModelError(f"{found.path}: id2label has {len(names)} labels; expected two or more, numbered from 0")
    return Labels(tuple(" ".join(names[str(i)].split()) for i in range(len(names))), (0,) * len(names))


def read_count(source: TensorSource, name: str) -> Tensor:
    """A whole number of their model; 0 if there is none."""
    return source.read(name).long().reshape(()) if name in source.shapes() else torch.zeros((), dtype=torch.long)


def square(found: ForeignSettings, name: str, default: int) -> int:
    """A size that is one number, or the same twice."""
    value = found.get(name, default)
    sides = value if isinstance(value, list) else [value]
    if len(set(map(str, sides))) != 1 or type(sides[0]) is not int or sides[0] < 1:
        raise ModelError(f"{found.path}: {name} = {value!r}, and images and patches here are square")
    return sides[0]


def stage_sizes(width: int, block: str, stages: int) -> list[int]:
    """Channels that each stage of a ResNet puts out.

    >>> stage_sizes(64, "bottleneck", 4)
    [256, 512, 1024, 2048]
    """
    return [(width << stage) * (4 if block == "bottleneck" else 1) for stage in range(stages)]


def conv_norm(ours: str, theirs: str) -> Iterator[WeightRow]:
    """A convolution and the batch normalization after it."""
    yield from same(f"{ours}.conv.weight", f"{theirs}.convolution.weight")
    yield from linear(f"{ours}.norm", f"{theirs}.normalization")
    for name in ("running_mean", "running_var", TRACKED):
        yield from same(f"{ours}.norm.{name}", f"{theirs}.normalization.{name}")
