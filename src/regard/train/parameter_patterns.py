"""Frozen parameters and learning rates by group: patterns of names (train.freeze, train.rates) and layer-wise decay.

A pattern is that of fnmatch: "encoder.*" is all of the encoder, "*.norm.*" every norm. A tied weight has several names,
and a pattern that matches one of them means the weight.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from torch import nn

from regard.errors import ConfigError

SHOWN_GROUPS = 12
"""groups of parameters that a message lists"""


def freeze_parameters(model: nn.Module, patterns: Sequence[str]) -> None:
    """Exclude the matching parameters from training: no gradients and no optimizer state.

    Only `requires_grad` is set, as in PyTorch: a frozen layer keeps its dropout.
    """
    for pattern in patterns:
        for parameter in matching_parameters(model, pattern, "train.freeze"):
            parameter.requires_grad_(False)
    if patterns and not any(p.requires_grad for p in model.parameters()):
        names = ", ".join(f'"{pattern}"' for pattern in patterns)
        raise ConfigError(f"train.freeze = [{names}] matches every parameter, so nothing is trained; leave some out")


def rate_multipliers(model: nn.Module, rates: dict[str, float], layer_decay: float = 1.0) -> dict[nn.Parameter, float]:
    """Learning-rate multipliers: of layer-wise decay, times those of all patterns that match.

    >>> layer = nn.Linear(3, 2)
    >>> [rate_multipliers(layer, {"*": 0.5, "b*": 0.1})[p] for p in (layer.weight, layer.bias)]
    [0.5, 0.05]
    """
    found = {} if layer_decay == 1 else layer_multipliers(model, layer_decay)
    for pattern, rate in rates.items():
        for parameter in matching_parameters(model, pattern, "train.rates"):
            found[parameter] = found.get(parameter, 1.0) * rate
    return found


def layer_multipliers(model: nn.Module, decay: float) -> dict[nn.Parameter, float]:
    """Layer-wise learning-rate decay (Clark et al. 2020): `decay` ** (layers from here to the head).

    The top layer has decay, the one below it its square, and so on down to the embedding; heads have 1. An encoder and
    a decoder are counted by themselves. A weight tied to an embedding has the embedding's multiplier.

    >>> from regard.models.bert import BertConfig
    >>> from regard.spaces import Words
    >>> encoder = BertConfig(layers=2, width=4, heads=1, ffn_width=4).build_encoder(Words(9))
    >>> rates = layer_multipliers(encoder, 0.5)
    >>> [rates[part.weight] for part in (encoder.embed, encoder.layers[0].ffn.up, encoder.layers[1].ffn.up)]
    [0.125, 0.25, 0.5]
    """
    found: dict[nn.Parameter, float] = {}
    for name, module in model.named_modules():
        layers = getattr(module, "layers", None)
        if not isinstance(layers, nn.ModuleList) or any(p in found for p in layers.parameters()):
            continue  # the second: layers inside of a layer
        for number, layer in enumerate(layers):
            found |= dict.fromkeys(layer.parameters(), decay ** (len(layers) - number))
        parts = [model, *(model.get_submodule(name[: dot.start()]) for dot in re.finditer(r"\.|$", name))]
        part = next((part for part in reversed(parts) if hasattr(part, "input_parts")), module)
        for child in getattr(part, "input_parts", ()):
            if isinstance(child := getattr(part, child, None), nn.Module):
                found |= dict.fromkeys(child.parameters(), decay ** (len(layers) + 1))
    if not found:
        raise ConfigError(f"train.layer_decay = {decay}: the model has no stack of layers; leave it out")
    return found


def matching_parameters(model: nn.Module, pattern: str, setting: str) -> list[nn.Parameter]:
    """The parameters with a name that matches; `setting` is named in the error if there is none."""
    named = list(model.named_parameters(remove_duplicate=False))
    found = [parameter for name, parameter in named if fnmatchcase(name, pattern)]
    if not found:
        groups = list(dict.fromkeys(".".join([*name.split(".")[:-1][:2], "*"]) for name, _ in named))
        more = ", ..." if len(groups) > SHOWN_GROUPS else ""
        known = f"{', '.join(groups[:SHOWN_GROUPS])}{more} (such as {named[0][0]})"
        raise ConfigError(f'{setting}: "{pattern}" matches no parameter of the model, which has {known}')
    return list(dict.fromkeys(found))
