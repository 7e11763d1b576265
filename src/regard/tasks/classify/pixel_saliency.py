"""Saliency of a model that reads images or clips: gradient x input with respect to the normalized pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from regard.device import module_device
from regard.look.pixel_saliency import PixelSaliency
from regard.look.saliency import gradient_x_input
from regard.models.base import Classifier
from regard.tasks.classify.images import ImageInput

Outputs = Callable[[Tensor], tuple[Sequence[str], Tensor]]
"""Output of the head (1, C) -> the names of what is attributed, and their values (K,), with gradients"""


def pixel_saliency(module: Classifier, encoder: ImageInput, pixels: np.ndarray, outputs: Outputs) -> PixelSaliency:
    """Attribution of outputs to the pixels, from 0 to 255, of an image (C, Y, X) or a clip (T, C, Y, X)."""
    source = encoder.collate([encoder.encode_pixels(pixels).row]).to(module_device(module))
    with torch.enable_grad():
        inputs: Tensor = source.pixels.detach().clone().requires_grad_()
        names, values_K = outputs(module.readout(module(replace(source, pixels=inputs))))
        scores = gradient_x_input(values_K, inputs)
    frames_TCYX = pixels if pixels.ndim == 4 else pixels[None]
    shape = (*frames_TCYX.shape[:1], *frames_TCYX.shape[2:], 3)
    colors = np.ascontiguousarray(np.broadcast_to(frames_TCYX.transpose(0, 2, 3, 1), shape))
    return PixelSaliency(
        tuple(names), colors, scores.reshape(len(scores), *frames_TCYX.shape), encoder.shape.channel_names
    )
