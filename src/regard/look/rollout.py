"""Attention over an image: attention rollout (Abnar and Zuidema 2020), and the weights of single heads over patches.

Rollout follows information through all layers: with the residual connection, each layer passes on half of a position
and half of what it attends to, A = (W + I) / 2 for W the mean of the heads; the product of all layers says how much of
each input position there is in each output position.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from torch import Tensor

from regard.errors import ConfigError, ModelError
from regard.look.image_overlay import ImageOverlay, find_image, image_pixels
from regard.look.image_views import NOT_AN_IMAGE, find_patches
from regard.trace import Record


def attention_rollout(layers: Sequence[Tensor]) -> Tensor:
    """(S, S): rollout of attention weights (heads, S, S) of successive layers, the first layer first.

    >>> attention_rollout([torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])])
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]], dtype=torch.float64)
    """
    identity_SS = torch.eye(layers[0].shape[-1], dtype=torch.float64)
    rollout_SS = identity_SS
    for weights_HSS in layers:
        mixed_SS = (weights_HSS.double().mean(0) + identity_SS) / 2
        rollout_SS = (mixed_SS / mixed_SS.sum(-1, keepdim=True)) @ rollout_SS
    return rollout_SS


def image_attention(records: Sequence[Record], row: int = 0) -> dict[int, Tensor]:
    """Self-attention weights (heads, S, S) of each layer over the patches of an image."""
    base = re.escape(find_patches(records).name.removesuffix("patches"))
    found = {}
    for record in records:
        if layer := re.fullmatch(rf"{base}layers\.(\d+)\.attention\.weights", record.name):
            found[int(layer[1])] = record.data[row].detach().cpu().float()
    if not found:
        raise ModelError("no attention over patches was recorded")
    return dict(sorted(found.items()))


def pools_first(records: Sequence[Record]) -> bool:
    """Whether the classifier reads the state of [CLS]: then the pooled features are that state."""
    base = find_patches(records).name.removesuffix("patches")
    by_name = {record.name: record.data for record in records}
    states, features = by_name.get(f"{base}norm.normalized"), by_name.get("features")
    return states is None or features is None or bool((states[0, 0] == features[0]).all())


def rollout_view(records: Sequence[Record], layer: int | None = None, row: int = 0) -> ImageOverlay:
    """Rollout from the classifier's input through all layers, or through those up to `layer`, over the image."""
    weights = image_attention(records, row)
    last = max(weights) if layer is None or layer == -1 else layer
    _check_layer(last, weights)
    rollout_SS = attention_rollout([w for number, w in weights.items() if number <= last])
    return _overlay(records, f"attention rollout through layers 0 to {last}", [rollout_SS], ["rollout"], row)


def patch_rollout(records: Sequence[Record]) -> Tensor:
    """(rows, columns): rollout from the classifier's input through all layers to the patches."""
    shape = find_patches(records).data.shape[1:3]
    rollout_SS = attention_rollout(list(image_attention(records).values()))
    return query_row(rollout_SS, shape.numel(), pools_first(records))[0].reshape(shape)


def attention_overlay(
    records: Sequence[Record], layer: int | None = None, head: int | None = None, row: int = 0
) -> ImageOverlay:
    """Attention weights of one layer over the image: the mean of its heads and each head, or one head."""
    weights = image_attention(records, row)
    last = max(weights) if layer is None or layer == -1 else layer
    _check_layer(last, weights)
    heads = weights[last]
    if head is not None and not 0 <= head < len(heads):
        raise ConfigError(f"head: layer {last} has the heads 0 to {len(heads) - 1}, got {head}")
    if head is not None:
        matrices, labels = [heads[head]], [f"head {head}"]
    else:
        matrices = [heads.double().mean(0), *heads] if len(heads) > 1 else [*heads]
        labels = [f"mean of {len(heads)} heads", *(f"head {i}" for i in range(len(heads)))][-len(matrices) :]
    return _overlay(records, f"attention of layer {last}", matrices, labels, row)


def query_row(matrix_SS: Tensor, patches: int, first: bool) -> tuple[Tensor, float]:
    """Weights over the patches, and on [CLS], of what the classifier reads: the [CLS] token, or the mean of all."""
    weights_S = matrix_SS[0] if first else matrix_SS.mean(0)
    return weights_S[-patches:], float(weights_S[:-patches].sum())


def _overlay(
    records: Sequence[Record], title: str, matrices: Sequence[Tensor], labels: Sequence[str], row: int
) -> ImageOverlay:
    image, shape = find_image(records), find_patches(records).data.shape[1:3]
    if image is None:
        raise ModelError(NOT_AN_IMAGE)
    first = pools_first(records)
    rows = [query_row(matrix, shape[0] * shape[1], first) for matrix in matrices]
    maps = torch.stack([weights.reshape(shape).double() for weights, _ in rows]).numpy()
    title += ", from [CLS]" if first else ", mean over all positions"
    notes = [f"{on_cls:.4f} on [CLS]" for _, on_cls in rows]
    return ImageOverlay(title, image_pixels(image, row), maps, list(labels), notes)


def _check_layer(layer: int, weights: dict[int, Tensor]) -> None:
    if layer not in weights:
        raise ConfigError(f"layer: the layers are {', '.join(map(str, weights))}, got {layer}")
