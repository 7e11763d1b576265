"""torch.compile of layers, with a clear error before training if no compiler works."""

from __future__ import annotations

import torch
from torch import nn

from regard.errors import ConfigError
from regard.models.base import Layer


def compile_layers(model: nn.Module) -> None:
    """Compile each Layer at its first call; torch finds a missing compiler only then, so one line is tried at once."""
    device = next(model.parameters()).device
    try:
        torch.compile(lambda x: x.sin() + 1, dynamic=True)(torch.ones(3, device=device))
    except RuntimeError as error:
        reason = str(error).removeprefix("backend='inductor' raised:").strip().splitlines()[0]
        raise ConfigError(
            f"train.compile = true needs a C++ compiler that works, and torch has found none ({reason}); "
            "install g++, or name one in CXX, or leave train.compile out"
        ) from error
    for module in model.modules():
        if isinstance(module, Layer):
            module.compile(dynamic=True)
