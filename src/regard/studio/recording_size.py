"""Memory of the recording of a pass, and how long a text a language model may generate within it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def memory_estimate(recipe: Mapping[str, Any], tokens: int, beam: int | None, length: int | None = None) -> float:
    """Estimated size of a recording in GB: heads tap all their keys and values at every step.

    `length`: tokens that are generated, at most; None: as the recipe says.
    """
    model, task, decode = (recipe.get(name, {}) for name in ("model", "task", "decode"))
    if "heads" not in model:
        return 0.0
    positions = tokens + int((task.get("length") or 0) if length is None else length)
    rows = beam or decode.get("beam", 4)
    return 16 * positions**2 * rows * model.get("width", 512) * model.get("layers", 6) / 1e9


def recordable_length(recipe: Mapping[str, Any], tokens: int, beam: int | None, limit: float) -> int | None:
    """Tokens that a language model may generate within `limit` GB, at least 1; None: as many as its recipe says.

    >>> recipe = {"model": {"heads": 9, "width": 576, "layers": 30}, "task": {"length": 200}, "decode": {"beam": 1}}
    >>> recordable_length(recipe, tokens=5, beam=None, limit=2), recordable_length(recipe, 5, None, limit=20)
    (80, None)
    """
    if memory_estimate(recipe, tokens, beam) <= limit:
        return None
    positions = math.isqrt(int(limit / memory_estimate(recipe, 1, beam, 0)))
    return max(1, positions - tokens)
