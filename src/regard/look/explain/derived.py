"""Records that views compute from others with NumPy, computed again by torch operations, so that a tape has them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.look.image_overlay import PIXEL_MEAN, PIXEL_SCALE, find_image
from regard.look.image_records import PIXELS, ROLLOUT, SIMILARITY
from regard.look.image_views import find_patches
from regard.look.rollout import image_attention, pools_first
from regard.trace import Record


def derived_records(records: Sequence[Record]) -> list[Record]:
    """Condensed `records`; pixels, rollout and similarity of positions are made by torch operations."""
    make = {PIXELS: _pixels, ROLLOUT: _rollout, SIMILARITY: _similarity}
    return [
        Record(r.name, r.axes, make[r.name](records)[None], r.labels, r.context) if r.name in make else r
        for r in records
    ]


def _pixels(records: Sequence[Record]) -> Tensor:
    """As image_pixels(): the standardized numbers in the range from 0 to 255."""
    image = find_image(records)
    assert image is not None
    x = image.data[0].double()
    if PIXEL_MEAN in image.context:
        mean_C, scale_C = (
            torch.tensor(image.context[name]).double().view(-1, 1, 1) for name in (PIXEL_MEAN, PIXEL_SCALE)
        )
        x = x * scale_C + mean_C
    else:
        low, high = float(x.min()), float(x.max())
        x = (x - low) * (255 / (high - low) if high > low else 0.0)
    x = x.round().clamp(0, 255).movedim(-3, -1)
    return x.repeat_interleave(3, -1) if x.shape[-1] == 1 else x[..., :3]


def _rollout(records: Sequence[Record]) -> Tensor:
    """As attention_rollout(), from what the classifier reads."""
    patches = find_patches(records)
    by_name = {record.name: record.data[0] for record in records}
    base = patches.name.removesuffix("patches")
    weights = [by_name[f"{base}layers.{layer}.attention.weights"].double() for layer in image_attention(records)]
    rollout = torch.eye(weights[0].shape[-1], dtype=torch.float64)
    for weights_HSS in weights:
        mixed = (weights_HSS.mean(0) + torch.eye(len(rollout), dtype=torch.float64)) / 2
        rollout = (mixed / mixed.sum(-1, keepdim=True)) @ rollout
    shape = patches.data.shape[1:3]
    row_S = rollout[0] if pools_first(records) else rollout.mean(0)
    return row_S[-shape.numel() :].reshape(shape)


def _similarity(records: Sequence[Record]) -> Tensor:
    """As position_similarity_view(): cosines of the position embeddings."""
    patches = find_patches(records)
    down, across = patches.data.shape[1:3]
    name = f"{patches.name.removesuffix('patches')}position"
    position = next(record for record in records if record.name == name)
    units = F.normalize(position.data[0, -down * across :].double(), dim=1)
    return (units @ units.t()).reshape(down, across, down, across)
