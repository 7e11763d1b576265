"""Saliency of an image classifier: gradient x input with respect to the normalized pixels."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from regard.device import module_device
from regard.look.pixel_saliency import PixelSaliency
from regard.look.saliency import gradient_x_input, log_odds
from regard.models.base import Classifier
from regard.sequence import Images
from regard.tasks.classify.images import ImageInput
from regard.tasks.classify.labels import Labels


def pixel_saliency(module: Classifier, encoder: ImageInput, labels: Labels, pixels_CYX: np.ndarray) -> PixelSaliency:
    """Attribution of the predicted label's log-odds to the pixels (channels, rows, columns), from 0 to 255."""
    images = encoder.collate([encoder.encode_pixels(pixels_CYX).row]).to(module_device(module))
    with torch.enable_grad():
        inputs_BCYX: Tensor = images.pixels.detach().clone().requires_grad_()
        out_C = module.readout(module(Images(inputs_BCYX)))[0]
        best = int(out_C.argmax())
        scores_CYX = gradient_x_input(log_odds(out_C[None])[:, best], inputs_BCYX)[0]
    title = f"{labels.names[best]} {float(out_C.detach().softmax(-1)[best]):.2f}"
    colors = np.broadcast_to(pixels_CYX.transpose(1, 2, 0), (*pixels_CYX.shape[1:], 3))
    return PixelSaliency(title, np.ascontiguousarray(colors), scores_CYX, encoder.shape.channel_names)
