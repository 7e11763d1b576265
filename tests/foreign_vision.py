"""Hugging Face folders of image classifiers with random weights, saved by transformers with their preprocessing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from transformers import (
    PreTrainedModel,
    ResNetConfig,
    ResNetForImageClassification,
    ViTConfig,
    ViTForImageClassification,
)

LABELS = {0: "zebra", 1: "été", 2: "a dog"}
PREPROCESSING = {
    "size": {"height": 32, "width": 32}, "do_normalize": True, "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.2, 0.3, 0.4], "rescale_factor": 1 / 255, "resample": 2,
}  # fmt: skip
RESNET = {"embedding_size": 4, "depths": [1, 2], "num_channels": 3}
VIT = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32,
    "patch_size": 8,
}  # fmt: skip


def save(model: PreTrainedModel, folder: Path, **preprocessing: Any) -> tuple[PreTrainedModel, Path]:
    torch.manual_seed(5)
    for name, tensor in model.state_dict().items():
        if "running_var" in name:
            tensor.uniform_(0.5, 2.0)
        elif "num_batches" in name:
            tensor.fill_(7)
        elif tensor.is_floating_point():
            tensor.normal_(std=0.3)
    model.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(PREPROCESSING | preprocessing))
    return model.eval(), folder


def resnet(folder: Path, kind: str) -> tuple[PreTrainedModel, Path]:
    sizes = [4, 8] if kind == "basic" else [16, 32]
    config = ResNetConfig(**RESNET, hidden_sizes=sizes, layer_type=kind, id2label=LABELS)
    return save(ResNetForImageClassification(config), folder)


def vit(folder: Path) -> tuple[PreTrainedModel, Path]:
    return save(ViTForImageClassification(ViTConfig(**VIT, id2label=LABELS)), folder)


IMAGE_MODELS = {
    "resnet-basic": lambda folder: resnet(folder, "basic"),
    "resnet-bottleneck": lambda folder: resnet(folder, "bottleneck"),
    "vit": vit,
}
