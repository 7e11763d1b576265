"""The jobs that regard can do, one file each; the union below is the list that a recipe's task.kind chooses from."""

from __future__ import annotations

from typing import get_args

from regard.tasks.base import Answer, Asked, Evaluation, Model, Recipe, Starter
from regard.tasks.classify.recipe import ClassifyRecipe
from regard.tasks.forecast.recipe import ForecastRecipe
from regard.tasks.generate.recipe import GenerateRecipe
from regard.tasks.label.recipe import LabelRecipe
from regard.tasks.translate.recipe import TranslateRecipe
from regard.tasks.vectors.recipe import VectorsRecipe

AnyRecipe = TranslateRecipe | GenerateRecipe | ClassifyRecipe | ForecastRecipe | LabelRecipe | VectorsRecipe
"""One member a job; the first is what a recipe without task.kind means."""

Recipe.jobs = get_args(AnyRecipe)

__all__ = [
    "Answer",
    "AnyRecipe",
    "Asked",
    "ClassifyRecipe",
    "Evaluation",
    "ForecastRecipe",
    "GenerateRecipe",
    "LabelRecipe",
    "Model",
    "Recipe",
    "Starter",
    "TranslateRecipe",
    "VectorsRecipe",
]
