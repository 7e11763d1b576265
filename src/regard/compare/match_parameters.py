"""Parameter matching: scale a model's widths until it has a given number of parameters."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from regard import config
from regard.distributed import ProcessGroup
from regard.errors import ConfigError
from regard.models.base import parameters
from regard.tasks import Recipe

R = TypeVar("R", bound=Recipe)
WIDTHS = frozenset({"width", "ffn_width", "embedding", "alignment", "maxout"})
"""settings of models that are widths: they are scaled together"""
MULTIPLE = 8
"""widths are multiples of this, and of the number of heads"""
ROUNDS = 12
"""rounds of bisection; models are built on the meta device"""


def match_parameters(recipe: R, run: Path, target: int, tolerance: float) -> R:
    """The recipe with all widths of its model scaled by one factor, so that it has about `target` parameters.

    `run` holds prepared data, since the vocabulary counts too.
    """
    table = config.plain(recipe.model)
    low, high, best = 1 / 64, 64.0, (math.inf, recipe)
    for _ in range(ROUNDS):
        factor = math.sqrt(low * high)
        model = config.parse(type(recipe.model), scale_widths(table, factor), "model")
        candidate = replace(recipe, model=model)  # type: ignore[call-arg]
        count = count_parameters(candidate, run)
        best = min(best, (abs(count - target) / target, candidate), key=lambda found: found[0])
        low, high = (factor, high) if count < target else (low, factor)
    if best[0] > tolerance:
        count = count_parameters(best[1], run)
        raise ConfigError(
            f"no width gives {target:,} parameters within {100 * tolerance:g} %; the nearest is "
            f"{count:,} ({best[1].model.summary}); change budget.parameters, or the model's layers"
        )
    return best[1]


def scale_widths(table: Any, factor: float) -> Any:
    """A model's settings with its widths scaled.

    >>> scale_widths({"kind": "transformer", "width": 100, "ffn_width": 400, "heads": 3, "layers": 2}, 0.5)
    {'kind': 'transformer', 'width': 48, 'ffn_width': 200, 'heads': 3, 'layers': 2}
    """
    if not isinstance(table, dict):
        return table
    with_heads = math.lcm(MULTIPLE, table.get("heads", 1))

    def value(key: str, item: Any) -> Any:
        if key not in WIDTHS:
            return scale_widths(item, factor)
        step = with_heads if key == "width" else MULTIPLE
        return max(step, round(item * factor / step) * step)

    return {key: value(key, item) for key, item in table.items()}


def count_parameters(recipe: Recipe, run: Path) -> int:
    """Parameters of a recipe's model, with the vocabulary of a prepared run.

    The model is built on the meta device, unless the task initializes weights from data (a forecaster's linear skip).
    """
    try:
        with torch.device("meta"):
            return parameters(recipe.training_parts(run, ProcessGroup())[0])
    except (RuntimeError, TypeError):  # values were needed, and meta tensors have none
        return parameters(recipe.training_parts(run, ProcessGroup())[0])
