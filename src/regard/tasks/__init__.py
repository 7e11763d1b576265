"""The tasks, one folder each; task.kind of a recipe chooses one of the union below."""

from __future__ import annotations

from typing import get_args

from regard.tasks.base import EvalRequest, Evaluation, Model, Recipe, RecipeTemplate, ScoredExample
from regard.tasks.classify.recipe import ClassifyRecipe
from regard.tasks.forecast.recipe import ForecastRecipe
from regard.tasks.generate.recipe import GenerateRecipe
from regard.tasks.label.recipe import LabelRecipe
from regard.tasks.translate.recipe import TranslateRecipe
from regard.tasks.vectors.recipe import VectorsRecipe

AnyRecipe = TranslateRecipe | GenerateRecipe | ClassifyRecipe | ForecastRecipe | LabelRecipe | VectorsRecipe
"""One member per task; the first is the default of a recipe without task.kind."""
RECIPES: tuple[type[Recipe], ...] = get_args(AnyRecipe)
"""The same as a tuple, which Recipe.read looks task.kind up in"""

__all__ = [
    "RECIPES", "AnyRecipe", "ClassifyRecipe", "EvalRequest", "Evaluation", "ForecastRecipe", "GenerateRecipe",
    "LabelRecipe", "Model", "Recipe", "RecipeTemplate", "ScoredExample", "TranslateRecipe", "VectorsRecipe",
]  # fmt: skip
