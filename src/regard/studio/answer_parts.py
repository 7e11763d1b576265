"""Parts of an answer that the page draws: intervals of a forecast, labels of words, the usual range of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

import regard
from regard.studio.image_input import image_model
from regard.studio.model_store import ModelEntry
from regard.tasks.generate.model import GenerationModel
from regard.tasks.regress.recipe import RegressionModel

MOVING_SHAPES = "moving-shapes"
"""data.kind of clips whose numbers are a position in pixels"""


def answer_with_parts(
    model: regard.Model, text: str, pixels: np.ndarray | None, length: int | None = None
) -> tuple[str, dict[str, Any]]:
    """The answer of a model to a text, or to an image or clip, and the parts that the same pass gives.

    `length`: tokens that a language model generates at most; None: as its recipe says.
    """
    if isinstance(model, GenerationModel) and length is not None:
        return model.generate(text, length=length), {}
    if pixels is None:
        return model.predict_parts(text)
    return image_model(model).predict_pixels(pixels), number_ranges(model)


def number_ranges(model: regard.Model) -> dict[str, Any]:
    """Of a regression model: mean and standard deviation of each number in the training data; else nothing."""
    if not isinstance(model, RegressionModel):
        return {}
    targets = model.targets
    rows = zip(targets.names, targets.mean, targets.scale, strict=True)
    numbers = [{"name": name, "mean": mean, "deviation": scale} for name, mean, scale in rows]
    return {"numbers": numbers, "is_position": model.recipe.data.kind == MOVING_SHAPES}


def with_typical_error(parts: dict[str, Any], entry: ModelEntry) -> dict[str, Any]:
    """The parts of an answer with the root mean square error in validation, where the answer is numbers."""
    return {**parts, "rmse": entry.summary.best.get("rmse")} if "numbers" in parts else parts
