"""Models of one size: widths that give a model about as many parameters as the others have."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from regard import config
from regard.distributed import World
from regard.errors import ConfigError
from regard.models.base import parameters
from regard.tasks import Recipe

R = TypeVar("R", bound=Recipe)
WIDTHS = frozenset({"width", "inner", "embedding", "alignment", "maxout"})
"""Settings of models that are widths: they grow and shrink together."""
GRAIN = 8
"""widths are multiples of it, and of the number of heads"""
ROUNDS = 12
"""models that are tried, on a device without memory"""


def resized(recipe: R, run: Path, wanted: int, tolerance: float) -> R:
    """The recipe with all its model's widths scaled alike, so that it has about `wanted` parameters.

    `run` holds prepared data, since the vocabulary decides too.
    """
    table = config.plain(recipe.model)
    low, high, best = 1 / 64, 64.0, (math.inf, recipe)
    for _ in range(ROUNDS):
        factor = math.sqrt(low * high)
        tried = replace(recipe, model=_parsed(recipe, scaled(table, factor)))  # type: ignore[type-var]
        count = counted(tried, run)
        best = min(best, (abs(count - wanted) / wanted, tried), key=lambda found: found[0])
        low, high = (factor, high) if count < wanted else (low, factor)
    if best[0] > tolerance:
        count = counted(best[1], run)
        raise ConfigError(
            f"no width gives {wanted:,} parameters within {100 * tolerance:g} %; the nearest is "
            f"{count:,} ({best[1].model.shape}); change budget.parameters, or the model's layers"
        )
    return best[1]


def scaled(table: Any, factor: float) -> Any:
    """A model's settings with its widths scaled.

    >>> scaled({"kind": "transformer", "width": 100, "inner": 400, "heads": 3, "layers": 2}, 0.5)
    {'kind': 'transformer', 'width': 48, 'inner': 200, 'heads': 3, 'layers': 2}
    """
    if not isinstance(table, dict):
        return table
    grain = math.lcm(GRAIN, table.get("heads", 1))

    def value(key: str, item: Any) -> Any:
        if key not in WIDTHS:
            return scaled(item, factor)
        step = grain if key == "width" else GRAIN
        return max(step, round(item * factor / step) * step)

    return {key: value(key, item) for key, item in table.items()}


def counted(recipe: Recipe, run: Path) -> int:
    """How many parameters a recipe's model has, with the vocabulary of a prepared run.

    Nothing is allocated, unless a job sets weights from its data, as a forecaster's line is.
    """
    try:
        with torch.device("meta"):
            return parameters(recipe.parts(run, World())[0])
    except (RuntimeError, TypeError):  # numbers were needed, and on that device there are none
        return parameters(recipe.parts(run, World())[0])


def _parsed(recipe: Recipe, table: config.Table) -> Any:
    kind = type(recipe.model)
    return config.parse(kind, table, "model")
