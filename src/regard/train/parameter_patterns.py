"""Frozen parameters and learning rates by group, chosen by patterns of parameter names (train.freeze, train.rates).

A pattern is that of fnmatch: "encoder.*" is all of the encoder, "*.norm.*" every norm. A tied weight has several names,
and a pattern that matches one of them means the weight.
"""

from __future__ import annotations

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


def rate_multipliers(model: nn.Module, rates: dict[str, float]) -> dict[nn.Parameter, float]:
    """Learning-rate multipliers of the parameters that match a pattern; if several match, their product.

    >>> layer = nn.Linear(3, 2)
    >>> [rate_multipliers(layer, {"*": 0.5, "b*": 0.1})[p] for p in (layer.weight, layer.bias)]
    [0.5, 0.05]
    """
    found: dict[nn.Parameter, float] = {}
    for pattern, rate in rates.items():
        for parameter in matching_parameters(model, pattern, "train.rates"):
            found[parameter] = found.get(parameter, 1.0) * rate
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
